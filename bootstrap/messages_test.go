package bootstrap

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/protoc-gen-validate/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

// elsewhere are the keys that other packages read, with their messages; nil is a mapping
// of its own.
func elsewhere() map[string]proto.Message {
	return map[string]proto.Message{
		"static_resources.clusters[]":                     &clusterv3.Cluster{},
		"static_resources.secrets[]":                      &tlsv3.Secret{},
		"dynamic_resources.cds_config":                    &corev3.ConfigSource{},
		"dynamic_resources.ads_config":                    &corev3.ApiConfigSource{},
		"cluster_manager.upstream_bind_config":            &corev3.BindConfig{},
		"layered_runtime.layers[].rtds_layer.rtds_config": &corev3.ConfigSource{},
		"statsd.mapping.rules":                            nil,
	}
}

// messageSchemas makes the schemas of messages from their descriptors, by which the
// decoder checks them.
type messageSchemas struct {
	defs  map[string]any
	older map[protoreflect.FullName]protoreflect.MessageDescriptor // v2 message by v3 name
	newer map[protoreflect.FullName]protoreflect.MessageDescriptor // the reverse
}

// newMessageSchemas returns schemas that are added to defs when they are referred to.
func newMessageSchemas(defs map[string]any) *messageSchemas {
	type byName = map[protoreflect.FullName]protoreflect.MessageDescriptor
	s := &messageSchemas{defs, byName{}, byName{}}
	s.pair((&clusterv3.Cluster{}).ProtoReflect().Descriptor(), v2form.Messages().Cluster().ProtoReflect().Descriptor())
	return s
}

// pair notes the two forms of a message and of the messages in it.
func (s *messageSchemas) pair(now, then protoreflect.MessageDescriptor) {
	if now.FullName() == then.FullName() || s.older[now.FullName()] != nil {
		return
	}
	s.older[now.FullName()], s.newer[then.FullName()] = then, now
	for i := range then.Fields().Len() {
		before := then.Fields().Get(i)
		after := now.Fields().ByNumber(before.Number())
		switch {
		case after == nil:
		case before.IsMap() && after.IsMap():
			before, after = before.MapValue(), after.MapValue()
			fallthrough
		default:
			if before.Message() != nil && after.Message() != nil && !before.IsMap() {
				s.pair(after.Message(), before.Message())
			}
		}
	}
}

// of returns the schema of a message.
func (s *messageSchemas) of(md protoreflect.MessageDescriptor) map[string]any {
	if now := s.newer[md.FullName()]; now != nil {
		md = now
	}
	switch md.FullName() {
	case "google.protobuf.Duration":
		return map[string]any{"type": []string{"string", "null"}, "pattern": messageDuration().String()}
	case "google.protobuf.Timestamp", "google.protobuf.FieldMask":
		return map[string]any{"type": []string{"string", "null"}}
	case "google.protobuf.Struct":
		return map[string]any{"type": []string{"object", "null"}}
	case "google.protobuf.ListValue":
		return map[string]any{"type": []string{"array", "null"}}
	case "google.protobuf.Value":
		return map[string]any{}
	case "google.protobuf.Any":
		return map[string]any{"type": []string{"object", "null"}, "properties": map[string]any{"@type": map[string]any{"type": "string"}}}
	}
	if md.ParentFile().Path() == "google/protobuf/wrappers.proto" {
		return s.one(md.Fields().ByNumber(1))
	}
	name := string(md.FullName())
	if s.defs[name] == nil {
		properties := map[string]any{}
		def := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
		s.defs[name] = def // before its fields: messages can contain themselves
		then := s.older[md.FullName()]
		var needed []string
		for i := range md.Fields().Len() {
			f := md.Fields().Get(i)
			properties[string(f.Name())] = s.field(f)
			if then == nil && never(f) || then != nil && never(f) && then.Fields().ByName(f.Name()) != nil && never(then.Fields().ByName(f.Name())) {
				needed = append(needed, string(f.Name()))
			}
		}
		for i := 0; then != nil && i < then.Fields().Len(); i++ {
			f := then.Fields().Get(i)
			if now := md.Fields().ByName(f.Name()); now == nil {
				properties[string(f.Name())] = s.field(f)
			} else if now.IsList() != f.IsList() {
				properties[string(f.Name())] = map[string]any{"anyOf": []any{s.field(now), s.field(f)}}
			}
		}
		if needed != nil {
			slices.Sort(needed)
			def["required"] = needed
		}
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// never reports whether a text may not be empty.
func never(f protoreflect.FieldDescriptor) bool {
	rules, _ := proto.GetExtension(f.Options(), validate.E_Rules).(*validate.FieldRules)
	return rules.GetString_().GetMinLen()+rules.GetString_().GetMinBytes() > 0 && !f.IsList() && f.ContainingOneof() == nil && f.Kind() == protoreflect.StringKind
}

// field returns the schema of a field.
func (s *messageSchemas) field(f protoreflect.FieldDescriptor) map[string]any {
	switch {
	case f.IsMap():
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": s.one(f.MapValue())}
	case f.IsList():
		return map[string]any{"type": []string{"array", "null"}, "items": s.one(f)}
	}
	return s.one(f)
}

// one returns the schema of one value of a field.
func (s *messageSchemas) one(f protoreflect.FieldDescriptor) map[string]any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return s.of(f.Message())
	case protoreflect.BoolKind:
		return map[string]any{"type": []string{"boolean", "null"}}
	case protoreflect.StringKind, protoreflect.BytesKind:
		return map[string]any{"type": []string{"string", "null"}}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return map[string]any{"type": []string{"number", "string", "null"}}
	case protoreflect.EnumKind: // also its values in lower case and their numbers
		words := []any{nil}
		values := f.Enum().Values()
		for i := range values.Len() {
			words = append(words, string(values.Get(i).Name()))
		}
		if string(f.Name()) == "lb_policy" {
			words = append(words, "ORIGINAL_DST_LB") // of the v2 form
		}
		for _, word := range words[1:] {
			words = append(words, strings.ToLower(word.(string)))
		}
		return map[string]any{"anyOf": []any{map[string]any{"enum": words}, map[string]any{"type": "integer"}}}
	}
	return map[string]any{"type": []string{"integer", "string", "null"}}
}
