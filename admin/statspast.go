package admin

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/store"
)

// pastParams are the parameters of /stats that need the history.
func pastParams() []Param {
	return []Param{
		{Name: "at", Help: "show an earlier moment: -30s, or a time such as 2026-01-02T03:04:05Z"},
		{Name: "since", Help: "show the growth since a moment, as for at"},
		{Name: "rate", Help: "show the growth per second, since the flush before or since", Kind: ParamFlag},
	}
}

// past are the values of /stats with at, since or rate.
type past struct {
	from, to *history.Moment // from nil: values are not compared; to nil: now
	seconds  float64         // to divide by; 0: not a rate
}

// parseMoment returns the time of a parameter: relative to now, or absolute.
func (s *Server) parseMoment(name, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d <= 0 {
		return s.now().Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, badRequest(fmt.Sprintf("%s: %.40q is neither a time ago, such as -30s, nor a time such as 2026-01-02T03:04:05Z\n", name, text))
	}
	return at, nil
}

// moment returns the state at the time of a parameter.
func (s *Server) moment(name, text string) (*history.Moment, error) {
	at, err := s.parseMoment(name, text)
	if err != nil {
		return nil, err
	}
	m, err := s.src.History.At(at)
	if errors.Is(err, history.ErrTooOld) {
		return nil, badRequest(name + ": " + strings.TrimPrefix(err.Error(), "history: ") + "\n")
	}
	return m, err
}

// parsePast returns the values that at, since and rate ask for, nil for present ones,
// and sets the header fields that say which moments they are of.
func (s *Server) parsePast(w *Response, q Query) (*past, error) {
	at, since, rate := q.Value("at"), q.Value("since"), q.Has("rate")
	if at == "" && since == "" && !rate {
		return nil, nil
	}
	if s.src.History == nil {
		return nil, badRequest("at, since and rate need the history, which is off\n")
	}
	p := new(past)
	var err error
	until := s.now()
	if at != "" {
		if p.to, err = s.moment("at", at); err != nil {
			return nil, err
		}
	} else if since == "" { // the rate of the last step
		if p.to, err = s.moment("rate", "0s"); err != nil {
			return nil, err
		}
	}
	if p.to != nil {
		until = p.to.Time()
	}
	switch {
	case since != "":
		if p.from, err = s.moment("since", since); err == nil && p.from.Time().After(until) {
			err = badRequest("since: the moment is after that of at\n")
		}
	case rate:
		if p.from, err = s.src.History.At(p.to.Start()); errors.Is(err, history.ErrTooOld) || p.to.Start().Equal(until) {
			err = badRequest("rate: the history has no step before this moment\n")
		}
	}
	if err != nil {
		return nil, err
	}
	w.SetHeader("x-stats-time", until.UTC().Format(time.RFC3339Nano))
	w.SetHeader("x-history-since", s.src.History.Since().UTC().Format(time.RFC3339Nano))
	if p.from != nil {
		w.SetHeader("x-stats-since", p.from.Time().UTC().Format(time.RFC3339Nano))
	}
	if rate {
		p.seconds = max(until.Sub(p.from.Time()).Seconds(), 1e-3)
	}
	return p, nil
}

// Has reports whether the stat existed at the moment.
func (p *past) Has(c *store.Cursor) bool { return p.to == nil || p.to.Has(c) }

// AppendValue appends the value at the moment, its growth, or its growth per second.
func (p *past) AppendValue(dst []byte, c *store.Cursor) []byte {
	if p.to != nil {
		c.SetRaw(p.to.Raw(c))
	}
	if p.from == nil {
		return c.AppendValue(dst)
	}
	now, was := c.Raw(), p.from.Raw(c)
	if p.seconds == 0 && c.Whole() {
		if c.Kind() == store.KindCounter {
			return strconv.AppendUint(dst, now-was, 10)
		}
		return strconv.AppendInt(dst, int64(now-was), 10)
	}
	var growth float64
	switch {
	case c.Kind() == store.KindCounter:
		growth = float64(now - was)
	case c.Whole():
		growth = float64(int64(now - was))
	default:
		growth = math.Float64frombits(now) - math.Float64frombits(was)
	}
	if p.seconds != 0 {
		growth = thousandths(growth / p.seconds)
	}
	return store.AppendFloat(dst, growth+0) // no negative zero
}

