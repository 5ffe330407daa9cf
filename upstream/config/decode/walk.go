package decode

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/internal/spelling"
)

// walker decodes a tree of nodes into a message. It checks every value against the
// descriptor of its field and accepts enum names in lower case and numbers in other
// bases.
type walker struct {
	*report
	allowUnknown bool
	open         []protoreflect.MessageDescriptor // messages around the current value, outermost first
}

// fill decodes the tree n, which has no aliases, into m and adds errors to r.
func fill(n *yaml.Node, m proto.Message, r *report, allowUnknown bool) {
	r.root = n
	(&walker{report: r, allowUnknown: allowUnknown}).message(n, m.ProtoReflect(), "")
}

// refuse adds an error about the value n.
func (w *walker) refuse(n *yaml.Node, path, want string) {
	w.nodeErrorf(Malformed, n, path, "%s is not %s", show(n, w.hidden > 0), want)
}

// show returns a value for error texts.
func show(n *yaml.Node, secret bool) string {
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || secret || tag == "!!str" || tag == "!!timestamp" {
		return conftree.Show(n, secret)
	}
	return conftree.Key(n.Value, false)
}

func findField(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// message decodes n into m.
func (w *walker) message(n *yaml.Node, m protoreflect.Message, path string) {
	md := m.Descriptor()
	if wrapped := wrappedField(md); wrapped != nil {
		if v := w.scalar(n, wrapped, path); v.IsValid() {
			m.Set(wrapped, v)
		}
		return
	}
	if w.known(n, m, path) {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping with fields of %s", show(n, w.hidden > 0 || holdsSecrets(md)), shortName(md))
		return
	}
	w.fields(n, m, path, "")
}

// fields decodes the members of n, except the key skip, into m.
func (w *walker) fields(n *yaml.Node, m protoreflect.Message, path, skip string) {
	w.open = append(w.open, m.Descriptor())
	defer func() { w.open = w.open[:len(w.open)-1] }()
	seen := make(map[protoreflect.FieldNumber]string)
	chosen := make(map[protoreflect.Name]protoreflect.FieldDescriptor)
	for key, value := range conftree.Pairs(n) {
		name := key.Value
		if skip != "" && name == skip {
			continue
		}
		fd := findField(m.Descriptor(), name)
		if fd == nil {
			w.unknownField(key, path, m.Descriptor())
			continue
		}
		at := join(path, string(fd.Name()))
		if other, ok := seen[fd.Number()]; ok {
			w.nodeErrorf(Malformed, key, at, "set twice, as %s and as %s", other, name)
			continue
		}
		seen[fd.Number()] = name
		if conftree.IsNull(value) && fd.Kind() != protoreflect.EnumKind && !takesNull(fd) {
			continue // null means absent
		}
		if od := fd.ContainingOneof(); od != nil && !od.IsSynthetic() {
			if other := chosen[od.Name()]; other != nil {
				field, message := oneofConflict(path, other, fd)
				w.nodeErrorf(Conflict, key, field, "%s", message)
				continue
			}
			chosen[od.Name()] = fd
		}
		w.field(value, m, fd, at)
	}
}

// takesNull reports whether null is a value of the field or its elements.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

// holdsSecrets reports whether a message has fields with secrets, or is itself a secret.
func holdsSecrets(md protoreflect.MessageDescriptor) bool {
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		if isSensitive(fields.Get(i)) {
			return true
		}
	}
	return redact.Path(strings.ToLower(shortName(md)))
}

// unknownField reports an unknown field of the message at path. In a secret it is
// redacted: without a space after a colon, the value is a part of the key.
func (w *walker) unknownField(key *yaml.Node, path string, md protoreflect.MessageDescriptor) {
	name := conftree.Key(key.Value, w.hidden > 0)
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		if strings.HasPrefix(string(fields.Get(i).Name()), key.Value) {
			name = key.Value // a prefix of a field name is no secret
		}
	}
	e := &Error{Position: w.source.position(key), Kind: UnknownField, Field: join(path, name), Message: "unknown field of " + shortName(md)}
	if w.allowUnknown {
		w.unknown++
		w.warn(e)
		return
	}
	e.Message += w.instead(key.Value, md)
	w.add(e)
}

// instead says what could be meant by a name that is no field of a message. A field of
// a message around it is probably indented too far.
func (w *walker) instead(name string, md protoreflect.MessageDescriptor) string {
	if w.hidden == 0 {
		for _, outer := range slices.Backward(w.open) {
			if findField(outer, name) != nil {
				return "; it is a field of " + shortName(outer)
			}
		}
		if near := nearestField(md, name); near != "" {
			return "; did you mean " + near + "?"
		}
	}
	var names []string
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		names = append(names, string(fields.Get(i).Name()))
	}
	slices.Sort(names)
	return "; allowed: " + strings.Join(names, ", ")
}

// nearestField returns the field that name was probably meant to be, "" if none is close.
func nearestField(md protoreflect.MessageDescriptor, name string) string {
	fields := md.Fields()
	return spelling.Nearest(conftree.SnakeCase(name), func(yield func(string) bool) {
		for i := range fields.Len() {
			if !yield(string(fields.Get(i).Name())) {
				return
			}
		}
	}, len(name)/3)
}

// field decodes the value of a field of m, with its cardinality.
func (w *walker) field(n *yaml.Node, m protoreflect.Message, fd protoreflect.FieldDescriptor, path string) {
	if isSensitive(fd) {
		w.hidden++
		defer func() { w.hidden-- }()
	}
	switch {
	case fd.IsList():
		if n.Kind != yaml.SequenceNode {
			w.refuse(n, path, "a list")
			return
		}
		list := m.Mutable(fd).List()
		for i, child := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			if conftree.IsNull(child) && !takesNull(fd) {
				w.nodeErrorf(Malformed, child, at, "null is not an element")
				continue
			}
			if v := w.single(child, fd, list.NewElement, at); v.IsValid() {
				list.Append(v)
			}
		}
	case fd.IsMap():
		if n.Kind != yaml.MappingNode {
			w.refuse(n, path, "a mapping")
			return
		}
		entries := m.Mutable(fd).Map()
		for key, value := range conftree.Pairs(n) {
			at := fmt.Sprintf("%s[%s]", path, quote(key.Value, false))
			if conftree.IsNull(value) {
				w.nodeErrorf(Malformed, key, at, "null is not a value")
				continue
			}
			k := protoreflect.ValueOfString(key.Value)
			if fd.MapKey().Kind() != protoreflect.StringKind {
				k = w.scalar(key, fd.MapKey(), at)
			}
			if v := w.single(value, fd.MapValue(), entries.NewValue, at); k.IsValid() && v.IsValid() {
				entries.Set(k.MapKey(), v)
			}
		}
	default:
		if v := w.single(n, fd, func() protoreflect.Value { return m.NewField(fd) }, path); v.IsValid() {
			m.Set(fd, v)
		}
	}
}

// single decodes one value of the kind of fd. It is invalid after an error.
func (w *walker) single(n *yaml.Node, fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, path string) protoreflect.Value {
	if fd.Message() == nil {
		return w.scalar(n, fd, path)
	}
	v := empty()
	w.message(n, v.Message(), path)
	return v
}

// wrappedField returns the value of a wrapper message, nil for other messages.
func wrappedField(md protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if md.ParentFile().Path() == "google/protobuf/wrappers.proto" {
		return md.Fields().ByNumber(1)
	}
	return nil
}

// join appends a field name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
