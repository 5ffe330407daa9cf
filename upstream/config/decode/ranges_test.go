package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	auth "github.com/envoyproxy/go-control-plane/envoy/api/v2/auth"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	ringv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	roundv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// fieldsBelow calls visit with each field of the messages in roots and of all
// messages inside them, in both forms and in the extensions that are decoded here.
func fieldsBelow(visit func(mt protoreflect.Message, fd protoreflect.FieldDescriptor)) {
	seen := make(map[protoreflect.FullName]bool)
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		md := m.Descriptor()
		if seen[md.FullName()] || strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
			return
		}
		seen[md.FullName()] = true
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			visit(m, fd)
			switch {
			case fd.Message() == nil, fd.IsMap() && fd.MapValue().Message() == nil:
			case fd.IsMap():
				walk(m.NewField(fd).Map().NewValue().Message())
			case fd.IsList():
				walk(m.NewField(fd).List().NewElement().Message())
			default:
				walk(m.NewField(fd).Message())
			}
		}
	}
	for _, m := range []proto.Message{
		&api.Cluster{}, &api.ClusterLoadAssignment{}, &auth.Secret{},
		&clusterv3.Cluster{}, &endpointv3.ClusterLoadAssignment{}, &tlsv3.Secret{}, &tlsv3.UpstreamTlsContext{},
		&httpv3.HttpProtocolOptions{}, &dnsv3.DnsCluster{}, &roundv3.RoundRobin{}, &leastv3.LeastRequest{}, &ringv3.RingHash{},
	} {
		walk(m.ProtoReflect())
	}
}

// faultsOf returns the errors about field fd of a message in which only fd is set.
func faultsOf(m protoreflect.Message, fd protoreflect.FieldDescriptor, v protoreflect.Value) (messages []string) {
	m = m.New()
	m.Set(fd, v)
	r := &report{}
	(&fieldChecker{report: r, book: newRuleBook()}).message(m, false, 0)
	for _, e := range r.errs {
		if name, _, _ := strings.Cut(e.Field, "["); name == string(fd.Name()) {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// TestNoNegativeDuration sets each duration of both forms to a second below zero.
func TestNoNegativeDuration(t *testing.T) {
	n := 0
	fieldsBelow(func(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
		if fd.IsList() || fd.Message() == nil || fd.Message().FullName() != "google.protobuf.Duration" {
			return
		}
		n++
		if len(faultsOf(m, fd, protoreflect.ValueOfMessage(durationpb.New(-time.Second).ProtoReflect()))) == 0 {
			t.Errorf("%s accepts -1s", fd.FullName())
		}
	})
	if n < 60 {
		t.Errorf("only %d durations were found", n)
	}
}

// TestPercentages sets each percentage of both forms to values up to 100, below 0 and
// above 100.
func TestPercentages(t *testing.T) {
	// A jitter can be longer than its interval.
	unbounded := []protoreflect.Name{"interval_jitter_percent"}
	n := 0
	fieldsBelow(func(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
		var values, legal []protoreflect.Value
		name := string(fd.Name())
		whole := slices.Contains([]protoreflect.Kind{protoreflect.Uint32Kind, protoreflect.Uint64Kind}, fd.Kind())
		wrapped := fd.Message() != nil && fd.Message().FullName() == "google.protobuf.UInt32Value"
		switch {
		case fd.IsList() || fd.IsMap():
		case fd.Message() != nil && strings.HasSuffix(string(fd.Message().FullName()), ".Percent"):
			for _, x := range []float64{-1, 100.5, 0, 100} {
				p := m.NewField(fd).Message()
				p.Set(p.Descriptor().Fields().ByName("value"), protoreflect.ValueOfFloat64(x))
				if v := protoreflect.ValueOfMessage(p); x < 0 || x > 100 {
					values = append(values, v)
				} else {
					legal = append(legal, v)
				}
			}
		case slices.Contains(unbounded, fd.Name()), !strings.HasSuffix(name, "percent") && !strings.HasSuffix(name, "percentage") && !strings.HasPrefix(name, "enforcing_"):
		case whole:
			values, legal = append(values, protoreflect.ValueOfUint32(101)), append(legal, protoreflect.ValueOfUint32(100))
		case wrapped:
			values = append(values, protoreflect.ValueOfMessage(wrapperspb.UInt32(101).ProtoReflect()))
			legal = append(legal, protoreflect.ValueOfMessage(wrapperspb.UInt32(0).ProtoReflect()), protoreflect.ValueOfMessage(wrapperspb.UInt32(100).ProtoReflect()))
		}
		for _, v := range legal {
			if faults := faultsOf(m, fd, v); len(faults) > 0 {
				t.Errorf("%s refuses %v: %v", fd.FullName(), v, faults)
			}
		}
		for _, v := range values {
			n++
			if len(faultsOf(m, fd, v)) == 0 {
				t.Errorf("%s accepts %v", fd.FullName(), v)
			}
		}
	})
	if n < 30 {
		t.Errorf("only %d percentages were tried", n)
	}
}

// TestEnumsAreDefined sets each enum of both forms to a number without a name.
func TestEnumsAreDefined(t *testing.T) {
	n := 0
	fieldsBelow(func(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
		if fd.Kind() != protoreflect.EnumKind || fd.IsMap() || fd.Enum().FullName() == "google.protobuf.NullValue" {
			return
		}
		n++
		v := protoreflect.ValueOfEnum(9999)
		if fd.IsList() {
			l := m.NewField(fd).List()
			l.Append(v)
			v = protoreflect.ValueOfList(l)
		}
		if len(faultsOf(m, fd, v)) == 0 {
			t.Errorf("%s accepts 9999", fd.FullName())
		}
	})
	if n < 20 {
		t.Errorf("only %d enums were found", n)
	}
}

// TestPorts sets each port to the highest one and above it.
func TestPorts(t *testing.T) {
	n := 0
	fieldsBelow(func(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
		if !strings.HasSuffix(string(fd.Name()), "port_value") && !strings.HasSuffix(string(fd.Name()), "port_override") {
			return
		}
		n++
		for port, legal := range map[uint32]bool{65535: true, 65536: false} {
			v := protoreflect.ValueOfUint32(port)
			if fd.Message() != nil {
				v = protoreflect.ValueOfMessage(wrapperspb.UInt32(port).ProtoReflect())
			}
			if faults := faultsOf(m, fd, v); (len(faults) == 0) != legal {
				t.Errorf("%s with %d: %v", fd.FullName(), port, faults)
			}
		}
	})
	if n < 5 {
		t.Errorf("only %d ports were found", n)
	}
}
