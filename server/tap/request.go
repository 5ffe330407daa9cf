package tap

import (
	"errors"
	"fmt"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Defaults and limits of a request.
const (
	defaultBodyBytes = 1024
	maxBodyBytes     = 1 << 20
)

// settings is a compiled request.
type settings struct {
	id        string
	format    tapv3.OutputSink_Format
	match     matcher
	streaming bool // send parts of traces as they arrive
	received  int  // maximum bytes of a received body
	sent      int

	buffered bool          // send all traces at the end
	traces   uint64        // number of traces that completes a buffered stream
	timeout  time.Duration // of a buffered stream; 0 for none
}

// parse parses a request, which is JSON or YAML.
func parse(body []byte) (*settings, error) {
	var m adminv3.TapRequest
	if err := decode.NewDecoder(decode.Options{}).MessageText("request", body, &m); err != nil {
		return nil, err
	}
	return compile(&m)
}

// compile checks the constraints beyond the rules of single fields.
func compile(m *adminv3.TapRequest) (*settings, error) {
	c := m.GetTapConfig()
	out := c.GetOutputConfig()
	s := &settings{id: m.GetConfigId(), streaming: out.GetStreaming(), received: defaultBodyBytes, sent: defaultBodyBytes}
	sink := out.GetSinks()[0]
	switch k := sink.GetOutputSinkType().(type) {
	case *tapv3.OutputSink_StreamingAdmin:
	case *tapv3.OutputSink_BufferedAdmin:
		s.buffered, s.traces, s.timeout = true, k.BufferedAdmin.GetMaxTraces(), k.BufferedAdmin.GetTimeout().AsDuration()
	default:
		return nil, errors.New("tap_config.output_config.sinks[0]: only streaming_admin and buffered_admin are sinks of an admin stream")
	}
	switch s.format = sink.GetFormat(); s.format {
	case tapv3.OutputSink_JSON_BODY_AS_BYTES, tapv3.OutputSink_JSON_BODY_AS_STRING, tapv3.OutputSink_PROTO_BINARY_LENGTH_DELIMITED:
	default:
		return nil, fmt.Errorf("tap_config.output_config.sinks[0].format: %s cannot be streamed; allowed: "+
			"JSON_BODY_AS_BYTES, JSON_BODY_AS_STRING, PROTO_BINARY_LENGTH_DELIMITED", s.format)
	}
	for _, l := range []struct {
		name string
		to   *int
		v    *wrapperspb.UInt32Value
	}{
		{"max_buffered_rx_bytes", &s.received, out.GetMaxBufferedRxBytes()},
		{"max_buffered_tx_bytes", &s.sent, out.GetMaxBufferedTxBytes()},
	} {
		if l.v.GetValue() > maxBodyBytes {
			return nil, fmt.Errorf("tap_config.output_config.%s: %d not in [0, %d]", l.name, l.v.GetValue(), maxBodyBytes)
		}
		if l.v != nil {
			*l.to = int(l.v.GetValue())
		}
	}
	var err error
	s.match, err = compileMatch(c)
	return s, err
}
