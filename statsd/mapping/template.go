package mapping

import (
	"cmp"
	"strconv"
	"strings"
)

// template is a text with references to captures of a glob.
type template struct {
	literals []string // around the references, one more than those
	refs     []int    // 0 is the subject, 1 the first capture
}

// newTemplate compiles a template for a glob with a number of captures. A
// reference is a dollar, an optional opening brace, letters, digits,
// underscores and dollars, as many as there are, and an optional closing brace.
// It is empty unless it is the number of a capture, so $1_x is empty too; missing is
// the first such name.
func newTemplate(text string, captures int) (t template, missing string) {
	literal := ""
	for text != "" {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			break
		}
		name, rest := text[at+1:], ""
		name = strings.TrimPrefix(name, "{")
		n := 0
		for n < len(name) && referenceByte(name[n]) {
			n++
		}
		if n == 0 {
			literal += text[:at+1]
			text = text[at+1:]
			continue
		}
		name, rest = name[:n], strings.TrimPrefix(name[n:], "}")
		literal += text[:at]
		if ref, err := strconv.Atoi(name); err == nil && ref <= captures {
			t.literals, t.refs = append(t.literals, literal), append(t.refs, ref)
			literal = ""
		} else {
			missing = cmp.Or(missing, name)
		}
		text = rest
	}
	t.literals = append(t.literals, literal+text)
	return t, missing
}

func referenceByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '$'
}

func (t *template) expand(subject string, captures []string) string {
	if len(t.refs) == 0 {
		return t.literals[0]
	}
	var b strings.Builder
	for i, ref := range t.refs {
		b.WriteString(t.literals[i])
		if ref == 0 {
			b.WriteString(subject)
		} else {
			b.WriteString(captures[ref-1])
		}
	}
	b.WriteString(t.literals[len(t.refs)])
	return b.String()
}
