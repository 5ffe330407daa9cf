package pages

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/store"
)

// sample is a step of a line over time: the change per second of a counter, the value
// of a gauge at the end.
type sample struct {
	start, end time.Time
	value      float64
}

// line is a counter or gauge over time, oldest first.
type line struct {
	name     string
	counter  bool
	samples  []sample
	complete time.Time // the history knows everything since then
}

// line returns what the history knows of the counter or gauge under c.
func (v *view) line(c *store.Cursor) (l line) {
	l.name, l.counter = c.Name(), c.Kind() == store.KindCounter
	if v.src.History == nil || !l.counter && c.Kind() != store.KindGauge {
		return l
	}
	points, complete := v.src.History.Series(c, v.now.Add(-longest))
	l.complete = complete
	raw := c.Raw()
	for i := range points {
		p := &points[i]
		s := sample{start: p.Start, end: p.End}
		if l.counter {
			s.value = p.PerSecond(c)
		} else {
			c.SetRaw(p.Raw)
			s.value = c.Float()
		}
		l.samples = append(l.samples, s)
	}
	c.SetRaw(raw)
	return l
}

// period is a part of the history.
type period struct{ from, to time.Time }

// first returns when the line begins, the zero time if it is empty.
func (l *line) first() (t time.Time) {
	if len(l.samples) > 0 {
		t = l.samples[0].start
	}
	return t
}

// period returns the part that the query asks for: the last minutes, hour or day as far
// as there are any, or those between two moments.
func (v *view) period(l *line) period {
	p := period{v.now.Add(-v.duration("over", ranges[:]).length), v.now}
	moment := func(name string, t *time.Time) {
		if ms, err := strconv.ParseInt(v.query.Value(name), 10, 48); err == nil && ms > 0 {
			*t = v.now.Add(time.UnixMilli(ms).Sub(v.now)) // by the present clock
		}
	}
	if first := l.first(); first.After(p.from) && first.Before(p.to) {
		p.from = first
	}
	moment("from", &p.from)
	moment("to", &p.to)
	if p.to.Sub(p.from) < time.Second {
		p.from = p.to.Add(-time.Second)
	}
	return p
}

// within returns the samples that overlap a period.
func (l *line) within(p period) []sample {
	list := l.samples
	for len(list) > 0 && !list[0].end.After(p.from) {
		list = list[1:]
	}
	for len(list) > 0 && !list[len(list)-1].start.Before(p.to) {
		list = list[:len(list)-1]
	}
	return list
}

// overtime appends the line of a stat over time, with that of another one beside it,
// if there is one.
func (v *view) overtime(l, other *line) {
	if v.src.History == nil {
		v.panel("over-time", "Over time", nil, func() {
			v.missing("There is no history; ", h("<code>stats_config.history_bytes</code>"), " turns it on.")
		})
		return
	}
	p := v.period(l)
	v.Put(h("<div id='line'>"))
	v.panel("over-time", "Over time", func() {
		v.actions("points", url("/stats/history", "name", l.name, "since", fmt.Sprintf("-%ds", int(math.Ceil(max(v.now.Sub(p.from), 0).Seconds())))))
	}, func() {
		v.zooms(l, p)
		lists := [][]sample{l.within(p)}
		if other.name != "" {
			lists = append(lists, other.within(p))
		}
		if len(lists[0]) == 0 {
			v.empty("No flush in this time.")
		} else {
			v.Put(h("<div class='pad'>"))
			v.drawLines(l, other, lists, p)
			v.Put(h("</div>\n"))
		}
		if p.from.Before(l.complete) && !l.complete.IsZero() {
			v.Put(h("<p class='pad quiet'>The history is complete since "))
			v.when(l.complete)
			v.Put(h(".</p>\n"))
		}
		v.compareStat(l, other)
		v.Put(h("<details id='points-table'><summary class='pad'>Table of the steps</summary>\n"))
		v.sampleTable(l, other, lists)
		v.Put(h("</details>\n"))
	})
	v.Put(h("</div>\n"))
}

