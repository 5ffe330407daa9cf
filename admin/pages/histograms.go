package pages

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// picked is how many histograms the list beside the picture shows at once.
const picked = 25

func showHistograms(v *view) error {
	pattern, name := v.query.Value("filter"), v.query.Value("name")
	var page selected
	var chosen *store.Histogram
	var before past
	var sum merged
	offset := atoi(v.query.Value("offset"), 1<<30)
	err := v.site.srv.Filtered(pattern, func(f *render.Filter) (err error) {
		v.stats(func(list *store.View) {
			o := render.Options{Type: render.Histograms, UsedOnly: !v.query.Has("unused"), Filter: f}
			if page, err = selectStats(list, choose{Options: o, from: offset, rows: picked}); err != nil {
				return
			}
			if v.query.Has("merge") {
				sum, err = merge(list, o)
				return
			}
			if name == "" {
				name = firstUsed(page.rows)
			}
			if c, ok := list.Find(name); ok && c.Kind() == store.KindHistogram {
				chosen, before = c.Histogram(), v.past(&c)
			}
		})
		return err
	})
	v.summary = plural(page.total, "histogram")
	v.Put(h("<div class='cols split'>\n"))
	v.Put(h("<section class='panel pick' aria-label='Histograms'><form class='pad row' method='get' action='histograms' data-live='picklist picture'><label class='grow'><span class='vh'>Filter, a regular expression</span><input type='search' name='filter' class='find' placeholder='Filter' value='"),
		pattern, h("'></label><button type='submit' class='unscripted'>Filter</button> "))
	v.chip("unused", "Unused too", v.query.Has("unused"))
	v.chip("merge", "All as one", v.query.Has("merge"))
	v.Put(h("</form>\n<div id='picklist'>"))
	if err != nil {
		if err = v.problem(err); err != nil {
			return err
		}
	} else {
		v.pickList(&page, name)
	}
	v.Put(h("</div></section>\n<div class='stack' id='picture'>\n"))
	switch {
	case sum.n > 0:
		v.merged(&sum, pattern)
	case chosen != nil:
		v.histogram(name, chosen, &before)
	case name == "" && pattern != "": // the list says why
	case name == "":
		v.panel("none", "Histograms", nil, func() { v.empty("No histogram has values. Timings such as ", h("<code>a:12|ms</code>"), " make one.") })
	default:
		v.status = 404
		v.note("bad", "", func() { v.Put("There is no histogram ", h("<code>"), name, h("</code>.")) })
	}
	v.Put(h("</div>\n</div>\n"))
	return nil
}

// firstUsed returns the first histogram with values, or else the first.
func firstUsed(rows []statRow) string {
	for _, r := range rows {
		if r.histogram.Snapshot().Used {
			return r.name
		}
	}
	if len(rows) > 0 {
		return rows[0].name
	}
	return ""
}

// pickList appends the list of histograms to choose from.
func (v *view) pickList(page *selected, chosen string) {
	if len(page.rows) == 0 {
		v.unmatched("histogram")
		return
	}
	v.Put(h("<ul>"))
	above := ""
	for i := range page.rows {
		r := &page.rows[i]
		v.Put(h("<li><a href='"), v.here("name", r.name), h("'"))
		if r.name == chosen {
			v.Put(h(" aria-current='true'"))
		}
		at := shared(above, r.name)
		above = r.name
		v.Put(h("><span class='mono wrap'><i>"))
		v.dotted(r.name[:at])
		v.Put(h("</i><wbr>"))
		v.dotted(r.name[at:])
		v.Put(h("</span>"))
		s := r.histogram.Snapshot()
		if s.Used {
			v.miniHistogram(s.Cumulative)
			p99 := s.Cumulative.Quantile(0.99)
			v.Put(h("<span class='small'>p99 <b data-value='"), exactValue(p99), h("'>"), measuredText(p99, r.histogram.Layout().Unit()), h("</b></span>"))
		} else {
			v.Put(h("<span class='quiet small'>No recorded values</span>"))
		}
		v.Put(h("</a></li>\n"))
	}
	v.Put(h("</ul>\n"))
	if page.total > picked || page.offset > 0 {
		v.pager(page.offset, len(page.rows), page.total, picked, narrower)
	}
}

