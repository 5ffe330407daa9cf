package wire

import (
	"encoding/json"
	"strings"

	udpa "github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Redactor redacts secrets in messages. It is immutable.
type Redactor struct {
	// Untyped also redacts data that no definition can mark as secret: entries of
	// maps and structs by their names, header values by the names of the headers,
	// texts that redact.LooksSecret recognizes, and packed messages of unknown type.
	Untyped bool

	// unpacked, if not nil, receives the redacted content of packed messages, which
	// are then not packed again.
	unpacked map[*anypb.Any]proto.Message
}

// Redact returns a redacted copy of m. A field is secret if its definition, or that
// of an enclosing field, says so. Secret texts and bytes become [redact.Mark]; other
// secret scalars are removed, or become zero in maps. Packed messages of known types
// are unpacked for this.
func (r Redactor) Redact(m proto.Message) proto.Message {
	out := proto.Clone(m)
	r.message(out.ProtoReflect(), false, 0)
	return out
}

// Redact is [Redactor.Redact] for an element of a repeated field, but modifies and
// returns m itself. The next write of w must be m: packed messages in it stay
// unpacked for that, which saves half of the time.
func (w *Writer) Redact(r Redactor, fd protoreflect.FieldDescriptor, m proto.Message) proto.Message {
	if w.unpacked == nil {
		w.unpacked = make(map[*anypb.Any]proto.Message)
	}
	clear(w.unpacked)
	r.unpacked = w.unpacked
	r.message(m.ProtoReflect(), Sensitive(fd), 0)
	return m
}

// message redacts m in place. secret means that an enclosing field is secret.
func (r Redactor) message(m protoreflect.Message, secret bool, depth int) {
	if depth > maxDepth {
		secret = true // packed messages below are not inspected
	} else if r.packed(m, secret, depth) {
		return
	}
	secretHeader := r.Untyped && isSecretHeader(m)
	md := m.Descriptor()
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		if fd := fields.Get(i); m.Has(fd) {
			r.field(m, fd, secret || Sensitive(fd) || secretHeader && (fd.Name() == "value" || fd.Name() == "raw_value"), depth)
		}
	}
	if md.ExtensionRanges().Len() > 0 {
		for _, fd := range extensions(m) {
			r.field(m, fd, secret || Sensitive(fd), depth)
		}
	}
}

// field redacts a set field of m in place.
func (r Redactor) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, hide bool, depth int) {
	v := m.Get(fd)
	switch {
	case fd.IsMap():
		r.entries(fd, v.Map(), hide, depth)
	case fd.IsList():
		r.list(m, fd, v.List(), hide, depth)
	case fd.Message() != nil:
		r.message(v.Message(), hide, depth+1)
	default:
		if replacement, ok := r.scalar(fd, v, hide); ok {
			m.Set(fd, replacement)
		} else if hide {
			m.Clear(fd)
		}
	}
}

// scalar returns the replacement of a secret text or bytes, and false for values that
// are neither, or not secret.
func (r Redactor) scalar(fd protoreflect.FieldDescriptor, v protoreflect.Value, hide bool) (protoreflect.Value, bool) {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(redact.Mark), hide || r.Untyped && redact.LooksSecret(v.String())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(redact.Mark)), hide || r.Untyped && redact.LooksSecret(string(v.Bytes()))
	}
	return v, false
}

func (r Redactor) list(m protoreflect.Message, fd protoreflect.FieldDescriptor, list protoreflect.List, hide bool, depth int) {
	for i := range list.Len() {
		if fd.Message() != nil {
			r.message(list.Get(i).Message(), hide, depth+1)
		} else if replacement, ok := r.scalar(fd, list.Get(i), hide); ok {
			list.Set(i, replacement)
		} else if hide {
			m.Clear(fd)
			return
		}
	}
}