// zooms appends links to other parts of the history.
func (v *view) zooms(l *line, p period) {
	v.Put(h("<div class='pad row'><span class='seg' role='group' aria-label='Time'>"))
	zoomed := v.query.Has("from") || v.query.Has("to")
	for _, r := range ranges {
		v.Put(h("<a href='"), v.here("over", r.value, "from", "", "to", ""), h("' data-k='over-"), r.value, h("'"))
		if !zoomed && r == v.duration("over", ranges[:]) {
			v.Put(h(" aria-current='true'"))
		}
		v.Put(h(">"), r.label, h("</a>"))
	}
	v.Put(h("</span>"))
	oldest := l.first()
	if oldest.IsZero() {
		oldest = p.from
	}
	width := p.to.Sub(p.from)
	link := func(label, key string, from, to time.Time) {
		if from.Before(oldest) {
			from, to = oldest, to.Add(oldest.Sub(from))
		}
		if to.After(v.now) {
			from, to = from.Add(v.now.Sub(to)), v.now
		}
		if from.Before(oldest) {
			from = oldest
		}
		last := fmt.Sprint(to.UnixMilli())
		if to.Equal(v.now) {
			last = "" // follows the present
		}
		v.Put(h("<a class='btn' data-k='zoom"), key, h("' data-zoom='"), key, h("' href='"), v.here("from", fmt.Sprint(from.UnixMilli()), "to", last), h("'>"), label, h("</a>"))
	}
	link("Zoom in", "+", p.from.Add(width/4), p.to.Add(-width/4))
	link("Zoom out", "-", p.from.Add(-width/2), p.to.Add(width/2))
	link("Earlier", "ArrowLeft", p.from.Add(-width/2), p.to.Add(-width/2))
	link("Later", "ArrowRight", p.from.Add(width/2), p.to.Add(width/2))
	link("All", "0", oldest, v.now)
	v.Put(h("</div>\n"))
}

// The height of the plot of a line, and of the space below and above it.
const (
	lineTall = 180.0
	lineTop  = 18.0
	lineAll  = lineTop + lineTall + 22
)

// drawLines appends the picture: steps, with a gap where a flush is missing.
func (v *view) drawLines(l, other *line, lists [][]sample, p period) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, list := range lists {
		for _, s := range list {
			low, high = min(low, s.value), max(high, s.value)
		}
	}
	unit := "value"
	last := lists[0][len(lists[0])-1].value
	summary := fmt.Sprintf("%s in %s until %s: from %s to %s, at last %s. The table has the numbers.", l.name, plural(len(lists[0]), "step"), isoTime(p.to), numfmt.Significant(low), numfmt.Significant(high), numfmt.Significant(last))
	if l.counter {
		unit, low = "per second", 0
	}
	if high-low < 1e-9 {
		high = low + max(math.Abs(low)*.1, 1)
	}
	v.Put(h("<div class='plotbox'><svg class='plot scale' aria-hidden='true' width='52' height='"), lineAll, h("'>"))
	ticks := axis{low: low, high: high}.ticks()
	height := func(value float64) float64 { return lineTop + lineTall*(1-(value-low)/(high-low)) }
	for _, x := range ticks {
		v.Put(h("<text class='end' x='46' y='"), height(x)+4, h("'>"), numfmt.Significant(x), h("</text>"))
	}
	v.Put(h("</svg><svg class='plot' id='plot' role='img' tabindex='0' data-k='plot' height='"), lineAll, h("' data-from='"), fmt.Sprint(p.from.UnixMilli()), h("' data-to='"), fmt.Sprint(p.to.UnixMilli()), h("' aria-label='"), summary, h("'><text class='start' y='11'>"), unit, h("</text>"))
	for _, x := range ticks {
		v.Put(h("<line class='rule' x2='100%' y1='"), height(x), h("' y2='"), height(x), h("'/>"))
	}
	v.Put(h("<line class='base' x2='100%' y1='"), lineTop+lineTall, h("' y2='"), lineTop+lineTall, h("'/>"))
	at := func(t time.Time) float64 {
		return min(max(float64(t.Sub(p.from))/float64(p.to.Sub(p.from)), 0), 1) * 100
	}
	v.Put(h("<svg viewBox='0 0 100 "), lineAll, h("' width='100%' height='"), lineAll, h("' preserveAspectRatio='none'>"))
	for i, list := range lists {
		class := h("ln")
		if i > 0 {
			class = "step dashed"
		}
		var path strings.Builder
		for i, s := range list {
			y := height(s.value)
			if i > 0 && !s.start.After(list[i-1].end) {
				fmt.Fprintf(&path, "V%.1f", y)
			} else {
				fmt.Fprintf(&path, "M%.2f %.1f", at(s.start), y)
			}
			fmt.Fprintf(&path, "H%.2f", at(s.end))
		}
		v.Put(h("<path class='"), class, h("' d='"), path.String(), h("'/>"))
	}
	v.Put(h("</svg>"))
	step := tickStep(p.to.Sub(p.from))
	for age := v.now.Sub(p.to).Truncate(step); age <= v.now.Sub(p.from); age += step {
		x := at(v.now.Add(-age))
		if age < v.now.Sub(p.to) {
			continue
		}
		text, class := shortSpan(age)+" ago", h("")
		switch {
		case age == 0:
			text, class = "now", "end"
		case x < 5:
			class = "start"
		case x > 95:
			class = "end"
		}
		if age/step%2 == 1 {
			class += " spare"
		}
		v.Put(h("<line class='rule' x1='"), x, h("%' x2='"), x, h("%' y1='"), lineTop+lineTall, h("' y2='"), lineTop+lineTall+4, h("'/><text class='"), class, h("' x='"), x, h("%' y='"), lineTop+lineTall+17, h("'>"), text, h("</text>"))
	}
	v.Put(h("</svg></div>\n<p class='legend'><span><svg class='key' aria-hidden='true'><path class='ln' d='M0 5h14'/></svg> "), l.name, h("</span>"))
	if other.name != "" {
		v.Put(h("<span><svg class='key' aria-hidden='true'><path class='step dashed' d='M0 5h14'/></svg> "), other.name, h("</span>"))
	}
	v.Put(h("<span>"))
	v.when(p.from)
	v.Put(" to ")
	v.when(p.to)
	v.Put(h("</span><span class='scripted'>Drag to zoom; keys of the plot: + − 0 ← →</span></p>\n"))
}

