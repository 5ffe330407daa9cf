package convert

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// literalReader reads the literal of a JavaScript object: objects, lists, strings,
// numbers, true, false, null, undefined and comments. Nothing is evaluated.
type literalReader struct {
	text  string
	at    int
	lines lineIndex
	err   *conftree.Error // the first one
}

// parseLiteral parses a file that is the literal of an object, as StatsD for Node.js
// reads it. Parentheses around it, exports = or module.exports = before it and a semicolon
// after it are accepted.
func parseLiteral(text []byte) (*yaml.Node, []*conftree.Error) {
	if !utf8.Valid(text) {
		return nil, []*conftree.Error{{Line: 1, Column: 1, Message: "not valid UTF-8"}}
	}
	r := &literalReader{text: strings.TrimPrefix(string(text), "\uFEFF")}
	r.lines = newLineIndex([]byte(r.text))
	r.space()
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(r.text[r.at:], "module."), "exports"); ok {
		r.at = len(r.text) - len(rest)
		r.space()
		r.expect('=')
		r.space()
	}
	brackets := 0
	for ; r.peek() == '('; r.space() {
		r.at++
		brackets++
	}
	if r.peek() != '{' {
		r.fail(r.at, "want an object in braces")
	}
	root := r.value(0)
	for ; brackets > 0; brackets-- {
		r.space()
		r.expect(')')
	}
	r.space()
	if r.peek() == ';' {
		r.at++
		r.space()
	}
	if r.at < len(r.text) {
		r.fail(r.at, "want nothing behind the object")
	}
	if r.err != nil {
		return nil, []*conftree.Error{r.err}
	}
	return root, nil
}

// fail keeps the first error, with which the loops over members and elements end.
func (r *literalReader) fail(at int, format string, args ...any) {
	if r.err == nil {
		line, column := r.lines.at(at)
		r.err = &conftree.Error{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
	}
}

// peek returns the next byte, 0 at the end.
func (r *literalReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *literalReader) expect(c byte) {
	if r.peek() != c || r.at == len(r.text) {
		r.fail(r.at, "want %q", c)
		return
	}
	r.at++
}

// space skips white space and comments.
func (r *literalReader) space() {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.ContainsRune(" \t\r\n\v\f", rune(rest[0])):
			r.at++
		case strings.HasPrefix(rest, "\u00a0"):
			r.at += len("\u00a0")
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			r.at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				r.fail(r.at, "the comment does not end")
				return
			}
			r.at += n + 4
		default:
			return
		}
	}
}

func (r *literalReader) scalar(start int, tag, value string) *yaml.Node {
	line, column := r.lines.at(start)
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line, Column: column}
}

// value reads a value, and the end of it.
func (r *literalReader) value(depth int) *yaml.Node {
	r.space()
	start := r.at
	n := r.scalar(start, "!!null", "null") // also in place of a value that cannot be read
	if depth > maxDepth {
		r.fail(start, "values nest deeper than %d", maxDepth)
		return n
	}
	switch c := r.peek(); {
	case c == '{':
		n = r.object(depth)
	case c == '[':
		n = r.list(depth)
	case c == '"' || c == '\'' || c == '`':
		n = r.scalar(start, "!!str", r.string())
	case c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+':
		n = r.number()
	default:
		switch word := r.word(); word {
		case "true", "false":
			n = r.scalar(start, "!!bool", word)
		case "null", "undefined": // as n is
		default:
			r.expression(start)
		}
	}
	end := r.at
	r.space()
	if c := r.peek(); r.at < len(r.text) && !strings.ContainsRune(",}])", rune(c)) && (depth > 0 || c != ';') {
		if depth == 0 {
			r.fail(r.at, "want nothing behind the object")
		}
		r.at = end
		r.expression(start)
	}
	return n
}

// expression fails with the expression that begins at start.
func (r *literalReader) expression(start int) {
	if r.err != nil {
		return
	}
	text := r.text[start:]
	if n := strings.IndexAny(text, ",\n}"); n >= 0 {
		text = text[:n]
	}
	if text = strings.TrimSpace(text); text == "" {
		r.fail(start, "want a value")
	}
	r.fail(start, "%s is an expression, which is not evaluated: write its value", conftree.Quote(text, false))
}

// word reads an identifier, "" if there is none.
func (r *literalReader) word() string {
	start := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if strings.HasPrefix(r.text[r.at:], "\u00a0") || !(c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || r.at > start && c >= '0' && c <= '9') {
			break
		}
		r.at++
	}
	return r.text[start:r.at]
}

