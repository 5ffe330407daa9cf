package wire

import (
	"fmt"
	"strings"
	"testing"

	udpa "github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// odd returns a message with fields that no message of the configuration has: maps with
// keys that are no texts, secret numbers, and extensions, of which secret is secret.
func odd(t *testing.T) proto.Message {
	t.Helper()
	secret := &descriptorpb.FieldOptions{}
	proto.SetExtension(secret, udpa.E_Sensitive, true)
	field := func(name string, n int32, kind descriptorpb.FieldDescriptorProto_Type, many bool, options *descriptorpb.FieldOptions) *descriptorpb.FieldDescriptorProto {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if many {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &n, Type: &kind, Label: &label, Options: options}
	}
	const text, number = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT32
	message := &descriptorpb.DescriptorProto{Name: proto.String("Odd"), ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(100), End: proto.Int32(200)}}}
	maps := []struct {
		name, entry string
		key, value  descriptorpb.FieldDescriptorProto_Type
		options     *descriptorpb.FieldOptions
	}{
		{"by_int32", "ByInt32Entry", number, text, nil},
		{"by_uint64", "ByUint64Entry", descriptorpb.FieldDescriptorProto_TYPE_UINT64, text, nil},
		{"by_bool", "ByBoolEntry", descriptorpb.FieldDescriptorProto_TYPE_BOOL, text, nil},
		{"counts", "CountsEntry", text, number, secret},
	}
	for i, m := range maps {
		message.NestedType = append(message.NestedType, &descriptorpb.DescriptorProto{Name: &m.entry, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, m.key, false, nil), field("value", 2, m.value, false, nil)}})
		f := field(m.name, int32(i+1), descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, true, m.options)
		f.TypeName = proto.String(".wire.test.Odd." + m.entry)
		message.Field = append(message.Field, f)
	}
	message.Field = append(message.Field, field("numbers", 5, number, true, secret), field("n", 6, number, false, secret),
		field("words", 7, text, true, secret), field("last", 300, text, false, nil))
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("odd.proto"), Package: proto.String("wire.test"), Syntax: proto.String("proto2"),
		MessageType: []*descriptorpb.DescriptorProto{message}}
	for i, name := range []string{"plain", "secret"} {
		f := field(name, int32(101-i), text, false, nil)
		f.Extendee = proto.String(".wire.test.Odd")
		if name == "secret" {
			f.Options = secret
		}
		file.Extension = append(file.Extension, f)
	}
	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(fd.Messages().Get(0))
	of := func(name protoreflect.Name) protoreflect.FieldDescriptor { return m.Descriptor().Fields().ByName(name) }
	for _, n := range []int32{10, -5, 3} {
		m.Mutable(of("by_int32")).Map().Set(protoreflect.ValueOfInt32(n).MapKey(), protoreflect.ValueOfString("v"))
		m.Mutable(of("numbers")).List().Append(protoreflect.ValueOfInt32(n))
	}
	for _, n := range []uint64{1 << 63, 9, 20} {
		m.Mutable(of("by_uint64")).Map().Set(protoreflect.ValueOfUint64(n).MapKey(), protoreflect.ValueOfString("v"))
	}
	for _, b := range []bool{true, false} {
		m.Mutable(of("by_bool")).Map().Set(protoreflect.ValueOfBool(b).MapKey(), protoreflect.ValueOfString("v"))
	}
	m.Mutable(of("counts")).Map().Set(protoreflect.ValueOfString("a").MapKey(), protoreflect.ValueOfInt32(77))
	m.Mutable(of("words")).List().Append(protoreflect.ValueOfString("hush"))
	m.Mutable(of("words")).List().Append(protoreflect.ValueOfString("hush"))
	m.Set(of("n"), protoreflect.ValueOfInt32(77))
	m.Set(of("last"), protoreflect.ValueOfString("end"))
	for i, value := range []string{"shown", "hush"} {
		x := dynamicpb.NewExtensionType(fd.Extensions().Get(i))
		m.Set(x.TypeDescriptor(), protoreflect.ValueOfString(value))
	}
	return m
}

