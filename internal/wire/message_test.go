package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

func render(m proto.Message, d Defaults) string {
	var w Writer
	w.Message(m, d)
	return string(w.Bytes())
}

func anyOf(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// dump is a message with most kinds of fields.
func dump(t testing.TB) *adminv3.ClustersConfigDump {
	cluster := &clusterv3.Cluster{
		Name:                          "backend_a",
		ConnectTimeout:                durationpb.New(250 * time.Millisecond),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(0),
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		LbPolicy:                      clusterv3.Cluster_RING_HASH,
		Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"z": {Fields: map[string]*structpb.Value{"b": structpb.NewNumberValue(1.5), "a": structpb.NewNullValue(),
				"c": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(true), structpb.NewStringValue("<x>"), {}}})}},
			"a": {},
		}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"known":   anyOf(t, &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/x", Mode: 384}}}),
			"unknown": {TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte{1, 2, 0xff}},
			"broken":  {TypeUrl: "type.googleapis.com/envoy.config.core.v3.Address", Value: []byte{0xff}},
			"own":     anyOf(t, durationpb.New(time.Second)),
			"empty":   anyOf(t, &emptypb.Empty{}),
			"nothing": {},
		},
	}
	return &adminv3.ClustersConfigDump{
		VersionInfo: "v7",
		StaticClusters: []*adminv3.ClustersConfigDump_StaticCluster{
			{Cluster: anyOf(t, cluster), LastUpdated: timestamppb.New(time.Date(2025, 3, 4, 5, 6, 7, 89e6, time.UTC))}, {}},
	}
}

func TestMessageGolden(t *testing.T) {
	golden.Check(t, "dump-omit", []byte(render(dump(t), OmitDefaults)))
	golden.Check(t, "dump-all", []byte(render(dump(t), ShowDefaults)))
	golden.Check(t, "host-all", []byte(render(&adminv3.HostStatus{
		Stats:        []*adminv3.SimpleMetric{{Type: adminv3.SimpleMetric_GAUGE, Value: math.MaxUint64, Name: "cx_active"}, {Name: "cx_total"}},
		HealthStatus: &adminv3.HostHealthStatus{EdsHealthStatus: 99}}, ShowDefaults)))
	golden.Check(t, "options-all", []byte(render(&adminv3.CommandLineOptions{BaseId: 1 << 60, Mode: adminv3.CommandLineOptions_InitOnly}, ShowDefaults)))
}

func TestScalars(t *testing.T) {
	for want, m := range map[string]proto.Message{
		`0`: wrapperspb.Int32(0), `-5`: wrapperspb.Int32(-5), `"-9223372036854775808"`: wrapperspb.Int64(math.MinInt64),
		`"18446744073709551615"`: wrapperspb.UInt64(math.MaxUint64), `4294967295`: wrapperspb.UInt32(math.MaxUint32),
		`0.1`: wrapperspb.Float(0.1), `0.30000000000000004`: wrapperspb.Double(0.30000000000000004), `1e+300`: wrapperspb.Double(1e300), `1e-07`: wrapperspb.Double(1e-7),
		`"NaN"`: wrapperspb.Double(math.NaN()), `"Infinity"`: wrapperspb.Float(float32(math.Inf(1))), `"-Infinity"`: wrapperspb.Double(math.Inf(-1)),
		`"AQL/"`: wrapperspb.Bytes([]byte{1, 2, 255}), `"a"`: wrapperspb.String("a"), `true`: wrapperspb.Bool(true), `{}`: &emptypb.Empty{},
		`"-0.500s"`: durationpb.New(-time.Second / 2), `"315576000000s"`: &durationpb.Duration{Seconds: 315576000000}, `"-3.000000001s"`: &durationpb.Duration{Seconds: -3, Nanos: -1},
		`"1970-01-01T00:00:00Z"`: &timestamppb.Timestamp{}, `"aB,c.dE"`: &fieldmaskpb.FieldMask{Paths: []string{"a_b", "c.d_e"}}, `""`: &fieldmaskpb.FieldMask{},
		`null`: structpb.NewNullValue(), `[]`: &structpb.ListValue{},
	} {
		if got := strings.TrimSpace(render(m, OmitDefaults)); got != want {
			t.Errorf("%T: %s, want %s", m, got, want)
		}
	}
}

