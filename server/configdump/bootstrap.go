package configdump

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	xdsv3 "github.com/cncf/xds/go/xds/type/v3"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3" // types that a file may name
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/wire"
)

// Bootstrap returns the section of the bootstrap file and a section with the settings
// that its message has no fields for. file is the file as plain values:
// map[string]any, []any, string, float64, bool and nil. No defaults are added. The
// settings are already redacted, because no definition marks their secrets; without
// settings their section has no message.
func Bootstrap(file map[string]any, read time.Time) (message, settings Section) {
	m := &bootstrapv3.Bootstrap{}
	md := m.ProtoReflect().Descriptor()
	left := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(file)) {
		known, rest := splitMessage(map[string]any{key: file[key]}, md)
		part := &bootstrapv3.Bootstrap{}
		text, err := json.Marshal(known)
		if err == nil {
			err = protojson.Unmarshal(text, part)
		}
		if err != nil {
			left[key] = "cannot be shown"
			continue
		}
		proto.Merge(m, part)
		if fields, ok := rest.(map[string]any); ok {
			maps.Copy(left, fields)
		}
	}
	message = Section{Message: &adminv3.BootstrapConfigDump{Bootstrap: m, LastUpdated: millis(read)}}
	if s, err := structpb.NewStruct(left); err == nil && len(left) > 0 {
		settings.Message = wire.Redactor{Untyped: true}.Redact(s)
	}
	return message, settings
}

// split splits a value into the part that a field can hold and the rest. Either is
// nil if it is empty. Secret fields have no rest.
func split(v any, fd protoreflect.FieldDescriptor) (known, rest any) {
	switch {
	case v == nil:
		return nil, nil
	case fd.IsMap():
		known, rest = splitEntries(v, fd.MapValue())
	case fd.IsList():
		known, rest = splitList(v, fd)
	default:
		known, rest = splitOne(v, fd)
	}
	if wire.Sensitive(fd) {
		rest = nil
	}
	return known, rest
}

func splitEntries(v any, fd protoreflect.FieldDescriptor) (known, rest any) {
	entries, ok := v.(map[string]any)
	if !ok {
		return nil, v
	}
	return splitEach(entries, func(_ string, e any) (known, rest any) { return splitOne(e, fd) })
}

// splitEach splits each value. Keys without a rest are omitted.
func splitEach(values map[string]any, part func(key string, v any) (known, rest any)) (known, rest any) {
	out, left := make(map[string]any, len(values)), make(map[string]any)
	for key, v := range values {
		k, r := part(key, v)
		if k != nil {
			out[key] = k
		}
		if r != nil {
			left[key] = r
		}
	}
	if len(left) == 0 {
		return out, nil
	}
	return out, left
}

// splitList splits the elements and keeps their positions: elements without a rest
// are empty.
func splitList(v any, fd protoreflect.FieldDescriptor) (known, rest any) {
	list, ok := v.([]any)
	if !ok {
		return nil, v
	}
	out, left, some := make([]any, 0, len(list)), make([]any, len(list)), false
	for i, e := range list {
		k, r := splitOne(e, fd)
		if k != nil {
			out = append(out, k)
		}
		left[i] = map[string]any{}
		if r != nil {
			left[i], some = r, true
		}
	}
	if !some {
		return out, nil
	}
	return out, left
}

func splitOne(v any, fd protoreflect.FieldDescriptor) (known, rest any) {
	switch {
	case fd.Message() != nil:
		return splitMessage(v, fd.Message())
	case fd.Enum() != nil:
		name, ok := v.(string)
		if !ok {
			return v, nil
		}
		for _, name := range [...]string{name, strings.ToUpper(name)} {
			if fd.Enum().Values().ByName(protoreflect.Name(name)) != nil {
				return name, nil
			}
		}
		return nil, v
	}
	return v, nil
}

func splitMessage(v any, md protoreflect.MessageDescriptor) (known, rest any) {
	if md.FullName() == "google.protobuf.Any" {
		return splitAny(v)
	}
	fields, ok := v.(map[string]any)
	if !ok || md.FullName().Parent() == "google.protobuf" {
		return v, nil
	}
	return splitEach(fields, func(key string, value any) (known, rest any) {
		fd := md.Fields().ByName(protoreflect.Name(key))
		if fd == nil {
			fd = md.Fields().ByJSONName(key)
		}
		if fd == nil {
			return nil, value
		}
		return split(value, fd)
	})
}

// splitAny returns a packed message. A message of unknown type becomes free-form
// settings with the name of the type.
func splitAny(v any) (known, rest any) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, v
	}
	url, _ := fields["@type"].(string)
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return map[string]any{
			"@type": wire.TypeURL(&xdsv3.TypedStruct{}), "type_url": url, "value": withoutType(fields),
		}, nil
	}
	known, rest = splitMessage(withoutType(fields), mt.Descriptor())
	fields, _ = known.(map[string]any) // since a mapping was split
	out := map[string]any{"@type": url}
	maps.Copy(out, fields)
	return out, rest
}

func withoutType(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	delete(out, "@type")
	return out
}
