package decode

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// special returns the writer of a message with a special JSON form, nil for other
// messages.
func special(name protoreflect.FullName) func(w *walker, n *yaml.Node, path string, depth int) {
	switch name {
	case "google.protobuf.Any":
		return (*walker).any
	case "google.protobuf.Duration":
		return (*walker).duration
	case "google.protobuf.Timestamp":
		return (*walker).timestamp
	case "google.protobuf.FieldMask":
		return (*walker).fieldMask
	case "google.protobuf.Value":
		return (*walker).value
	case "google.protobuf.Struct":
		return (*walker).structure
	case "google.protobuf.ListValue":
		return (*walker).listValue
	}
	return nil
}

var durationForm = regexp.MustCompile(`^-?[0-9]{1,12}(\.[0-9]{1,9})?s$`)

func (w *walker) duration(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind == yaml.ScalarNode && durationForm.MatchString(n.Value) {
		whole, _, _ := strings.Cut(strings.Trim(n.Value, "-s"), ".")
		if v, err := strconv.ParseInt(whole, 10, 64); err == nil && v < 315_576_000_000 {
			w.text(n.Value)
			return
		}
	}
	w.nodeErrorf(Malformed, n, path, "%s is not a duration in seconds, written like 5s or 0.25s", w.show(n))
}

func (w *walker) timestamp(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, n.Value); n.Kind != yaml.ScalarNode || err != nil {
		w.nodeErrorf(Malformed, n, path, "%s is not a time, written like 2025-03-04T05:06:07Z", w.show(n))
		return
	}
	w.text(n.Value)
}

func (w *walker) fieldMask(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		w.nodeErrorf(Malformed, n, path, "%s is not a list of field names separated by commas", w.show(n))
		return
	}
	w.text(n.Value)
}

// value writes a free-form value.
func (w *walker) value(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.out.WriteByte('{')
		for i, m := range members(n, w.report, path, &w.left) {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.seek(m.key)
			w.text(m.key.Value)
			w.out.WriteByte(':')
			w.value(m.value, path, depth+1)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte('}')
		return
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(child, path, depth+1)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte(']')
		return
	}
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		v, _ := boolOf(n)
		fmt.Fprint(&w.out, v)
	case "!!int", "!!float":
		v, ok := floatOf(n)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			w.nodeErrorf(Malformed, n, path, "%s is not a number that JSON can hold", w.show(n))
			return
		}
		w.number(v)
	default:
		w.text(n.Value)
	}
}

func (w *walker) structure(n *yaml.Node, path string, depth int) {
	if dealias(n).Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping", show(dealias(n), true))
		return
	}
	w.value(n, path, depth)
}

func (w *walker) listValue(n *yaml.Node, path string, depth int) {
	if dealias(n).Kind != yaml.SequenceNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a list", show(dealias(n), true))
		return
	}
	w.value(n, path, depth)
}

// any writes an extension: a mapping with its type in "@type".
func (w *walker) any(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping with @type", w.show(n))
		return
	}
	url, value := anyParts(n, &w.left)
	switch {
	case len(n.Content) == 0:
		w.out.WriteString("{}")
		return
	case url == nil || url.Kind != yaml.ScalarNode || url.ShortTag() != "!!str":
		w.nodeErrorf(Malformed, n, path, "needs @type with the name of the message")
		return
	}
	mt, err := w.types.FindMessageByURL(url.Value)
	if err != nil {
		if errors.Is(err, protoregistry.NotFound) {
			w.nodeErrorf(Malformed, url, path, "@type %s is not a known message", quote(url.Value, w.hidden > 0))
		} else {
			w.nodeErrorf(Malformed, url, path, "@type %s is not the name of a message", quote(url.Value, w.hidden > 0))
		}
		return
	}
	md := mt.Descriptor()
	w.out.WriteString(`{"@type":`)
	w.text(url.Value)
	if special(md.FullName()) == nil && wrappedField(md) == nil {
		w.fields(n, md, path, depth, "@type")
		w.out.WriteByte('}')
		return
	}
	for _, m := range members(n, w.report, path, &w.left) {
		if m.key.Value != "@type" && m.key.Value != "value" {
			w.unknownField(m.key, path, md)
		}
	}
	if value == nil {
		w.nodeErrorf(Malformed, n, path, "needs value beside @type %s", quote(url.Value, w.hidden > 0))
		return
	}
	w.out.WriteString(`,"value":`)
	if wrapped := wrappedField(md); wrapped != nil {
		w.scalar(value, wrapped, join(path, "value"), depth+1)
	} else {
		w.message(value, md, join(path, "value"), depth+1)
	}
	w.out.WriteByte('}')
}

// anyParts returns the members of an Any.
func anyParts(n *yaml.Node, left *int) (url, value *yaml.Node) {
	for _, m := range members(n, nil, "", left) {
		switch m.key.Value {
		case "@type":
			url = dealias(m.value)
		case "value":
			value = m.value
		}
	}
	return url, value
}