// histogram appends everything about one histogram.
func (v *view) histogram(name string, hist *store.Histogram, p *past) {
	v.distribution(name, url("/stats", "filter", "^"+quoteMeta(name)+"$", "format", "json"), hist.Snapshot(), hist.Layout(), p)
}

// merged appends the sum of all histograms that match.
func (v *view) merged(m *merged, pattern string) {
	v.note("info", "", func() {
		v.Put("The sum of ", plural(m.n, "histogram"), ". It is exact for buckets; the quantiles of a sum have the same error bound as those of one.")
		if m.others > 0 {
			v.Put(" ", plural(m.others, "histogram"), " with other units or buckets, or behind the first ", count(mostMerged), ", are left out.")
		}
	})
	v.distribution(plural(m.n, "histogram"), url("/stats/histogram", "filter", cmp.Or(pattern, "."), "bins", "1"), &m.sum, m.layout, &past{merged: true})
}

// mostMerged is how many histograms a page merges.
const mostMerged = 1000

// merged is the sum of histograms.
type merged struct {
	sum       histogram.Snapshot
	layout    *histogram.Layout
	n, others int // histograms in it, and left out
}

// merge merges histograms of the layout of the first one.
func merge(list *store.View, o render.Options) (m merged, err error) {
	w := render.NewWalk(list, o)
	for w.Next() {
		hist := w.Stat().Histogram()
		if m.layout == nil {
			m.layout = hist.Layout()
			m.sum = histogram.Snapshot{Interval: m.layout.Empty(), Cumulative: m.layout.Empty()}
		}
		if hist.Layout() != m.layout || m.n == mostMerged {
			m.others++
			continue
		}
		s := hist.Snapshot()
		m.sum.Interval, m.sum.Cumulative = histogram.MergeStats(m.sum.Interval, s.Interval), histogram.MergeStats(m.sum.Cumulative, s.Cumulative)
		m.sum.Used = m.sum.Used || s.Used
		m.n++
	}
	return m, w.Err()
}

// distribution appends everything about a distribution.
func (v *view) distribution(name, request string, s *histogram.Snapshot, layout *histogram.Layout, p *past) {
	unit := layout.Unit()
	v.Put(h("<section class='panel' aria-labelledby='histogram'><div class='head'><h2 id='histogram' class='mono wrap'>"), name, h("</h2><div class='row end'>"))
	v.request(request)
	v.Put(h("</div></div>\n"))
	if !s.Used {
		v.empty("No recorded values")
		v.Put(h("</section>\n"))
		return
	}
	v.histogramFacts(s, unit)
	log, shares, picture := v.choice("x", "log", "linear") == "log", v.choice("y", "share", "count") == "share", v.choice("view", "bars", "cdf", "time")
	v.Put(h("<div class='pad row'>"))
	if p.merged {
		v.segments("Picture", "view", "bars", "Bars", "cdf", "CDF")
	} else {
		v.segments("Picture", "view", "bars", "Bars", "cdf", "CDF", "time", "Over time")
	}
	v.segments("Axis of values", "x", "log", "Log", "linear", "Linear")
	switch picture {
	case "bars":
		v.segments("Height", "y", "share", "Share", "count", "Count")
	}
	if picture != "cdf" && p.kept && !p.merged {
		v.segments("Time", "over", "", "5 min", "1h", "1 h", "1d", "1 d")
	}
	v.Put(h("</div>\n"))
	if picture == "time" && !p.merged {
		v.overTime(name, layout, p, log)
		return
	}
	shown := v.chosen(s, p)
	all := histogram.MergeStats(shown.Cumulative, shown.Interval)
	if !shown.compared {
		all = s.Cumulative
	}
	if all.Count() == 0 {
		v.empty("No values in these times.")
		v.compareForm(p)
		v.Put(h("</section>\n"))
		return
	}
	a := newAxis(all, log)
	list := bins(shown.Snapshot, a, binCount(all, a, 60))
	v.Put(h("<div class='pad'>"))
	if picture == "cdf" {
		v.cdf(&shown, a, list)
	} else {
		v.plot(&shown, a, list, shares)
	}
	v.Put(h("<p id='bin' class='quiet' aria-live='polite'></p>"))
	if picture == "bars" && p.kept && !p.merged {
		v.strip(p.columns(layout, v.now.Add(-v.duration("over", ranges[:]).length), stripRows), a, len(list))
	}
	v.Put(h("</div>\n"))
	v.compareForm(p)
	v.Put(h("</section>\n<div class='cols'>\n"))
	v.tablePanel("quantiles", "Quantiles", request, func() { v.quantileTable(&shown, unit) })
	v.tablePanel("bins", "Buckets", request, func() {
		v.Put(h("<details id='bins-table'><summary class='pad'>Table of the buckets</summary>\n"))
		v.binTable(&shown, unit, list)
		v.Put(h("</details>\n"))
	})
	v.Put(h("</div>\n"))
}

