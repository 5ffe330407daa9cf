package wire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Mask is a set of fields, each given by the names that lead to it. It is
// immutable.
type Mask struct{ paths []string }

// ParseMask reads paths that are separated by commas, such as
// "cluster.name,version_info". Empty paths are left out.
func ParseMask(text string) Mask {
	var m Mask
	for path := range strings.SplitSeq(text, ",") {
		if path != "" {
			m.paths = append(m.paths, path)
		}
	}
	return m
}

// Paths returns the paths in their order. The slice must not be changed.
func (m Mask) Paths() []string { return m.paths }

// Keep removes all fields from msg that the mask does not name. A path that
// leads to no field of the type, or below a repeated field, a map or a packed
// message, is an error, and msg is then as it was.
func (m Mask) Keep(msg proto.Message) error {
	tree := maskTree{}
	for _, path := range m.paths {
		if err := tree.add(msg.ProtoReflect().Descriptor(), path); err != nil {
			return err
		}
	}
	tree.keep(msg.ProtoReflect())
	return nil
}

// KeepPacked is Keep for a message with a packed one in it: where the first
// name of a path is a field with a packed message, the rest of the path leads
// to fields of that. A path that ends there keeps all of it. One such field is
// possible; a packed message of a type that is not known is an error.
func (m Mask) KeepPacked(msg proto.Message) error {
	r := msg.ProtoReflect()
	var outer, inner Mask
	whole := false
	var packed protoreflect.FieldDescriptor
	for _, path := range m.paths {
		first, rest, deeper := strings.Cut(path, ".")
		fd := r.Descriptor().Fields().ByName(protoreflect.Name(first))
		if fd == nil || !isAny(fd) {
			outer.paths = append(outer.paths, path)
			continue
		}
		if packed != nil && packed != fd {
			return fmt.Errorf("wire: mask path %q: only one packed field can be masked at a time", path)
		}
		packed = fd
		outer.paths = append(outer.paths, first)
		whole = whole || !deeper
		if deeper {
			inner.paths = append(inner.paths, rest)
		}
	}
	if packed == nil || !r.Has(packed) || len(inner.paths) == 0 {
		return outer.Keep(msg)
	}
	a, ok := r.Get(packed).Message().Interface().(*anypb.Any)
	if !ok {
		return fmt.Errorf("wire: field %q does not hold a packed message", packed.Name())
	}
	content := unpack(a.TypeUrl, a.Value)
	if content == nil {
		return fmt.Errorf("wire: field %q holds a message of the unknown type %q", packed.Name(), a.TypeUrl)
	}
	if err := inner.Keep(content); err != nil {
		return err
	}
	trimmed := &anypb.Any{TypeUrl: a.TypeUrl}
	if !pack(trimmed, content) {
		return fmt.Errorf("wire: field %q cannot be packed again", packed.Name())
	}
	if err := outer.Keep(msg); err != nil || whole {
		return err
	}
	r.Set(packed, protoreflect.ValueOfMessage(trimmed.ProtoReflect()))
	return nil
}

// isAny reports whether a field holds one packed message.
func isAny(fd protoreflect.FieldDescriptor) bool {
	return !fd.IsList() && !fd.IsMap() && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Any"
}

// follow returns the fields that a path leads through.
func follow(md protoreflect.MessageDescriptor, path string) ([]protoreflect.FieldDescriptor, error) {
	var out []protoreflect.FieldDescriptor
	for name := range strings.SplitSeq(path, ".") {
		if n := len(out); n > 0 {
			fd := out[n-1]
			if fd.IsList() || fd.IsMap() || fd.Message() == nil || isAny(fd) {
				return nil, fmt.Errorf("wire: mask path %q goes below %q, which is no single message", path, fd.Name())
			}
			md = fd.Message()
		}
		fd := md.Fields().ByName(protoreflect.Name(name))
		if fd == nil {
			return nil, fmt.Errorf("wire: mask path %q: %s has no field %q", path, md.FullName(), name)
		}
		out = append(out, fd)
	}
	return out, nil
}

// maskTree holds the fields to keep. A nil tree keeps all of a field.
type maskTree map[protoreflect.Name]maskTree

func (t maskTree) add(md protoreflect.MessageDescriptor, path string) error {
	fds, err := follow(md, path)
	if err != nil {
		return err
	}
	for i, fd := range fds {
		below, known := t[fd.Name()]
		if known && below == nil {
			return nil // kept as a whole already
		}
		if i == len(fds)-1 {
			t[fd.Name()] = nil
			return nil
		}
		if !known {
			below = maskTree{}
			t[fd.Name()] = below
		}
		t = below
	}
	return nil
}

func (t maskTree) keep(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		below, known := t[fd.Name()]
		switch {
		case !known || fd.IsExtension():
			m.Clear(fd)
		case below != nil:
			below.keep(v.Message())
		}
		return true
	})
}
