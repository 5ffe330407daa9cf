package wire

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// Mask is a set of field paths. It is immutable.
type Mask struct{ paths []string }

// ParseMask parses comma-separated paths such as "cluster.name,version_info". Empty
// paths are ignored.
func ParseMask(text string) Mask {
	var m Mask
	for path := range strings.SplitSeq(text, ",") {
		if path != "" {
			m.paths = append(m.paths, path)
		}
	}
	return m
}

// Paths returns the paths in order. The caller must not modify the slice.
func (m Mask) Paths() []string { return m.paths }

// Has reports whether the mask contains a field of a message itself, and so
// everything below it.
func (m Mask) Has(field protoreflect.Name) bool { return slices.Contains(m.paths, string(field)) }

// Fits returns the error that [Mask.Keep] would return for messages of a type.
func (m Mask) Fits(md protoreflect.MessageDescriptor) error {
	for _, path := range m.paths {
		if _, err := follow(md, path); err != nil {
			return err
		}
	}
	return nil
}

// Keep removes all fields from msg that are not in the mask. A path to an unknown
// field, or below a repeated field, a map or a packed message, is an error, and msg
// is unchanged.
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

// KeepPacked is Keep for a message that contains a packed one: if the first element
// of a path is a field with a packed message, the rest refers to fields of that
// message. A path that ends there keeps all of it. Only one such field is possible,
// and a packed message of unknown type is an error.
func (m Mask) KeepPacked(msg proto.Message) error {
	s, err := m.split(msg)
	if err != nil {
		return err
	}
	if s.content == nil {
		return s.outer.Keep(msg)
	}
	content := unpack(s.content.TypeUrl, s.inner.trim(s.content))
	if content == nil {
		return fmt.Errorf("wire: field %q does not hold a message of type %q", s.packed.Name(), s.content.TypeUrl)
	}
	if err := s.inner.Keep(content); err != nil {
		return err
	}
	trimmed := &anypb.Any{TypeUrl: s.content.TypeUrl}
	if !pack(trimmed, content) {
		return fmt.Errorf("wire: field %q cannot be packed again", s.packed.Name())
	}
	if err := s.outer.Keep(msg); err != nil || s.whole {
		return err
	}
	msg.ProtoReflect().Set(s.packed, protoreflect.ValueOfMessage(trimmed.ProtoReflect()))
	return nil
}

// FitsPacked returns the error that [Mask.KeepPacked] would return for msg. It looks
// at the type of the packed message, not at its content.
func (m Mask) FitsPacked(msg proto.Message) error {
	s, err := m.split(msg)
	if err != nil {
		return err
	}
	if err := s.outer.Fits(msg.ProtoReflect().Descriptor()); err != nil || s.content == nil {
		return err
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(s.content.TypeUrl)
	if err != nil {
		return fmt.Errorf("wire: field %q holds a message of the unknown type %q", s.packed.Name(), s.content.TypeUrl)
	}
	return s.inner.Fits(mt.Descriptor())
}

// trim returns the encoded fields of a packed message that paths of the mask lead
// through, so that the others need not be unpacked. Invalid bytes are returned
// unchanged.
func (m Mask) trim(a *anypb.Any) []byte {
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(a.GetTypeUrl())
	if err != nil {
		return a.GetValue()
	}
	var keep []protowire.Number
	for _, path := range m.paths {
		first, _, _ := strings.Cut(path, ".")
		if fd := mt.Descriptor().Fields().ByName(protoreflect.Name(first)); fd != nil {
			keep = append(keep, fd.Number())
		}
	}
	var out []byte
	for rest := a.GetValue(); len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return a.GetValue()
		}
		if slices.Contains(keep, number) {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// splitMask is a mask for a message that contains a packed one.
type splitMask struct {
	outer, inner Mask
	packed       protoreflect.FieldDescriptor // nil: no path leads to one
	content      *anypb.Any                   // what inner applies to; nil: inner is not used
	whole        bool                         // a path keeps all of content
}

func (m Mask) split(msg proto.Message) (s splitMask, err error) {
	r := msg.ProtoReflect()
	for _, path := range m.paths {
		first, rest, deeper := strings.Cut(path, ".")
		fd := r.Descriptor().Fields().ByName(protoreflect.Name(first))
		if fd == nil || !isAny(fd) {
			s.outer.paths = append(s.outer.paths, path)
			continue
		}
		if s.packed != nil && s.packed != fd {
			return s, fmt.Errorf("wire: mask path %q: only one packed field can be masked at a time", path)
		}
		s.packed = fd
		s.outer.paths = append(s.outer.paths, first)
		s.whole = s.whole || !deeper
		if deeper {
			s.inner.paths = append(s.inner.paths, rest)
		}
	}
	if s.packed == nil || !r.Has(s.packed) || len(s.inner.paths) == 0 {
		return s, nil
	}
	a, ok := r.Get(s.packed).Message().Interface().(*anypb.Any)
	if !ok {
		return s, fmt.Errorf("wire: field %q does not hold a packed message", s.packed.Name())
	}
	s.content = a
	return s, nil
}

// isAny reports whether a field contains one packed message. The message of a map field
// is its entry.
func isAny(fd protoreflect.FieldDescriptor) bool {
	return !fd.IsList() && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Any"
}

// follow returns the fields that a path leads through.
func follow(md protoreflect.MessageDescriptor, path string) ([]protoreflect.FieldDescriptor, error) {
	var out []protoreflect.FieldDescriptor
	for name := range strings.SplitSeq(path, ".") {
		if n := len(out); n > 0 {
			fd := out[n-1]
			if fd.IsList() || fd.IsMap() || fd.Message() == nil || isAny(fd) {
				return nil, fmt.Errorf("wire: mask path %q goes below %q, which is not a single message", path, fd.Name())
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

// maskTree contains the fields to keep. A nil tree keeps all of a field.
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
