//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// A v2 message is upgraded to v3 by parsing its bytes as v3, which keeps all fields
// whose numbers both forms share. Fields that v3 dropped remain as unknown fields;
// fix moves each of them to its v3 counterpart.

// tlsSocketName is the name of a socket made from tls_context.
const tlsSocketName = "envoy.transport_sockets.tls"

// upgraded is a message in the v3 form with the data that v3 has no field for.
type upgraded struct {
	form    config.Form
	message proto.Message
	extra   extra
}

// extra is data of a cluster that has no field in v3.
type extra struct {
	fromHosts     bool // load_assignment was made from hosts
	fromTLS       bool // transport_socket was made from tls_context
	originalDstLB bool // lb_policy was ORIGINAL_DST_LB
	hostsGiven    bool // hosts was set, used or not
	options       map[string]*structpb.Struct
	// leastDNSRefresh is from a DnsCluster; clusters have no such field.
	leastDNSRefresh *durationpb.Duration
	regexes         map[string]bool // paths of string matchers whose regex became a safe_regex
}

var hostsPath = lazyregexp.New(`^load_assignment\.endpoints\[0\]\.lb_endpoints\[(\d+)\](?:\.endpoint(?:\.address)?)?`)

// originalPath returns the name in the original v2 message for a path in v3 names.
func (l *upgraded) originalPath(path string) string {
	if matcher, ok := strings.CutSuffix(path, ".safe_regex.regex"); ok && l.extra.regexes[matcher] {
		path = matcher + ".regex"
	}
	if l.extra.fromHosts {
		path = hostsPath().ReplaceAllString(path, "hosts[$1]")
		if rest, ok := strings.CutPrefix(path, "load_assignment"); ok {
			path = "hosts" + rest
		}
	}
	if l.extra.fromTLS {
		if rest, ok := strings.CutPrefix(path, "transport_socket.typed_config"); ok {
			path = "tls_context" + rest
		} else if strings.HasPrefix(path, "transport_socket.") || path == "transport_socket" {
			path = "tls_context"
		}
	}
	return strings.Replace(path, ".http_health_check.receive[0]", ".http_health_check.receive", 1)
}

// v3Type returns the v3 message for the name of a v2 message, nil if it is none or the
// decoder does not read v2.
func (d *Decoder) v3Type(name protoreflect.FullName) protoreflect.MessageType {
	if d.v3Types == nil || strings.Contains(string(name), ".v3.") || strings.HasPrefix(string(name), "google.protobuf.") {
		return nil
	}
	return d.v3Types()[name]
}

// findV3Types maps the v2 name of every linked message to its v3 message. That parses
// the descriptors of all of them, so a configuration without v2 names does without it.
func findV3Types() map[protoreflect.FullName]protoreflect.MessageType {
	v3Types := make(map[protoreflect.FullName]protoreflect.MessageType)
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		name := string(mt.Descriptor().FullName())
		if !strings.Contains(name, ".v3.") {
			return true
		}
		if old := previousName(mt.Descriptor()); old != "" && !strings.Contains(string(old), ".v3.") {
			v3Types[old] = mt
		}
		return true
	})
	return v3Types
}

// upgrader upgrades one message.
type upgrader struct {
	*report
	d   *Decoder
	out *upgraded
	at  trail
}

// upgrade returns the v3 form of m, whose bytes are value, or nil with an error in r.
func (d *Decoder) upgrade(m proto.Message, value []byte, r *report) *upgraded {
	out := &upgraded{form: config.FormV3, message: m}
	l := &upgrader{report: r, d: d, out: out}
	old := m.ProtoReflect().Type()
	v3Type := d.v3Type(old.Descriptor().FullName())
	if v3Type == nil {
		if d.v3Types != nil {
			out.message = proto.Clone(m)
			l.message(out.message.ProtoReflect(), false, 0)
		}
		return out
	}
	out.form, out.message = config.FormV2, l.reparse(old, v3Type, value)
	if out.message == nil {
		r.errorf(Malformed, "", "cannot be read in the v3 form")
		return nil
	}
	r.originalPath = out.originalPath
	l.message(out.message.ProtoReflect(), true, 0)
	return out
}

// reparse parses the bytes of a v2 message as its v3 type. Fields that v2 does not
// know are dropped, because their numbers can have another meaning in v3.
func (l *upgrader) reparse(old, v3Type protoreflect.MessageType, value []byte) proto.Message {
	m := old.New().Interface()
	if (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: conftree.MaxDepth}).Unmarshal(value, m) != nil {
		return nil
	}
	known, err := proto.Marshal(m)
	if err != nil {
		return nil
	}
	v3 := v3Type.New().Interface()
	if (proto.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}).Unmarshal(known, v3) != nil {
		return nil
	}
	return v3
}

