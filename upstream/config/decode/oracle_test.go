package decode

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apiv2 "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// validated is what the generated code of all messages offers.
type validated interface {
	proto.Message
	ValidateAll() error
}

// TestFieldRulesAgreeWithGeneratedCode compares the rules that are read from
// the descriptors with the checks that were generated from the same options,
// over random messages of both forms.
func TestFieldRulesAgreeWithGeneratedCode(t *testing.T) {
	makers := []func() validated{
		func() validated { return &clusterv3.Cluster{} },
		func() validated { return &apiv2.Cluster{} },
		func() validated { return &endpointv3.ClusterLoadAssignment{} },
		func() validated { return &apiv2.ClusterLoadAssignment{} },
		func() validated { return &tlsv3.UpstreamTlsContext{} },
		func() validated { return &clusterv3.OutlierDetection{} },
	}
	rng := rand.New(rand.NewPCG(1, 2))
	book := newRuleBook()
	sound, rounds := 0, 1000
	for range rounds {
		for _, make := range makers {
			m := make()
			g := generator{rng: rng, density: 1 + rng.IntN(40)}
			g.fill(m.ProtoReflect(), 0)
			r := &report{}
			c := fieldChecker{report: r, book: book}
			c.message(m.ProtoReflect(), false, 0)
			err := m.ValidateAll()
			// Many options allow negative durations and enums without a name, this
			// package neither.
			more := slices.DeleteFunc(slices.Clone(r.errs), func(e *Error) bool {
				return strings.HasSuffix(e.Message, "must not be negative") || strings.HasPrefix(e.Message, "77 is not ")
			})
			if err == nil && len(more) > 0 || err != nil && len(r.errs) == 0 {
				t.Fatalf("%T %v\nours:      %v\ngenerated: %v", m, m, r.err(), err)
			}
			if err == nil {
				sound++
			}
		}
	}
	if sound < rounds/4 {
		t.Errorf("only %d of %d messages are sound, which tests little", sound, rounds*len(makers))
	}
}

// generator fills messages with values around the limits of rules.
type generator struct {
	rng     *rand.Rand
	density int // percent of fields that are set
}

// different are the fields whose rules differ from their options on purpose.
func different(fd protoreflect.FieldDescriptor) bool {
	switch shortName(fd.ContainingMessage()) + "." + string(fd.Name()) {
	case "Cluster.dns_refresh_rate", "Cluster.dns_failure_refresh_rate", "Cluster.health_checks", "BindConfig.source_address":
		return true
	}
	return false
}

func (g *generator) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if different(fd) || g.rng.IntN(100) >= g.density && !(g.rng.IntN(3) > 0 && fd.Cardinality() != protoreflect.Repeated && fd.Message() == nil && fd.ContainingOneof() == nil) {
			continue
		}
		switch {
		case fd.IsMap():
			mp := m.Mutable(fd).Map()
			for range g.rng.IntN(3) {
				v := mp.NewValue()
				if fd.MapValue().Message() != nil {
					g.message(v.Message(), depth)
				} else {
					v = g.scalar(fd.MapValue())
				}
				mp.Set(g.scalar(fd.MapKey()).MapKey(), v)
			}
		case fd.IsList():
			l := m.Mutable(fd).List()
			for range g.rng.IntN(4) {
				if fd.Message() != nil {
					v := l.NewElement()
					g.message(v.Message(), depth)
					l.Append(v)
				} else {
					l.Append(g.scalar(fd))
				}
			}
		case fd.Message() != nil:
			if depth < 8 {
				v := m.NewField(fd)
				g.message(v.Message(), depth)
				m.Set(fd, v)
			}
		default:
			m.Set(fd, g.scalar(fd))
		}
	}
}

func (g *generator) message(m protoreflect.Message, depth int) {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
		return
	case "google.protobuf.Duration":
		d := durationpb.New(pick(g, []time.Duration{0, 1, time.Millisecond, time.Millisecond + 1, time.Second, time.Second, time.Minute, -1, -time.Second}))
		m.Set(m.Descriptor().Fields().ByNumber(1), protoreflect.ValueOfInt64(d.Seconds))
		m.Set(m.Descriptor().Fields().ByNumber(2), protoreflect.ValueOfInt32(d.Nanos))
		return
	}
	g.fill(m, depth+1)
}

func pick[T any](g *generator, list []T) T { return list[g.rng.IntN(len(list))] }

func (g *generator) scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	whole := pick(g, []uint64{0, 1, 1, 2, 3, 100, 101, 511, 512, 65535, 65536, 1<<31 - 1, 1 << 31, 5000011, 8388608, 8388609})
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.rng.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		if g.rng.IntN(30) == 0 {
			return protoreflect.ValueOfEnum(77)
		}
		return protoreflect.ValueOfEnum(values.Get(g.rng.IntN(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(whole))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(whole))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(whole))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(whole)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(pick(g, []float32{0, 0.5, 1, 100, 101}))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(pick(g, []float64{0, 0.5, 1, 2, 3, 3.5, 100, 100.5, -1}))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(pick(g, []string{"", "a"})))
	}
	return protoreflect.ValueOfString(pick(g, []string{"", "a", "b", "a", "x-y", "with space", "new\nline", strings.Repeat("4", 44), strings.Repeat("7", 70), strings.Repeat("l", 300), "1.2.3.4"}))
}
