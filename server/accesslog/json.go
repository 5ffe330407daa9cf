package accesslog

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// node is a part of a JSON line: an object, a list, literal JSON text, or a format.
type node struct {
	members   []member // of an object, in byte order of their names
	elements  []*node  // of a list
	fixed     string
	format    []piece
	kind      nodeKind
	typed     bool
	omitEmpty bool
}

type nodeKind uint8

const (
	fixedNode nodeKind = iota
	formatNode
	objectNode
	listNode
)

type member struct {
	name  string // with quotes and colon
	value *node
}

// compileJSON compiles the members of a JSON line. It returns nil if there are none.
func compileJSON(cfg *Config) (*node, error) {
	if cfg.JSON == nil {
		return nil, nil
	}
	root, err := compileNode(cfg, cfg.JSON)
	if err != nil {
		return nil, err
	}
	if n := len(root.append(nil, &Entry{}, 0)); n > logfile.MaxLineBytes/2 {
		return nil, fmt.Errorf("accesslog: json format: a line without values has %d bytes, more than %d", n, logfile.MaxLineBytes/2)
	}
	return root, nil
}

func compileNode(cfg *Config, value any) (*node, error) {
	n := &node{typed: cfg.Typed, omitEmpty: cfg.OmitEmpty}
	switch v := value.(type) {
	case nil:
		n.fixed = "null"
	case bool:
		n.fixed = strconv.FormatBool(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("accesslog: json format: %v is not a valid JSON number", v)
		}
		n.fixed = strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		n.kind = formatNode
		var err error
		if n.format, err = compile(v); err != nil {
			return nil, err
		}
	case []any:
		n.kind = listNode
		for _, e := range v {
			child, err := compileNode(cfg, e)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, child)
		}
	case map[string]any:
		n.kind = objectNode
		for _, name := range slices.Sorted(maps.Keys(v)) {
			child, err := compileNode(cfg, v[name])
			if err != nil {
				return nil, err
			}
			quoted := append(appendJSON(append([]byte(nil), '"'), name), '"', ':')
			n.members = append(n.members, member{string(quoted), child})
		}
	default:
		return nil, fmt.Errorf("accesslog: json format: %T is not a valid JSON value", value)
	}
	return n, nil
}

// appendLine appends a whole line. If the line would be too long, its texts are
// truncated to a common length at which it fits.
func (n *node) appendLine(dst []byte, e *Entry) []byte {
	begin := len(dst)
	for limit := logfile.MaxLineBytes; ; limit /= 4 {
		dst = n.append(dst[:begin], e, limit)
		if len(dst)-begin <= logfile.MaxLineBytes || limit == 0 {
			return dst
		}
	}
}

// append appends n, truncating each request value to limit bytes.
func (n *node) append(dst []byte, e *Entry, limit int) []byte {
	switch n.kind {
	case formatNode:
		return n.appendFormat(dst, e, limit)
	case objectNode:
		dst = append(dst, '{')
		first := true
		for _, m := range n.members {
			if n.omitEmpty && m.value.missing(e) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = m.value.append(append(dst, m.name...), e, limit)
		}
		return append(dst, '}')
	case listNode:
		dst = append(dst, '[')
		for i, child := range n.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = child.append(dst, e, limit)
		}
		return append(dst, ']')
	}
	return append(dst, n.fixed...)
}

// missing reports whether n is a single operator whose value the request lacks.
func (n *node) missing(e *Entry) bool {
	return n.kind == formatNode && len(n.format) == 1 && n.format[0].value != nil &&
		n.format[0].value.text != nil && n.format[0].value.text(e) == ""
}

func (n *node) appendFormat(dst []byte, e *Entry, limit int) []byte {
	if n.typed && len(n.format) == 1 && n.format[0].value != nil {
		if n.format[0].value.number {
			return n.format[0].value.safe(dst, e)
		}
		if n.missing(e) {
			return append(dst, "null"...)
		}
	}
	dst = append(dst, '"')
	for _, p := range n.format {
		switch {
		case p.value == nil:
			dst = appendJSON(dst, p.text)
		case p.value.text == nil:
			dst = p.value.safe(dst, e)
		default:
			text := cmp.Or(p.value.text(e), "-")
			dst = appendJSON(dst, text[:min(len(text), max(limit, 1))])
		}
	}
	return append(dst, '"')
}

// appendJSON appends text escaped for a JSON string. In addition to the required
// escapes, it escapes characters that could disguise the text: all control
// characters, line separators, and characters that change the writing direction.
// Invalid UTF-8 becomes U+FFFD.
func appendJSON(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
