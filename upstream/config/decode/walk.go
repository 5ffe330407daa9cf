package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// walker converts a tree of nodes into the JSON form of a message with the same line
// breaks, so that the JSON decoder reports lines of the text. It checks every value
// against the descriptor of its field and resolves aliases, merge keys, enum names in
// lower case and numbers in other bases.
type walker struct {
	*report
	types        *protoregistry.Types
	allowUnknown bool

	out  bytes.Buffer
	line int  // of the text at the current output position
	left int  // remaining values; reading stops below 0
	over bool // exhaustion of left was reported
}

// decodeNode decodes the tree n into m and adds errors to r.
func decodeNode(n *yaml.Node, m proto.Message, r *report, allowUnknown bool, budget int) {
	w := &walker{report: r, types: protoregistry.GlobalTypes, allowUnknown: allowUnknown, line: 1, left: budget}
	r.root = n
	w.message(n, m.ProtoReflect().Descriptor(), "", 0)
	if len(r.errs) > 0 {
		return
	}
	err := protojson.UnmarshalOptions{RecursionLimit: conftree.MaxDepth + 10}.Unmarshal(w.out.Bytes(), m)
	if err == nil {
		return
	}
	// The walker missed an error. The decoder's text is not stable and can quote a
	// secret, so only its line is used.
	e := &Error{Position: r.source.position(n), Kind: Malformed, Message: "cannot be decoded as " + string(m.ProtoReflect().Descriptor().FullName())}
	if at := decoderLine.FindStringSubmatch(err.Error()); at != nil {
		e.Position.Line, _ = strconv.Atoi(at[1])
		e.Position.Column = 1
	}
	r.add(e)
}

// decoderLine matches the line in an error of the JSON decoder.
var decoderLine = regexp.MustCompile(`\(line.(\d+):\d+\)`)

// seek writes newlines up to the line of n. A value behind an alias stays on the line
// that uses it.
func (w *walker) seek(n *yaml.Node) {
	for w.line < n.Line {
		w.out.WriteByte('\n')
		w.line++
	}
}

// enter follows aliases and counts a value. It returns nil if there are too many
// values or too many levels.
func (w *walker) enter(n *yaml.Node, path string, depth int) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil; hops++ {
		if hops > conftree.MaxDepth {
			break
		}
		n = n.Alias
	}
	w.left--
	if depth > conftree.MaxDepth && w.left >= 0 {
		w.nodeErrorf(Malformed, n, "", "nested deeper than %d levels", conftree.MaxDepth)
		w.left, w.over = -1, true
	}
	if w.left < 0 {
		if !w.over {
			w.nodeErrorf(Malformed, n, "", "too many values once aliases are written out")
			w.over = true
		}
		return nil
	}
	known := collectionTags
	if n.Kind == yaml.ScalarNode {
		known = scalarTags
	}
	if tag := n.ShortTag(); !slices.Contains(known, tag) {
		w.nodeErrorf(Malformed, n, path, "tag %s is not known", quote(tag, w.hidden > 0)) // the tag can be a part of an unquoted secret
		return nil
	}
	w.seek(n)
	return n
}

// show returns a value for error texts, redacted inside a secret.
func (w *walker) show(n *yaml.Node) string { return show(n, w.hidden > 0) }

// show returns a value for error texts.
func show(n *yaml.Node, secret bool) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "null"
	}
	if n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp" {
		return quote(n.Value, secret)
	}
	if secret {
		return redacted
	}
	return clip(n.Value)
}

// findField finds a field by its name or its JSON name.
func findField(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// message writes the mapping n as a message of type md.
func (w *walker) message(n *yaml.Node, md protoreflect.MessageDescriptor, path string, depth int) {
	if write := special(md.FullName()); write != nil {
		write(w, n, path, depth)
		return
	}
	n = w.enter(n, path, depth)
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping with fields of %s", show(n, w.hidden > 0 || holdsSecrets(md)), shortName(md))
		return
	}
	w.out.WriteByte('{')
	w.fields(n, md, path, depth, "")
	w.out.WriteByte('}')
}

