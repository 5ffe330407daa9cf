package expolint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// label is a label of a sample.
type label struct{ name, value string }

// sample is a line with a value.
type sample struct {
	name     string
	labels   []label
	value    float64
	text     string // of the value
	timed    bool
	stamp    float64 // in milliseconds, or seconds in OpenMetrics
	exemplar bool
}

// parser reads a line from left to right. Its methods return false, or "" for a word,
// after they have set problem.
type parser struct {
	line    string
	pos     int
	format  Format
	problem string
}

func (p *parser) fail(format string, args ...any) bool {
	if p.problem == "" {
		p.problem = fmt.Sprintf("byte %d: ", p.pos+1) + fmt.Sprintf(format, args...)
	}
	return false
}

func (p *parser) at(c byte) bool { return p.pos < len(p.line) && p.line[p.pos] == c }

// blanks skips a separator of words and reports whether there was one: blanks and
// tabs, or one space in OpenMetrics.
func (p *parser) blanks() bool {
	if p.format == OpenMetrics {
		if p.at(' ') {
			p.pos++
			return true
		}
		return false
	}
	start := p.pos
	for p.at(' ') || p.at('\t') {
		p.pos++
	}
	return p.pos > start
}

// optional skips blanks where OpenMetrics has none.
func (p *parser) optional() {
	if p.format != OpenMetrics {
		p.blanks()
	}
}

// word returns the bytes up to a blank.
func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.line) && p.line[p.pos] != ' ' && (p.line[p.pos] != '\t' || p.format == OpenMetrics) {
		p.pos++
	}
	return p.line[start:p.pos]
}

// metadataName reads the name after HELP, TYPE or UNIT and the blanks behind it.
func (p *parser) metadataName() (string, bool) {
	if !p.blanks() {
		return "", p.fail("want a name")
	}
	var name string
	var ok bool
	if p.at('"') {
		name, ok = p.quotedName()
	} else {
		start := p.pos
		if name = p.word(); name == "" {
			return "", p.fail("want a name")
		}
		ok = plain(name, true)
		if !ok {
			p.pos = start
			p.fail("invalid name %q", name)
		}
	}
	switch {
	case !ok:
		return "", false
	case p.at(' '), p.at('\t') && p.format != OpenMetrics:
		p.pos++ // Prometheus accepts one
	case p.pos < len(p.line) || p.format == OpenMetrics:
		return "", p.fail("want a space after the name")
	}
	return name, true
}

// sample reads a line with a value.
func (p *parser) sample() (s sample, ok bool) {
	if !p.at('{') {
		start := p.pos
		for p.pos < len(p.line) && !strings.ContainsRune("{ \t", rune(p.line[p.pos])) {
			p.pos++
		}
		if s.name = p.line[start:p.pos]; !plain(s.name, true) {
			p.pos = start
			return s, p.fail("invalid name %q", s.name)
		}
	}
	separated := p.blanks()
	if p.at('{') && (!separated || p.format != OpenMetrics) {
		if s.name, s.labels, ok = p.labels(s.name, true); !ok {
			return s, false
		}
		separated = p.blanks() || p.format != OpenMetrics
	}
	if !separated {
		return s, p.fail("want a space before the value")
	}
	start := p.pos
	s.text = p.word()
	if s.value, ok = number(s.text); !ok {
		p.pos = start
		return s, p.fail("invalid value %q", s.text)
	}
	return s, p.afterValue(&s)
}

// afterValue reads a timestamp and an exemplar.
func (p *parser) afterValue(s *sample) (ok bool) {
	separated := p.blanks()
	if p.pos < len(p.line) && !p.at('#') {
		start := p.pos
		if s.stamp, ok = p.stamp(p.word()); !ok {
			p.pos = start
			return p.fail("invalid timestamp %q", p.line[start:])
		}
		s.timed = true
		separated = p.blanks()
	}
	switch {
	case p.pos == len(p.line) && (!separated || p.format != OpenMetrics):
		return true
	case p.format != OpenMetrics || !p.at('#'):
		return p.fail("unexpected %q after the sample", p.line[p.pos:])
	}
	s.exemplar = true
	return p.exemplar()
}

// stamp parses a timestamp.
func (p *parser) stamp(word string) (float64, bool) {
	if p.format != OpenMetrics {
		n, err := strconv.ParseUint(word, 10, 63) // Prometheus accepts no sign
		return float64(n), err == nil
	}
	t, ok := number(word)
	return t, ok && !math.IsNaN(t) && !math.IsInf(t, 0)
}

// maxExemplar is the number of characters that the labels of an exemplar may have.
const maxExemplar = 128

