package tap

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/tap/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/statsd-admin/statsd-admin/internal/wire"
)

// Read is data received from a socket.
type Read struct {
	Local, Remote string // ip:port or socket path, optionally with protocol://
	Data          []byte // not retained
}

// Field is a header field.
type Field struct{ Name, Value string }

// Exchange is a request and its response.
type Exchange struct {
	Time              time.Time // of the request
	Remote            string
	Request, Response []Field
}

// trace is a queued event: a Read or an Exchange.
type trace struct {
	id        uint64
	time      time.Time
	read      *Read
	truncated bool
	exchange  *Exchange
}

func (t *trace) size() (n int) {
	if t.read != nil {
		return len(t.read.Local) + len(t.read.Remote) + len(t.read.Data)
	}
	for _, f := range slices.Concat(t.exchange.Request, t.exchange.Response) {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// Socket offers a Read to the stream. It does not block.
func (s *Session) Socket(r Read) {
	if !s.settings.match(&event{received: r.Data}) {
		return
	}
	t := trace{id: s.last.Add(1), time: s.tap.cfg.Now(), truncated: len(r.Data) > s.settings.received}
	r.Data = slices.Clone(r.Data[:min(len(r.Data), s.settings.received)])
	t.read = &r
	s.offer(t)
}

// HTTP offers an Exchange to the stream, which retains it. It does not block.
func (s *Session) HTTP(x Exchange) {
	lookup := func(all []Field) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for _, f := range all {
				if strings.EqualFold(f.Name, name) {
					return f.Value, true
				}
			}
			return "", false
		}
	}
	if s.settings.match(&event{request: lookup(x.Request), response: lookup(x.Response)}) {
		s.offer(trace{id: s.last.Add(1), time: x.Time, exchange: &x})
	}
}

// blank is the heartbeat: a line without meaning in the format.
func (s *Session) blank() string {
	if s.settings.format == tapv3.OutputSink_PROTO_BINARY_LENGTH_DELIMITED {
		return ""
	}
	return "\n"
}

// append appends a trace in the format of the stream.
func (s *Session) append(dst []byte, t *trace) []byte {
	for _, m := range s.messages(t) {
		if s.settings.format != tapv3.OutputSink_PROTO_BINARY_LENGTH_DELIMITED {
			var w wire.Writer
			w.Message(m, wire.ShowDefaults)
			dst = append(dst, w.Bytes()...)
		} else if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err == nil { // only invalid UTF-8 fails, and there is none
			dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
		}
	}
	return dst
}

// messages returns the messages for a trace: one for a whole trace, or one per part
// when streaming.
func (s *Session) messages(t *trace) []*datav3.TraceWrapper {
	if t.read != nil {
		udp := strings.HasPrefix(t.read.Local, "udp")
		conn := &datav3.Connection{LocalAddress: address(t.read.Local, udp), RemoteAddress: address(t.read.Remote, udp)}
		e := &datav3.SocketEvent{
			Timestamp:     timestamppb.New(t.time),
			EventSelector: &datav3.SocketEvent_Read_{Read: &datav3.SocketEvent_Read{Data: s.body(t.read.Data, t.truncated)}},
		}
		if !s.settings.streaming {
			return []*datav3.TraceWrapper{{Trace: &datav3.TraceWrapper_SocketBufferedTrace{SocketBufferedTrace: &datav3.SocketBufferedTrace{
				TraceId: t.id, Connection: conn, Events: []*datav3.SocketEvent{e}, ReadTruncated: t.truncated,
			}}}}
		}
		e.Connection = conn
		return []*datav3.TraceWrapper{{Trace: &datav3.TraceWrapper_SocketStreamedTraceSegment{
			SocketStreamedTraceSegment: &datav3.SocketStreamedTraceSegment{
				TraceId: t.id, MessagePiece: &datav3.SocketStreamedTraceSegment_Event{Event: e},
			}}}}
	}
	x := t.exchange
	request, response := headerValues(x.Request), headerValues(x.Response)
	if !s.settings.streaming {
		m := &datav3.HttpBufferedTrace{
			Request:  &datav3.HttpBufferedTrace_Message{Headers: request, HeadersReceivedTime: timestamppb.New(t.time)},
			Response: &datav3.HttpBufferedTrace_Message{Headers: response},
		}
		if a := address(x.Remote, false); a != nil {
			m.DownstreamConnection = &datav3.Connection{RemoteAddress: a}
		}
		return []*datav3.TraceWrapper{{Trace: &datav3.TraceWrapper_HttpBufferedTrace{HttpBufferedTrace: m}}}
	}
	segment := func(m *datav3.HttpStreamedTraceSegment) *datav3.TraceWrapper {
		m.TraceId = t.id
		return &datav3.TraceWrapper{Trace: &datav3.TraceWrapper_HttpStreamedTraceSegment{HttpStreamedTraceSegment: m}}
	}
	return []*datav3.TraceWrapper{
		segment(&datav3.HttpStreamedTraceSegment{MessagePiece: &datav3.HttpStreamedTraceSegment_RequestHeaders{
			RequestHeaders: &corev3.HeaderMap{Headers: request}}}),
		segment(&datav3.HttpStreamedTraceSegment{MessagePiece: &datav3.HttpStreamedTraceSegment_ResponseHeaders{
			ResponseHeaders: &corev3.HeaderMap{Headers: response}}}),
	}
}

// body returns bytes in the representation of the format.
func (s *Session) body(b []byte, truncated bool) *datav3.Body {
	if s.settings.format == tapv3.OutputSink_JSON_BODY_AS_STRING {
		return &datav3.Body{BodyType: &datav3.Body_AsString{AsString: text(string(b))}, Truncated: truncated}
	}
	return &datav3.Body{BodyType: &datav3.Body_AsBytes{AsBytes: b}, Truncated: truncated}
}

// text returns s as valid UTF-8, which messages require.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func headerValues(all []Field) (out []*corev3.HeaderValue) {
	for _, f := range all {
		out = append(out, &corev3.HeaderValue{Key: text(f.Name), Value: text(f.Value)})
	}
	return out
}

// address returns the message for an address, or nil if there is none.
func address(s string, udp bool) *corev3.Address {
	_, place, ok := strings.Cut(s, "://")
	if !ok {
		place = s
	}
	if a, err := netip.ParseAddrPort(place); err == nil {
		return socketAddress(a.Addr().String(), uint32(a.Port()), udp)
	}
	if a, err := netip.ParseAddr(place); err == nil {
		return socketAddress(a.String(), 0, udp)
	}
	if _, _, err := net.SplitHostPort(place); place == "" || err == nil {
		return nil
	}
	return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: text(place)}}}
}

func socketAddress(host string, port uint32, udp bool) *corev3.Address {
	protocol := corev3.SocketAddress_TCP
	if udp {
		protocol = corev3.SocketAddress_UDP
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Protocol: protocol, Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