// unknownField is a field that a message does not know.
type unknownField struct {
	number protowire.Number
	varint uint64
	bytes  []byte
}

func unknownFields(b protoreflect.RawFields) []unknownField {
	var list []unknownField
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return list
		}
		b = b[n:]
		f := unknownField{number: num}
		switch typ {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return list
		}
		b = b[n:]
		list = append(list, f)
	}
	return list
}

// message upgrades m and all messages in it. isV2 means that the unknown fields of m
// are v2 fields.
func (l *upgrader) message(m protoreflect.Message, isV2 bool, depth int) {
	if depth > conftree.MaxDepth {
		return // reported by the field rules
	}
	if a, ok := m.Interface().(*anypb.Any); ok {
		l.extension(a, depth)
		return
	}
	if isV2 && len(m.GetUnknown()) > 0 {
		fields := unknownFields(m.GetUnknown())
		m.SetUnknown(nil)
		for _, f := range fields {
			if !l.fix(m, f) {
				l.noCounterpart(m.Descriptor(), f)
			}
		}
	}
	if c, ok := m.Interface().(*clusterv3.Cluster); ok && isV2 && c.LbPolicy == 4 {
		c.LbPolicy, l.out.extra.originalDstLB = clusterv3.Cluster_CLUSTER_PROVIDED, true
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		l.at.field(string(fd.Name()))
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
					l.at.key(k.String())
					l.message(v.Message(), isV2, depth+1)
					l.at.back()
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				l.at.item(i)
				l.message(v.List().Get(i).Message(), isV2, depth+1)
				l.at.back()
			}
		default:
			l.message(v.Message(), isV2, depth+1)
		}
		l.at.back()
		return true
	})
}

// extension upgrades the message in an Any.
func (l *upgrader) extension(a *anypb.Any, depth int) {
	name := a.MessageName()
	if v3Type := l.d.v3Type(name); v3Type != nil {
		old, err := protoregistry.GlobalTypes.FindMessageByName(name)
		if err != nil {
			return // not linked in, kept unchanged
		}
		inner := l.reparse(old, v3Type, a.Value)
		if inner == nil {
			return // reported by the field rules
		}
		l.message(inner.ProtoReflect(), true, depth+1)
		pack(a, inner)
		return
	}
	inner, err := unpack(a)
	if err != nil || inner == nil {
		return
	}
	if _, ok := inner.(*structpb.Struct); ok {
		return
	}
	before := proto.Clone(inner)
	l.message(inner.ProtoReflect(), false, depth+1)
	if !proto.Equal(before, inner) {
		pack(a, inner)
	}
}

// pack puts m into a.
func pack(a *anypb.Any, m proto.Message) {
	value, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // decoded messages can be encoded
	a.TypeUrl, a.Value = typePrefix+string(m.ProtoReflect().Descriptor().FullName()), value
}

func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	pack(a, m)
	return a
}

// fix moves a field that v3 does not have. It returns false for a field without a v3
// counterpart, which is an error unless it has no effect.
func (l *upgrader) fix(m protoreflect.Message, f unknownField) bool {
	switch m := m.Interface().(type) {
	case *clusterv3.Cluster:
		return l.fixCluster(m, f)
	case *corev3.HealthCheck_HttpHealthCheck:
		switch {
		case f.number == 5: // service_name, a prefix
			if m.ServiceNameMatcher == nil {
				m.ServiceNameMatcher = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: string(f.bytes)}}
			}
			return true
		case f.number == 7 && f.varint != 0: // use_http2
			m.CodecClientType = typev3.CodecClientType_HTTP2
			return true
		}
	case *corev3.HealthCheck_CustomHealthCheck:
		if s := asStruct(f, 2); s != nil {
			m.ConfigType = &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: packed(s)}
			return true
		}
	case *corev3.TransportSocket:
		if s := asStruct(f, 2); s != nil {
			m.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: l.socketConfig(m.Name, s)}
			return true
		}
	case *endpointv3.ClusterLoadAssignment_Policy:
		if f.number == 5 && f.varint != 0 { // disable_overprovisioning
			m.OverprovisioningFactor = wrapperspb.UInt32(100)
			return true
		}
	case *matcherv3.StringMatcher:
		if f.number == 4 { // regex
			if l.out.extra.regexes == nil {
				l.out.extra.regexes = make(map[string]bool)
			}
			l.out.extra.regexes[l.at.path()] = true
			m.MatchPattern = &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: string(f.bytes)}}
			return true
		}
	case *tlsv3.CertificateValidationContext:
		if f.number == 4 { // verify_subject_alt_name
			m.MatchSubjectAltNames = append(m.MatchSubjectAltNames, &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Exact{Exact: string(f.bytes)},
			})
			return true
		}
	case *tlsv3.PrivateKeyProvider:
		if s := asStruct(f, 2); s != nil {
			m.ConfigType = &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: packed(s)}
			return true
		}
	case *clusterv3.LoadBalancingPolicy_Policy:
		if m.TypedExtensionConfig == nil {
			m.TypedExtensionConfig = &corev3.TypedExtensionConfig{}
		}
		switch s := asStruct(f, 2); {
		case f.number == 1:
			m.TypedExtensionConfig.Name = string(f.bytes)
			return true
		case f.number == 3:
			m.TypedExtensionConfig.TypedConfig = &anypb.Any{}
			return proto.Unmarshal(f.bytes, m.TypedExtensionConfig.TypedConfig) == nil
		case s != nil:
			m.TypedExtensionConfig.TypedConfig = packed(s)
			return true
		}
	}
	return false
}

