package render

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// summaryQuantiles are the quantiles of the summary form of the expositions.
var summaryQuantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}

// Exposition writes the Prometheus text exposition format, version 0.0.4:
// counters, gauges, text readouts if asked for, histograms. The stats with one
// tag-extracted name form a family under one TYPE line. Families and their
// members are ordered token by token.
//
// Options.Type has no effect. Options.Buckets Summary shows summaries of the
// last interval; everything else shows histograms since the start.
func Exposition(w io.Writer, st *store.Store, o Options) error {
	return exposition(w, st, o, dialect004)
}

// OpenMetrics writes the OpenMetrics text format, version 1.0, with the
// content of [Exposition].
func OpenMetrics(w io.Writer, st *store.Store, o Options) error {
	return exposition(w, st, o, dialectOpenMetrics)
}

// dialect tells the text formats apart.
type dialect uint8

const (
	dialect004 dialect = iota
	dialectOpenMetrics
)

func exposition(w io.Writer, st *store.Store, o Options, d dialect) error {
	v := st.View()
	defer v.Close()
	o.Type = All
	e := exposer{out: newOutput(w), naming: st.Naming(), dialect: d, form: o.Buckets, sel: o.selection()}
	for _, k := range []store.Kind{store.KindCounter, store.KindGauge, store.KindText, store.KindHistogram} {
		if k == store.KindText && !o.TextReadouts || !o.wants(typeOf(k)) {
			continue
		}
		if err := e.kind(v, k); err != nil {
			return err
		}
	}
	if d == dialectOpenMetrics {
		e.out.buf = append(e.out.buf, "# EOF\n"...)
	}
	return e.out.flush()
}

func typeOf(k store.Kind) Type {
	switch k {
	case store.KindCounter:
		return Counters
	case store.KindGauge:
		return Gauges
	case store.KindText:
		return TextReadouts
	default:
		return Histograms
	}
}

type exposer struct {
	out     *output
	naming  *store.Naming
	dialect dialect
	form    Buckets
	sel     selection

	family *store.Name // of the stat before, if it has a shared name
	metric []byte      // its metric name; empty: it is not shown
	name   []byte      // scratch
	labels []byte      // of the stat under the cursor, with commas between
	seen   [][]byte    // label names of the stat, where one must be told from another
	counts []uint64
	values [len(summaryQuantiles)]float64
	merged merged
}

// kind writes all families of a kind.
func (e *exposer) kind(v *store.View, k store.Kind) error {
	e.family, e.metric = nil, e.metric[:0]
	c := v.ByFamily(k)
	for c.Next() {
		if ok, err := e.sel.shows(&c); err != nil {
			return err
		} else if !ok {
			continue
		}
		sp := c.Series()
		if sp != nil || e.merged.open {
			if err := e.special(&c, sp, k); err != nil {
				return err
			}
			if sp != nil && sp.Merged {
				continue
			}
		} else if !e.enter(&c, k) {
			continue
		}
		if len(e.metric) == 0 {
			continue
		}
		e.member(&c, k)
		if err := e.out.spill(); err != nil {
			return err
		}
	}
	e.merged.close(e)
	return e.out.spill()
}

// enter makes the family of the stat under c the present one, with a TYPE line
// if its metric name is a new one. It reports whether the stat can be shown.
func (e *exposer) enter(c *store.Cursor, k store.Kind) bool {
	f := c.Family()
	if f != nil && f == e.family {
		return len(e.metric) > 0
	}
	e.family = f
	e.name = e.name[:0]
	if f != nil {
		e.name = append(e.name, f.Derived(derivedMetric+int(k), func(f *store.Name) []byte {
			m, _ := e.naming.AppendMetric(nil, f.String(), f.Network(), k)
			return m
		})...)
	} else {
		m, ok := e.naming.AppendMetric(e.name, c.Name(), c.Network(), k)
		if !ok {
			m = m[:0]
		}
		e.name = m
	}
	return e.begin(k)
}

// Slots of store.Name.Derived.
const (
	derivedMetric = 0 // and one for each kind of stat
	derivedLabel  = 4
)

