package decode

import (
	"errors"
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

// known decodes n into a message with a JSON form of its own. It returns false for
// other messages.
func (w *walker) known(n *yaml.Node, m protoreflect.Message, path string) bool {
	switch m := m.Interface().(type) {
	case *anypb.Any:
		w.any(n, m, path)
	case *structpb.Struct:
		if n.Kind != yaml.MappingNode {
			w.nodeErrorf(Malformed, n, path, "%s is not a mapping", show(n, true))
			return true
		}
		m.Fields = w.value(n, path).GetStructValue().GetFields()
	case *structpb.ListValue:
		if n.Kind != yaml.SequenceNode {
			w.nodeErrorf(Malformed, n, path, "%s is not a list", show(n, true))
			return true
		}
		m.Values = w.value(n, path).GetListValue().GetValues()
	case *structpb.Value:
		m.Kind = w.value(n, path).GetKind()
	default:
		form, ok := textForms[m.ProtoReflect().Descriptor().FullName()]
		if ok && (n.Kind != yaml.ScalarNode || !form.pattern().MatchString(n.Value) || protojson.Unmarshal([]byte(strconv.Quote(n.Value)), m) != nil) {
			w.refuse(n, path, form.want)
		}
		return ok
	}
	return true
}

// textForms are the messages that JSON has as text.
var textForms = map[protoreflect.FullName]struct {
	pattern func() *regexp.Regexp
	want    string
}{
	"google.protobuf.Duration":  {lazyregexp.New(`^-?[0-9]{1,12}(\.[0-9]{1,9})?s$`), "a duration in seconds, written like 5s or 0.25s"},
	"google.protobuf.Timestamp": {lazyregexp.New(`^[-+0-9:.TZ]+$`), "a time, written like 2025-03-04T05:06:07Z"},
	"google.protobuf.FieldMask": {lazyregexp.New(`^[\w.,]*$`), "a list of field names separated by commas"},
}

// value decodes a free-form value.
func (w *walker) value(n *yaml.Node, path string) *structpb.Value {
	switch n.Kind {
	case yaml.MappingNode:
		s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(n.Content)/2)}
		for key, value := range conftree.Pairs(n) {
			s.Fields[key.Value] = w.value(value, path)
		}
		return structpb.NewStructValue(s)
	case yaml.SequenceNode:
		l := &structpb.ListValue{}
		for _, child := range n.Content {
			l.Values = append(l.Values, w.value(child, path))
		}
		return structpb.NewListValue(l)
	}
	switch n.ShortTag() {
	case "!!null":
		return structpb.NewNullValue()
	case "!!bool":
		v, _ := boolOf(n)
		return structpb.NewBoolValue(v)
	case "!!int", "!!float":
		v, ok := floatOf(n)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			w.refuse(n, path, "a number that JSON can hold")
		}
		return structpb.NewNumberValue(v)
	}
	return structpb.NewStringValue(n.Value)
}

// any decodes an extension: a mapping with its type in "@type".
func (w *walker) any(n *yaml.Node, m *anypb.Any, path string) {
	if n.Kind != yaml.MappingNode {
		w.refuse(n, path, "a mapping with @type")
		return
	}
	url, value := conftree.Member(n, "@type"), conftree.Member(n, "value")
	switch {
	case len(n.Content) == 0:
		return
	case url == nil || url.Kind != yaml.ScalarNode || url.ShortTag() != "!!str":
		w.nodeErrorf(Malformed, n, path, "needs @type with the name of the message")
		return
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(url.Value)
	if err != nil {
		want := "the name of a message"
		if errors.Is(err, protoregistry.NotFound) {
			want = "a known message"
		}
		w.nodeErrorf(Malformed, url, path, "@type %s is not %s", quote(url.Value, w.hidden > 0), want)
		return
	}
	inner := mt.New()
	_, isText := textForms[mt.Descriptor().FullName()]
	if !isText && wrappedField(mt.Descriptor()) == nil && !isFree(mt.Descriptor()) {
		w.fields(n, inner, path, "@type")
	} else {
		for key := range conftree.Pairs(n) {
			if key.Value != "@type" && key.Value != "value" {
				w.unknownField(key, path, mt.Descriptor())
			}
		}
		if value == nil {
			w.nodeErrorf(Malformed, n, path, "needs value beside @type %s", quote(url.Value, w.hidden > 0))
			return
		}
		w.message(value, inner, join(path, "value"))
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(inner.Interface())
	if err != nil { // text that is not UTF-8
		w.nodeErrorf(Malformed, n, path, "cannot be encoded as %s", mt.Descriptor().FullName())
	}
	m.TypeUrl, m.Value = url.Value, b
}

// isFree reports whether a message holds free-form values or another message.
func isFree(md protoreflect.MessageDescriptor) bool {
	switch md.FullName() {
	case "google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.ListValue", "google.protobuf.Value":
		return true
	}
	return false
}