// fill sets fields of m to random values.
func fill(rt *rapid.T, m protoreflect.Message, depth int) {
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		if fd.ContainingOneof() != nil && m.WhichOneof(fd.ContainingOneof()) != nil || rapid.IntRange(0, 3).Draw(rt, "skip") != 0 {
			continue
		}
		if fd.Message() != nil && (depth == 0 || fd.IsMap() || strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf.")) {
			continue
		}
		switch {
		case fd.IsList():
			list := m.NewField(fd).List()
			for range rapid.IntRange(0, 3).Draw(rt, "n") {
				if fd.Message() != nil {
					e := list.NewElement()
					fill(rt, e.Message(), depth-1)
					list.Append(e)
				} else {
					list.Append(scalarOf(rt, fd))
				}
			}
			m.Set(fd, protoreflect.ValueOfList(list))
		case fd.Message() != nil:
			fill(rt, m.Mutable(fd).Message(), depth-1)
		default:
			m.Set(fd, scalarOf(rt, fd))
		}
	}
}

func scalarOf(rt *rapid.T, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(rt, "b"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(0, 5).Draw(rt, "e")))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(rt, "s"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOf(rapid.Byte()).Draw(rt, "y"))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(rt, "i"))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(rt, "u"))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(rt, "l"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(rt, "ul"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(rt, "f") + 0) // no negative zero: is it the default value or not?
	}
	return protoreflect.ValueOfFloat64(rapid.Float64().Draw(rt, "d") + 0)
}

// TestMessagesReadBack writes random messages. protojson decodes the same messages,
// and the text is deterministic.
func TestMessagesReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		protos := []proto.Message{&clusterv3.Cluster{}, &adminv3.ServerInfo{}, &adminv3.ClusterStatus{}, &adminv3.Certificate{}, &corev3.HealthCheck{}}
		m := proto.Clone(protos[rapid.IntRange(0, len(protos)-1).Draw(rt, "type")])
		fill(rt, m.ProtoReflect(), 4)
		for _, d := range []Defaults{OmitDefaults, ShowDefaults} {
			text := render(m, d)
			if again := render(proto.Clone(m), d); again != text {
				rt.Fatalf("two texts of one message:\n%s\n%s", text, again)
			}
			if !json.Valid([]byte(text)) {
				rt.Fatalf("not JSON: %s", text)
			}
			back := m.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal([]byte(text), back); err != nil {
				rt.Fatalf("%v in %s", err, text)
			}
			if !proto.Equal(m, back) {
				rt.Fatalf("%s reads back as %v, want %v", text, back, m)
			}
		}
	})
}

// TestDefaultsLikeTheStandardWriter compares the members with the output of protojson.
func TestDefaultsLikeTheStandardWriter(t *testing.T) {
	for _, m := range []proto.Message{&adminv3.ServerInfo{}, &adminv3.CommandLineOptions{}, &adminv3.Memory{}, &clusterv3.Cluster{}, dump(t).StaticClusters[1]} {
		for d, options := range map[Defaults]protojson.MarshalOptions{
			OmitDefaults: {UseProtoNames: true}, ShowDefaults: {UseProtoNames: true, EmitDefaultValues: true},
		} {
			std, err := options.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var want, got bytes.Buffer
			var a, b any
			if json.Unmarshal(std, &a) != nil || json.Unmarshal([]byte(render(m, d)), &b) != nil {
				t.Fatalf("%T: not JSON", m)
			}
			if json.NewEncoder(&want).Encode(a) != nil || json.NewEncoder(&got).Encode(b) != nil || got.String() != want.String() {
				t.Errorf("%T: got %s, want %s", m, got.String(), want.String())
			}
		}
	}
}

// TestDeepNesting packs a message into itself many times: those below the limit, and one
// that is written as bytes, show their types.
func TestDeepNesting(t *testing.T) {
	a := anyOf(t, &emptypb.Empty{})
	for range 300 {
		a = anyOf(t, a)
	}
	text := render(a, OmitDefaults)
	if n := strings.Count(text, "@type"); n != maxDepth+2 || !json.Valid([]byte(text)) {
		t.Errorf("%d levels were unpacked", n)
	}
	if got := (Redactor{}).Redact(a); got == nil {
		t.Error("nothing is left")
	}
}
