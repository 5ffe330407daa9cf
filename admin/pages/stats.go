package pages

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// quoteMeta escapes a name for use in a filter.
func quoteMeta(name string) string { return regexp.QuoteMeta(name) }

// statTypes maps the values of the parameter type to kinds and labels.
var statTypes = [...]struct {
	value, label string
	kind         render.Type
	endpoint     string // value of the parameter type of /stats
}{
	{"", "All", render.All, ""},
	{"counter", "Counters", render.Counters, "Counters"},
	{"gauge", "Gauges", render.Gauges, "Gauges"},
	{"histogram", "Histograms", render.Histograms, "Histograms"},
	{"text", "Text", render.TextReadouts, "TextReadouts"},
}

// statRow is a row of the table of stats. Values are read during the walk.
type statRow struct {
	name      string
	kind      store.Kind
	value     string // exact
	text      string // of a text readout
	key       float64
	used      bool
	histogram *store.Histogram
	past      spark
	rate      float64 // in the last interval, of counters and histograms
}

// readStat returns the row of the stat under c.
func readStat(c *store.Cursor) statRow {
	r := statRow{name: c.Name(), kind: c.Kind(), used: c.Used(), key: valueKey(c)}
	switch c.Kind() {
	case store.KindHistogram:
		r.histogram = c.Histogram()
		r.value = fmt.Sprint(r.histogram.Snapshot().Cumulative.Count())
	case store.KindText:
		r.text = c.Text()
	default:
		r.value = string(c.AppendValue(nil))
	}
	return r
}

// valueKey is the value of a stat by which it is sorted: of a histogram its count.
func valueKey(c *store.Cursor) float64 {
	switch c.Kind() {
	case store.KindHistogram:
		return float64(c.Histogram().Snapshot().Cumulative.Count())
	case store.KindText:
		return math.Inf(-1)
	}
	return c.Float()
}

// selected is a page of stats.
type selected struct {
	rows   []statRow
	offset int
	total  int
}

// deepest is how far into an order by value the pages reach. Rows behind it would have
// to be held in memory for each request.
const deepest = 100_000

// selectStats returns the rows from offset on, in the order of the names, or of key if
// it is not nil, and how many there are in all.
func selectStats(list *store.View, o render.Options, key func(*store.Cursor) float64, desc, nonzero bool, offset, limit int) (out selected, err error) {
	w := render.NewWalk(list, o)
	skip := func() bool { return nonzero && valueKey(w.Stat()) == 0 }
	if key != nil {
		return topStats(w, skip, key, desc, min(offset, deepest), limit)
	}
	out.offset = offset
	for len(out.rows) < limit && w.Next() {
		if skip() {
			continue
		}
		out.total++
		if out.total > offset {
			out.rows = append(out.rows, readStat(w.Stat()))
		}
	}
	if nonzero {
		for w.Next() {
			if !skip() {
				out.total++
			}
		}
	} else {
		out.total += w.Rest()
	}
	return out, w.Err()
}

// topStats keeps the rows that can still be on the page, and drops the others whenever
// there are twice as many.
func topStats(w *render.Walk, skip func() bool, sortKey func(*store.Cursor) float64, desc bool, offset, limit int) (out selected, err error) {
	out.offset = offset
	keep := offset + limit
	compare := func(a, b statRow) int {
		switch {
		case a.key == b.key:
			return strings.Compare(a.name, b.name)
		case (a.key < b.key) != desc:
			return -1
		}
		return 1
	}
	var rows []statRow
	bound, bounded := 0.0, false
	for w.Next() {
		if skip() {
			continue
		}
		out.total++
		key := sortKey(w.Stat())
		if bounded && (key < bound) == desc && key != bound {
			continue
		}
		r := readStat(w.Stat())
		r.key = key
		rows = append(rows, r)
		if len(rows) >= 2*keep {
			slices.SortFunc(rows, compare)
			rows = rows[:keep]
			bound, bounded = rows[keep-1].key, true
		}
	}
	slices.SortFunc(rows, compare)
	out.rows = rows[min(offset, len(rows)):min(keep, len(rows))]
	return out, w.Err()
}