// tablePanel appends a panel with one table of the data that a request returns.
func (v *view) tablePanel(id, title, request string, body func()) {
	v.panel(id+"-head", title, func() { v.actions(id, request) }, body)
}

// overTime appends the strip of distributions and its table, and ends the panel.
func (v *view) overTime(name string, l *histogram.Layout, p *past, log bool) {
	if !p.kept {
		v.missing("There is no history; ", h("<code>stats_config.history_bytes</code>"), " turns it on.")
		v.Put(h("</section>\n"))
		return
	}
	columns := p.columns(l, v.now.Add(-v.duration("over", ranges[:]).length), heatColumns)
	v.Put(h("<div class='pad'>"))
	v.heat(columns, l, log)
	v.Put(h("</div></section>\n"))
	v.tablePanel("steps", "Steps", url("/stats/history", "name", name, "since", fmt.Sprintf("-%.0fs", v.duration("over", ranges[:]).length.Seconds())), func() { v.stepTable(columns, l) })
}

// histogramFacts appends the numbers above the picture.
func (v *view) histogramFacts(s *histogram.Snapshot, unit store.Unit) {
	v.Put(h("<dl class='pad strip'>"))
	fact := func(name, value, symbol, exact string) {
		v.Put(h("<div><dt>"), name, h("</dt><dd data-value='"), exact, h("'>"), value)
		if symbol != "" {
			v.Put(h(" <small>"), symbol, h("</small>"))
		}
		v.Put(h("</dd></div>"))
	}
	amount := func(name string, x float64) {
		value, symbol := numfmt.Measured(x, unit.String())
		fact(name, value, symbol, fmt.Sprint(x))
	}
	all := s.Cumulative
	values := func(name string, n uint64) {
		number, noun, _ := strings.Cut(plural(n, "value"), " ")
		fact(name, number, noun, fmt.Sprint(n))
	}
	values("Interval", s.Interval.Count())
	values("Since the start", all.Count())
	amount("Mean", all.Sum()/float64(max(all.Count(), 1)))
	amount("Min", all.Min())
	amount("Max", all.Max())
	amount("Sum", all.Sum())
	bound := numfmt.Trimmed(100*math.Pow(10, -float64(all.Layout().SignificantDigits())), 4)
	fact("Error bound", bound, "%", bound)
	fact("Unit", unit.String(), "", unit.String())
	v.Put(h("</dl>\n"))
}

// segments appends links of which one is chosen: a parameter, and values with labels
// in turn. The first value is the default.
func (v *view) segments(label, name string, values ...string) {
	v.Put(h("<span class='seg' role='group' aria-label='"), label, h("'>"))
	got := values[0]
	for i := 0; i < len(values); i += 2 {
		if v.query.Value(name) == values[i] {
			got = values[i]
		}
	}
	for i := 0; i < len(values); i += 2 {
		value := values[i]
		if i == 0 {
			value = ""
		}
		v.Put(h("<a href='"), v.here(name, value), h("'"))
		if values[i] == got {
			v.Put(h(" aria-current='true'"))
		}
		v.Put(h(">"), values[i+1], h("</a>"))
	}
	v.Put(h("</span>"))
}

// exactValue returns x with all its digits, and nothing for no value.
func exactValue(x float64) string {
	format := byte('g')
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return ""
	case a >= 1e-6 && a < 1e15:
		format = 'f'
	}
	return strconv.FormatFloat(x, format, -1, 64)
}

