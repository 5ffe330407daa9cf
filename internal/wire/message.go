package wire

import (
	"cmp"
	"encoding/base64"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
)

// Defaults selects the treatment of fields with default values.
type Defaults bool

// The ways to treat default values.
const (
	// OmitDefaults omits them.
	OmitDefaults Defaults = false
	// ShowDefaults writes scalars, enumerations, lists and maps with default values.
	// Unset messages, wrappers and members of a oneof are still omitted.
	ShowDefaults Defaults = true
)

// maxDepth bounds the nesting of messages. Messages packed deeper are written as
// bytes.
const maxDepth = 100

// Writer is a [jsontext.Writer] that also writes messages. The zero value is ready to
// use and keeps the document; a Writer made by [To] streams it.
type Writer struct {
	jsontext.Writer

	// unpacked holds the content of the packed messages to be written next.
	unpacked map[*anypb.Any]proto.Message
	// fields holds the fields of the messages being written, outer ones first.
	fields []protoreflect.FieldDescriptor
}

// To returns a Writer that sends the document to dst; see [jsontext.To].
func To(dst io.Writer) *Writer { return &Writer{Writer: *jsontext.To(dst)} }

// Message writes m. Fields have the names of the definition, in order of their
// numbers; map entries are in order of their keys. A packed message of unknown type,
// or with invalid bytes, has its bytes in "value".
func (w *Writer) Message(m proto.Message, d Defaults) {
	p := printer{w, d}
	p.message(m.ProtoReflect(), 0)
}

// Members writes the fields of m as members of the innermost open object. own, if not
// nil, is called for each field of the type first; if it returns true, it has written
// or omitted the member.
func (w *Writer) Members(m proto.Message, d Defaults, own func(protoreflect.FieldDescriptor) bool) {
	p := printer{w, d}
	p.membersBut(m.ProtoReflect(), 0, own)
}

// Packed writes m in its packed form, with its type in "@type" and without fields that
// have their default.
func (w *Writer) Packed(m proto.Message) {
	w.BeginObject()
	w.Key("@type").String(TypeURL(m))
	printer{w, OmitDefaults}.packedMembers(m, 0)
	w.EndObject()
}

// TypeURL returns the type URL of a message.
func TypeURL(m proto.Message) string {
	return "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
}

type printer struct {
	w        *Writer
	defaults Defaults
}

func (p printer) message(m protoreflect.Message, depth int) {
	if p.wellKnown(m, depth) {
		return
	}
	p.w.BeginObject()
	p.members(m, depth)
	p.w.EndObject()
}

// members writes the fields of m without the braces.
func (p printer) members(m protoreflect.Message, depth int) { p.membersBut(m, depth, nil) }

// membersBut is members for the fields for which own returns false.
func (p printer) membersBut(m protoreflect.Message, depth int, own func(protoreflect.FieldDescriptor) bool) {
	first := len(p.w.fields)
	p.gather(m, own != nil)
	for i := first; i < len(p.w.fields); i++ { // the calls below append fields and remove them again
		fd := p.w.fields[i]
		if own != nil && own(fd) {
			continue
		}
		if own != nil && !m.Has(fd) && (p.defaults == OmitDefaults || fd.HasPresence()) {
			continue
		}
		p.member(m, fd, depth)
	}
	clear(p.w.fields[first:])
	p.w.fields = p.w.fields[:first]
}

func (p printer) member(m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	if fd.IsExtension() {
		p.w.Key("[" + string(fd.FullName()) + "]")
	} else {
		p.w.Key(string(fd.Name()))
	}
	v := m.Get(fd)
	switch {
	case fd.IsList():
		p.w.BeginList()
		for i, list := 0, v.List(); i < list.Len(); i++ {
			p.value(fd, list.Get(i), depth)
		}
		p.w.EndList()
	case fd.IsMap():
		p.w.BeginObject()
		for _, key := range sortedKeys(v.Map()) {
			p.w.Key(key.String())
			p.value(fd.MapValue(), v.Map().Get(key), depth)
		}
		p.w.EndObject()
	default:
		p.value(fd, v, depth)
	}
}

// gather appends to the fields of the writer, by number, the set fields of m, or all
// of its type, and the extensions of m.
func (p printer) gather(m protoreflect.Message, all bool) {
	out, first := p.w.fields, len(p.w.fields)
	md := m.Descriptor()
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		if fd := fields.Get(i); all || m.Has(fd) || p.defaults == ShowDefaults && !fd.HasPresence() {
			out = append(out, fd)
		}
	}
	if md.ExtensionRanges().Len() > 0 {
		out = append(out, extensions(m)...)
	}
	slices.SortFunc(out[first:], func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	p.w.fields = out
}

func extensions(m protoreflect.Message) (list []protoreflect.FieldDescriptor) {
	m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if fd.IsExtension() {
			list = append(list, fd)
		}
		return true
	})
	return list
}

func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch x := a.Interface().(type) {
		case int32, int64:
			return cmp.Compare(a.Int(), b.Int())
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		case bool:
			if x == b.Bool() {
				return 0
			}
			if x {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.String(), b.String())
	})
	return keys
}

func (p printer) value(fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		p.message(v.Message(), depth+1)
	case protoreflect.EnumKind:
		p.enum(fd, v.Enum())
	default:
		p.scalar(fd.Kind(), v)
	}
}

