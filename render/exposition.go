package render

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
)

// summaryQuantiles are the quantiles of the summary form of the expositions.
var summaryQuantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}

// Exposition writes the Prometheus text exposition format, version 0.0.4:
// counters, gauges, text readouts if selected, histograms. The stats with one
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
//
// A series has the same name in all formats. OpenMetrics requires the suffix
// _total for samples of counters and omits it from the name of the family, so a
// counter without the suffix, or whose family name would be taken, is written
// with the type unknown.
func OpenMetrics(w io.Writer, st *store.Store, o Options) error {
	return exposition(w, st, o, dialectOpenMetrics)
}

// dialect selects a text format.
type dialect uint8

const (
	dialect004 dialect = iota
	dialectOpenMetrics
	dialectProtobuf
)

func exposition(w io.Writer, st *store.Store, o Options, d dialect) error {
	v := st.View()
	defer v.Close()
	o.Type = All
	e := newExposer(w, v, o, d)
	for _, k := range []store.Kind{store.KindCounter, store.KindGauge, store.KindText, store.KindHistogram} {
		if k == store.KindText && !o.TextReadouts || !o.wants(typeOf(k)) {
			continue
		}
		if err := e.kind(v, k); err != nil {
			return err
		}
	}
	if err := e.endpoints(); err != nil {
		return err
	}
	switch d {
	case dialectOpenMetrics:
		e.out.buf = append(e.out.buf, "# EOF\n"...)
	case dialectProtobuf:
		e.proto.emit(e.out)
	}
	return e.out.flush()
}

// ExpositionOf writes the lines of [Exposition] for the stat under c, a cursor of v,
// even if o does not select it. If several stats make up the series, the lines have the
// value of this stat only.
func ExpositionOf(w io.Writer, v *store.View, c *store.Cursor, o Options) error {
	e := newExposer(w, v, o, dialect004)
	if err := e.stat(c, c.Kind()); err != nil {
		return err
	}
	e.merged.close(&e)
	return e.out.flush()
}

// newExposer returns an exposer for the store of v, whose metric names are settled.
func newExposer(w io.Writer, v *store.View, o Options, d dialect) exposer {
	st := v.Store()
	for k := range store.KindHistogram + 1 {
		v.ByFamily(k) // settles the metric names
	}
	return exposer{out: newOutput(w), st: st, naming: st.Naming(), dialect: d, escaping: o.Escaping, omitCreated: o.OmitCreated, form: o.Buckets, sel: o.selection(), now: st.LastFlush()}
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
	out         *output
	st          *store.Store
	naming      *naming.Rules
	dialect     dialect
	escaping    Escaping
	proto       protoFamily
	form        Buckets
	omitCreated bool
	sel         selection

	label   *store.Name // of the stat before, if it had just one
	opening []byte      // what its label begins with

	description store.Description // of the stat that is written

	network   bool      // the stat that is written, or merged, came from network input
	summaries bool      // histograms of the family are shown as summaries
	now       time.Time // the end of windows
	seconds   inSeconds // the unit of the histogram that is written
	shortest  bool      // its bounds and sum are shown as the shortest decimals

	family  *store.Name // of the stat before, if it has a shared name
	metric  []byte      // its metric name; empty: it is not shown
	quoted  bool        // metric has to stand between quotes
	name    []byte      // scratch: a metric name
	under   []byte      // scratch: name with underscores for what it has not, unless it is that
	raw     []byte      // scratch: name before it is escaped
	full    []byte      // scratch: the name of a stat
	last    []byte      // scratch: the label behind those of the stat
	total   bool        // OpenMetrics: it is a counter's and ends in _total
	created bool        // its series say when they were created
	since   int64       // when the value that is written was 0, Unix time in milliseconds; 0: not shown
	labels  []byte      // of the stat under the cursor, with commas between
	seen    [][]byte    // label names of the stat, if they must be distinguished
	spans   []labelSpan // where they are in labels, in the order of the tags
	sorted  bool        // labels are in the order of their names
	counts  []uint64
	values  []float64 // scratch: quantiles of a summary
	merged  merged
}