func (r *literalReader) object(depth int) *yaml.Node {
	n := mappingNode(r.lines.at(r.at))
	seen := map[string]bool{}
	r.at++
	for r.err == nil {
		r.space()
		if r.peek() == '}' {
			r.at++
			break
		}
		start := r.at
		var key string
		switch c := r.peek(); {
		case c == '"' || c == '\'':
			key = r.string()
		case c >= '0' && c <= '9':
			key = r.number().Value
		default:
			if key = r.word(); key == "" {
				r.fail(start, "want the name of a setting, or }")
			}
		}
		if seen[key] {
			r.fail(start, "%s is set twice", conftree.Key(key, false))
		}
		seen[key] = true
		r.space()
		r.expect(':')
		name := r.scalar(start, "!!str", key)
		n.Content = append(n.Content, name, r.value(depth+1))
		r.separator('}')
	}
	return n
}

func (r *literalReader) list(depth int) *yaml.Node {
	line, column := r.lines.at(r.at)
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: line, Column: column}
	r.at++
	for r.err == nil {
		r.space()
		if r.peek() == ']' {
			r.at++
			break
		}
		n.Content = append(n.Content, r.value(depth+1))
		r.separator(']')
	}
	return n
}

// separator reads a comma, which can be left out before end.
func (r *literalReader) separator(end byte) {
	r.space()
	if r.peek() == end {
		return
	}
	if r.peek() != ',' {
		r.fail(r.at, "want , or %c", end)
		return
	}
	r.at++
}

// number reads a number and returns it in decimal.
func (r *literalReader) number() *yaml.Node {
	start := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' || (c == '-' || c == '+') && (r.at == start || r.text[r.at-1]|0x20 == 'e')) {
			break
		}
		r.at++
	}
	text := r.text[start:r.at]
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil && (len(digits) == 1 || digits[0] != '0' || digits[1] > '9') {
		return r.scalar(start, "!!int", strconv.FormatInt(i, 10))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(digits[0] == '.' || digits[0] >= '0' && digits[0] <= '9') || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		r.expression(start)
	}
	return r.scalar(start, "!!float", strconv.FormatFloat(f, 'g', -1, 64))
}

func (r *literalReader) string() string {
	start, quote := r.at, r.text[r.at]
	var b strings.Builder
	for r.at++; ; {
		if r.at >= len(r.text) || r.text[r.at] == '\n' && quote != '`' {
			r.fail(start, "the string does not end")
			return ""
		}
		c := r.text[r.at]
		switch {
		case c == quote:
			r.at++
			return b.String()
		case c == '$' && quote == '`' && strings.HasPrefix(r.text[r.at:], "${"):
			r.expression(start)
			return ""
		case c == '\\':
			r.escape(&b)
		default:
			b.WriteByte(c)
			r.at++
		}
	}
}

// escape reads an escape sequence.
func (r *literalReader) escape(b *strings.Builder) {
	start := r.at
	if r.at += 2; r.at > len(r.text) {
		r.fail(start, "the string does not end")
		return
	}
	c := r.text[start+1]
	if i := strings.IndexByte("ntrbfv", c); i >= 0 {
		b.WriteByte("\n\t\r\b\f\v"[i])
		return
	}
	switch c {
	case '\n': // continues on the next line
	case 'x':
		b.WriteRune(r.hex(start, 2))
	case 'u':
		u := r.unicode(start)
		if utf16.IsSurrogate(u) && strings.HasPrefix(r.text[r.at:], `\u`) {
			r.at += 2
			u = utf16.DecodeRune(u, r.unicode(start))
		}
		b.WriteRune(u) // a lone surrogate becomes U+FFFD
	default:
		if c >= '0' && c <= '9' {
			r.fail(start, "an octal escape is not allowed")
			return
		}
		r.at = start + 1
		_, size := utf8.DecodeRuneInString(r.text[r.at:])
		b.WriteString(r.text[r.at : r.at+size])
		r.at += size
	}
}

// unicode reads the number of \u.
func (r *literalReader) unicode(start int) rune {
	if r.peek() != '{' {
		return r.hex(start, 4)
	}
	n := strings.IndexByte(r.text[r.at:], '}')
	if n < 2 || n > 7 {
		r.fail(start, "an escape without a hexadecimal number")
		return 0
	}
	r.at++
	u := r.hex(start, n-1)
	if r.err == nil {
		r.at++
	}
	return u
}

// hex reads a hexadecimal number of n digits.
func (r *literalReader) hex(start, n int) rune {
	digits := r.text[r.at:min(r.at+n, len(r.text))]
	u, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) < n {
		r.fail(start, "an escape without a hexadecimal number")
	}
	r.at += len(digits)
	return rune(u)
}
