package pages

import (
	"slices"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/store"
)

// past is the history of one histogram.
type past struct {
	steps    []history.Point // oldest first
	complete time.Time       // the history knows everything since then
	kept     bool            // there is a history
	merged   bool            // of several histograms, which have none together
}

// longest is more than the history keeps.
const longest = 48 * time.Hour

// past returns the history of the histogram under c.
func (v *view) past(c *store.Cursor) (p past) {
	if v.src.History == nil {
		return p
	}
	p.kept = true
	p.steps, p.complete = v.src.History.Series(c, v.now.Add(-longest))
	return p
}

// between returns the values of the steps that overlap the time between two moments,
// and how long those steps are and when they ended.
func (p *past) between(l *histogram.Layout, from, to time.Time) (sum *histogram.Stats, length time.Duration, end time.Time) {
	sum = l.Empty()
	var start time.Time
	for i := range p.steps {
		s := &p.steps[i]
		if !s.End.After(from) || !s.Start.Before(to) {
			continue
		}
		if start.IsZero() {
			start = s.Start
		}
		end = s.End
		if s.Stats != nil {
			sum = histogram.MergeStats(sum, s.Stats)
		}
	}
	return sum, end.Sub(start), end
}

// columns merges the last steps, from a moment on, into about n columns of about the
// same length: a step too many for n is not merged with another.
func (p *past) columns(l *histogram.Layout, from time.Time, n int) (out []history.Point) {
	list := p.steps
	for len(list) > 0 && !list[0].End.After(from) {
		list = list[1:]
	}
	if len(list) == 0 {
		return nil
	}
	length := list[len(list)-1].End.Sub(list[0].Start) / time.Duration(n)
	for last := len(list); last > 0; {
		at := last - 1
		for at > 0 && list[last-1].End.Sub(list[at-1].Start) <= length {
			at--
		}
		column := history.Point{Start: list[at].Start, End: list[last-1].End, Stats: l.Empty()}
		for i := at; i < last; i++ {
			if list[i].Stats != nil {
				column.Stats = histogram.MergeStats(column.Stats, list[i].Stats)
			}
		}
		out = append(out, column)
		last = at
	}
	slices.Reverse(out)
	return out
}

// moments are the ends of the windows that can be compared, and spans their lengths:
// the value of the parameter, the duration and its name.
var (
	moments = [...]duration{{"now", 0, "now"}, {"30s", 30 * time.Second, "30 s ago"}, {"1m", time.Minute, "1 min ago"}, {"5m", 5 * time.Minute, "5 min ago"},
		{"10m", 10 * time.Minute, "10 min ago"}, {"30m", 30 * time.Minute, "30 min ago"}, {"1h", time.Hour, "1 h ago"}, {"6h", 6 * time.Hour, "6 h ago"}, {"23h", 23 * time.Hour, "23 h ago"}}
	spans = [...]duration{{"", time.Minute, "1 min"}, {"10s", 10 * time.Second, "10 s"}, {"5m", 5 * time.Minute, "5 min"}, {"10m", 10 * time.Minute, "10 min"}, {"1h", time.Hour, "1 h"}}
)

// moments returns the moments, and two that depend on the page: when it
// was opened, which the address keeps, and the last reset of the counters.
func (v *view) moments() []duration {
	list := append(slices.Clone(moments[:]), duration{"open", v.now.Sub(v.opened()), "page open"})
	for _, e := range v.site.srv.Audit(1000) { // newest first
		if e.Path == "/reset_counters" && e.Status == 200 && !e.DryRun {
			return append(list, duration{"reset", v.now.Sub(e.Time), "reset of counters"})
		}
	}
	return list
}

// opened returns when the page was opened first, in this address.
func (v *view) opened() time.Time {
	if ms, err := strconv.ParseInt(v.query.Value("opened"), 10, 48); err == nil && ms > 0 && !time.UnixMilli(ms).After(v.now) {
		return time.UnixMilli(ms)
	}
	return v.now
}

// duration is a choice of a duration in a form.
type duration struct {
	value  string
	length time.Duration
	label  string
}

// duration returns the chosen duration, by default the first. The window A is by
// default the minute before B.
func (v *view) duration(name string, list []duration) duration {
	wanted := v.query.Value(name)
	if name == "a" && wanted == "" {
		wanted = "1m"
	}
	for _, d := range list {
		if d.value == wanted {
			return d
		}
	}
	return list[0]
}

// durations appends a field to choose a duration.
func (v *view) durations(label, name string, list []duration) {
	chosen := v.duration(name, list)
	v.Put(h("<label>"), label, h(" <select name='"), name, h("'>"))
	for _, d := range list {
		v.option(d.value, d.label, d == chosen)
	}
	v.Put(h("</select></label> "))
}

// both are two distributions side by side: Interval is drawn as bars, Cumulative as an
// outline.
type both struct {
	*histogram.Snapshot
	bars, outline string // what they are
	compared      bool   // they are two windows
}

// chosen returns the distributions that the query asks for: the last interval and all
// values, or two windows of the history, in whole steps.
func (v *view) chosen(s *histogram.Snapshot, p *past) both {
	if !v.query.Has("compare") || p.merged {
		return both{s, "Interval", "Since the start", false}
	}
	moments := v.moments()
	window := func(name string) (*histogram.Stats, string) {
		to := v.now.Add(-v.duration(name, moments).length)
		sum, length, end := p.between(s.Cumulative.Layout(), to.Add(-v.duration("span", spans[:]).length), to)
		if end.IsZero() {
			return sum, "no history"
		}
		ago := "now"
		if d := v.now.Sub(end).Round(time.Second); d > 0 {
			ago = shortSpan(d) + " ago"
		}
		return sum, shortSpan(length.Round(time.Second)) + " until " + ago
	}
	b, bText := window("b")
	a, aText := window("a")
	return both{&histogram.Snapshot{Interval: b, Cumulative: a, Used: true}, "B: " + bText, "A: " + aText, true}
}

// compareForm appends the fields that choose two windows.
func (v *view) compareForm(p *past) {
	if p.merged {
		return
	}
	if !p.kept {
		v.missing("There is no history to compare with; ", h("<code>stats_config.history_bytes</code>"), " turns it on.")
		return
	}
	v.Put(h("<form class='pad row line' method='get' action='"), v.page.path, h("'>"))
	v.keep("name", "filter", "x", "y", "view", "offset", "q", "over")
	v.Put(h("<input type='hidden' name='opened' value='"), strconv.FormatInt(v.opened().UnixMilli(), 10), h("'><input type='hidden' name='compare' value='1'>Compare "))
	moments := v.moments()
	v.durations("two windows of", "span", spans[:])
	v.durations("A until", "a", moments)
	v.durations("B until", "b", moments)
	v.Put(h("<button type='submit'>Compare</button>"))
	if v.query.Has("compare") {
		v.Put(h(" <a href='"), v.here("compare", "", "a", "", "b", "", "span", ""), h("'>Stop comparing</a>"))
		earliest := v.now.Add(-max(v.duration("a", moments).length, v.duration("b", moments).length) - v.duration("span", spans[:]).length)
		if earliest.Before(p.complete) {
			v.Put(h(" <span class='warn'>The history begins "), numfmt.Span(v.now.Sub(p.complete)), h(" ago; values before are missing.</span>"))
		}
	}
	v.Put(h("</form>\n"))
}