// tickStep returns a round time of which about five are in a period.
func tickStep(length time.Duration) time.Duration {
	for _, step := range [...]time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 20 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour} {
		if length <= 6*step {
			return step
		}
	}
	const half = 12 * time.Hour
	return ((length-1)/(6*half) + 1) * half
}

// shortSpan is [span] without zeros at the end.
func shortSpan(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(numfmt.Span(d), " 0 s"), " 0 min")
}

// compareStat appends the field for another stat in the same plot.
func (v *view) compareStat(l, other *line) {
	v.Put(h("<form class='pad row line' method='get' action='stat'>"))
	v.keep("name", "over", "from", "to")
	wanted := v.query.Value("with")
	v.Put(h("<label>Compare with <input type='text' name='with' spellcheck='false' autocomplete='off' value='"), wanted, h("'"))
	missing := wanted != "" && other.name == ""
	if missing {
		v.Put(h(" aria-invalid='true' aria-describedby='with-error'"))
	}
	v.Put(h("></label><button type='submit'>Compare</button>"))
	if missing {
		v.Put(h("<span id='with-error' class='bad'>not a counter or gauge</span>"))
	}
	if wanted != "" {
		v.Put(h(" <a class='btn' href='"), v.here("with", ""), h("'>"), l.name, h(" alone</a>"))
	}
	v.Put(h("</form>\n"))
}

// sampleTable appends the steps as numbers, newest first.
func (v *view) sampleTable(l, other *line, lists [][]sample) {
	head := func(l *line) string {
		if l.counter {
			return "Per second"
		}
		return "Value"
	}
	columns := []column{{head: "Until"}, {head: "From"}, {head: head(l), class: "num"}}
	beside := map[time.Time]float64{}
	if other.name != "" {
		columns = append(columns, column{head: other.name + ", " + strings.ToLower(head(other)), class: "num"})
		for _, s := range lists[1] {
			beside[s.end] = s.value
		}
	}
	g := v.grid("points", "Steps", "", order{}, columns...)
	for i := len(lists[0]) - 1; i >= 0; i-- {
		s := &lists[0][i]
		g.row("")
		g.head(isoTime(s.end), func() { v.when(s.end) })
		g.cell(isoTime(s.start), func() { v.when(s.start) })
		g.shown(exactValue(s.value), numfmt.Significant(s.value))
		if other.name != "" {
			x, ok := beside[s.end]
			if !ok {
				x = math.NaN()
			}
			g.shown(exactValue(x), numfmt.Significant(x))
		}
	}
	g.end()
}
