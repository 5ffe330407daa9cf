package render

import (
	"io"
	"strconv"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// textQuantiles are the quantiles of plain text.
var textQuantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1}

// Text writes plain text, a line for each stat: text readouts, then counters
// and gauges, then histograms, each in byte order of the names.
func Text(w io.Writer, st *store.Store, o Options) error {
	out := newOutput(w)
	t := textLines{out: out}
	if err := t.all(st, &o); err != nil {
		return err
	}
	return out.flush()
}

// textLines writes the lines of plain text, also for the HTML form.
type textLines struct {
	out       *output
	html      bool   // escape names and the values of text readouts
	own       []byte // name of the last stat that was not received, in out.buf or kept
	kept      []byte
	quantiles [2][len(textQuantiles)]float64
	counts    [2][]uint64
}

func (t *textLines) all(st *store.Store, o *Options) error {
	v := st.View()
	defer v.Close()
	for _, write := range []func(*store.View, *Options) (bool, error){t.texts, t.scalars, t.histograms} {
		if _, err := write(v, o); err != nil {
			return err
		}
	}
	return nil
}

// texts writes the text readouts and reports whether there are any, as scalars and
// histograms do.
func (t *textLines) texts(v *store.View, o *Options) (some bool, err error) {
	if !o.wants(TextReadouts) {
		return false, nil
	}
	sel, out := o.selection(), t.out
	c := sel.byName(v, store.Texts)
	for c.Next() { // none is hidden, see wants
		some = true
		dst := append(t.name(out.buf, &c), `: "`...)
		at := len(dst)
		dst = append(dst, c.Text()...)
		if t.html {
			dst = escapeHTML(dst, at)
		}
		out.buf = append(dst, '"', '\n')
		if err := t.spill(); err != nil {
			return some, err
		}
	}
	return some, c.Err()
}

func (t *textLines) scalars(v *store.View, o *Options) (some bool, err error) {
	if !o.wants(Counters) && !o.wants(Gauges) {
		return false, nil
	}
	sel, out := o.selection(), t.out
	c := sel.byName(v, store.Scalars)
	for c.Next() {
		if !sel.showsScalar(&c) {
			continue
		}
		some = true
		dst := append(t.name(out.buf, &c), ':', ' ')
		out.buf = append(o.appendValue(dst, &c), '\n')
		if err := t.spill(); err != nil {
			return some, err
		}
	}
	if err := c.Err(); err != nil {
		return some, err
	}
	hosts, err := sel.endpoints(v.Store())
	for i := range hosts {
		for _, s := range hosts[i].stats {
			some = true
			at := len(out.buf)
			out.buf = append(append(out.buf, hosts[i].prefix...), s.Name...)
			if t.html {
				out.buf = escapeHTML(out.buf, at)
			}
			out.buf = strconv.AppendUint(append(out.buf, ':', ' '), s.Value, 10)
			out.buf = append(out.buf, '\n')
		}
		if err := t.spill(); err != nil {
			return some, err
		}
	}
	return some, err
}

func (t *textLines) histograms(v *store.View, o *Options) (some bool, err error) {
	if !o.wants(Histograms) {
		return false, nil
	}
	sel, out := o.selection(), t.out
	c := sel.byName(v, store.Histograms)
	for c.Next() {
		if !sel.shows(&c) {
			continue
		}
		some = true
		if out.buf, err = t.histogram(t.name(out.buf, &c), c.Histogram().Layout(), o.snapshot(&c), o); err != nil {
			return some, err
		}
		if err := t.spill(); err != nil {
			return some, err
		}
	}
	return some, c.Err()
}

// name appends the name of the stat under c. A received stat that follows
// the program's stat of the same name is marked.
func (t *textLines) name(dst []byte, c *store.Cursor) []byte {
	at := len(dst)
	dst = c.AppendName(dst)
	if t.html {
		dst = escapeHTML(dst, at)
	}
	name := dst[at:]
	switch {
	case !c.Network():
		t.own = name
	case string(name) == string(t.own):
		dst = append(dst, " (received)"...)
	}
	return dst
}