func showStats(v *view) error {
	pattern := v.query.Value("filter")
	kind := v.choice("type", "", "counter", "gauge", "histogram", "text")
	used, nonzero := v.query.Has("usedonly"), v.query.Has("nonzero")
	v.statsForm(pattern, kind, used, nonzero)
	v.Put(h("<div id='results'>\n"))
	defer v.Put(h("</div>\n"))
	o := render.Options{UsedOnly: used}
	endpointType := ""
	for _, t := range statTypes {
		if t.value == kind {
			o.Type, endpointType = t.kind, t.endpoint
		}
	}
	columns, keys := []string{"name", "-value"}, map[string]func(*store.Cursor) float64{"value": valueKey}
	if v.src.History != nil {
		columns, keys["rate"] = append(columns, "-rate"), v.src.History.Latest().PerSecond
	}
	by := v.sorted(columns...)
	key := keys[by.by]
	offset, limit := v.window("100", "250", "500", "1000")
	var page selected
	err := v.site.srv.Filtered(pattern, func(f *render.Filter) (err error) {
		o.Filter = f
		v.stats(func(list *store.View) {
			page, err = selectStats(list, o, key, by.desc, nonzero, offset, limit)
			for i := range page.rows {
				if c, ok := list.Find(page.rows[i].name); ok && keys["rate"] != nil {
					page.rows[i].past, page.rows[i].rate = v.spark(&c), keys["rate"](&c)
				}
			}
		})
		return err
	})
	if err != nil {
		return v.problem(err)
	}
	v.summary = plural(page.total, "stat")
	request := url("/stats", "filter", pattern, "type", endpointType)
	if used {
		request = url("/stats", "usedonly", "1", "filter", pattern, "type", endpointType)
	}
	usedOnly := ""
	if used {
		usedOnly = "1"
	}
	live := v.stream("filter", pattern, "type", endpointType, "usedonly", usedOnly, "initial", "0")
	v.panel("stats-head", plural(page.total, "stat"), func() { v.actions("stats", request) }, func() {
		if len(page.rows) == 0 {
			v.noStats(pattern, used || nonzero)
			return
		}
		v.statTable(&page, by, highlighter(pattern), live)
		v.pager(page.offset, len(page.rows), page.total, limit, "")
	})
	return nil
}

// statsForm appends the controls of the stats page.
func (v *view) statsForm(pattern, kind string, used, nonzero bool) {
	v.Put(h("<form class='panel pad' method='get' action='stats' data-live='results'><div class='row'><label class='grow'>"+
		"<span class='vh'>Filter, a regular expression that matches part of the name</span>"+
		"<input type='search' name='filter' class='find' placeholder='Filter (regular expression)' spellcheck='false' autocomplete='off' value='"),
		pattern, h("'></label><button type='submit' class='primary'>Filter</button></div>\n<div class='row chips'>"))
	for _, t := range statTypes {
		v.Put(h("<label class='chip'><input type='radio' name='type' value='"), t.value, h("'"))
		if t.value == kind {
			v.Put(h(" checked"))
		}
		v.Put(h(">"), t.label, h("</label>"))
	}
	v.Put(h("<span class='gap'></span>"))
	v.chip("usedonly", "Used only", used)
	v.chip("nonzero", "Hide zeros", nonzero)
	v.keep("sort", "dir")
	v.Put(h("<label class='end quiet'>Rows <select name='rows'>"))
	rows := v.choice("rows", "100", "250", "500", "1000")
	for _, n := range [...]string{"100", "250", "500", "1000"} {
		v.Put(h("<option"))
		if n == rows {
			v.Put(h(" selected"))
		}
		v.Put(h(">"), n, h("</option>"))
	}
	v.Put(h("</select></label></div></form>\n"))
}

// noStats is shown instead of an empty table.
func (v *view) noStats(pattern string, narrowed bool) {
	switch {
	case pattern != "" && narrowed:
		v.empty("No stat matches ", h("<code>"), pattern, h("</code> and the chips above. <a href='"), url("stats", "filter", pattern), h("'>Drop the chips</a>"))
	case pattern != "":
		v.empty("No stat matches ", h("<code>"), pattern, h("</code>. <a href='stats'>Show all</a>"))
	default:
		v.empty("There are no stats of this kind.")
	}
}