// exemplar reads the part behind a sample that begins with #.
func (p *parser) exemplar() bool {
	p.pos++
	if !p.blanks() || !p.at('{') {
		return p.fail("want # {LABELS} VALUE, an exemplar")
	}
	start := p.pos
	_, labels, ok := p.labels("", false)
	if !ok {
		return false
	}
	if strings.ContainsRune(p.line[start:p.pos], 0) {
		p.pos = start
		return p.fail("a NUL byte in the labels of the exemplar") // Prometheus stops reading there
	}
	size := 0
	for _, l := range labels {
		size += utf8.RuneCountInString(l.name) + utf8.RuneCountInString(l.value)
	}
	if size > maxExemplar {
		p.pos = start
		return p.fail("the labels of the exemplar have %d characters, the limit is %d", size, maxExemplar)
	}
	if !p.blanks() {
		return p.fail("want a space before the value of the exemplar")
	}
	start = p.pos
	word := p.word()
	if _, ok := number(word); !ok {
		p.pos = start
		return p.fail("invalid value %q of the exemplar", word)
	}
	if p.blanks() {
		start = p.pos
		if _, ok := p.stamp(p.word()); !ok {
			p.pos = start
			return p.fail("invalid timestamp %q of the exemplar", p.line[start:])
		}
	}
	if p.pos < len(p.line) {
		return p.fail("unexpected %q after the exemplar", p.line[p.pos:])
	}
	return true
}

// labels reads labels with their braces, and orders the labels by name. If
// named, the name of the metric is there or was in front of them.
func (p *parser) labels(name string, named bool) (string, []label, bool) {
	p.pos++
	var labels []label
	for first := true; ; first = false {
		p.optional()
		if p.at('}') {
			break
		}
		start := p.pos
		l, isName, ok := p.label()
		switch {
		case !ok:
			return "", nil, false
		case isName && (!named || name != "" || !first):
			p.pos = start
			return "", nil, p.fail("want a label, got a name without a value")
		case isName:
			name = l.name
		default:
			if strings.HasPrefix(l.name, "__") {
				p.pos = start
				return "", nil, p.fail("labels that begin with __ are reserved: %s", quoted(l.name))
			}
			labels = append(labels, l)
		}
		p.optional()
		if p.at(',') {
			p.pos++
			if p.at('}') && p.format == OpenMetrics {
				return "", nil, p.fail("want a label after the comma")
			}
		} else if !p.at('}') {
			return "", nil, p.fail("want , or } after a label")
		}
	}
	if named && name == "" {
		return "", nil, p.fail("the sample has no name")
	}
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(labels); i++ {
		if labels[i].name == labels[i-1].name {
			return "", nil, p.fail("label %s occurs twice", quoted(labels[i].name))
		}
	}
	p.pos++
	return name, labels, true
}

// label reads a label, or the name of a metric between quotes.
func (p *parser) label() (l label, isName, ok bool) {
	if p.at('"') {
		if l.name, ok = p.quotedName(); !ok {
			return l, false, false
		}
		p.optional()
		if !p.at('=') {
			return l, true, true
		}
	} else {
		start := p.pos
		for p.pos < len(p.line) && !strings.ContainsRune("= \t,}\"", rune(p.line[p.pos])) {
			p.pos++
		}
		if l.name = p.line[start:p.pos]; !plain(l.name, false) {
			p.pos = start
			return l, false, p.fail("invalid label name %q", l.name)
		}
		p.optional()
	}
	if !p.at('=') {
		return l, false, p.fail("want = after the label name")
	}
	p.pos++
	p.optional()
	l.value, ok = p.quoted()
	return l, false, ok
}

// quotedName reads a name between quotes.
func (p *parser) quotedName() (string, bool) {
	start := p.pos
	name, ok := p.quoted()
	switch {
	case !ok:
		return "", false
	case name == "":
		p.pos = start
		return "", p.fail("the name is empty")
	case p.format == Text004:
		p.pos = start
		return "", p.fail("names between quotes need the text format 1.0.0: %q", name)
	}
	return name, true
}

// quoted reads text between quotes and undoes its escapes.
func (p *parser) quoted() (string, bool) {
	if !p.at('"') {
		return "", p.fail(`want "`)
	}
	p.pos++
	start := p.pos
	var b []byte // only if there are escapes
	for p.pos < len(p.line) {
		switch c := p.line[p.pos]; c {
		case '"':
			text := p.line[start:p.pos]
			p.pos++
			return string(b) + text, true
		case '\\':
			b = append(b, p.line[start:p.pos]...)
			p.pos++
			switch {
			case p.at('n'):
				b = append(b, '\n')
			case p.at('"'), p.at('\\'):
				b = append(b, p.line[p.pos])
			default:
				return "", p.fail(`invalid escape: want \\, \" or \n`)
			}
			p.pos++
			start = p.pos
		default:
			p.pos++
		}
	}
	return "", p.fail(`the closing " is missing`)
}

// helpProblem returns the error in the text of a HELP line, or "".
func helpProblem(s string, quotes bool) string {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if i == len(s) || s[i] != '\\' && s[i] != 'n' && (s[i] != '"' || !quotes) {
			return `invalid escape: want \\ or \n`
		}
	}
	return ""
}

// plain reports whether a name needs no quotes. Only names of metrics have colons.
func plain(s string, metric bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == ':' && metric:
		case i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

// number parses a value as Go does, without hexadecimal numbers and underscores.
func number(s string) (float64, bool) {
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}
