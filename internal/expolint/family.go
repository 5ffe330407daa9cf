package expolint

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// family is a metric with all of its series.
type family struct {
	name string
	kind string // the type, "" without TYPE
	unit string
	// The lines of the metadata, or 0.
	help, typed, united int

	samples bool // there was one
	last    int  // line of the last sample or metadata
	closed  bool // another family followed
	broken  bool // it is not contiguous: the samples of a histogram cannot be compared
	groups  map[string]*group
	order   []*group
	timed   bool // the first sample had a timestamp
}

// group has the samples of a histogram or a summary with the same labels.
type group struct {
	line             int // of its first sample
	labels           string
	bound            float64 // the last one of a bucket or quantile
	bounds           int
	cumulative       float64 // value of the last bucket
	inf, count       float64 // the +Inf bucket, and the count
	hasInf, hasCount bool
}

// suffixes returns the endings of a type's sample names, after the family's name, and
// whether the type exists in a format.
func suffixes(kind string, f Format) ([]string, bool) {
	open := f == OpenMetrics
	switch {
	case kind == "gauge", kind == "":
		return []string{""}, true
	case kind == "unknown", kind == "stateset":
		return []string{""}, open
	case kind == "untyped":
		return []string{""}, !open
	case kind == "counter" && open:
		return []string{"_total", "_created"}, true
	case kind == "counter":
		return []string{""}, true
	case kind == "histogram" && open:
		return []string{"_bucket", "_count", "_sum", "_created"}, true
	case kind == "histogram":
		return []string{"_bucket", "_count", "_sum"}, true
	case kind == "summary" && open:
		return []string{"", "_count", "_sum", "_created"}, true
	case kind == "summary":
		return []string{"", "_count", "_sum"}, true
	case kind == "gaugehistogram":
		return []string{"_bucket", "_gcount", "_gsum"}, open
	case kind == "info":
		return []string{"_info"}, open
	}
	return nil, false
}

// familyOf returns the family with a name, which may be new.
func (c *checker) familyOf(name string) *family {
	f := c.families[name]
	if f == nil {
		f = &family{name: name}
		c.families[name] = f
		c.own(name, f)
	}
	return f
}

// own reserves the name of a sample for a family.
func (c *checker) own(name string, f *family) {
	if other := c.owners[name]; other == nil {
		c.owners[name] = f
	} else if other != f {
		c.find("%s already belongs to the family %s", quoted(name), quoted(other.name))
	}
}

// declare sets the type of a family.
func (c *checker) declare(f *family, kind string) {
	all, ok := suffixes(kind, c.format)
	if !ok || kind == "" {
		c.find("unknown type %q of %s", kind, quoted(f.name))
		return
	}
	f.kind = kind
	for _, s := range all {
		if s != "" { // familyOf has reserved the name itself
			c.own(f.name+s, f)
		}
	}
}

// enter notes that a line belongs to f.
func (c *checker) enter(f *family) {
	if c.current != f {
		c.close(c.current)
		c.current = f
		if f.closed {
			f.broken = true
			c.find("the lines of %s are not contiguous; the previous ones end on line %d", quoted(f.name), f.last)
		}
	}
	f.last = c.number
}

// sample checks a sample and adds it to its family.
func (c *checker) sample(s *sample) {
	f := c.owners[s.name]
	if f == nil {
		f = c.familyOf(s.name)
	}
	c.enter(f)
	suffix := s.name[len(f.name):]
	if all, _ := suffixes(f.kind, c.format); !slices.Contains(all, suffix) {
		c.find("%s is of type %s, whose sample names end in %s", quoted(f.name), f.kind, strings.Join(all, ", "))
		f.samples = true
		return
	}
	special := specialLabel(f.kind, suffix, f.name)
	key, others, value, has := c.keyOf(s, special)
	switch {
	case special != "" && !has:
		c.find("the sample of a %s needs the label %s", f.kind, quoted(special))
	default:
		c.single(s, f, key)
		c.value(s, f, suffix)
		if f.kind == "histogram" || f.kind == "gaugehistogram" || f.kind == "summary" {
			c.group(s, f, suffix, others, value)
		}
	}
	if c.format == OpenMetrics {
		if !f.samples {
			f.timed = s.timed
		} else if f.timed != s.timed {
			c.find("some samples of %s have timestamps and others do not", quoted(f.name))
			f.timed = s.timed
		}
		counts := suffix == "_total" || suffix == "_bucket"
		if s.exemplar && !counts {
			c.find("only buckets of histograms and totals of counters have exemplars")
		}
	}
	f.samples = true
}

// specialLabel returns the label that a sample must have.
func specialLabel(kind, suffix, name string) string {
	switch {
	case suffix == "_bucket":
		return "le"
	case kind == "summary" && suffix == "":
		return "quantile"
	case kind == "stateset":
		return name
	}
	return ""
}