// statTable appends the rows of a page.
func (v *view) statTable(page *selected, by order, mark *regexp.Regexp, live bool) {
	columns := []column{{head: "Name", class: "name", sort: "name"}, {head: "Type", class: "type"}, {head: "Value", class: "num", sort: "value"}}
	past := v.src.History != nil
	switch {
	case past:
		columns = append(columns, column{head: "per second", class: "num", sort: "rate"})
	case live:
		columns = append(columns, column{head: "per second", class: "num scripted", unlisted: true})
	}
	g := v.grid("stats", "Stats", "cards stats", by, append(columns, column{head: "Trend", class: "trend"})...)
	above := ""
	for i := range page.rows {
		r := &page.rows[i]
		class := ""
		if !r.used {
			class = "unused"
		}
		g.row(class)
		g.head(r.name, func() { v.statName(r.name, above, mark) })
		above = r.name
		g.cell(r.kind.String(), nil)
		if r.kind == store.KindText {
			g.cell(r.text, v.text(h("<span class='wrap' data-stat='"), r.name, h("'>"), r.text, h("</span>")))
		} else {
			g.cell(r.value, func() { v.statValue(r) })
		}
		if past || live {
			exact, shown := "", none
			if past && (r.kind == store.KindCounter || r.kind == store.KindHistogram) {
				exact, shown = exactValue(r.rate), rate(r.rate)
			}
			g.cell(exact, v.text(h("<span class='quiet' data-rate='"), r.name, h("'>"), shown, h("</span>")))
		}
		v.trend(g, r)
	}
	g.end()
}

// statValue appends the value of a counter, a gauge or the count of a histogram.
func (v *view) statValue(r *statRow) {
	class := h("")
	if r.value == "0" {
		class = "quiet"
	}
	v.Put(h("<span class='"), class, h("' data-stat='"), r.name, h("'>"), grouped(r.value), h("</span>"))
}

// statName appends a name as a link. The part that it shares with the name above is
// quiet, the part that the filter matches is marked.
func (v *view) statName(name, above string, mark *regexp.Regexp) {
	v.Put(h("<a href='"), url("stat", "name", name), h("'>"))
	quiet := shared(above, name)
	from, to := 0, 0
	if mark != nil {
		if at := mark.FindStringIndex(name); at != nil {
			from, to = at[0], at[1]
		}
	}
	// The name is cut where its appearance changes.
	cuts := []int{0, min(quiet, len(name)), from, to, len(name)}
	slices.Sort(cuts)
	for i := 1; i < len(cuts); i++ {
		a, b := cuts[i-1], cuts[i]
		if a == b {
			continue
		}
		if a < quiet {
			v.Put(h("<i>"))
		}
		if a >= from && a < to {
			v.Put(h("<mark>"))
			v.dotted(name[a:b])
			v.Put(h("</mark>"))
		} else {
			v.dotted(name[a:b])
		}
		if c := name[b-1]; c == '.' || c == '_' {
			v.Put(h("<wbr>"))
		}
		if a < quiet {
			v.Put(h("</i>"))
		}
	}
	v.Put(h("</a>"))
}

// highlighter returns the expression whose matches are marked, or nil.
func highlighter(pattern string) *regexp.Regexp {
	if pattern == "" || len(pattern) > 1024 {
		return nil
	}
	mark, err := regexp.Compile(pattern)
	if err != nil { // a valid expression of another engine
		return nil
	}
	return mark
}

// sparkOf appends the line of a counter or gauge.
func (v *view) sparkOf(r *statRow) {
	v.Put(h("<span data-spark='"), r.name, h("'"))
	v.sparkData(&r.past)
	v.Put(h(">"))
	v.sparkLine(&r.past)
	v.Put(h("</span>"))
}

// trend appends the cell that shows the distribution of a histogram.
func (v *view) trend(g *grid, r *statRow) {
	if r.histogram == nil {
		g.cell("", func() { v.sparkOf(r) })
		return
	}
	s := r.histogram.Snapshot()
	if !s.Used {
		g.cell("", v.text(h("<span class='quiet'>No recorded values</span>")))
		return
	}
	unit := r.histogram.Layout().Unit()
	q := s.Cumulative.Quantiles(nil, []float64{0.5, 0.9, 0.99})
	g.cell(fmt.Sprintf("p50=%v p90=%v p99=%v", q[0], q[1], q[2]), func() {
		v.Put(h("<span class='graph'>"))
		v.miniHistogram(s.Cumulative)
		for i, name := range [...]string{"p50 ", "p90 ", "p99 "} {
			v.Put(h("<span class='tx'>"), name, h("<b>"), measuredText(q[i], unit), h("</b></span>"))
		}
		v.Put(h("</span>"))
	})
}
