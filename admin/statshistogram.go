package admin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// defaultQuantiles are the quantiles of /stats/histogram in percent, as of /stats.
const defaultQuantiles = "0,25,50,75,90,95,99,99.9,100"

// lookEvery is how many histograms are merged between two looks at the clock.
const lookEvery = 64

// maxNumbers limits the numbers in a list of a request.
const maxNumbers = 100

func (s *Server) histogramRow() Endpoint {
	params := []Param{
		{Name: "name", Help: "full name of a histogram"},
		{Name: "filter", Help: "regular expression that matches part of the name; all that match are merged"},
		{Name: "scope", Help: "the last interval, or all values", Kind: ParamChoice, Choices: []string{"cumulative", "interval"}},
		{Name: "q", Help: "quantiles in percent: 50,99.95"},
		{Name: "cdf", Help: "values whose rank to show: 100,250"},
		{Name: "bins", Help: "show the bins", Kind: ParamFlag},
	}
	if s.src.History != nil {
		params = append(params, pastParams()[:2]...)
	}
	return Endpoint{Path: "/stats/histogram", Group: groupStats, Help: "show quantiles, ranks and bins of histograms, merged, in JSON",
		Heavy: true, CPUBound: true, Serve: s.statsHistogram, Params: params}
}

// histogramQuery holds the parsed parameters of /stats/histogram.
type histogramQuery struct {
	interval   bool
	quantiles  []float64 // ascending, as fractions
	percents   []float64
	cdf        []float64
	bins       bool
	past       *past
	name       string
	histograms int
	first      string // name of the first histogram
	layout     *histogram.Layout
	sum        *histogram.Stats
}

// numbers parses a list of numbers.
func numbers(param, text string, least, most float64) (list []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x >= least && x <= most) || len(list) == maxNumbers {
			return nil, badRequest(fmt.Sprintf("%s: %.40q is not a number from %v to %v, or there are more than %d\n", param, word, least, most, maxNumbers))
		}
		list = append(list, x)
	}
	slices.Sort(list)
	return list, nil
}

func (s *Server) statsHistogram(w *Response, r *Request) error {
	q := &histogramQuery{name: r.query.Value("name"), bins: r.query.Has("bins")}
	if (q.name == "") == (r.query.Value("filter") == "") {
		return badRequest("exactly one of name and filter is required\n")
	}
	switch text := r.query.Value("scope"); text {
	case "", "cumulative":
	case "interval":
		q.interval = true
	default:
		return badRequest(fmt.Sprintf("scope: %.40q is neither cumulative nor interval\n", text))
	}
	text := cmp.Or(r.query.Value("q"), defaultQuantiles)
	var err error
	if q.percents, err = numbers("q", text, 0, 100); err != nil {
		return err
	}
	for _, p := range q.percents {
		q.quantiles = append(q.quantiles, p/100)
	}
	if text := r.query.Value("cdf"); text != "" {
		if q.cdf, err = numbers("cdf", text, -1<<63, 1<<63); err != nil {
			return err
		}
	}
	query := slices.DeleteFunc(slices.Clone(r.query), func(p Pair) bool { return p.Name == "rate" })
	if q.past, err = s.parsePast(w, query); err != nil {
		return err
	}
	if s.cfg.Flusher != nil && r.method != "HEAD" {
		s.cfg.Flusher.FlushForAdmin()
	}
	if q.name == "" {
		err = s.mergeFiltered(w, r, q)
	} else {
		err = s.findStat(w, r, func(c *store.Cursor) error { return q.add(c) })
	}
	if err != nil || w.status >= 300 {
		return err
	}
	return w.json(q.append(nil))
}

