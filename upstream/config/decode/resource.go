package decode

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// Resource is one resource of a discovery response that is not decoded yet:
// wire bytes, or a part of a text. It must not be changed.
type Resource struct {
	// Name is that of the envelope it came in, else what its message states. It
	// is empty if it is unknown before the resource is decoded.
	Name    string
	Version string // of the envelope; empty if it had none
	Index   int    // its place in the response
	TypeURL string
	// TTL is the lifetime of the resource unless the server confirms it again; 0
	// means unlimited. Only envelopes that were received as bytes have one.
	TTL time.Duration

	value []byte
	node  *yaml.Node // nil: wire bytes
	file  string
}

// envelope is the message that may stand around a resource.
const envelope = "envoy.service.discovery.v3.Resource"

// WireResource returns the resource of wire bytes, which it keeps.
func WireResource(typeURL string, value []byte, index int) Resource {
	r := Resource{TypeURL: typeURL, Index: index, value: value}
	if nameField(typeURL) != "" {
		r.Name = firstField(value)
	}
	return r
}

// nameField returns the field with the name of a resource of a type, empty if
// the type is none that is known to have one. The number of the field is 1.
func nameField(typeURL string) string {
	switch messageName(typeURL) {
	case "envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.api.v2.ClusterLoadAssignment":
		return "cluster_name"
	case "envoy.config.cluster.v3.Cluster", "envoy.api.v2.Cluster",
		"envoy.service.runtime.v3.Runtime",
		"envoy.extensions.transport_sockets.tls.v3.Secret", "envoy.api.v2.auth.Secret":
		return "name"
	}
	return ""
}

func messageName(typeURL string) protoreflect.FullName {
	return protoreflect.FullName(typeURL[strings.LastIndexByte(typeURL, '/')+1:])
}

// firstField returns the text in the field with the number 1.
func firstField(value []byte) string {
	name := ""
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return ""
		}
		value = value[n:]
		if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
			return ""
		}
		if number == 1 && kind == protowire.BytesType {
			if b, _ := protowire.ConsumeBytes(value); utf8.Valid(b) {
				name = string(b)
			}
		}
		value = value[n:]
	}
	return name
}

// Bytes returns the wire bytes of the resource, nil if it came as text.
func (r *Resource) Bytes() []byte { return r.value }

// Any returns the resource as a packed message, nil if it came as a text that
// is no message of its type. It is a copy, which does not hold on to the response.
func (r *Resource) Any() *anypb.Any {
	if r.node == nil {
		return &anypb.Any{TypeUrl: r.TypeURL, Value: bytes.Clone(r.value)}
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(r.TypeURL)
	if err != nil {
		return nil
	}
	m := mt.New().Interface()
	var faults report
	fill(r.node, m, &faults, true)
	if len(faults.errs) > 0 {
		return nil
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil
	}
	return &anypb.Any{TypeUrl: r.TypeURL, Value: value}
}

// decodeResource decodes a resource of the form of its type into a message.
func (d *Decoder) decodeResource(k *resourceKind, r *Resource) (proto.Message, *report) {
	if r.node == nil {
		return d.decodeWire(k, r.TypeURL, r.value, r.Index)
	}
	form, fault := k.form(r.TypeURL)
	if fault != "" {
		rep := r.report(k.label(r.Name, r.Index))
		rep.nodeErrorf(Malformed, r.node, "@type", "%s", fault)
		return nil, rep
	}
	return d.decodeTree(k, r.node, nil, Source{File: r.file, Index: r.Index}, form)
}

func (r *Resource) report(resource string) *report {
	return &report{resource: resource, source: Source{File: r.file, Index: r.Index}}
}

// MessageResource decodes a resource of another type into m and checks the
// fields by their rules.
func (d *Decoder) MessageResource(r *Resource, m proto.Message) error {
	want := m.ProtoReflect().Descriptor().FullName()
	rep := r.report("resource " + quote(r.Name, false))
	switch {
	case messageName(r.TypeURL) != want && r.node != nil:
		rep.nodeErrorf(Malformed, r.node, "@type", "%s is not %s", quote(r.TypeURL, false), want)
	case messageName(r.TypeURL) != want:
		rep.errorf(Malformed, "", "type URL %s is not %s", quote(r.TypeURL, false), want)
	case r.node != nil:
		fill(r.node, m, rep, d.opts.AllowUnknown)
	default:
		if err := (proto.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}).Unmarshal(r.value, m); err != nil {
			rep.errorf(Malformed, "", "the bytes are not a %s", want)
		}
	}
	return d.checkFields(m, rep)
}