// begin makes e.name the present metric name.
func (e *exposer) begin(k store.Kind) bool {
	if len(e.name) == 0 || bytes.Equal(e.name, e.metric) {
		e.metric = append(e.metric[:0], e.name...)
		return len(e.name) > 0
	}
	e.metric = append(e.metric[:0], e.name...)
	e.out.buf = append(e.out.buf, "# TYPE "...)
	e.out.buf = append(e.out.buf, e.familyName(k)...)
	e.out.buf = append(e.out.buf, ' ')
	e.out.buf = append(e.out.buf, e.typeName(k)...)
	e.out.buf = append(e.out.buf, '\n')
	return true
}

// familyName is the metric name as the TYPE line has it.
func (e *exposer) familyName(k store.Kind) []byte {
	if e.dialect == dialectOpenMetrics && k == store.KindCounter {
		return bytes.TrimSuffix(e.metric, []byte("_total"))
	}
	return e.metric
}

func (e *exposer) typeName(k store.Kind) string {
	switch k {
	case store.KindCounter:
		return "counter"
	case store.KindHistogram:
		if e.form == Summary {
			return "summary"
		}
		return "histogram"
	default:
		return "gauge"
	}
}

// special handles a stat whose metric name is not what its name alone gives.
func (e *exposer) special(c *store.Cursor, sp *store.Series, k store.Kind) error {
	e.family = nil
	e.name = e.name[:0]
	f := c.Name()
	if n := c.Family(); n != nil {
		f = n.String()
	}
	m, ok := e.naming.AppendMetric(e.name, f, c.Network(), k)
	if !ok {
		m = m[:0]
	} else if sp != nil {
		m = append(m, sp.Suffix...)
	}
	e.name = m
	if e.merged.open && (sp == nil || !sp.Merged || !bytes.Equal(e.name, e.metric)) {
		e.merged.close(e)
		if err := e.out.spill(); err != nil {
			return err
		}
	}
	if !e.begin(k) {
		return nil
	}
	if sp != nil && sp.Merged {
		e.appendLabels(c)
		e.merged.add(e.labels, c, k)
	}
	return nil
}

// member writes the lines of one stat.
func (e *exposer) member(c *store.Cursor, k store.Kind) {
	e.appendLabels(c)
	switch k {
	case store.KindHistogram:
		e.histogram(e.labels, c.Histogram().Layout(), c.Histogram().Snapshot())
	case store.KindText:
		e.text(e.labels, c.Text())
	default:
		if k == store.KindCounter {
			e.counter(e.labels)
		} else {
			e.sample("", e.labels, "")
		}
		e.out.buf = c.AppendValue(e.out.buf)
		e.out.buf = append(e.out.buf, '\n')
	}
}

// counter appends the line of a counter up to its value.
func (e *exposer) counter(labels []byte) {
	suffix := ""
	if e.dialect == dialectOpenMetrics && !bytes.HasSuffix(e.metric, []byte("_total")) {
		suffix = "_total"
	}
	e.sample(suffix, labels, "")
}

// sample appends a line up to its value.
func (e *exposer) sample(suffix string, labels []byte, last string) {
	b := append(e.out.buf, e.metric...)
	b = append(b, suffix...)
	b = append(b, '{')
	b = append(b, labels...)
	if last != "" {
		if len(labels) > 0 {
			b = append(b, ',')
		}
		b = append(b, last...)
	}
	e.out.buf = append(b, '}', ' ')
}

// appendLabels fills e.labels from the tags of the stat under c.
func (e *exposer) appendLabels(c *store.Cursor) {
	e.labels = e.labels[:0]
	ls := c.Labels()
	plain := c.Plain()
	e.seen = e.seen[:0]
	for i := range ls {
		l := &ls[i]
		name := l.Name.Derived(derivedLabel, func(n *store.Name) []byte {
			return e.naming.AppendLabel(nil, n.String())
		})
		if i > 0 {
			e.labels = append(e.labels, ',')
		}
		for contains(e.seen, name) {
			name = append([]byte("exported_"), name...)
		}
		e.seen = append(e.seen, name)
		e.labels = append(e.labels, name...)
		e.labels = append(e.labels, '=', '"')
		switch {
		case len(l.Value) == 0 && c.Network():
			e.labels = append(e.labels, "true"...)
		case plain:
			e.labels = append(e.labels, l.Value...)
		default:
			e.labels = appendLabelValue(e.labels, l.Value)
		}
		e.labels = append(e.labels, '"')
	}
}