// mergeFiltered adds all histograms that the filter of the request matches.
func (s *Server) mergeFiltered(w *Response, r *Request, q *histogramQuery) error {
	if !s.regexes.enter(s.session()) {
		return s.noFilter(w)
	}
	defer s.regexes.leave()
	filter, err := s.filter(r.query.Value("filter"), false)
	if err != nil {
		return err
	}
	v := s.store.View()
	defer v.Close()
	c := render.NewSelector(render.Options{Type: render.Histograms, Filter: filter}).ByName(v, store.Histograms)
	until := s.now().Add(s.limits.RegexBudget)
	for c.Next() {
		if err := q.add(&c); err != nil {
			return err
		}
		if q.histograms%lookEvery == 0 && s.limits.RegexBudget > 0 && s.now().After(until) {
			return badRequest("too many histograms to merge; use a narrower filter\n")
		}
	}
	if errors.Is(c.Err(), render.ErrTooExpensive) {
		return s.tooExpensive("filter", c.Err())
	}
	return c.Err()
}

// add merges the histogram under c.
func (q *histogramQuery) add(c *store.Cursor) error {
	if c.Kind() != store.KindHistogram {
		return badRequest(fmt.Sprintf("%.200q is a %s, not a histogram\n", c.Name(), c.Kind()))
	}
	if q.past != nil && !q.past.Has(c) {
		return nil
	}
	l := c.Histogram().Layout()
	if q.layout == nil {
		q.layout, q.first, q.sum = l, c.Name(), l.Empty()
	} else if q.layout != l {
		return badRequest(fmt.Sprintf("%.200q and %.200q have different units, bounds or precision and cannot be merged\n", q.first, c.Name()))
	}
	snap := c.Histogram().Snapshot()
	if q.past != nil {
		snap = q.past.Histogram(c)
	}
	q.histograms++
	if q.interval || q.past != nil && q.past.from != nil {
		q.sum = histogram.MergeStats(q.sum, snap.Interval)
	} else {
		q.sum = histogram.MergeStats(q.sum, snap.Cumulative)
	}
	return nil
}

func (q *histogramQuery) append(b []byte) []byte {
	b = append(b, `{"v":1,"histograms":`...)
	b = strconv.AppendInt(b, int64(q.histograms), 10)
	if q.sum == nil {
		return append(b, "}\n"...)
	}
	b = append(b, `,"unit":`...)
	b = jsontext.AppendString(b, q.layout.Unit().String())
	b = append(b, `,"error_bound":`...)
	b = render.AppendJSONFloat(b, q.layout.RelativeError())
	b = append(b, `,"count":`...)
	b = jsontext.AppendExact(b, q.sum.Count())
	for _, x := range []struct {
		name  string
		value float64
	}{{"sum", q.sum.Sum()}, {"min", q.sum.Min()}, {"max", q.sum.Max()}} {
		b = append(b, `,"`+x.name+`":`...)
		b = render.AppendJSONFloat(b, x.value)
	}
	b = append(b, `,"quantiles":[`...)
	for i, x := range q.sum.Quantiles(nil, q.quantiles) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumbers(b, []float64{q.percents[i], x})
	}
	b = append(b, ']')
	if q.cdf != nil {
		b = append(b, `,"cdf":[`...)
		for i, x := range q.cdf {
			if i > 0 {
				b = append(b, ',')
			}
			below, upTo := q.sum.Rank(x)
			b = render.AppendJSONFloat(append(b, '['), x)
			b = jsontext.AppendExact(append(b, ','), below)
			b = append(jsontext.AppendExact(append(b, ','), upTo), ']')
		}
		b = append(b, ']')
	}
	if q.bins {
		b = append(b, `,"bins":[`...)
		q.sum.Bins(func(lower, width float64, count uint64) bool {
			if b[len(b)-1] == ']' {
				b = append(b, ',')
			}
			b = render.AppendJSONFloat(append(b, '['), lower)
			b = render.AppendJSONFloat(append(b, ','), width)
			b = append(jsontext.AppendExact(append(b, ','), count), ']')
			return true
		})
		b = append(b, ']')
	}
	return append(b, "}\n"...)
}