// kind writes all families of a kind.
func (e *exposer) kind(v *store.View, k store.Kind) error {
	e.family, e.metric = nil, e.metric[:0]
	c := e.sel.byFamily(v, k)
	for c.Next() {
		if !e.sel.shows(&c) {
			continue
		}
		if err := e.stat(&c, k); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	e.merged.close(e)
	return e.out.spill()
}

// stat writes the stat under c, and lines about its family if it is the first one.
func (e *exposer) stat(c *store.Cursor, k store.Kind) error {
	sp := c.Series()
	if sp != nil || e.merged.open {
		if err := e.special(c, sp, k); err != nil {
			return err
		}
		if sp != nil && sp.Merged {
			return nil
		}
	} else {
		e.enter(c, k)
	}
	if len(e.metric) == 0 {
		return nil
	}
	e.member(c, k)
	return e.out.spill()
}

// enter makes the family of the stat under c current and writes a TYPE line if
// its metric name is new.
func (e *exposer) enter(c *store.Cursor, k store.Kind) {
	f := c.Family()
	if f != nil && f == e.family {
		return
	}
	e.family, e.network = f, c.Network()
	e.description = e.st.DescriptionOf(c)
	e.name = e.name[:0]
	if f != nil {
		e.name = append(e.name, f.Derived(naming.SlotMetric+int(k), func(f *store.Name) []byte {
			m, _ := e.naming.AppendMetric(nil, f.String(), f.Network(), k == store.KindCounter)
			return m
		})...)
	} else {
		e.full = c.AppendName(e.full[:0])
		m, ok := e.naming.AppendMetricBytes(e.name, e.full, c.Network(), k == store.KindCounter)
		if !ok {
			m = m[:0]
		}
		e.name = m
	}
	if !e.escaping.legacy() {
		if f != nil {
			e.full = append(e.full[:0], f.String()...)
		}
		e.escape(c.Network(), k, "")
	}
	e.beginWith(c, k)
}

// beginWith begins e.name with the stat under c, unless it is the current metric name.
func (e *exposer) beginWith(c *store.Cursor, k store.Kind) {
	if !bytes.Equal(e.name, e.metric) {
		e.shape(c, k)
	}
	e.begin(e.name, e.underscored(), k)
}

// escape replaces e.name, which has underscores, with the name of the family
// e.full under e.escaping, and saves the old name.
func (e *exposer) escape(network bool, k store.Kind, suffix string) {
	e.under = append(e.under[:0], e.name...)
	if len(e.name) == 0 || e.escaping == AllowUTF8 && !network {
		return
	}
	e.raw, _ = e.naming.AppendMetricUTF8(e.raw[:0], e.full, network, k == store.KindCounter)
	e.raw = append(e.raw, suffix...)
	e.name = e.escaping.appendName(e.name[:0], e.raw)
}

// underscored returns e.name in the old alphabet, with underscores for all
// other characters.
func (e *exposer) underscored() []byte {
	if e.escaping.legacy() {
		return e.name
	}
	return e.under
}

// shape sets whether histograms like that under c are shown as summaries. All
// of a family are shown alike, as the first one asks for.
func (e *exposer) shape(c *store.Cursor, k store.Kind) {
	e.summaries = e.form == Summary || e.form == Default && k == store.KindHistogram && len(c.Histogram().Layout().Quantiles()) > 0
}

// comment writes a comment line about a family.
func (e *exposer) comment(kind string, family []byte, text string) {
	e.out.buf = append(append(append(e.out.buf, "# "...), kind...), ' ')
	if e.quoted {
		e.out.buf = appendQuoted(e.out.buf, family)
	} else {
		e.out.buf = append(e.out.buf, family...)
	}
	e.out.buf = append(append(append(e.out.buf, ' '), text...), '\n')
}

// helpText returns the help of the family, escaped for the text formats.
func (e *exposer) helpText() string {
	escapes := []string{`\`, `\\`, "\n", `\n`}
	if e.dialect == dialectOpenMetrics {
		escapes = append(escapes, `"`, `\"`)
	}
	return strings.NewReplacer(escapes...).Replace(strings.ToValidUTF8(e.description.Help, "\ufffd"))
}

// unit returns the unit of the family if its metric name ends with it, as the
// formats demand.
func (e *exposer) unit(family []byte) string {
	if u := e.description.Unit; u != "" && bytes.HasSuffix(family, []byte("_"+u)) {
		return u
	}
	return ""
}

// begin makes name, which is empty for stats that are not shown, the current
// metric name; under is the name in the old alphabet.
func (e *exposer) begin(name, under []byte, k store.Kind) {
	same := bytes.Equal(name, e.metric)
	if e.metric = append(e.metric[:0], name...); same || len(name) == 0 {
		return
	}
	stats := k
	if k == store.KindGauge && e.description.Counter {
		k = store.KindCounter
	}
	if e.dialect == dialectProtobuf {
		e.created = e.showsCreated(stats, under)
		unit := e.unit(bytes.TrimSuffix(e.metric, []byte(totalSuffix)))
		e.proto.begin(e.out, e.metric, e.protoType(k), strings.ToValidUTF8(e.description.Help, "\ufffd"), unit)
		return
	}
	e.quoted = !e.escaping.legacy() && !legacyName(e.metric)
	family := e.metric
	base := bytes.TrimSuffix(e.metric, []byte(totalSuffix))
	e.total = e.dialect == dialectOpenMetrics && k == store.KindCounter && len(base) > 0 && len(base) < len(e.metric) &&
		!e.takenByOther(string(bytes.TrimSuffix(under, []byte(totalSuffix))))
	if e.total {
		family = base
	}
	e.created = e.showsCreated(stats, under)
	if e.description.Help != "" {
		e.comment("HELP", family, e.helpText())
	}
	e.comment("TYPE", family, e.typeName(k))
	if unit := e.unit(family); unit != "" && e.dialect == dialectOpenMetrics {
		e.comment("UNIT", family, unit)
	}
}

// totalSuffix is the suffix of counters in OpenMetrics.
const totalSuffix = "_total"

func (e *exposer) typeName(k store.Kind) string {
	switch k {
	case store.KindCounter:
		if e.dialect == dialectOpenMetrics && !e.total {
			return "unknown"
		}
		return "counter"
	case store.KindHistogram:
		if e.summaries {
			return "summary"
		}
		return "histogram"
	default:
		return "gauge"
	}
}

// special handles a stat whose metric name does not follow from its name alone.
func (e *exposer) special(c *store.Cursor, sp *store.Series, k store.Kind) error {
	e.family = nil
	e.name = e.name[:0]
	f := c.Name()
	if n := c.Family(); n != nil {
		f = n.String()
	}
	m, ok := e.naming.AppendMetric(e.name, f, c.Network(), k == store.KindCounter)
	if !ok {
		m = m[:0]
	} else if sp != nil {
		m = append(m, sp.Suffix...)
	}
	e.name = m
	if !e.escaping.legacy() {
		suffix := ""
		if sp != nil {
			suffix = sp.Suffix
		}
		e.full = append(e.full[:0], f...)
		e.escape(c.Network(), k, suffix)
	}
	if e.merged.open && (sp == nil || !sp.Merged || string(e.underscored()) != e.merged.metric) {
		e.merged.close(e)
		if err := e.out.spill(); err != nil {
			return err
		}
	}
	e.network = c.Network()
	e.description = e.st.DescriptionOf(c)
	if sp == nil || !sp.Merged {
		e.beginWith(c, k)
	} else if len(e.name) > 0 {
		e.appendLabels(c, k)
		e.merged.add(e, c, k)
	}
	return nil
}

// simple is a fast path for counters and gauges of the program with one plain
// label, the most frequent case. It reports whether the stat was one.
func (e *exposer) simple(c *store.Cursor, k store.Kind) bool {
	proto := e.dialect == dialectProtobuf
	if k != store.KindCounter && k != store.KindGauge || e.created && !proto || c.Network() || !c.Plain() {
		return false
	}
	l, ok := c.OnlyLabel()
	if !ok || len(l.Value) == 0 {
		return false
	}
	if l.Name != e.label {
		e.label = l.Name
		if name := e.labelName(l.Name, false); proto {
			e.opening = protobuf.AppendBytes(e.opening[:0], 1, name)
		} else {
			e.opening = append(append(append(e.opening[:0], '{'), name...), '=', '"')
		}
	}
	if proto {
		b := binary.AppendUvarint(append(e.labels[:0], 1<<3|2), uint64(len(e.opening)+protobuf.BytesLen(len(l.Value))))
		e.labels = protobuf.AppendBytes(append(b, e.opening...), 2, l.Value)
		e.proto.scalar(e.out, e.labels, c.Float(), e.sinceOf(c))
		return true
	}
	b := append(e.out.buf, e.metric...)
	b = append(b, e.opening...)
	b = append(b, l.Value...)
	b = append(b, '"', '}', ' ')
	e.out.buf = append(c.AppendValue(b), '\n')
	return true
}

func (e *exposer) labelName(n *store.Name, network bool) []byte {
	switch {
	case e.escaping.legacy() || e.escaping == AllowUTF8 && !network:
		return n.Derived(naming.SlotLabel, func(n *store.Name) []byte { return e.naming.AppendLabel(nil, n.String()) })
	case e.escaping == AllowUTF8:
		return n.Derived(naming.SlotLabelUTF8, func(n *store.Name) []byte { return e.naming.AppendLabelUTF8(nil, n.String(), true) })
	}
	escaped := e.escaping.appendLabel(nil, e.naming.AppendLabelUTF8(nil, n.String(), network))
	return naming.AppendUnreserved(nil, string(escaped))
}

// member writes the lines of one stat.
func (e *exposer) member(c *store.Cursor, k store.Kind) {
	if e.simple(c, k) {
		return
	}
	e.appendLabels(c, k)
	e.since = e.sinceOf(c)
	switch {
	case k == store.KindHistogram:
		e.histogram(e.labels, c.Histogram().Layout(), c.Histogram().Snapshot())
	case k == store.KindText:
		e.text(e.labels, c.Text())
	case e.dialect == dialectProtobuf:
		e.proto.scalar(e.out, e.labels, c.Float(), e.since)
	default:
		e.sample("", e.labels, "")
		e.out.buf = c.AppendValue(e.out.buf)
		e.out.buf = append(e.out.buf, '\n')
		e.createdSample(e.labels)
	}
}

// sample appends a line up to its value.
func (e *exposer) sample(suffix string, labels []byte, last string) {
	b, more := e.open(suffix, labels)
	if last != "" {
		if more {
			b = append(b, ',')
		}
		b = append(b, last...)
	}
	e.out.buf = append(b, '}', ' ')
}

// open appends the metric name with a suffix, a brace and labels. It reports
// whether a label that follows needs a comma.
func (e *exposer) open(suffix string, labels []byte) (b []byte, more bool) {
	b = e.out.buf
	if e.quoted {
		b = appendLabelValue(append(b, '{', '"'), e.metric)
		b = append(append(b, suffix...), '"')
		if len(labels) > 0 {
			b = append(b, ',')
		}
	} else {
		b = append(append(append(b, e.metric...), suffix...), '{')
	}
	return append(b, labels...), e.quoted || len(labels) > 0
}

// labelSpan is a label in exposer.labels, without the comma before it.
type labelSpan struct{ from, to int }

// appendLabels fills e.labels from the tags of the stat under c. Labels are in
// the order of the tags, those from network input in the order of their names.
func (e *exposer) appendLabels(c *store.Cursor, k store.Kind) {
	e.labels, e.seen, e.spans, e.sorted = e.labels[:0], e.seen[:0], e.spans[:0], true
	ls := c.Labels()
	if len(ls) == 0 {
		return
	}
	if k == store.KindText {
		e.seen = append(e.seen, []byte(naming.TextLabel))
	}
	plain, network := c.Plain(), c.Network()
	for i := range ls {
		l := &ls[i]
		if len(l.Value) == 0 && !network {
			continue // as good as no label
		}
		name := naming.DistinctLabel(e.labelName(l.Name, network), e.seen)
		e.sorted = e.sorted && (len(e.spans) == 0 || bytes.Compare(e.seen[len(e.seen)-1], name) < 0)
		e.seen = append(e.seen, name)
		value := l.Value
		if len(value) == 0 {
			value = []byte("true")
		}
		if e.dialect == dialectProtobuf {
			from := len(e.labels)
			e.labels = appendProtoLabel(e.labels, name, value)
			e.spans = append(e.spans, labelSpan{from, len(e.labels)})
			continue
		}
		if len(e.labels) > 0 {
			e.labels = append(e.labels, ',')
		}
		from := len(e.labels)
		if e.escaping == AllowUTF8 && !legacyLabel(name) {
			e.labels = appendQuoted(e.labels, name)
		} else {
			e.labels = append(e.labels, name...)
		}
		e.labels = append(e.labels, '=', '"')
		if plain {
			e.labels = append(e.labels, value...)
		} else {
			e.labels = appendLabelValue(e.labels, value)
		}
		e.labels = append(e.labels, '"')
		e.spans = append(e.spans, labelSpan{from, len(e.labels)})
	}
	if network && !e.sorted {
		e.labels, e.sorted = append(e.labels[:0], e.seriesKey()...), true
	}
}

// seriesKey returns e.labels in the order of the label names.
func (e *exposer) seriesKey() []byte {
	if e.sorted {
		return e.labels
	}
	at := len(e.seen) - len(e.spans) // behind the names that are taken
	order := make([]int, len(e.spans))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(e.seen[at+a], e.seen[at+b]) })
	key := make([]byte, 0, len(e.labels))
	for i, j := range order {
		if i > 0 && e.dialect != dialectProtobuf {
			key = append(key, ',')
		}
		key = append(key, e.labels[e.spans[j].from:e.spans[j].to]...)
	}
	return key
}