func (p printer) enum(fd protoreflect.FieldDescriptor, n protoreflect.EnumNumber) {
	if fd.Enum().FullName() == "google.protobuf.NullValue" {
		p.w.Value(nil)
		return
	}
	if v := fd.Enum().Values().ByNumber(n); v != nil {
		p.w.String(string(v.Name()))
		return
	}
	p.w.Int32(int32(n))
}

func (p printer) scalar(kind protoreflect.Kind, v protoreflect.Value) {
	switch kind {
	case protoreflect.BoolKind:
		p.w.Bool(v.Bool())
	case protoreflect.StringKind:
		p.w.String(v.String())
	case protoreflect.BytesKind:
		p.w.String(base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		p.w.Int32(int32(v.Int()))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		p.w.Uint32(uint32(v.Uint()))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		p.w.Int64(v.Int())
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		p.w.Uint64(v.Uint())
	case protoreflect.FloatKind:
		p.w.Float(v.Float(), 32)
	default:
		p.w.Float(v.Float(), 64)
	}
}

// wellKnown writes a message with a special form in JSON, and reports whether m is
// one.
func (p printer) wellKnown(m protoreflect.Message, depth int) bool {
	name := m.Descriptor().FullName()
	if name.Parent() != "google.protobuf" {
		return false
	}
	field := func(n protoreflect.FieldNumber) protoreflect.Value { return m.Get(m.Descriptor().Fields().ByNumber(n)) }
	switch name.Name() {
	case "Any":
		p.packed(m, depth)
	case "Duration":
		p.w.Seconds(field(1).Int(), int32(field(2).Int()))
	case "Timestamp":
		p.w.Time(time.Unix(field(1).Int(), field(2).Int()))
	case "FieldMask":
		p.w.String(joinPaths(field(1).List()))
	case "BoolValue", "StringValue", "BytesValue", "Int32Value", "UInt32Value", "Int64Value", "UInt64Value", "FloatValue", "DoubleValue":
		p.scalar(m.Descriptor().Fields().ByNumber(1).Kind(), field(1))
	case "Struct":
		p.w.BeginObject()
		entries := field(1).Map()
		for _, key := range sortedKeys(entries) {
			p.w.Key(key.String())
			p.message(entries.Get(key).Message(), depth+1)
		}
		p.w.EndObject()
	case "ListValue":
		p.w.BeginList()
		for i := range field(1).List().Len() {
			p.message(field(1).List().Get(i).Message(), depth+1)
		}
		p.w.EndList()
	case "Value":
		p.anyValue(m, depth)
	default:
		return false
	}
	return true
}

// anyValue writes a google.protobuf.Value. One without a kind is null.
func (p printer) anyValue(m protoreflect.Message, depth int) {
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil {
		p.w.Value(nil)
		return
	}
	p.value(fd, m.Get(fd), depth)
}

// packed writes a google.protobuf.Any.
func (p printer) packed(m protoreflect.Message, depth int) {
	fds := m.Descriptor().Fields()
	url, raw := m.Get(fds.ByNumber(1)).String(), m.Get(fds.ByNumber(2)).Bytes()
	if url == "" && len(raw) == 0 {
		p.w.BeginObject()
		p.w.EndObject()
		return
	}
	p.w.BeginObject()
	p.w.Key("@type").String(url)
	var inner proto.Message
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner = p.w.unpacked[a]
	}
	if inner == nil {
		inner = unpack(url, raw)
	}
	if inner == nil || depth > maxDepth {
		p.w.Key("value").String(base64.StdEncoding.EncodeToString(raw))
	} else {
		p.packedMembers(inner, depth)
	}
	p.w.EndObject()
}

// packedMembers writes the members of a packed message after its type.
func (p printer) packedMembers(m proto.Message, depth int) {
	if hasOwnForm(m.ProtoReflect()) {
		p.w.Key("value")
		p.message(m.ProtoReflect(), depth+1)
		return
	}
	p.members(m.ProtoReflect(), depth+1)
}

// hasOwnForm reports whether a message is not written as an object of its fields.
func hasOwnForm(m protoreflect.Message) bool {
	if m.Descriptor().FullName().Parent() != "google.protobuf" {
		return false
	}
	scratch := printer{new(Writer), OmitDefaults}
	return m.Descriptor().FullName() != "google.protobuf.Empty" && scratch.wellKnown(m.Type().Zero(), 0)
}

// unpack decodes a packed message. It returns nil if the type is unknown or the bytes
// are invalid.
func unpack(url string, raw []byte) proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return nil
	}
	m := mt.New().Interface()
	if proto.Unmarshal(raw, m) != nil {
		return nil
	}
	return m
}

// pack is the reverse of unpack. Equal messages have equal bytes.
func pack(a *anypb.Any, m proto.Message) bool {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err == nil {
		a.Value = b
	}
	return err == nil
}

// joinPaths returns the paths of a mask in JSON form: comma-separated and in lower
// camel case.
func joinPaths(paths protoreflect.List) string {
	var out []byte
	for i := range paths.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		upper := false
		for _, c := range []byte(paths.Get(i).String()) {
			switch {
			case c == '_':
				upper = true
				continue
			case upper && 'a' <= c && c <= 'z':
				c -= 'a' - 'A'
			}
			upper = false
			out = append(out, c)
		}
	}
	return string(out)
}