func contains(names [][]byte, name []byte) bool {
	for _, n := range names {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// appendLabelValue appends v with backslash, newline and quote escaped.
// Invalid UTF-8 becomes U+FFFD: no parser takes it.
func appendLabelValue[T string | []byte](dst []byte, v T) []byte {
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '\\':
			dst = append(dst, '\\', '\\')
			i++
		case c == '\n':
			dst = append(dst, '\\', 'n')
			i++
		case c == '"':
			dst = append(dst, '\\', '"')
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(string(v[i:min(len(v), i+utf8.UTFMax)]))
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// text writes a text readout: a gauge whose value is 0.
func (e *exposer) text(labels []byte, value string) {
	e.name = append(e.name[:0], `text_value="`...)
	e.name = appendLabelValue(e.name, value)
	e.name = append(e.name, '"')
	e.sample("", labels, string(e.name))
	e.out.buf = append(e.out.buf, '0', '\n')
}

func (e *exposer) histogram(labels []byte, l *histogram.Layout, s *histogram.Snapshot) {
	if e.form == Summary {
		e.summary(labels, s.Interval)
		return
	}
	st := s.Cumulative
	e.counts = st.AppendCumulative(e.counts[:0])
	for i, bound := range l.Bounds() {
		e.bucket(labels, bound)
		e.out.buf = strconv.AppendUint(e.out.buf, e.counts[i], 10)
		e.out.buf = append(e.out.buf, '\n')
	}
	e.sample("_bucket", labels, `le="+Inf"`)
	e.out.buf = strconv.AppendUint(e.out.buf, st.Count(), 10)
	e.out.buf = append(e.out.buf, '\n')
	e.sumAndCount(labels, st)
}

// bucket appends a bucket's line up to its count.
func (e *exposer) bucket(labels []byte, bound float64) {
	b := append(e.out.buf, e.metric...)
	b = append(b, "_bucket{"...)
	b = append(b, labels...)
	if len(labels) > 0 {
		b = append(b, ',')
	}
	b = append(b, `le="`...)
	b = e.appendNumber(b, bound)
	e.out.buf = append(b, '"', '}', ' ')
}

func (e *exposer) summary(labels []byte, st *histogram.Stats) {
	for i, x := range st.Quantiles(e.values[:0], summaryQuantiles[:]) {
		e.name = append(e.name[:0], `quantile="`...)
		e.name = appendFloat(e.name, summaryQuantiles[i])
		e.name = append(e.name, '"')
		e.sample("", labels, string(e.name))
		if e.dialect == dialectOpenMetrics && x != x {
			e.out.buf = append(e.out.buf, "NaN"...)
		} else {
			e.out.buf = appendTextFloat(e.out.buf, x)
		}
		e.out.buf = append(e.out.buf, '\n')
	}
	e.sumAndCount(labels, st)
}

func (e *exposer) sumAndCount(labels []byte, st *histogram.Stats) {
	e.sample("_sum", labels, "")
	e.out.buf = e.appendNumber(e.out.buf, st.Sum())
	e.out.buf = append(e.out.buf, '\n')
	e.sample("_count", labels, "")
	e.out.buf = strconv.AppendUint(e.out.buf, st.Count(), 10)
	e.out.buf = append(e.out.buf, '\n')
}

// appendNumber appends a bound or a sum: as C's %.32g, and for OpenMetrics as
// the shortest decimal, with a point as that format wants it for le.
func (e *exposer) appendNumber(dst []byte, x float64) []byte {
	if e.dialect == dialectOpenMetrics {
		at := len(dst)
		dst = strconv.AppendFloat(dst, x, 'g', -1, 64)
		if !bytes.ContainsAny(dst[at:], ".e") {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	return appendG(dst, x, 32)
}
