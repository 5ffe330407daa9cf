package admin

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
)

// facts writes names and values, nested, as JSON or as indented text:
//
//	listeners:
//	  - name: udp://127.0.0.1:8125
//	    packets: 12
//
// Everything except list elements has a name.
type facts struct {
	json  bool
	w     jsontext.Writer
	text  []byte
	depth int
	first bool // the next line is the first one of a list's element
}

func newFacts(r *Request) *facts {
	p := &facts{json: r.query.Value("format") == "json"}
	if p.json {
		p.w.BeginObject()
	}
	return p
}

func (p *facts) send(w *Response) error {
	if p.json {
		p.w.EndObject()
		return w.json(p.w.Bytes())
	}
	return w.all(typeText, p.text)
}

// line starts a line of text.
func (p *facts) line(name string) {
	indent := 2 * p.depth
	if p.first {
		indent -= 2
	}
	p.text = append(p.text, strings.Repeat(" ", indent)...)
	if p.first {
		p.text = append(p.text, "- "...)
		p.first = false
	}
	p.text = append(append(p.text, name...), ':')
}

// fact writes a name and its value, as text or as JSON.
func (p *facts) fact(name, text string, value func(*jsontext.Writer)) {
	if p.json {
		value(p.w.Key(name))
		return
	}
	p.line(name)
	if text != "" {
		p.text = append(append(p.text, ' '), text...)
	}
	p.text = append(p.text, '\n')
}

func (p *facts) string(name, s string) {
	p.fact(name, quoted(s), func(w *jsontext.Writer) { w.String(s) })
}

// optional writes s unless it is empty.
func (p *facts) optional(name, s string) {
	if s != "" {
		p.string(name, s)
	}
}

// flag writes that something is so, unless it is not.
func (p *facts) flag(name string, b bool) {
	if b {
		p.bool(name, true)
	}
}

// moment writes a time unless it is unknown.
func (p *facts) moment(name string, t time.Time) {
	if !t.IsZero() {
		p.time(name, t)
	}
}

// positive writes n unless it is 0.
func (p *facts) positive(name string, n uint64) {
	if n > 0 {
		p.number(name, n)
	}
}

func (p *facts) number(name string, n uint64) {
	p.fact(name, strconv.FormatUint(n, 10), func(w *jsontext.Writer) { w.Number(n) })
}

func (p *facts) float(name string, f float64) {
	p.fact(name, strconv.FormatFloat(f, 'g', 6, 64), func(w *jsontext.Writer) { w.Value(f) })
}

func (p *facts) bool(name string, b bool) {
	p.fact(name, strconv.FormatBool(b), func(w *jsontext.Writer) { w.Bool(b) })
}

func (p *facts) time(name string, t time.Time) {
	t = t.UTC().Truncate(time.Millisecond)
	p.fact(name, t.Format("2006-01-02T15:04:05.000Z"), func(w *jsontext.Writer) { w.Time(t) })
}

func (p *facts) strings(name string, list []string) {
	text := make([]string, len(list))
	for i, s := range list {
		text[i] = quoted(s)
	}
	p.fact(name, strings.Join(text, ", "), func(w *jsontext.Writer) { w.Strings(list) })
}

// object writes a named object whose contents body writes.
func (p *facts) object(name string, body func()) {
	if p.json {
		p.w.Key(name).BeginObject()
		body()
		p.w.EndObject()
		return
	}
	p.line(name)
	p.text = append(p.text, '\n')
	p.depth++
	body()
	p.depth--
}

// listOf writes a list of objects.
func listOf[T any](p *facts, name string, list []T, body func(T)) {
	if p.json {
		p.w.Key(name).BeginList()
		for _, e := range list {
			p.w.BeginObject()
			body(e)
			p.w.EndObject()
		}
		p.w.EndList()
		return
	}
	if len(list) == 0 {
		p.line(name)
		p.text = append(p.text, " none\n"...)
		return
	}
	p.line(name)
	p.text = append(p.text, '\n')
	p.depth += 2
	for _, e := range list {
		p.first = true
		body(e)
	}
	p.depth -= 2
}

// quoted returns s unchanged if it is a line of printable text without surrounding
// blanks or quotes, and quoted otherwise.
func quoted(s string) string {
	odd := func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }
	if s == "" || s[0] == '"' || strings.TrimSpace(s) != s || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