// keyOf returns the name of a sample with its labels, its labels without
// the special one, and the value of that.
func (c *checker) keyOf(s *sample, special string) (key []byte, others, value string, has bool) {
	c.key = append(append(c.key[:0], s.name...), '{')
	var rest []byte
	for _, l := range s.labels {
		start := len(c.key)
		c.key = append(append(c.key, l.name...), '=')
		c.key = append(strconv.AppendQuote(c.key, l.value), ',')
		if special != "" && l.name == special {
			value, has = l.value, true
			rest = append([]byte(nil), c.key[len(s.name)+1:start]...)
		} else if has {
			rest = append(rest, c.key[start:]...)
		}
	}
	if !has {
		rest = c.key[len(s.name)+1:]
	}
	return c.key, string(rest), value, has
}

// single checks that a series occurs once, or in OpenMetrics at ascending times.
func (c *checker) single(s *sample, f *family, key []byte) {
	before, again := c.series[string(key)]
	if again {
		shown := strings.TrimSuffix(string(key), ",") + "}"
		switch {
		case c.format != OpenMetrics || !s.timed || !before.timed:
			c.find("duplicate series %s; the first is on line %d", shown, before.line)
			return
		case s.stamp <= before.stamp:
			c.find("the timestamp of %s is not later than that on line %d", shown, before.line)
		}
		if before.line != c.number-1 && len(f.groups) == 0 {
			c.find("the samples of %s are not contiguous; the previous ones end on line %d", shown, before.line)
		}
		// Buckets of several times are not compared with each other.
		f.broken = true
		before.line, before.stamp = c.number, s.stamp
		c.series[string(key)] = before
		return
	}
	c.series[string(key)] = seen{c.number, s.stamp, s.timed}
}

func (c *checker) value(s *sample, f *family, suffix string) {
	counts := f.kind == "counter" && suffix != "_created" || suffix == "_bucket" || suffix == "_count" && f.kind != "" || suffix == "_gcount"
	switch {
	case counts && (s.value < 0 || math.IsNaN(s.value)):
		c.find("%s is %s: want a number that is not negative", quoted(s.name), s.text)
	case f.kind == "info" && s.value != 1:
		c.find("the value of an info is 1, not %s", s.text)
	case f.kind == "stateset" && s.value != 0 && s.value != 1:
		c.find("the value of a stateset is 0 or 1, not %s", s.text)
	}
}

// group adds a sample to the others with the same labels.
func (c *checker) group(s *sample, f *family, suffix, labels, value string) {
	if f.broken {
		return
	}
	g := f.groups[labels]
	if g == nil {
		g = &group{line: c.number, labels: "{" + strings.TrimSuffix(labels, ",") + "}"}
		if f.groups == nil {
			f.groups = make(map[string]*group)
		}
		f.groups[labels] = g
		f.order = append(f.order, g)
	}
	switch suffix {
	case "_bucket", "":
		c.bound(s, g, suffix, value)
	case "_count", "_gcount":
		g.count, g.hasCount = s.value, true
	}
}

// bound checks a bucket or a quantile after those before it.
func (c *checker) bound(s *sample, g *group, suffix, text string) {
	name := "le"
	if suffix == "" {
		name = "quantile"
	}
	bound, ok := number(text)
	switch {
	case !ok || math.IsNaN(bound):
		c.find("%s=%q is not a number", name, text)
		return
	case suffix == "" && (bound < 0 || bound > 1):
		c.find("quantile=%q is not between 0 and 1", text)
		return
	case g.bounds > 0 && bound == g.bound:
		c.find("%s=%q equals the one before", name, text)
	case g.bounds > 0 && bound < g.bound:
		c.find("%s=%q follows %s=%q: want ascending order", name, text, name, strconv.FormatFloat(g.bound, 'g', -1, 64))
	case suffix == "_bucket" && g.bounds > 0 && s.value < g.cumulative:
		c.find("the bucket le=%q has %s, less than the bucket before: buckets are cumulative", text, s.text)
	}
	g.bound, g.cumulative = bound, s.value
	g.bounds++
	if suffix == "_bucket" && math.IsInf(bound, 1) {
		g.inf, g.hasInf = s.value, true
	}
}

// close checks the groups of a family whose lines have ended.
func (c *checker) close(f *family) {
	if f == nil {
		return
	}
	for _, g := range f.order {
		switch {
		case f.broken || f.kind == "summary":
		case g.bounds == 0 && g.hasCount && f.kind == "histogram":
			c.findAt(g.line, "the histogram %s%s has no buckets", quoted(f.name), g.labels)
		case g.bounds > 0 && !g.hasInf:
			c.findAt(g.line, "the histogram %s%s has no bucket le=\"+Inf\"", quoted(f.name), g.labels)
		case g.hasInf && !g.hasCount && c.format != OpenMetrics:
			c.findAt(g.line, "the histogram %s%s has no _count", quoted(f.name), g.labels)
		case g.hasInf && g.hasCount && g.inf != g.count:
			c.findAt(g.line, "the histogram %s%s has %v in the bucket le=\"+Inf\" and %v in its count", quoted(f.name), g.labels, g.inf, g.count)
		}
	}
	f.closed, f.groups, f.order = true, nil, nil
}
