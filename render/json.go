package render

import (
	"io"
	"strconv"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/store"
)

// jsonQuantiles are the quantiles of JSON.
var jsonQuantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

const jsonQuantileList = "[0,25,50,75,90,95,99,99.9,100]"

// JSON writes one object with all selected stats, in the order of [Text].
func JSON(w io.Writer, st *store.Store, o Options) error {
	v := st.View()
	defer v.Close()
	j := jsonWriter{out: newOutput(w)}
	j.out.buf = append(j.out.buf, `{"stats":[`...)
	if err := j.texts(v, &o); err != nil {
		return err
	}
	if err := j.scalars(v, &o); err != nil {
		return err
	}
	if err := j.histograms(v, &o); err != nil {
		return err
	}
	j.out.buf = append(j.out.buf, "]}"...)
	return j.out.flush()
}

type jsonWriter struct {
	out       *output
	some      bool // an element was written
	quantiles [2][len(jsonQuantiles)]float64
	counts    [2][]uint64
	name      []byte
}

// next opens an element up to its name.
func (j *jsonWriter) next(dst []byte) []byte {
	if !j.some {
		j.some = true
		return append(dst, `{"name":"`...)
	}
	return append(dst, `,{"name":"`...)
}

func (j *jsonWriter) appendName(dst []byte, c *store.Cursor) []byte {
	if c.Plain() {
		return c.AppendName(dst)
	}
	j.name = c.AppendName(j.name[:0])
	return jsontext.AppendText(dst, j.name)
}

func (j *jsonWriter) texts(v *store.View, o *Options) error {
	if !o.wants(TextReadouts) {
		return nil
	}
	sel := o.selection()
	c := sel.byName(v, store.Texts)
	for c.Next() { // none is hidden, see wants
		dst := append(j.appendName(j.next(j.out.buf), &c), `","value":"`...)
		j.out.buf = append(jsontext.AppendText(dst, c.Text()), `"}`...)
		if err := j.out.spill(); err != nil {
			return err
		}
	}
	return c.Err()
}

func (j *jsonWriter) scalars(v *store.View, o *Options) error {
	if !o.wants(Counters) && !o.wants(Gauges) {
		return nil
	}
	sel := o.selection()
	c := sel.byName(v, store.Scalars)
	for c.Next() {
		if !sel.showsScalar(&c) {
			continue
		}
		dst := append(j.appendName(j.next(j.out.buf), &c), `","value":`...)
		j.out.buf = append(o.appendValue(dst, &c), '}')
		if err := j.out.spill(); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	hosts, err := sel.endpoints(v.Store())
	for i := range hosts {
		for _, s := range hosts[i].stats {
			dst := jsontext.AppendText(j.next(j.out.buf), hosts[i].prefix)
			dst = append(jsontext.AppendText(dst, s.Name), `","value":`...)
			j.out.buf = append(strconv.AppendUint(dst, s.Value, 10), '}')
		}
		if err := j.out.spill(); err != nil {
			return err
		}
	}
	return err
}

// histograms writes the last element, if there is a histogram to show.
func (j *jsonWriter) histograms(v *store.View, o *Options) error {
	if !o.wants(Histograms) {
		return nil
	}
	var head, tail string
	var each func(dst []byte, l *histogram.Layout, s *histogram.Snapshot) []byte
	var err error // of each
	switch o.Buckets {
	case Cumulative, Disjoint:
		head, tail = `{"histograms":[`, `]}`
		each = func(dst []byte, l *histogram.Layout, s *histogram.Snapshot) []byte {
			return j.buckets(dst, l, s, o.Buckets)
		}
	case HDR:
		head, tail = `{"histograms":[`, `]}`
		each = func(dst []byte, _ *histogram.Layout, s *histogram.Snapshot) []byte {
			dst, err = o.appendHDR(append(dst, `,"interval":"`...), s, `","cumulative":"`)
			return append(dst, '"')
		}
	case Detailed:
		head, tail = `{"histograms":{"supported_percentiles":`+jsonQuantileList+`,"details":[`, `]}}`
		each = j.details
	default:
		head, tail = `{"histograms":{"supported_quantiles":`+jsonQuantileList+`,"computed_quantiles":[`, `]}}`
		each = func(dst []byte, _ *histogram.Layout, s *histogram.Snapshot) []byte {
			return j.values(append(dst, `,"values":`...), s)
		}
	}
	sel := o.selection()
	c := sel.byName(v, store.Histograms)
	some := false
	for c.Next() {
		if !sel.shows(&c) {
			continue
		}
		switch {
		case some:
			j.out.buf = append(j.out.buf, ',')
		case j.some:
			j.out.buf = append(append(j.out.buf, ','), head...)
		default:
			j.out.buf = append(j.out.buf, head...)
		}
		some = true
		j.out.buf = append(j.out.buf, `{"name":"`...)
		j.out.buf = j.appendName(j.out.buf, &c)
		j.out.buf = append(j.out.buf, '"')
		j.out.buf = each(j.out.buf, c.Histogram().Layout(), o.snapshot(&c))
		if err != nil {
			return err
		}
		j.out.buf = append(j.out.buf, '}')
		if err := j.out.spill(); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	if some {
		j.out.buf = append(j.out.buf, tail...)
	}
	return nil
}

// values appends the quantiles of both views as a list of pairs.
func (j *jsonWriter) values(dst []byte, s *histogram.Snapshot) []byte {
	interval := s.Interval.Quantiles(j.quantiles[0][:0], jsonQuantiles[:])
	cumulative := s.Cumulative.Quantiles(j.quantiles[1][:0], jsonQuantiles[:])
	for i := range jsonQuantiles {
		dst = append(dst, "[,"[min(i, 1)])
		dst = append(dst, `{"cumulative":`...)
		dst = AppendJSONFloat(dst, cumulative[i])
		dst = append(dst, `,"interval":`...)
		dst = AppendJSONFloat(dst, interval[i])
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func (j *jsonWriter) buckets(dst []byte, l *histogram.Layout, s *histogram.Snapshot, form Buckets) []byte {
	interval, cumulative := bucketCounts(&j.counts, s, form)
	dst = append(dst, `,"buckets":[`...)
	for i, b := range l.Bounds() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"upper_bound":`...)
		dst = AppendJSONFloat(dst, b)
		dst = append(dst, `,"interval":`...)
		dst = strconv.AppendUint(dst, interval[i], 10)
		dst = append(dst, `,"cumulative":`...)
		dst = strconv.AppendUint(dst, cumulative[i], 10)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func (j *jsonWriter) details(dst []byte, _ *histogram.Layout, s *histogram.Snapshot) []byte {
	dst = append(dst, `,"totals":`...)
	dst = appendJSONBins(dst, s.Cumulative)
	dst = append(dst, `,"intervals":`...)
	dst = appendJSONBins(dst, s.Interval)
	dst = append(dst, `,"percentiles":`...)
	return j.values(dst, s)
}

func appendJSONBins(dst []byte, s *histogram.Stats) []byte {
	dst = append(dst, '[')
	first := true
	s.Bins(func(lower, width float64, count uint64) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, `{"lower_bound":`...)
		dst = AppendJSONFloat(dst, lower)
		dst = append(dst, `,"width":`...)
		dst = AppendJSONFloat(dst, width)
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendUint(dst, count, 10)
		dst = append(dst, '}')
		return true
	})
	return append(dst, ']')
}