// MessageText decodes a message of any type in YAML or JSON into m and checks the
// fields by their rules. The error is an [*Errors].
func (d *Decoder) MessageText(file string, text []byte, m proto.Message) error {
	rep := &report{source: Source{File: file}}
	n, errs := conftree.Parse(text, conftree.Detect)
	rep.parsed(errs)
	if n != nil {
		fill(n, m, rep, d.opts.AllowUnknown)
	}
	return d.checkFields(m, rep)
}

// checkFields checks a decoded message by the rules of its fields.
func (d *Decoder) checkFields(m proto.Message, r *report) error {
	if len(r.errs) == 0 {
		c := fieldChecker{report: r, book: d.rules}
		c.message(m.ProtoReflect(), false, 0)
	}
	return r.err()
}

// ResponseText splits a discovery response in YAML or JSON into its resources,
// each of which states its type by "@type". The error is an [*Errors].
func (d *Decoder) ResponseText(file string, text []byte) (version string, list []Resource, err error) {
	rep := &report{resource: "discovery response", source: Source{File: file}}
	root, errs := conftree.Parse(text, conftree.Detect)
	rep.parsed(errs)
	if root == nil {
		return "", nil, rep.err()
	}
	if root.Kind != yaml.MappingNode {
		rep.nodeErrorf(Malformed, root, "", "%s is not a discovery response", show(root, false))
		return "", nil, rep.err()
	}
	for key, value := range conftree.Pairs(root) {
		switch key.Value {
		case "version_info", "versionInfo":
			version = rep.text(value, "version_info")
		case "resources":
			if value.Kind != yaml.SequenceNode {
				rep.nodeErrorf(Malformed, value, "resources", "%s is not a list", show(value, false))
				continue
			}
			for i, child := range value.Content {
				r := Resource{Index: i, file: file}
				if r.unwrap(child, rep) {
					list = append(list, r)
				}
			}
		case "@type", "type_url", "typeUrl", "nonce", "canary", "control_plane", "controlPlane":
		default:
			if !d.opts.AllowUnknown {
				rep.nodeErrorf(UnknownField, key, key.Value, "unknown field, known are version_info, resources, type_url, nonce, canary and control_plane")
			}
		}
	}
	if err := rep.err(); err != nil {
		return "", nil, err
	}
	return version, list, nil
}

// text returns the text of a scalar.
func (r *report) text(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.nodeErrorf(Malformed, n, path, "%s is not a string", show(n, false))
		return ""
	}
	return n.Value
}

// unwrap fills r from a tree, which can be an envelope. It adds errors to rep and
// reports whether there is a resource.
func (r *Resource) unwrap(n *yaml.Node, rep *report) bool {
	const path = "resources"
	if n.Kind != yaml.MappingNode {
		rep.nodeErrorf(Malformed, n, path, "%s is not a mapping", show(n, false))
		return false
	}
	url := conftree.Member(n, "@type")
	if url == nil {
		rep.nodeErrorf(Malformed, n, path, "a resource needs \"@type\"")
		return false
	}
	if messageName(url.Value) != envelope || r.node != nil {
		r.TypeURL, r.node = url.Value, withoutType(n)
		if f := nameField(r.TypeURL); r.Name == "" && f != "" {
			r.Name = nameIn(n, f)
		}
		return true
	}
	r.node = n // nested envelopes are not unpacked
	if name := conftree.Member(n, "name"); name != nil {
		r.Name = rep.text(name, path+".name")
	}
	if version := conftree.Member(n, "version"); version != nil {
		r.Version = rep.text(version, path+".version")
	}
	inner := conftree.Member(n, "resource")
	if inner == nil {
		rep.nodeErrorf(Malformed, n, path, "the envelope of a resource needs \"resource\"")
		return false
	}
	return r.unwrap(inner, rep)
}
