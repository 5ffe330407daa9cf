// Package expolint finds errors in expositions of metrics: the Prometheus text formats
// 0.0.4 and 1.0.0, and OpenMetrics 1.0.
//
// It checks the rules of the formats, not naming conventions: syntax, metadata, contiguous
// families, unique series, and the values of counters, histograms and summaries.
package expolint

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Format is a format of an exposition.
type Format uint8

// The formats. Text100 differs from Text004 in names between quotes.
const (
	Text004 Format = iota
	Text100
	OpenMetrics
)

// Detect returns the format of a text without a content type: OpenMetrics if a line
// is "# EOF", else Text100, which includes Text004.
func Detect(text string) Format {
	if strings.HasPrefix(text, "# EOF\n") || strings.Contains(text, "\n# EOF") {
		return OpenMetrics
	}
	return Text100
}

// Finding is an error in a line.
type Finding struct {
	Line int    // from 1 on
	Text string // up to 1 KiB; names and values in it are as untrusted as the exposition
}

// Result is the result of [Check].
type Result struct {
	Findings         []Finding // the first 1000
	More             int       // findings after these
	Families, Series int
}

const (
	maxFindings = 1000
	maxText     = 1 << 10 // bytes of a finding
)

// Check checks an exposition. It needs memory in proportion to the number of series.
func Check(text string, f Format) Result {
	c := checker{format: f, families: make(map[string]*family), owners: make(map[string]*family), series: make(map[string]seen)}
	rest := text
	for rest != "" {
		line, after, ended := strings.Cut(rest, "\n")
		rest = after
		c.number++
		if !ended && (f != OpenMetrics || line != "# EOF") {
			c.find("the last line does not end with a line feed")
		}
		c.line(line)
	}
	c.close(c.current)
	if f == OpenMetrics && c.eof == 0 {
		c.number = max(1, c.number)
		c.find("# EOF is missing at the end")
	}
	c.result.Families, c.result.Series = len(c.families), len(c.series)
	return c.result
}

// checker has the state of a [Check].
type checker struct {
	format   Format
	number   int // of the line
	eof      int // its line, or 0
	families map[string]*family
	owners   map[string]*family // of the names of samples that a type reserves
	current  *family
	series   map[string]seen // by name and sorted labels
	key      []byte          // reused
	result   Result
}

// seen is the last occurrence of a series.
type seen struct {
	line  int
	stamp float64
	timed bool
}

// find reports an error in the current line.
func (c *checker) find(format string, args ...any) { c.findAt(c.number, format, args...) }

func (c *checker) findAt(line int, format string, args ...any) {
	if len(c.result.Findings) >= maxFindings {
		c.result.More++
		return
	}
	text := fmt.Sprintf(format, args...)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-len("…")], "") + "…"
	}
	c.result.Findings = append(c.result.Findings, Finding{line, text})
}

func (c *checker) line(line string) {
	switch {
	case c.eof != 0:
		c.find("a line after # EOF on line %d", c.eof)
		return
	case !utf8.ValidString(line):
		c.find("invalid UTF-8")
		return
	}
	open := c.format == OpenMetrics
	if strings.HasPrefix(line, "#") && strings.ContainsRune(line, 0) {
		c.find("a NUL byte") // at which Prometheus stops reading
		return
	}
	if !open {
		line = strings.TrimLeft(line, " \t")
	}
	switch {
	case line == "":
		if open {
			c.find("empty lines are not allowed in OpenMetrics")
		}
	case open && line == "# EOF":
		c.eof = c.number
	case line[0] == '#':
		c.comment(line)
	default:
		p := parser{line: line, format: c.format}
		if s, ok := p.sample(); ok {
			c.sample(&s)
		} else {
			c.find("%s", p.problem)
		}
	}
}

// comment checks a line that begins with #.
func (c *checker) comment(line string) {
	p := parser{line: line, pos: 1, format: c.format}
	open := c.format == OpenMetrics
	blank := p.blanks()
	keyword := p.word()
	known := keyword == "HELP" || keyword == "TYPE" || open && keyword == "UNIT"
	switch {
	case !known && open:
		c.find("want # HELP, # TYPE, # UNIT or # EOF, got %q", line)
		return
	case !known:
		return
	case !blank:
		if open {
			c.find("want a space after #, got %q", line)
		}
		return
	}
	name, ok := p.metadataName()
	if !ok {
		c.find("# %s: %s", keyword, p.problem)
		return
	}
	f := c.familyOf(name)
	c.enter(f)
	if f.samples {
		c.find("# %s %s after the first sample of its family", keyword, quoted(name))
	}
	rest := p.line[p.pos:]
	switch keyword {
	case "HELP":
		c.once(f, &f.help, keyword)
		if problem := helpProblem(rest, open); problem != "" {
			c.find("# HELP %s: %s", quoted(name), problem)
		}
	case "TYPE":
		if c.once(f, &f.typed, keyword) {
			c.declare(f, rest)
		}
	case "UNIT":
		c.once(f, &f.united, keyword)
		f.unit = rest
		if f.unit != "" && !strings.HasSuffix(name, "_"+f.unit) {
			c.find("the name %s does not end with the unit _%s", quoted(name), f.unit)
		}
	}
	c.checkUnit(f)
}

// once notes the line of a kind of metadata that a family may have once.
func (c *checker) once(f *family, line *int, keyword string) bool {
	if *line != 0 {
		c.find("a second # %s for %s; the first is on line %d", keyword, quoted(f.name), *line)
		return false
	}
	*line = c.number
	return true
}

func (c *checker) checkUnit(f *family) {
	if f.unit != "" && (f.kind == "info" || f.kind == "stateset") {
		c.find("%s is of type %s, which has no unit", quoted(f.name), f.kind)
		f.unit = ""
	}
}

// quoted returns a name as an exposition can have it.
func quoted(name string) string {
	if plain(name, true) {
		return name
	}
	return fmt.Sprintf("%q", name)
}
