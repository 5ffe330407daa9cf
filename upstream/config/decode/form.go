package decode

import (
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// evidence is a name that only one message form has.
type evidence struct {
	node *yaml.Node
	path string
	name string
}

// detector looks for names that only one form has.
type detector struct {
	v2, v3 *evidence // the first of each
	// isV2Type and isV3Type report whether a message type belongs to the form.
	isV2Type func(protoreflect.FullName) bool
	isV3Type func(protoreflect.FullName) bool
}

func (d *detector) note(at **evidence, n *yaml.Node, path, name string) {
	if *at == nil {
		*at = &evidence{n, path, name}
	}
}

// message compares the mapping n with the two forms of one message.
func (d *detector) message(n *yaml.Node, old, cur protoreflect.MessageDescriptor, path string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	if old.FullName() == cur.FullName() { // the same message serves both forms
		if cur.FullName() == "google.protobuf.Any" {
			d.extension(n, path)
		}
		return
	}
	for key, value := range conftree.Pairs(n) {
		before, now := findField(old, key.Value), findField(cur, key.Value)
		switch {
		case before == nil && now == nil:
		case now == nil:
			d.note(&d.v2, key, path, string(before.Name()))
		case before == nil:
			d.note(&d.v3, key, path, string(now.Name()))
		default:
			d.field(value, before, now, join(path, string(now.Name())))
		}
	}
}

func (d *detector) field(n *yaml.Node, old, cur protoreflect.FieldDescriptor, path string) {
	isList := n.Kind == yaml.SequenceNode
	if cur.IsList() != old.IsList() {
		if isList == old.IsList() {
			d.note(&d.v2, n, path, string(old.Name()))
		} else {
			d.note(&d.v3, n, path, string(cur.Name()))
		}
	}
	switch {
	case cur.IsMap():
		if n.Kind == yaml.MappingNode && cur.MapValue().Message() != nil && old.IsMap() {
			for key, value := range conftree.Pairs(n) {
				d.message(value, old.MapValue().Message(), cur.MapValue().Message(), path+"["+quote(key.Value, false)+"]")
			}
		}
	case isList:
		for _, child := range n.Content {
			d.single(child, old, cur, path)
		}
	default:
		d.single(n, old, cur, path)
	}
}

func (d *detector) single(n *yaml.Node, old, cur protoreflect.FieldDescriptor, path string) {
	switch {
	case cur.Message() != nil && old.Message() != nil:
		d.message(n, old.Message(), cur.Message(), path)
	case cur.Enum() != nil && old.Enum() != nil:
		if n.Kind != yaml.ScalarNode {
			return
		}
		before, now := enumName(old.Enum(), n.Value), enumName(cur.Enum(), n.Value)
		if before != "" && now == "" {
			d.note(&d.v2, n, path, before)
		}
		if before == "" && now != "" {
			d.note(&d.v3, n, path, now)
		}
	}
}

// extension checks the type of an Any.
func (d *detector) extension(n *yaml.Node, path string) {
	url := conftree.Member(n, "@type")
	if url == nil || url.Kind != yaml.ScalarNode {
		return
	}
	name := messageName(url.Value)
	switch {
	case d.isV2Type(name):
		d.note(&d.v2, url, path, string(name))
	case d.isV3Type(name):
		d.note(&d.v3, url, path, string(name))
	}
}

// detectForm returns the form of the tree n from its "@type", which it removes from
// the returned tree, else from names that only one form has. The default is v3.
func (d *Decoder) detectForm(n *yaml.Node, kind *resourceKind, r *report) (config.Form, *yaml.Node, bool) {
	if url := conftree.Member(n, "@type"); url != nil {
		form, fault := kind.form(url.Value)
		if form == config.FormV2 && d.opts.V2 == nil {
			fault = noV2
		}
		if fault != "" {
			r.nodeErrorf(Malformed, url, "@type", "%s", fault)
			return config.FormUnknown, n, false
		}
		return form, withoutType(n), true
	}
	if d.opts.V2 == nil {
		return config.FormV3, n, true
	}
	probe := detector{
		isV2Type: func(name protoreflect.FullName) bool { return d.v3Type(name) != nil },
		isV3Type: func(name protoreflect.FullName) bool { return strings.Contains(string(name), ".v3.") },
	}
	probe.message(n, kind.newV2(d).ProtoReflect().Descriptor(), kind.newV3().ProtoReflect().Descriptor(), "")
	switch {
	case probe.v2 != nil && probe.v3 != nil:
		r.nodeErrorf(Malformed, probe.v3.node, probe.v3.path,
			"%s belongs to the v3 form, but %s in line %d to the v2 form", probe.v3.name, probe.v2.name, r.source.position(probe.v2.node).Line)
		return config.FormUnknown, n, false
	case probe.v2 != nil:
		return config.FormV2, n, true
	}
	return config.FormV3, n, true
}

// withoutType returns the mapping n without the member "@type".
func withoutType(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for key, value := range conftree.Pairs(n) {
		if key.Value != "@type" {
			c.Content = append(c.Content, key, value)
		}
	}
	return &c
}
