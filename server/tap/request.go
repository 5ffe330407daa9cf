package tap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
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
	text, err := toJSON(body)
	if err != nil {
		return nil, err
	}
	var m adminv3.TapRequest
	if err := protojson.Unmarshal(text, &m); err != nil {
		return nil, plain(err)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return compile(&m)
}

// plain replaces the non-breaking spaces that protobuf puts into its error texts to
// keep callers from depending on them.
func plain(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "\u00a0", " ")) }

// toJSON converts JSON or YAML to JSON.
func toJSON(body []byte) (text []byte, err error) {
	if json.Valid(body) {
		return body, nil
	}
	defer func() {
		if r := recover(); r != nil { // report parser panics as errors
			text, err = nil, fmt.Errorf("not valid YAML: %v", r)
		}
	}()
	var n yaml.Node
	if err := yaml.Load(body, &n); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if err := tree(&n, 0); err != nil {
		return nil, err
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if text, err = json.Marshal(v); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	return text, nil
}

// tree rejects aliases, which could expand a small text into a large one, and deep
// nesting.
func tree(n *yaml.Node, depth int) error {
	const deepest = 64
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d: anchors and aliases are not allowed", n.Line)
	}
	if depth > deepest {
		return fmt.Errorf("line %d: nested deeper than %d levels", n.Line, deepest)
	}
	for _, c := range n.Content {
		if err := tree(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// compile checks the constraints that the message's own validation does not cover.
func compile(m *adminv3.TapRequest) (*settings, error) {
	c := m.GetTapConfig()
	out := c.GetOutputConfig()
	s := &settings{id: m.GetConfigId(), streaming: out.GetStreaming(), received: defaultBodyBytes, sent: defaultBodyBytes}
	if len(out.GetSinks()) != 1 {
		return nil, errors.New("tap_config.output_config.sinks: exactly one sink is allowed")
	}
	sink := out.GetSinks()[0]
	switch k := sink.GetOutputSinkType().(type) {
	case *tapv3.OutputSink_StreamingAdmin:
	case *tapv3.OutputSink_BufferedAdmin:
		s.buffered, s.traces, s.timeout = true, k.BufferedAdmin.GetMaxTraces(), k.BufferedAdmin.GetTimeout().AsDuration()
		if s.timeout < 0 {
			return nil, fmt.Errorf("tap_config.output_config.sinks[0].buffered_admin.timeout: %v is negative", s.timeout)
		}
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
		v    interface{ GetValue() uint32 }
		set  bool
	}{
		{"max_buffered_rx_bytes", &s.received, out.GetMaxBufferedRxBytes(), out.GetMaxBufferedRxBytes() != nil},
		{"max_buffered_tx_bytes", &s.sent, out.GetMaxBufferedTxBytes(), out.GetMaxBufferedTxBytes() != nil},
	} {
		if l.set && l.v.GetValue() > maxBodyBytes {
			return nil, fmt.Errorf("tap_config.output_config.%s: %d not in [0, %d]", l.name, l.v.GetValue(), maxBodyBytes)
		}
		if l.set {
			*l.to = int(l.v.GetValue())
		}
	}
	var err error
	s.match, err = compileMatch(c)
	return s, err
}