// TestKeysAndExtensionsAreInOrder writes keys by their value, not their text, and the
// extensions between the fields, by number.
func TestKeysAndExtensionsAreInOrder(t *testing.T) {
	got := strings.Join(strings.Fields(render(odd(t), OmitDefaults)), " ")
	const want = `{ "by_int32": { "-5": "v", "3": "v", "10": "v" }, "by_uint64": { "9": "v", "20": "v", "9223372036854775808": "v" }, ` +
		`"by_bool": { "false": "v", "true": "v" }, "counts": { "a": 77 }, "numbers": [ 10, -5, 3 ], "n": 77, "words": [ "hush", "hush" ], ` +
		`"[wire.test.secret]": "hush", "[wire.test.plain]": "shown", "last": "end" }`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMaskOfTwoPackedMessages: a mask leads into one packed field of a message, whose
// type is known.
func TestMaskOfTwoPackedMessages(t *testing.T) {
	message := &descriptorpb.DescriptorProto{Name: proto.String("Two")}
	for i, name := range []string{"first", "second"} {
		message.Field = append(message.Field, &descriptorpb.FieldDescriptorProto{Name: &name, Number: proto.Int32(int32(i + 1)), TypeName: proto.String(".google.protobuf.Any"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()})
	}
	fd, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("two.proto"), Package: proto.String("wire.test"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/any.proto"}, MessageType: []*descriptorpb.DescriptorProto{message}}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	for mask, want := range map[string]string{
		"second.value":             "",
		"second,second.value":      "",
		"first":                    "",
		"first.value":              `wire: field "first" does not hold a packed message`,
		"second.value,first":       `wire: mask path "first": only one packed field can be masked at a time`,
		"first.value,second.value": `wire: mask path "second.value": only one packed field can be masked at a time`,
		"first,first.x,second":     `wire: mask path "second": only one packed field can be masked at a time`,
		"second.x":                 `wire: mask path "x": google.protobuf.StringValue has no field "x"`,
	} {
		m := dynamicpb.NewMessage(fd.Messages().Get(0))
		fields := m.Descriptor().Fields()
		m.Mutable(fields.Get(0)) // a message of its own, not an anypb.Any
		m.Set(fields.Get(1), protoreflect.ValueOfMessage(anyOf(t, wrapperspb.String("x")).ProtoReflect()))
		for by, err := range map[string]error{"FitsPacked": ParseMask(mask).FitsPacked(m), "KeepPacked": ParseMask(mask).KeepPacked(m)} {
			if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
				t.Errorf("%s of %q: %s, want %q", by, mask, got, want)
			}
		}
	}
}

// TestPackedMessageOfItsOwnType: a packed message of a dynamic type is redacted as others are.
func TestPackedMessageOfItsOwnType(t *testing.T) {
	m := dynamicpb.NewMessage(new(anypb.Any).ProtoReflect().Descriptor())
	value := m.Descriptor().Fields().ByName("value")
	m.Set(value, protoreflect.ValueOfBytes([]byte("-----BEGIN PRIVATE KEY-----")))
	if got := (Redactor{Untyped: true}).Redact(m).ProtoReflect().Get(value).Bytes(); string(got) != redact.Mark {
		t.Errorf("got %q", got)
	}
}

// TestNamesOfOtherPackages: only messages of google.protobuf have special forms.
func TestNamesOfOtherPackages(t *testing.T) {
	for _, name := range []string{"Any", "Duration", "Timestamp", "FieldMask", "StringValue", "Struct", "Value", "ListValue", "Empty"} {
		file := &descriptorpb.FileDescriptorProto{Name: proto.String("other.proto"), Package: proto.String("wire.test"), Syntax: proto.String("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: &name, Field: []*descriptorpb.FieldDescriptorProto{
				{Name: proto.String("first"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}}}}}
		fd, err := protodesc.NewFile(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := dynamicpb.NewMessage(fd.Messages().Get(0))
		m.Set(m.Descriptor().Fields().Get(0), protoreflect.ValueOfString("x"))
		if got := strings.Join(strings.Fields(render(m, OmitDefaults)), " "); got != `{ "first": "x" }` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestSecretNumbersListsAndExtensionsAreRedacted(t *testing.T) {
	got := strings.Join(strings.Fields(render(Redactor{}.Redact(odd(t)), OmitDefaults)), " ")
	const want = `"counts": { "a": 0 }, "words": [ "[redacted]", "[redacted]" ], "[wire.test.secret]": "[redacted]", "[wire.test.plain]": "shown", "last": "end" }`
	if !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMembersWritesTheRest has members of which the caller writes or omits some.
func TestMembersWritesTheRest(t *testing.T) {
	for d, want := range map[Defaults]string{
		OmitDefaults: `{ "counts": { "a": 77 }, "n": "own", "words": [ "hush", "hush" ], "[wire.test.secret]": "hush", "[wire.test.plain]": "shown" }`,
		ShowDefaults: `{ "by_uint64": {}, "by_bool": {}, "counts": { "a": 77 }, "n": "own", "words": [ "hush", "hush" ], "[wire.test.secret]": "hush", "[wire.test.plain]": "shown" }`,
	} {
		m := odd(t)
		for _, name := range []protoreflect.Name{"by_uint64", "by_bool", "last"} {
			m.ProtoReflect().Clear(m.ProtoReflect().Descriptor().Fields().ByName(name))
		}
		var w Writer
		w.BeginObject()
		w.Members(m, d, func(fd protoreflect.FieldDescriptor) bool {
			if fd.Name() == "n" {
				w.Key("n").String("own")
			}
			return fd.Name() == "n" || fd.Name() == "by_int32" || fd.Name() == "numbers"
		})
		w.EndObject()
		if got := strings.Join(strings.Fields(string(w.Bytes())), " "); got != want {
			t.Errorf("defaults %v: got  %s\nwant %s", d, got, want)
		}
	}
}

func TestMaskKeepsNoExtension(t *testing.T) {
	m := odd(t)
	if err := ParseMask("last,words").Keep(m); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(render(m, OmitDefaults)), " "); got != `{ "words": [ "hush", "hush" ], "last": "end" }` {
		t.Error(got)
	}
}
