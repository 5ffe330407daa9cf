package decode

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/envoyproxy/protoc-gen-validate/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestScalarRules covers kinds of rules that no field of a cluster happens to
// use today.
func TestScalarRules(t *testing.T) {
	text := func(r *validate.StringRules) *validate.FieldRules {
		return &validate.FieldRules{Type: &validate.FieldRules_String_{String_: r}}
	}
	raw := func(r *validate.BytesRules) *validate.FieldRules {
		return &validate.FieldRules{Type: &validate.FieldRules_Bytes{Bytes: r}}
	}
	double := func(r *validate.DoubleRules) *validate.FieldRules {
		return &validate.FieldRules{Type: &validate.FieldRules_Double{Double: r}}
	}
	whole := func(r *validate.Int32Rules) *validate.FieldRules {
		return &validate.FieldRules{Type: &validate.FieldRules_Int32{Int32: r}}
	}
	n := func(v uint64) *uint64 { return &v }
	s := func(v string) *string { return &v }
	f := func(v float64) *float64 { return &v }
	i := func(v int32) *int32 { return &v }
	tests := []struct {
		value any
		rules *validate.FieldRules
		want  string
	}{
		{"abc", text(&validate.StringRules{Const: s("abd")}), `"abc" is not "abd"`},
		{"abc", text(&validate.StringRules{Prefix: s("b")}), `"abc" does not begin with "b"`},
		{"abc", text(&validate.StringRules{Suffix: s("b")}), `"abc" does not end with "b"`},
		{"abc", text(&validate.StringRules{Contains: s("x")}), `"abc" does not contain "x"`},
		{"abc", text(&validate.StringRules{NotContains: s("b")}), `"abc" contains "b"`},
		{"abc", text(&validate.StringRules{In: []string{"x", "y"}}), `"abc" is not one of x, y`},
		{"abc", text(&validate.StringRules{NotIn: []string{"abc"}}), `"abc" is not allowed`},
		{"abc", text(&validate.StringRules{Pattern: s("^[xy]+$")}), `"abc" does not match ^[xy]+$`},
		{"äb", text(&validate.StringRules{Len: n(3)}), `"äb" is not 3 characters long`},
		{"äb", text(&validate.StringRules{LenBytes: n(2)}), `"äb" is not 2 bytes long`},
		{"äb", text(&validate.StringRules{MinLen: n(3)}), `"äb" is shorter than 3 characters`},
		{"äb", text(&validate.StringRules{MinBytes: n(4)}), `"äb" is shorter than 4 bytes`},
		{"äb", text(&validate.StringRules{MaxLen: n(1)}), `"äb" is longer than 1 characters`},
		{"äb", text(&validate.StringRules{MaxBytes: n(3)}), ""},
		{"", text(&validate.StringRules{MinLen: n(3), IgnoreEmpty: proto.Bool(true)}), ""},
		{"x", text(&validate.StringRules{WellKnown: &validate.StringRules_Ip{Ip: true}}), `"x" is not an IP address`},
		{"x", text(&validate.StringRules{WellKnown: &validate.StringRules_Uri{Uri: true}}), `"x" is not an absolute URI`},
		{":", text(&validate.StringRules{WellKnown: &validate.StringRules_UriRef{UriRef: true}}), `":" is not a URI`},
		{"a b", text(&validate.StringRules{WellKnown: &validate.StringRules_WellKnownRegex{WellKnownRegex: validate.KnownRegex_HTTP_HEADER_NAME}}), `"a b" is not a legal header name`},
		{"a b", text(&validate.StringRules{Strict: proto.Bool(false), WellKnown: &validate.StringRules_WellKnownRegex{WellKnownRegex: validate.KnownRegex_HTTP_HEADER_NAME}}), ""},
		{"a\x01b", text(&validate.StringRules{WellKnown: &validate.StringRules_WellKnownRegex{WellKnownRegex: validate.KnownRegex_HTTP_HEADER_VALUE}}), `"a\x01b" is not a legal header value`},
		{[]byte("ab"), raw(&validate.BytesRules{MinLen: n(3)}), "2 bytes is below 3 bytes"},
		{[]byte("ab"), raw(&validate.BytesRules{MaxLen: n(1)}), "2 bytes exceeds 1 bytes"},
		{[]byte("ab"), raw(&validate.BytesRules{Len: n(1)}), "2 bytes is not 1 bytes"},
		{[]byte(nil), raw(&validate.BytesRules{MinLen: n(1)}), "must not be empty"},
		{1.5, double(&validate.DoubleRules{Lt: f(1.5)}), "1.5 must be less than 1.5"},
		{1.5, double(&validate.DoubleRules{Gt: f(1.5)}), "1.5 must be greater than 1.5"},
		{1.5, double(&validate.DoubleRules{Const: f(2)}), "1.5 is not 2"},
		{1.5, double(&validate.DoubleRules{In: []float64{1, 2}}), "1.5 is not one of [1 2]"},
		{1.5, double(&validate.DoubleRules{NotIn: []float64{1.5}}), "1.5 is not allowed"},
		{math.NaN(), double(&validate.DoubleRules{Gte: f(0)}), "NaN is below 0"},
		{0.0, double(&validate.DoubleRules{Gte: f(1), IgnoreEmpty: proto.Bool(true)}), ""},
		{int32(7), whole(&validate.Int32Rules{Gte: i(8), Lte: i(9)}), "7 is below 8"},
		{int32(7), whole(&validate.Int32Rules{Lte: i(6)}), "7 exceeds 6"},
		{"äb", text(&validate.StringRules{Len: n(2), LenBytes: n(3), MinLen: n(2), MinBytes: n(3), MaxLen: n(2), MaxBytes: n(3)}), ""},
		{"äb", text(&validate.StringRules{MaxBytes: n(2)}), `"äb" is longer than 2 bytes`},
		{"abc", text(&validate.StringRules{Const: s("abc"), Prefix: s("ab"), Suffix: s("bc"), Contains: s("b"), NotContains: s("ac"), In: []string{"abc", "x"}, NotIn: []string{"x"}, Pattern: s("b")}), ""},
		{"abc", text(&validate.StringRules{In: []string{"x", "abc"}}), ""},
		{"1.2.3.4", text(&validate.StringRules{WellKnown: &validate.StringRules_Ip{Ip: true}}), ""},
		{"a://b", text(&validate.StringRules{WellKnown: &validate.StringRules_Uri{Uri: true}}), ""},
		{"/b", text(&validate.StringRules{WellKnown: &validate.StringRules_UriRef{UriRef: true}}), ""},
		{"", text(&validate.StringRules{MinBytes: n(1)}), "must not be empty"},
		{[]byte("ab"), raw(&validate.BytesRules{MinLen: n(2), MaxLen: n(2), Len: n(2)}), ""},
		{[]byte(nil), raw(&validate.BytesRules{MinLen: n(2), IgnoreEmpty: proto.Bool(true)}), ""},
		{1.5, double(&validate.DoubleRules{Gte: f(1.5), Lte: f(1.5), Const: f(1.5), In: []float64{1, 1.5}, NotIn: []float64{2}}), ""},
		{1.5, double(&validate.DoubleRules{Gte: f(1.75), Lte: f(2)}), "1.5 is not between 1.75 and 2"},
		{1.5, double(&validate.DoubleRules{Gte: f(1), Lte: f(1.25)}), "1.5 is not between 1 and 1.25"},
		{1.5, double(&validate.DoubleRules{Gte: f(1.75)}), "1.5 is below 1.75"},
		{math.NaN(), double(&validate.DoubleRules{Gt: f(0)}), "NaN must be greater than 0"},
		{math.NaN(), double(&validate.DoubleRules{Lt: f(0)}), "NaN must be less than 0"},
		{math.NaN(), double(&validate.DoubleRules{Lte: f(0)}), "NaN exceeds 0"},
		{int32(7), whole(&validate.Int32Rules{Gte: i(7), Lte: i(7), Gt: i(6), Lt: i(8)}), ""},
		{int32(7), whole(&validate.Int32Rules{Gt: i(7)}), "7 must be greater than 7"},
		{int32(7), whole(&validate.Int32Rules{Lt: i(7)}), "7 must be less than 7"},
		{true, &validate.FieldRules{Type: &validate.FieldRules_Bool{Bool: &validate.BoolRules{Const: proto.Bool(true)}}}, ""},
		{true, &validate.FieldRules{Type: &validate.FieldRules_Bool{Bool: &validate.BoolRules{Const: proto.Bool(false)}}}, "true is not false"},
		{float32(2), &validate.FieldRules{Type: &validate.FieldRules_Float{Float: &validate.FloatRules{Lte: proto.Float32(1)}}}, "2 exceeds 1"},
		{int64(2), &validate.FieldRules{Type: &validate.FieldRules_Int64{Int64: &validate.Int64Rules{Lte: proto.Int64(1)}}}, "2 exceeds 1"},
	}
	for _, tt := range tests {
		fd, v := fieldFor(tt.value)
		got := scalarFaults(v, fd, tt.rules, false)
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v under %v: %q, want %q", tt.value, tt.rules, got, want)
		}
	}
}

