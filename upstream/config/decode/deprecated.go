package decode

import (
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Deprecated returns the full names of the deprecated fields and enum values in the
// message, once for each use, in the order of field numbers. It includes nested and
// typed messages.
func (o *Original) Deprecated() (names []string) {
	use := func(p protopath.Values) error {
		at := p.Index(-1)
		var fd protoreflect.FieldDescriptor
		switch at.Step.Kind() {
		case protopath.FieldAccessStep:
			fd = at.Step.FieldDescriptor()
			if fo, ok := fd.Options().(*descriptorpb.FieldOptions); ok && fo.GetDeprecated() {
				names = append(names, string(fd.FullName()))
			}
			if fd.IsList() || fd.IsMap() {
				return nil
			}
		case protopath.ListIndexStep, protopath.MapIndexStep:
			fd = p.Index(-2).Step.FieldDescriptor()
			if fd.IsMap() {
				fd = fd.MapValue()
			}
		default:
			return nil
		}
		if fd.Kind() == protoreflect.EnumKind {
			v := fd.Enum().Values().ByNumber(at.Value.Enum())
			if v == nil {
				return nil // a number without a name
			}
			if vo, ok := v.Options().(*descriptorpb.EnumValueOptions); ok && vo.GetDeprecated() {
				names = append(names, string(v.FullName()))
			}
		}
		return nil
	}
	// Messages that cannot be decoded have no known fields.
	_ = protorange.Options{Stable: true}.Range(o.message.ProtoReflect(), use, nil)
	return names
}