// spill is that of the output, which needs the bytes that own may be in again.
func (t *textLines) spill() error {
	if len(t.out.buf) >= bufferSize {
		t.kept = append(t.kept[:0], t.own...)
		t.own = t.kept
	}
	return t.out.spill()
}

// histogram appends what follows the name of a histogram.
func (t *textLines) histogram(dst []byte, l *histogram.Layout, s *histogram.Snapshot, o *Options) (_ []byte, err error) {
	if !s.Used {
		return append(dst, ": No recorded values\n"...), nil
	}
	switch o.Buckets {
	case Cumulative, Disjoint:
		dst = append(dst, ": "...)
		dst = t.buckets(dst, l.Bounds(), s, o.Buckets)
	case HDR:
		if dst, err = o.appendHDR(append(dst, ": HDR("...), s, ","); err != nil {
			return dst, err
		}
		dst = append(dst, ')')
	case Detailed:
		dst = append(dst, ":\n  totals="...)
		dst = appendBins(dst, s.Cumulative)
		dst = append(dst, "\n  intervals="...)
		dst = appendBins(dst, s.Interval)
		dst = append(dst, "\n  summary="...)
		dst = t.summary(dst, s)
	default:
		dst = append(dst, ": "...)
		dst = t.summary(dst, s)
	}
	return append(dst, '\n'), nil
}

// appendHDR appends both views of s with a separator between them.
func (o *Options) appendHDR(dst []byte, s *histogram.Snapshot, separator string) ([]byte, error) {
	dst, err := o.HDR(dst, s.Interval)
	if err != nil {
		return dst, err
	}
	return o.HDR(append(dst, separator...), s.Cumulative)
}

func (t *textLines) summary(dst []byte, s *histogram.Snapshot) []byte {
	interval := s.Interval.Quantiles(t.quantiles[0][:0], textQuantiles[:])
	cumulative := s.Cumulative.Quantiles(t.quantiles[1][:0], textQuantiles[:])
	for i, q := range textQuantiles {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, 'P')
		dst = appendG(dst, q*100, 6)
		dst = append(dst, '(')
		dst = appendTextFloat(dst, interval[i])
		dst = append(dst, ',')
		dst = appendTextFloat(dst, cumulative[i])
		dst = append(dst, ')')
	}
	return dst
}

func (t *textLines) buckets(dst []byte, bounds []float64, s *histogram.Snapshot, form Buckets) []byte {
	interval, cumulative := bucketCounts(&t.counts, s, form)
	for i, b := range bounds {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, 'B')
		dst = appendG(dst, b, 6)
		dst = append(dst, '(')
		dst = strconv.AppendUint(dst, interval[i], 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, cumulative[i], 10)
		dst = append(dst, ')')
	}
	return dst
}

// bucketCounts returns the counts per bound of both views, in the given form.
// room is reused between calls.
func bucketCounts(room *[2][]uint64, s *histogram.Snapshot, form Buckets) (interval, cumulative []uint64) {
	for i, st := range []*histogram.Stats{s.Interval, s.Cumulative} {
		counts := st.AppendCumulative(room[i][:0])
		if form == Disjoint {
			for j := len(counts) - 1; j > 0; j-- {
				counts[j] -= counts[j-1]
			}
		}
		room[i] = counts
	}
	return room[0], room[1]
}

func appendBins(dst []byte, s *histogram.Stats) []byte {
	first := true
	s.Bins(func(lower, width float64, count uint64) bool {
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = appendG(dst, lower, 15)
		dst = append(dst, ',')
		dst = appendG(dst, width, 15)
		dst = append(dst, ':')
		dst = strconv.AppendUint(dst, count, 10)
		return true
	})
	return dst
}