// percentChange returns a change in percent with its sign and one decimal.
func percentChange(x float64) string {
	if math.IsNaN(x) || x == 0 {
		return numfmt.Significant(x)
	}
	return numfmt.Signed(strconv.FormatFloat(x, 'f', 1, 64))
}

// quantileTable appends the quantiles of both distributions, and the quantile q. Of
// two windows it shows the difference too.
func (v *view) quantileTable(s *both, unit store.Unit) {
	list := append([]float64(nil), quantiles[:]...)
	any, err := strconv.ParseFloat(v.query.Value("q"), 64)
	valid := err == nil && any >= 0 && any <= 100
	if valid {
		list = append(list, any/100)
	}
	columns := []column{{head: "Quantile"}, {head: s.bars, class: "num"}, {head: s.outline, class: "num"}}
	if s.compared {
		columns = []column{{head: "Quantile"}, {head: s.outline, short: "A", class: "num"}, {head: s.bars, short: "B", class: "num"}, {head: "B − A", class: "num"}, {head: "%", class: "num"}}
	}
	g := v.grid("quantiles", "Quantiles", "", order{}, columns...)
	for i, q := range list {
		class := ""
		if i == len(quantiles) {
			class = "sel"
		}
		g.row(class)
		g.head(quantileName(q), nil)
		b, a := s.Interval.Quantile(q), s.Cumulative.Quantile(q)
		value := func(x float64) { g.shown(exactValue(x), measuredText(x, unit)) }
		if !s.compared {
			value(b)
			value(a)
			continue
		}
		value(a)
		value(b)
		value(b - a)
		change := math.NaN()
		if a != 0 {
			change = 100 * (b - a) / math.Abs(a)
		}
		g.shown(exactValue(change), percentChange(change))
	}
	g.end()
	v.Put(h("<form class='pad row line' method='get' action='"), v.page.path, h("'>"))
	v.keep("name", "filter", "x", "y", "view", "offset", "compare", "a", "b", "span", "opened", "over", "merge", "unused")
	v.Put(h("<label>Any quantile, in percent <input type='text' class='short' name='q' inputmode='decimal' value='"), v.query.Value("q"), h("'"))
	if v.query.Value("q") != "" && !valid {
		v.Put(h(" aria-invalid='true' aria-describedby='q-error'"))
	}
	v.Put(h("></label><button type='submit'>Show</button>"))
	if v.query.Value("q") != "" && !valid {
		v.Put(h("<span id='q-error' class='bad'>not a number from 0 to 100</span>"))
	}
	v.Put(h("</form>\n"))
}

// binTable appends the bins of the picture as numbers.
func (v *view) binTable(s *both, unit store.Unit, list []bin) {
	columns := []column{{head: "From", class: "num"}, {head: "To", class: "num"}, {head: s.bars, class: "num"}, {head: "%", class: "num"}, {head: s.outline, class: "num"}, {head: "% up to", class: "num"}}
	if s.compared {
		columns = append(columns[:2], column{head: s.outline, short: "A", class: "num"}, column{head: "% of A", class: "num"}, column{head: s.bars, short: "B", class: "num"}, column{head: "% of B", class: "num"})
	}
	g := v.grid("bins", "Buckets", "", order{}, columns...)
	exact := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	amount := func(n, share, of uint64) {
		g.num(fmt.Sprint(n))
		percent := 100 * float64(share) / float64(max(of, 1))
		g.shown(exact(percent), strconv.FormatFloat(percent, 'f', 2, 64))
	}
	var sum uint64
	for _, b := range list {
		sum += b.cumulative
		if b.interval == 0 && b.cumulative == 0 {
			continue
		}
		g.row("")
		g.shown(exact(b.low), measuredText(b.low, unit))
		g.shown(exact(b.high), measuredText(b.high, unit))
		if s.compared {
			amount(b.cumulative, b.cumulative, s.Cumulative.Count())
			amount(b.interval, b.interval, s.Interval.Count())
			continue
		}
		amount(b.interval, b.interval, s.Interval.Count())
		amount(b.cumulative, sum, s.Cumulative.Count())
	}
	g.end()
}