// noCounterpart reports a v2 field without a v3 counterpart. It is accepted like an
// unknown field on the wire and where unknown fields are allowed.
func (l *upgrader) noCounterpart(md protoreflect.MessageDescriptor, f unknownField) {
	if f.varint == 0 && len(f.bytes) == 0 {
		return // a zero value has no effect
	}
	name := fmt.Sprintf("#%d", f.number)
	if old, err := protoregistry.GlobalTypes.FindMessageByName(previousName(md)); err == nil {
		if fd := old.Descriptor().Fields().ByNumber(f.number); fd != nil {
			name = string(fd.Name())
		}
	}
	e := &Error{Kind: UnknownField, Field: l.at.path(name), Message: "is no longer supported"}
	if l.d.opts.AllowUnknown || l.root == nil {
		l.unknown++
		l.warn(e)
		return
	}
	l.add(e)
}

// asStruct returns the free-form configuration in f, nil if f is another field.
func asStruct(f unknownField, number protowire.Number) *structpb.Struct {
	s := &structpb.Struct{}
	if f.number != number || proto.Unmarshal(f.bytes, s) != nil {
		return nil
	}
	return s
}

// socketConfig converts the free-form configuration of a known transport socket into
// its message.
func (l *upgrader) socketConfig(name string, s *structpb.Struct) *anypb.Any {
	if l.d.socketKind(name) != config.TLSSocket {
		return packed(s)
	}
	old, err := protoregistry.GlobalTypes.FindMessageByName("envoy.api.v2.auth.UpstreamTlsContext")
	if err != nil {
		return packed(s)
	}
	text, err := protojson.Marshal(s)
	m := old.New().Interface()
	if err == nil {
		err = protojson.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}.Unmarshal(text, m)
	}
	if err != nil {
		l.errorf(Malformed, l.at.path("config"), "is not an UpstreamTlsContext")
		return packed(&tlsv3.UpstreamTlsContext{})
	}
	l.at.field("config")
	defer l.at.back()
	c := fieldChecker{report: l.report, book: l.d.rules, at: l.at}
	c.message(m.ProtoReflect(), false, 0)
	a := packed(m)
	l.extension(a, 0)
	return a
}

// fixCluster moves an entry of hosts or extension_protocol_options, or tls_context.
func (l *upgrader) fixCluster(c *clusterv3.Cluster, f unknownField) bool {
	x := &l.out.extra
	switch f.number {
	case 7:
		a := &corev3.Address{}
		x.hostsGiven = true
		if c.LoadAssignment == nil {
			locality := &endpointv3.LocalityLbEndpoints{LoadBalancingWeight: wrapperspb.UInt32(1)}
			c.LoadAssignment = &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
			x.fromHosts = true
		}
		if proto.Unmarshal(f.bytes, a) == nil && x.fromHosts {
			locality := c.LoadAssignment.Endpoints[0]
			locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
				HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: a}},
				LoadBalancingWeight: wrapperspb.UInt32(1),
			})
		}
	case 11:
		if c.TransportSocket == nil {
			c.TransportSocket = &corev3.TransportSocket{
				Name:       tlsSocketName,
				ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: typePrefix + "envoy.api.v2.auth.UpstreamTlsContext"}},
			}
			x.fromTLS = true
		}
		if x.fromTLS { // repeated messages are merged, which concatenated bytes express
			context := c.TransportSocket.GetTypedConfig()
			context.Value = append(context.Value, f.bytes...)
		}
	case 35:
		key, value := mapEntry(f.bytes)
		if x.options == nil {
			x.options = make(map[string]*structpb.Struct)
		}
		x.options[key] = value
	default:
		return false
	}
	return true
}

// mapEntry splits one entry of a map from text to free-form values.
func mapEntry(b []byte) (key string, value *structpb.Struct) {
	value = &structpb.Struct{}
	for _, f := range unknownFields(b) {
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			if proto.Unmarshal(f.bytes, value) != nil {
				value = &structpb.Struct{}
			}
		}
	}
	return key, value
}