// fields writes the members of a message. The key skip was written already.
func (w *walker) fields(n *yaml.Node, md protoreflect.MessageDescriptor, path string, depth int, skip string) {
	seen := make(map[protoreflect.FieldNumber]string)
	chosen := make(map[protoreflect.Name]protoreflect.FieldDescriptor)
	comma := skip != ""
	for _, m := range members(n, w.report, path, &w.left) {
		name := m.key.Value
		if skip != "" && name == skip {
			continue
		}
		fd := findField(md, name)
		if fd == nil {
			w.unknownField(m.key, path, md)
			continue
		}
		at := join(path, string(fd.Name()))
		if other, ok := seen[fd.Number()]; ok {
			w.nodeErrorf(Malformed, m.key, at, "set twice, as %s and as %s", other, name)
			continue
		}
		seen[fd.Number()] = name
		value := dealias(m.value)
		if isNull(value) && fd.Kind() != protoreflect.EnumKind && !takesNull(fd) {
			continue // null means absent
		}
		if od := fd.ContainingOneof(); od != nil && !od.IsSynthetic() {
			if other := chosen[od.Name()]; other != nil {
				field, message := oneofConflict(path, other, fd)
				w.nodeErrorf(Conflict, m.key, field, "%s", message)
				continue
			}
			chosen[od.Name()] = fd
		}
		if comma {
			w.out.WriteByte(',')
		}
		comma = true
		w.seek(m.key)
		fmt.Fprintf(&w.out, `"%s":`, fd.Name())
		w.field(m.value, fd, at, depth)
	}
}

// takesNull reports whether null is a value of the field and not its absence.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	return !fd.IsList() && !fd.IsMap() && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

// holdsSecrets reports whether a message has fields with secrets.
func holdsSecrets(md protoreflect.MessageDescriptor) bool {
	for i, fields := 0, md.Fields(); i < fields.Len(); i++ {
		if isSensitive(fields.Get(i)) {
			return true
		}
	}
	return false
}

// key returns a key as a part of a path. In a secret it is redacted: without a space
// after a colon, the value is a part of the key.
func (r *report) key(name string) string {
	if r != nil && r.hidden > 0 {
		return redacted
	}
	return clip(name)
}

// unknownField reports an unknown field of the message at path.
func (w *walker) unknownField(key *yaml.Node, path string, md protoreflect.MessageDescriptor) {
	name := w.key(key.Value)
	if f := md.Fields(); w.hidden > 0 {
		for i := range f.Len() {
			if strings.HasPrefix(string(f.Get(i).Name()), key.Value) {
				name = key.Value // a prefix of a field name is no secret
			}
		}
	}
	e := &Error{Position: w.source.position(key), Kind: UnknownField, Field: join(path, name), Message: "unknown field of " + shortName(md)}
	if w.allowUnknown {
		w.unknown++
		w.warn(e)
		return
	}
	w.add(e)
}

// field writes the value of a field, with its cardinality.
func (w *walker) field(n *yaml.Node, fd protoreflect.FieldDescriptor, path string, depth int) {
	if isSensitive(fd) {
		w.hidden++
		defer func() { w.hidden-- }()
	}
	if !fd.IsList() && !fd.IsMap() {
		w.single(n, fd, path, depth+1)
		return
	}
	n = w.enter(n, path, depth+1)
	switch {
	case n == nil:
	case fd.IsList() && n.Kind != yaml.SequenceNode:
		w.nodeErrorf(Malformed, n, path, "%s is not a list", w.show(n))
	case fd.IsList():
		w.out.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			at := fmt.Sprintf("%s[%d]", path, i)
			if isNull(dealias(child)) && !takesNullElement(fd) {
				w.nodeErrorf(Malformed, child, at, "null is not an element")
				continue
			}
			w.single(child, fd, at, depth+2)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte(']')
	case n.Kind != yaml.MappingNode:
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping", w.show(n))
	default:
		w.out.WriteByte('{')
		for i, m := range members(n, w.report, path, &w.left) {
			if i > 0 {
				w.out.WriteByte(',')
			}
			at := fmt.Sprintf("%s[%s]", path, quote(m.key.Value, false))
			if isNull(dealias(m.value)) {
				w.nodeErrorf(Malformed, m.key, at, "null is not a value")
				continue
			}
			w.seek(m.key)
			w.text(m.key.Value)
			w.out.WriteByte(':')
			w.single(m.value, fd.MapValue(), at, depth+2)
		}
		w.out.WriteByte('}')
	}
}

func takesNullElement(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

// text writes s as a JSON string on one line.
func (w *walker) text(s string) {
	b, err := json.Marshal(s) // cannot fail for a string
	if err == nil {
		w.out.Write(b)
	}
}

// single writes one value of the kind of fd.
func (w *walker) single(n *yaml.Node, fd protoreflect.FieldDescriptor, path string, depth int) {
	if fd.Message() != nil {
		if wrapped := wrappedField(fd.Message()); wrapped != nil {
			w.scalar(n, wrapped, path, depth)
			return
		}
		w.message(n, fd.Message(), path, depth)
		return
	}
	w.scalar(n, fd, path, depth)
}

// wrappedField returns the value of a wrapper message, nil for other messages.
func wrappedField(md protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if md.ParentFile().Path() == "google/protobuf/wrappers.proto" {
		return md.Fields().ByNumber(1)
	}
	return nil
}
