package remotewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestMalformedPackets: a packet that another process handed over is refused unless all
// of it can be read.
func TestMalformedPackets(t *testing.T) {
	refs := func(list ...byte) []byte { return protobuf.AppendBytes(nil, 1, list) }
	point := protobuf.AppendBytes(nil, 2, protobuf.AppendInt(protobuf.AppendDouble(nil, 1, 5), 2, 1000))
	series := func(parts ...[]byte) []byte {
		var body []byte
		for _, symbol := range []string{"", "__name__", "hits"} {
			body = protobuf.AppendBytes(body, 4, symbol)
		}
		return protobuf.AppendBytes(body, 5, slices.Concat(parts...))
	}
	packed := func(body []byte) []byte { return append([]byte{byte(Version2), 1, 0}, s2.EncodeSnappy(nil, body)...) }
	good := series(refs(1, 2), point)
	for _, tt := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"good", packed(good), true},
		{"no-bytes", nil, false},
		{"no-samples", []byte{byte(Version2)}, false},
		{"cut-samples", []byte{byte(Version2), 0x80}, false},
		{"no-time", []byte{byte(Version2), 1}, false},
		{"cut-time", []byte{byte(Version2), 1, 0x80}, false},
		{"not-compressed", append([]byte{byte(Version2), 1, 0}, good...), false},
		{"cut-request", packed(good[:len(good)-1]), false},
		{"cut-series", packed(series(refs(1, 2), point[:len(point)-1])), false},
		{"cut-sample", packed(series(refs(1, 2), []byte{2<<3 | 2, 1, 1 << 3})), false},
		{"sample-before-labels", packed(series(point, refs(1, 2))), false},
		{"labels-twice", packed(series(refs(1, 2), refs(1, 2), point)), false},
		{"label-without-value", packed(series(refs(1), point)), false},
		{"cut-name", packed(series(refs(0x80), point)), false},
		{"cut-value", packed(series(refs(1, 0x80), point)), false},
		{"unknown-name", packed(series(refs(3, 2), point)), false},
		{"unknown-value", packed(series(refs(1, 3), point)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := unpack(tt.data)
			if err == nil {
				p, err = downgrade(p, false)
			}
			if tt.ok {
				if err != nil || p.version != Version1 || p.samples != 1 {
					t.Errorf("got version %d, %d samples, %v", p.version, p.samples, err)
				}
				return
			}
			s := &Sink{}
			s.version.Store(uint32(Version1))
			if len(tt.data) < 4 && !errors.Is(err, errPacket) {
				t.Errorf("got %v, want %v", err, errPacket)
			}
			if n, refused := s.send(t.Context(), tt.data); err == nil || n != 0 || !errors.Is(refused, sinkqueue.ErrRefused) {
				t.Errorf("got %v; sent %d, %v", err, n, refused)
			}
		})
	}
}

// TestSizeOfRequests: a request ends with the sample that makes it complete, by number
// or by bytes.
func TestSizeOfRequests(t *testing.T) {
	const long = 4000
	for _, version := range []Version{Version1, Version2} {
		for _, tt := range []struct{ series, batch, bytes int }{{8, 3, 0}, {600, 10_000, 1 << 20}} {
			w := write(t, Config{HTTP: to(receive(t, Newest).url), Shards: 1, Version: version, Batch: tt.batch}, store.Options{})
			w.sink.queue.Hold(t.Context()) // so that the packets stay
			for i := range tt.series {
				w.st.Root().Gauge("g", tags.Tag{Name: "x", Value: fmt.Sprint(i) + strings.Repeat("v", min(tt.bytes, long))}).Set(1)
			}
			w.tick()
			all := w.sink.queue.Hold(t.Context())
			if len(all) < 3 {
				t.Errorf("version %d: %d requests", version, len(all))
			}
			for i, one := range all {
				p, err := unpack(one.Data)
				if err != nil {
					t.Fatal(err)
				}
				body, err := s2.Decode(nil, p.body)
				if err != nil {
					t.Fatal(err)
				}
				complete := p.samples == tt.batch
				if tt.bytes > 0 {
					complete = len(body) >= tt.bytes && len(body) < tt.bytes+long+200
				}
				if last := i == len(all)-1; complete == last {
					t.Errorf("version %d: request %d of %d has %d samples and %d bytes", version, i+1, len(all), p.samples, len(body))
				}
			}
			w.sink.queue.Release(true)
			w.stop()
		}
	}
}
