package health

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// grpcProber checks by grpc.health.v1.Health/Check. Its two messages are a
// string and an enumeration, both in field 1.
type grpcProber struct {
	*transport
	request []byte // one framed message
}

const (
	grpcPath    = "/grpc.health.v1.Health/Check"
	grpcServing = 1
	// maxGRPCAnswer is far more than an answer needs.
	maxGRPCAnswer = 64 << 10
)

func newGRPCProber(c *Config, h *host.Host) *grpcProber {
	var message []byte
	if name := c.Check.GRPC.ServiceName; name != "" {
		message = protobuf.AppendBytes(nil, 1, name)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return &grpcProber{newTransport(c, h, true), append(frame, message...)}
}

// Probe implements Prober.
func (p *grpcProber) Probe(ctx context.Context) Outcome {
	g := &p.c.Check.GRPC
	r := &http.Request{
		Method: http.MethodPost,
		URL:    &url.URL{Scheme: "http", Host: "health.invalid", Path: grpcPath},
		Host:   cmp.Or(p.host.HealthCheckHostname(), g.Authority, p.c.Cluster),
		Header: http.Header{
			"Content-Type": {"application/grpc"},
			"Te":           {"trailers"},
			"User-Agent":   {"grpc-health"},
			"Grpc-Timeout": {strconv.FormatInt(max(int64(p.c.Check.Timeout/time.Millisecond), 1), 10) + "m"},
		},
		Body: io.NopCloser(bytes.NewReader(p.request)), ContentLength: int64(len(p.request)),
	}
	addHeaders(r, g.Metadata)
	resp, err := p.send(r.WithContext(ctx))
	if err != nil {
		return p.c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxGRPCAnswer+1))
	if err != nil {
		return p.c.broken(err)
	}
	// An answer without a message has its status in the header.
	switch status := resp.Trailer.Get("Grpc-Status"); {
	case resp.StatusCode != http.StatusOK:
		return Outcome{Kind: Active, Why: "status " + strconv.Itoa(resp.StatusCode)}
	case status != "0":
		return Outcome{Kind: Active, Why: "no gRPC status 0"}
	case servingStatus(body) != grpcServing:
		return Outcome{Kind: Active, Why: "not serving"}
	}
	return Outcome{Kind: Passed}
}

// servingStatus reads field 1 of a framed HealthCheckResponse. It returns 0, unknown,
// for any other message.
func servingStatus(frame []byte) uint64 {
	if len(frame) < 5 || frame[0] != 0 || uint64(binary.BigEndian.Uint32(frame[1:])) != uint64(len(frame)-5) {
		return 0
	}
	status := uint64(0)
	for b := frame[5:]; len(b) > 0; {
		f, rest, err := protobuf.Next(b)
		if err != nil {
			return 0
		}
		if f.Number == 1 && f.Type == protobuf.Varint {
			status = f.Value
		}
		b = rest
	}
	return status
}