func TestSecretValuesAreMasked(t *testing.T) {
	for _, value := range []any{"canary", []byte("canary"), int32(12345)} {
		fd, v := fieldFor(value)
		if got := showValue(v, fd, true); got != redacted {
			t.Errorf("%v is shown as %q", value, got)
		}
	}
}

// fieldFor returns a field that can hold the value.
func fieldFor(value any) (protoreflect.FieldDescriptor, protoreflect.Value) {
	var m proto.Message
	switch value.(type) {
	case string:
		m = &wrapperspb.StringValue{}
	case []byte:
		m = &wrapperspb.BytesValue{}
	case float64:
		m = &wrapperspb.DoubleValue{}
	case float32:
		m = &wrapperspb.FloatValue{}
	case bool:
		m = &wrapperspb.BoolValue{}
	case int64:
		m = &wrapperspb.Int64Value{}
	default:
		m = &wrapperspb.Int32Value{}
	}
	return m.ProtoReflect().Descriptor().Fields().ByNumber(1), protoreflect.ValueOf(value)
}

// TestListRules covers the rules of lists and maps, at their limits.
func TestListRules(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	yes := true
	items := &validate.FieldRules{Type: &validate.FieldRules_String_{String_: &validate.StringRules{MinLen: n(2)}}}
	for _, tt := range []struct {
		list  []string
		rules *validate.RepeatedRules
		want  string
	}{
		{nil, &validate.RepeatedRules{MinItems: n(1)}, "must not be empty"},
		{nil, &validate.RepeatedRules{MinItems: n(1), IgnoreEmpty: &yes}, ""},
		{nil, &validate.RepeatedRules{MinItems: n(2)}, "0 entries is below 2"},
		{[]string{"a"}, &validate.RepeatedRules{MinItems: n(2), IgnoreEmpty: &yes}, "1 entries is below 2"},
		{[]string{"a", "b"}, &validate.RepeatedRules{MinItems: n(2), MaxItems: n(2)}, ""},
		{[]string{"a", "b"}, &validate.RepeatedRules{MaxItems: n(1)}, "2 entries exceeds 1"},
		{[]string{"a", "b"}, &validate.RepeatedRules{Unique: &yes}, ""},
		{[]string{"a", "b", "a"}, &validate.RepeatedRules{Unique: &yes}, `[2]: "a" is given twice`},
		{[]string{"ab", "a"}, &validate.RepeatedRules{Items: items}, `[1]: "a" is shorter than 2 characters`},
		{[]string{"a", "a"}, nil, ""},
	} {
		c := &fieldChecker{report: &report{}, book: newRuleBook()}
		m := (&fieldmaskpb.FieldMask{Paths: tt.list}).ProtoReflect()
		fd := m.Descriptor().Fields().ByName("paths")
		rules := c.book.free
		if tt.rules != nil {
			rules = &validate.FieldRules{Type: &validate.FieldRules_Repeated{Repeated: tt.rules}}
		}
		c.list(m.Get(fd).List(), &fieldRules{fd: fd, rules: rules}, false, 0)
		checkFaults(t, c.report, tt.want)
	}
	for _, tt := range []struct {
		size  int
		rules *validate.MapRules
		want  string
	}{
		{0, &validate.MapRules{MinPairs: n(1)}, "must not be empty"},
		{0, &validate.MapRules{MinPairs: n(1), IgnoreEmpty: &yes}, ""},
		{1, &validate.MapRules{MinPairs: n(2), IgnoreEmpty: &yes}, "1 entries is below 2"},
		{2, &validate.MapRules{MinPairs: n(2), MaxPairs: n(2)}, ""},
		{2, &validate.MapRules{MaxPairs: n(1)}, "2 entries exceeds 1"},
		{1, &validate.MapRules{Keys: items}, `["a"]: "a" is shorter than 2 characters`},
		{2, nil, ""},
	} {
		c := &fieldChecker{report: &report{}, book: newRuleBook()}
		s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for _, key := range []string{"a", "b"}[:tt.size] {
			s.Fields[key] = structpb.NewBoolValue(true)
		}
		fd := s.ProtoReflect().Descriptor().Fields().ByName("fields")
		rules := c.book.free
		if tt.rules != nil {
			rules = &validate.FieldRules{Type: &validate.FieldRules_Map{Map: tt.rules}}
		}
		c.mapping(s.ProtoReflect().Get(fd).Map(), &fieldRules{fd: fd, rules: rules}, false, 0)
		checkFaults(t, c.report, tt.want)
	}
}

// checkFaults wants one error, none if want is empty.
func checkFaults(t *testing.T, r *report, want string) {
	t.Helper()
	var got []string
	for _, e := range r.errs {
		text := e.Message
		if e.Field != "" {
			text = e.Field + ": " + text
		}
		got = append(got, text)
	}
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("faults %q, want %q", text, want)
	}
}