// entries redacts the values of a map. Its keys stay. Every header of requests can
// authenticate, so all of a mapping of headers is secret.
func (r Redactor) entries(fd protoreflect.FieldDescriptor, entries protoreflect.Map, hide bool, depth int) {
	value := fd.MapValue()
	untyped := value.Kind() == protoreflect.StringKind || value.Kind() == protoreflect.BytesKind ||
		value.Message() != nil && (value.Message().FullName() == "google.protobuf.Value" || value.Message().FullName() == "google.protobuf.Struct")
	for _, key := range sortedKeys(entries) {
		v := entries.Get(key)
		hide := hide || r.Untyped && untyped && (redact.Key(key.String()) && !namesFile(key.String(), v) || key.String() == "headers")
		if value.Message() != nil {
			r.message(v.Message(), hide, depth+1)
		} else if replacement, ok := r.scalar(value, v, hide); ok {
			entries.Set(key, replacement)
		} else if hide {
			entries.Set(key, value.Default())
		}
	}
}

// namesFile reports whether v is the path of a file with a secret, such as tokens_file,
// and not the secret.
func namesFile(key string, v protoreflect.Value) bool {
	m, ok := v.Interface().(protoreflect.Message)
	if !ok {
		return false
	}
	text, ok := m.Interface().(*structpb.Value)
	return ok && strings.HasSuffix(key, "_file") && strings.HasPrefix(text.GetStringValue(), "/")
}

// packed redacts a message of known type that m contains in packed or untyped form,
// and reports whether it did. Anything else is redacted as an ordinary message.
func (r Redactor) packed(m protoreflect.Message, secret bool, depth int) bool {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Any":
		a, ok := m.Interface().(*anypb.Any)
		if !ok {
			return false
		}
		content := unpack(a.TypeUrl, a.Value)
		if content == nil {
			if r.Untyped && len(a.Value) > 0 {
				a.Value = []byte(redact.Mark)
			}
			return r.Untyped && !secret
		}
		r.message(content.ProtoReflect(), secret, depth+1)
		if r.unpacked != nil {
			r.unpacked[a], a.Value = content, nil // drop the packed form, which has the secrets
			return true
		}
		return pack(a, content)
	case "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct":
		return r.typedStruct(m, secret, depth)
	}
	return false
}

// typedStruct redacts a struct that represents a message of a named type.
func (r Redactor) typedStruct(m protoreflect.Message, secret bool, depth int) bool {
	fds := m.Descriptor().Fields()
	url, value := fds.ByName("type_url"), fds.ByName("value")
	if url == nil || value == nil || !m.Has(value) {
		return false
	}
	s, ok := m.Get(value).Message().Interface().(*structpb.Struct)
	if !ok {
		return false
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(m.Get(url).String())
	if err != nil {
		return false
	}
	content := mt.New().Interface()
	text, err := protojson.Marshal(s)
	if err != nil || protojson.Unmarshal(text, content) != nil {
		return false
	}
	r.message(content.ProtoReflect(), secret, depth+1)
	text, err = protojson.MarshalOptions{UseProtoNames: true}.Marshal(content)
	if err != nil {
		return false
	}
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return false
	}
	redacted, err := structpb.NewStruct(fields)
	if err != nil {
		return false
	}
	m.Set(value, protoreflect.ValueOfMessage(redacted.ProtoReflect()))
	return true
}

// Sensitive reports whether the definition marks a field as secret.
func Sensitive(fd protoreflect.FieldDescriptor) bool {
	options := fd.Options()
	if options == nil || !proto.HasExtension(options, udpa.E_Sensitive) {
		return false
	}
	secret, ok := proto.GetExtension(options, udpa.E_Sensitive).(bool)
	return ok && secret
}

// isSecretHeader reports whether m is a header whose name implies a secret value.
func isSecretHeader(m protoreflect.Message) bool {
	if m.Descriptor().Name() != "HeaderValue" {
		return false
	}
	key := m.Descriptor().Fields().ByName("key")
	return key != nil && key.Kind() == protoreflect.StringKind && redact.Key(m.Get(key).String())
}