// Histogram returns the summaries at the moment. With since, the interval has the
// values from then on.
func (p *past) Histogram(c *store.Cursor) *histogram.Snapshot {
	s := c.Histogram().Snapshot()
	if p.to != nil {
		s = p.to.Histogram(c)
	}
	if p.from == nil {
		return s
	}
	return &histogram.Snapshot{
		Used: s.Used, Cumulative: s.Cumulative,
		Interval: histogram.SubtractStats(s.Cumulative, p.from.Histogram(c).Cumulative),
	}
}

func (s *Server) historyRow() Endpoint {
	return Endpoint{Path: "/stats/history", Group: groupStats, Help: "show the history of a stat, in JSON", Serve: s.statsHistory, Params: []Param{
		{Name: "name", Help: "full name of the stat"},
		{Name: "id", Help: "id of the stat in the stream, instead of its name"},
		{Name: "since", Help: "show only what is after a moment: -5m, or a time such as 2026-01-02T03:04:05Z"},
	}}
}

// findStat calls f with a cursor at the stat that the parameters name or id select.
func (s *Server) findStat(w *Response, r *Request, f func(c *store.Cursor) error) error {
	name, id := r.query.Value("name"), r.query.Value("id")
	v := s.store.View()
	defer v.Close()
	var c store.Cursor
	found := false
	switch {
	case id != "":
		ref, err := strconv.ParseUint(id, 10, 53)
		if err != nil {
			return badRequest(fmt.Sprintf("id: %.40q is not an integer below 2^53\n", id))
		}
		c, found = v.FindRef(ref)
	case name != "":
		c, found = v.Find(name)
	default:
		return badRequest("name or id is required\n")
	}
	if !found {
		return s.noStat(w, name)
	}
	return f(&c)
}

func (s *Server) statsHistory(w *Response, r *Request) error {
	var since time.Time
	if text := r.query.Value("since"); text != "" {
		var err error
		if since, err = s.parseMoment("since", text); err != nil {
			return err
		}
	}
	return s.findStat(w, r, func(c *store.Cursor) error {
		points, complete := s.src.History.Series(c, since)
		b := append([]byte(nil), `{"v":1,"name":`...)
		b = jsontext.AppendString(b, c.Name())
		b = append(b, `,"kind":`...)
		b = jsontext.AppendString(b, c.Kind().Word())
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, c.Ref(), 10)
		b = append(b, `,"complete_since":`...)
		b = strconv.AppendInt(b, complete.UnixMilli(), 10)
		b = append(b, `,"points":[`...)
		some := false
		for i := range points {
			p := &points[i]
			if !p.Exists {
				continue
			}
			if some {
				b = append(b, ',')
			}
			some = true
			b = append(b, '[')
			b = strconv.AppendInt(b, p.End.UnixMilli(), 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, max(p.End.Sub(p.Start).Milliseconds(), 0), 10)
			b = append(b, ',')
			b = append(appendPoint(b, c, p), ']')
		}
		return w.json(append(b, "]}\n"...))
	})
}

// appendPoint appends value and change per second of a step.
func appendPoint(b []byte, c *store.Cursor, p *history.Point) []byte {
	if c.Kind() == store.KindHistogram {
		if p.Stats == nil || p.Stats.Count() == 0 {
			return append(b, "0,0,null"...)
		}
		b = jsontext.AppendExact(b, p.Stats.Count())
		b = append(b, ',')
		b = appendRate(b, p.PerSecond(c))
		return appendNumbers(append(b, ','), p.Stats.Quantiles(nil, []float64{0.5, 0.9, 0.99}))
	}
	c.SetRaw(p.Raw)
	switch {
	case c.Kind() == store.KindCounter:
		// Without the part that a reset hides, the values of a day would have steps.
		b = jsontext.AppendExact(b, p.Raw)
	case c.Whole():
		b = appendExactSigned(b, int64(p.Raw))
	default:
		b = c.AppendValue(b)
	}
	return appendRate(append(b, ','), p.PerSecond(c))
}