// appendLabelValue appends v with backslash, newline and quote escaped. Invalid
// UTF-8, which no parser accepts, becomes U+FFFD.
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
	if e.dialect == dialectProtobuf {
		e.last = appendProtoLabel(append(e.last[:0], labels...), naming.TextLabel, value)
		e.proto.scalar(e.out, e.last, 0, 0)
		return
	}
	e.last = append(append(e.last[:0], naming.TextLabel...), '=', '"')
	e.last = appendLabelValue(e.last, value)
	e.last = append(e.last, '"')
	e.sample("", labels, string(e.last))
	e.out.buf = append(e.out.buf, '0', '\n')
}

func (e *exposer) histogram(labels []byte, l *histogram.Layout, s *histogram.Snapshot) {
	e.seconds = inSeconds(e.network && e.naming.NetworkSeconds && l.Unit() == histogram.Milliseconds)
	e.shortest = l.Unit() != histogram.Percent && l.Divisor() > 1
	quantiles, window, totals := summaryQuantiles[:], s.Interval, s.Interval // of a summary
	if e.summaries && e.form == Default {
		if qs := l.Quantiles(); len(qs) > 0 {
			quantiles = qs
		}
		window, totals = s.Window(e.now), s.Cumulative
	}
	e.proto.seconds = e.seconds
	switch {
	case e.dialect == dialectProtobuf && e.summaries:
		e.proto.summary(e.out, labels, quantiles, window, totals, e.since)
		return
	case e.dialect == dialectProtobuf:
		e.proto.histogram(e.out, labels, l, s.Cumulative, e.form, e.since)
		return
	case e.summaries:
		e.summary(labels, quantiles, window, totals)
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
	b, more := e.open("_bucket", labels)
	if more {
		b = append(b, ',')
	}
	b = append(b, `le="`...)
	b = e.appendNumber(b, e.seconds.shown(bound))
	e.out.buf = append(b, '"', '}', ' ')
}

// summary writes quantiles of st, and the sum and count of totals.
func (e *exposer) summary(labels []byte, quantiles []float64, st, totals *histogram.Stats) {
	e.values = st.Quantiles(e.values[:0], quantiles)
	for i, x := range e.values {
		e.last = append(e.last[:0], `quantile="`...)
		e.last = appendFloat(e.last, quantiles[i])
		e.last = append(e.last, '"')
		e.sample("", labels, string(e.last))
		if e.dialect == dialectOpenMetrics && x != x {
			e.out.buf = append(e.out.buf, "NaN"...)
		} else {
			e.out.buf = appendTextFloat(e.out.buf, e.seconds.shown(x))
		}
		e.out.buf = append(e.out.buf, '\n')
	}
	e.sumAndCount(labels, totals)
}

func (e *exposer) sumAndCount(labels []byte, st *histogram.Stats) {
	e.sample("_sum", labels, "")
	e.out.buf = e.appendNumber(e.out.buf, e.seconds.shown(st.Sum()))
	e.out.buf = append(e.out.buf, '\n')
	e.sample("_count", labels, "")
	e.out.buf = strconv.AppendUint(e.out.buf, st.Count(), 10)
	e.out.buf = append(e.out.buf, '\n')
	e.createdSample(labels)
}

// inSeconds is whether a histogram of milliseconds is shown in seconds.
type inSeconds bool

// shown returns a value of the histogram as it is shown.
func (s inSeconds) shown(x float64) float64 {
	if s {
		return seconds(x)
	}
	return x
}

// seconds converts milliseconds to seconds. A value with up to six decimals, as
// all recorded values have, is rounded once, so 102.236159 becomes 0.102236159.
func seconds(ms float64) float64 {
	if n := math.Round(ms * 1e6); n/1e6 == ms {
		return n / 1e9
	}
	return ms / 1000
}

// appendNumber appends a bound or a sum like C's %.32g. OpenMetrics gets the
// shortest decimal with a point, which it requires for le. Histograms that keep decimals,
// as for network input, get the shortest decimal, because few such bounds are
// exact and users look for 0.005.
func (e *exposer) appendNumber(dst []byte, x float64) []byte {
	if e.dialect == dialectOpenMetrics {
		at := len(dst)
		dst = strconv.AppendFloat(dst, x, 'g', -1, 64)
		if !bytes.ContainsAny(dst[at:], ".e") {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	if e.shortest {
		return appendTextFloat(dst, x)
	}
	return appendG(dst, x, 32)
}
