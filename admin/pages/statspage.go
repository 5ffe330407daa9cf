package pages

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/spelling"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// statsView is what the query of the stats page asks for.
type statsView struct {
	pattern  string
	engine   render.Engine
	standard render.Engine // of /stats
	kind     string
	used     bool
	nonzero  bool
	recent   bool // changed in the last minute
	grouped  bool
	hidden   []string // columns
	pins     []string
	zero     zeroPoint
	live     bool
	past     bool // there is a history
}

// pinned limits the pins of a view.
const pinned = 50

func (v *view) statsView() statsView {
	q := statsView{pattern: v.query.Value("filter"), kind: v.choice("type", "", "counter", "gauge", "histogram", "text"),
		used: v.query.Has("usedonly"), nonzero: v.query.Has("nonzero"), recent: v.query.Has("recent") && v.src.History != nil, grouped: v.query.Has("group"),
		hidden: strings.Split(v.query.Value("hide"), "."), zero: v.zero(), past: v.src.History != nil, standard: v.site.srv.FilterEngine()}
	q.engine = q.standard
	for engine, name := range engines {
		if name.value == v.query.Value("re") {
			q.engine = render.Engine(engine)
		}
	}
	q.pins = v.names("pins", pinned)
	return q
}

// engines are the engines of filters, by [render.Engine].
var engines = [...]struct{ value, label string }{render.RE2: {"re2", "RE2"}, render.ECMAScript: {"ecma", "ECMAScript"}}

// statColumns are the columns of the table of stats. The names are values of the
// parameters hide and sort.
var statColumns = [...]struct{ name, head, class string }{
	{"name", "Name", "name"}, {"type", "Type", "type"}, {"value", "Value", "num"}, {"rate", "Per second", "num"}, {"delta", "Change", "num"}, {"trend", "Trend", "trend"}, {"changed", "Changed", "num"},
}

func showStats(v *view) error {
	q := v.statsView()
	o := choose{Options: render.Options{UsedOnly: q.used}}
	endpointType := ""
	for _, t := range statTypes {
		if t.value == q.kind {
			o.Type, endpointType = t.kind, t.endpoint
		}
	}
	columns, keys := []string{"name", "type", "-value"}, map[string]func(*store.Cursor) float64{"value": valueKey, "type": typeKey}
	if q.past {
		columns = append(columns, "-rate", "-changed")
	}
	if q.zero.moment != nil {
		columns, keys["delta"] = append(columns, "-delta"), q.zero.change
	}
	by := v.sorted(columns...)
	var changes *history.Changes
	switch by.by {
	case "rate":
		keys["rate"] = v.src.History.Latest().PerSecond
	case "changed":
		changes = v.src.History.Changes(v.now.Add(-time.Hour))
		keys["changed"] = func(c *store.Cursor) float64 { return -float64(v.now.Sub(changes.Last(c))) }
	}
	if q.recent {
		changes = v.src.History.Changes(v.now.Add(-time.Minute))
	}
	if q.nonzero || q.recent {
		o.skip = func(c *store.Cursor) bool {
			return q.nonzero && valueKey(c) == 0 || q.recent && changes.Last(c).IsZero()
		}
	}
	o.key, o.desc = keys[by.by], by.desc
	o.from, o.rows = v.window("100", "250", "500", "1000")
	var page selected
	var pins []statRow
	start := time.Now()
	err := v.site.srv.FilteredBy(q.engine, q.pattern, func(f *render.Filter) (err error) {
		o.Filter = f
		v.stats(func(list *store.View) {
			page, err = selectStats(list, o)
			if v.tsv.id == "order" {
				return
			}
			for i := range page.rows {
				if c, ok := list.Find(page.rows[i].name); ok {
					v.pastOf(&q, &page.rows[i], &c)
				}
			}
			for _, name := range q.pins {
				r := statRow{name: name, gone: true}
				if c, ok := list.Find(name); ok {
					r = readStat(&c)
					v.pastOf(&q, &r, &c)
				}
				pins = append(pins, r)
			}
		})
		return err
	})
	if v.tsv.id == "order" {
		return v.statOrder(&q, &page, err)
	}
	took := time.Since(start)
	everything := 0
	for _, k := range [...]store.Kind{store.KindCounter, store.KindGauge, store.KindHistogram, store.KindText} {
		everything += v.site.srv.Store().Len(k)
	}
	if err == nil {
		v.summary = plural(page.total, "stat")
	}
	v.statsForm(&q, err, took, func() {
		v.Put(h("<p class='small'>"))
		v.word("ok", "Valid.")
		number, unit := numfmt.Seconds(took.Seconds())
		v.Put(" ", count(page.total), " of ", plural(everything, "stat"), " match, found in ", number+thin+unit, h("</p>"))
	})
	v.Put(h("<div id='results' data-total='"), page.total, h("'>\n"))
	defer v.Put(h("</div>\n"))
	if err != nil {
		return v.statsError(err)
	}
	flag := func(set bool) string {
		if set {
			return "1"
		}
		return ""
	}
	request := url("/stats", "usedonly", flag(q.used), "filter", q.pattern, "type", endpointType)
	q.live = v.followed(page.rows, pins)
	v.panelBeside("stats-head", plural(page.total, "stat"), func() {
		v.Put(h("<div class='place scripted'><div id='fresh' role='status' hidden><p></p><button type='button'>Show</button></div></div>"))
	}, func() { v.statsActions(&q, request) }, func() {
		if len(page.rows) == 0 && len(pins) == 0 {
			v.noStats(q.pattern, q.used || q.nonzero || q.recent)
			return
		}
		v.statTable(&q, &page, pins, by)
		v.pager(page.offset, len(page.rows), page.total, o.rows, narrower)
	})
	return nil
}

// statOrder exports the number of stats that match and the names of the rows. Pages that
// are open see from it whether their order has changed.
func (v *view) statOrder(q *statsView, page *selected, err error) error {
	if err != nil {
		return err
	}
	v.tsv.found = true
	v.tsv.rows = strconv.AppendInt(nil, int64(page.total), 10)
	line := func(name string) {
		v.tsv.rows = append(append(v.tsv.rows, '\n'), oneLine.Replace(name)...)
	}
	for _, name := range q.pins {
		line(name)
	}
	for i := range page.rows {
		line(page.rows[i].name)
	}
	return nil
}

// typeKey orders stats by the names of their kinds.
func typeKey(c *store.Cursor) float64 { return float64(c.Kind().String()[0]) }

// pastOf adds to a row what the history knows.
func (v *view) pastOf(q *statsView, r *statRow, c *store.Cursor) {
	if q.past {
		r.past = v.spark(c)
		r.rate = r.past.latest
	}
	r.base = q.zero.base(c)
}

// The bytes of a parameter of an address, and of all that have ids in that of the stream.
const (
	maxValue = 4000
	maxIDs   = 7800
)

// followed appends the address of the stream of the shown stats, and of no others.
func (v *view) followed(rows, pins []statRow) bool {
	var refs []uint64
	for _, list := range [...][]statRow{pins, rows} {
		for i := range list {
			if !list[i].gone {
				refs = append(refs, list[i].ref)
			}
		}
	}
	return v.follow(refs)
}

// follow appends the address of the stream of some stats, which it sorts.
func (v *view) follow(refs []uint64) bool {
	if len(refs) == 0 {
		v.noStream()
		return false
	}
	return v.stream(streamIDs(refs)...)
}

// streamIDs returns the parameters of a stream that name stats: each number but the first
// of a parameter is the distance to the one before. It sorts refs.
func streamIDs(refs []uint64) (pairs []string) {
	slices.Sort(refs)
	var ids []byte
	left := maxIDs
	for i, ref := range slices.Compact(refs) {
		switch {
		case len(ids) == 0:
			ids = strconv.AppendUint(ids, ref, 10)
		case len(ids) < min(maxValue, left):
			ids = strconv.AppendUint(append(ids, '.'), ref-refs[i-1], 10)
		case len(ids) < left: // this parameter is full
			left -= len(ids)
			pairs, ids = append(pairs, "ids", string(ids)), strconv.AppendUint(nil, ref, 10)
		}
	}
	return append(pairs, "ids", string(ids))
}

// statsForm appends the controls of the stats page and the verdict on the filter.
func (v *view) statsForm(q *statsView, err error, took time.Duration, valid func()) {
	v.Put(h("<form id='controls' class='panel pad' method='get' action='stats' data-live='results validity' data-soft><div class='row'><label class='grow'>" +
		"<span class='vh'>Filter, a regular expression that matches part of the name</span>" +
		"<input type='search' name='filter' class='find' placeholder='Filter (regex)' spellcheck='false' autocomplete='off' aria-describedby='validity'"))
	if err != nil {
		v.Put(h(" aria-invalid='true'"))
	}
	v.Put(h(" value='"), q.pattern, h("'></label><fieldset class='seg'><legend class='vh'>Kind of expression</legend>"))
	for engine, e := range engines {
		value := e.value
		if render.Engine(engine) == q.standard {
			value = ""
		}
		v.choose("<label><input type='radio'", "re", value, e.label, render.Engine(engine) == q.engine)
	}
	v.Put(h("</fieldset><button type='submit' class='primary'>Filter</button></div>\n<div id='validity'>"))
	if err != nil {
		v.filterProblem(q.pattern, err, took)
	} else if q.pattern != "" {
		valid()
	}
	v.Put(h("</div>\n<div class='row chips'>"))
	for _, t := range statTypes {
		v.choose("<label class='chip'><input type='radio'", "type", t.value, t.label, t.value == q.kind)
	}
	v.Put(h("<span class='gap'></span>"))
	v.chip("usedonly", "Used only", q.used)
	v.chip("nonzero", "Hide zeros", q.nonzero)
	if q.past {
		v.chip("recent", "Changed in last minute", q.recent)
	}
	v.chip("group", "Group by scope", q.grouped)
	v.keep("sort", "dir", "hide", "pins", "zero", "pause")
	v.Put(h("<label class='end quiet'>Rows <select name='rows'>"))
	rows := v.choice("rows", "100", "250", "500", "1000")
	for _, n := range [...]string{"100", "250", "500", "1000"} {
		v.option(n, n, n == rows)
	}
	v.Put(h("</select></label></div></form>\n"))
}

// filterProblem describes the error in a filter, and its position, or after which time it
// was stopped.
func (v *view) filterProblem(pattern string, err error, took time.Duration) {
	v.Put(h("<div id='filter-error' role='alert'>"))
	defer v.Put(h("</div>"))
	var e *render.SyntaxError
	switch {
	case errors.Is(err, render.ErrTooExpensive):
		number, unit := numfmt.Seconds(took.Seconds())
		v.word("bad", "Too expensive: the filter was stopped after "+number+thin+unit+". Anchor it with ^ or use fewer alternatives.")
	case errors.As(err, &e):
		at := e.At()
		text := strings.TrimSpace(problemText(err))
		if !strings.Contains(text, e.Why) {
			text += ": " + e.Why
		}
		if at < 0 {
			v.word("bad", text)
			return
		}
		column := utf8.RuneCountInString(pattern[:at])
		v.word("bad", fmt.Sprintf("%s, at character %d", text, column+1))
		v.Put(h("<pre class='caret' aria-hidden='true'>"), pattern, "\n", strings.Repeat(" ", column), "^", h("</pre>"))
	default:
		v.word("bad", strings.TrimSpace(problemText(err)))
	}
}

// statsError sets the status of a page whose filter failed.
func (v *view) statsError(err error) error {
	if status := problemStatus(err); status != 0 {
		v.status = status
		return nil
	}
	return err
}

// statsActions appends what can be done with the table.
func (v *view) statsActions(q *statsView, request string) {
	if !q.zero.at.IsZero() {
		v.Put(h("<span class='quiet' id='since'>Changes since "))
		at := q.zero.at
		if q.zero.moment != nil {
			at = q.zero.moment.Time()
		}
		v.when(at)
		if q.past && q.zero.moment == nil {
			v.Put(", before the history")
		}
		v.Put(h("</span><a class='btn' data-k='unzero' href='"), v.here("zero", ""), h("'>Clear</a>"))
	}
	if q.past || q.live {
		class := h("btn")
		if !q.past {
			class = "btn scripted"
		}
		v.Put(h("<a class='"), class, h("' id='zero' data-k='zero' data-now='"), fmt.Sprint(v.now.UnixMilli()), h("' href='"), v.here("zero", fmt.Sprint(v.now.UnixMilli())), h("'>Set zero point</a>"))
	}
	v.Put(h("<details class='menu' id='columns'><summary class='btn'>Columns</summary><ul>"))
	for _, c := range statColumns[1:] {
		hide := slices.Clone(q.hidden)
		shown := !slices.Contains(hide, c.name)
		if shown {
			hide = append(hide, c.name)
		} else {
			hide = slices.DeleteFunc(hide, func(x string) bool { return x == c.name })
		}
		v.Put(h("<li><a data-k='column-"), c.name, h("' href='"), v.here("hide", strings.Trim(strings.Join(hide, "."), ".")), h("'"))
		if shown {
			v.Put(h(" aria-current='true'"))
		}
		v.Put(h(">"), c.head, h("</a></li>"))
	}
	v.Put(h("</ul></details>"))
	v.actions("stats", request)
}

// noStats is shown instead of an empty table.
func (v *view) noStats(pattern string, narrowed bool) {
	switch {
	case pattern != "" && narrowed:
		v.empty("No stat matches ", h("<code>"), pattern, h("</code> and the chips above. <a href='"), url("stats", "filter", pattern), h("'>Drop the chips</a>"))
	case pattern != "":
		v.empty("No stat matches ", h("<code>"), pattern, h("</code>. <a href='stats'>Show all</a>"))
		v.nearest(pattern, "empty")
	default:
		v.empty("There are no stats of this kind.")
	}
}

// nearest appends links to the three prefixes closest to a pattern, below the prefix that
// it begins with.
func (v *view) nearest(pattern string, class h) {
	name := strings.ReplaceAll(strings.TrimPrefix(pattern, "^"), `\.`, ".")
	begin := ""
	var list []store.Group
	for deeper := 0; deeper >= 0; {
		got, err := v.site.srv.Explore(store.Explore{Prefix: begin, By: store.BySeries, Limit: explorerRows})
		if err != nil || len(got.Groups) == 0 {
			break
		}
		list = got.Groups
		deeper = slices.IndexFunc(list, func(g store.Group) bool { return !g.Leaf && strings.HasPrefix(name, g.Name) })
		if deeper >= 0 {
			begin = list[deeper].Name
		}
	}
	if len(list) == 0 {
		return
	}
	segment, _, _ := strings.Cut(name[len(begin):], ".")
	far := make(map[string]int, len(list))
	for _, g := range list {
		far[g.Name] = spelling.Distance(shortened(segment), shortened(strings.TrimSuffix(g.Name[len(begin):], ".")))
	}
	slices.SortStableFunc(list, func(a, b store.Group) int { return far[a.Name] - far[b.Name] })
	v.Put(h("<p class='"), class, h("'>Names begin with "))
	for i, g := range list[:min(3, len(list))] {
		if i > 0 {
			v.Put(", ")
		}
		v.Put(h("<a href='"), url("stats", "filter", "^"+quoteMeta(g.Name)), h("'>"), g.Name, h("</a>"))
	}
	v.Put(h("</p>\n"))
}

// shortened returns the part of a segment that is compared with others.
func shortened(s string) string { return s[:min(len(s), 64)] }

// statTable appends the pinned rows and the rows of a page.
func (v *view) statTable(q *statsView, page *selected, pins []statRow, by order) {
	var columns []column
	for _, c := range statColumns {
		x := column{head: c.head, class: c.class, sort: c.name, hidden: slices.Contains(q.hidden, c.name) && c.name != "name"}
		switch c.name {
		case "trend":
			x.sort = ""
		case "rate":
			if !q.past {
				x.sort, x.class, x.unlisted, x.hidden = "", "num scripted", true, x.hidden || !q.live
			}
		case "delta":
			if q.zero.moment == nil {
				x.sort, x.class, x.unlisted, x.hidden = "", "num scripted", true, x.hidden || !q.live
			}
		case "changed":
			x.hidden = x.hidden || !q.past
		}
		columns = append(columns, x)
	}
	g := v.grid("stats", "Stats", "cards stats", by, columns...)
	g.bare = true
	mark := highlighter(q.pattern)
	for i := range pins {
		v.statRow(g, q, &pins[i], "", mark, "pinned")
	}
	above, scope := "", ""
	for i := range page.rows {
		r := &page.rows[i]
		if s := r.name[:strings.LastIndexByte(r.name, '.')+1]; q.grouped && by.by == "name" && (i == 0 || s != scope) {
			scope = s
			g.wide("group", func() {
				v.Put(h("<span class='mono wrap'>"))
				if s == "" {
					v.Put("(no scope)")
				}
				v.dotted(s)
				v.Put(h("</span>"))
			})
		}
		v.statRow(g, q, r, above, mark, "")
		above = r.name
	}
	g.end()
}

// statRow appends a row. There can be a thousand, and the browser parses all of them for
// each key in the filter, so the cells have few elements and attributes: what scripts
// change is the text of the cells themselves.
func (v *view) statRow(g *grid, q *statsView, r *statRow, above string, mark *regexp.Regexp, class string) {
	if !r.used {
		class += " unused"
	}
	if r.name == v.query.Value("sel") {
		class += " sel"
	}
	if r.gone {
		class += " gone"
	}
	g.row(strings.TrimSpace(class))
	g.head(r.name, func() {
		v.pin(q, r.name)
		v.statName(r.name, above, mark)
	})
	if r.gone {
		g.cell("", v.text("gone"))
		for range statColumns[2:] {
			g.cell("", v.text(none))
		}
		return
	}
	g.cell(r.kind.String(), nil)
	stat := v.text(h(" data-stat='"), r.name, h("'"))
	if r.kind == store.KindText {
		g.marked(r.text, "wrap", stat, nil)
	} else {
		g.marked(r.value, quiet(r.value == "0"), stat, v.text(numfmt.Grouped(r.value)))
	}
	exact, shown := "", none
	if q.past && (r.kind == store.KindCounter || r.kind == store.KindHistogram) {
		exact, shown = exactValue(r.rate), numfmt.Rate(r.rate)
	}
	g.marked(exact, quiet(exact == "" || r.rate == 0), v.text(h(" data-rate")), v.text(shown))
	v.changeCell(g, q, r)
	v.trend(g, r)
	v.changedCell(g, q, r)
}

// quiet returns the class of a value that is quiet, if it is.
func quiet(is bool) string {
	if is {
		return "quiet"
	}
	return ""
}

// pin appends the link that pins a row, or unpins it.
func (v *view) pin(q *statsView, name string) {
	list, label, class := append(slices.Clone(q.pins), name), "Pin", h("pin")
	if slices.Contains(q.pins, name) {
		list = slices.DeleteFunc(list, func(x string) bool { return x == name })
		label, class = "Unpin", "pin on"
	}
	v.Put(h("<a class='"), class, h("' title='"), label, h("' href='"), v.here("pins", namesValue(list, pinned)), h("'></a>"))
}

// changeCell appends the change since the zero point, or since the page was opened.
func (v *view) changeCell(g *grid, q *statsView, r *statRow) {
	if r.kind == store.KindText {
		g.marked("", "quiet", nil, v.text(none))
		return
	}
	change := ""
	if r.base != "" {
		change = numfmt.Difference(r.value, r.base)
	}
	if q.zero.at.IsZero() {
		change = "0"
	}
	g.marked(change, quiet(change == "0" || change == ""), func() {
		v.Put(h(" data-delta"))
		if r.base != "" {
			v.Put(h(" data-base='"), r.base, h("'"))
		}
	}, v.text(numfmt.Signed(change)))
}

// changedCell appends how long ago a stat changed.
func (v *view) changedCell(g *grid, q *statsView, r *statRow) {
	at := r.past.changed
	shown := none
	switch {
	case !q.past || r.kind == store.KindText:
	case r.past.still:
		shown = "> 1 h"
	case !at.IsZero():
		shown = numfmt.Age(v.now.Sub(at))
	}
	g.marked(isoTime(at), "quiet", func() {
		v.Put(h(" data-changed"))
		if !at.IsZero() {
			by := v.now.Add(at.Sub(v.now)) // by the present clock, from which scripts continue
			v.Put(h(" data-at='"), fmt.Sprint(by.UnixMilli()), h("' title='"), isoTime(at), h("'"))
		}
	}, v.text(shown))
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
	mark, _ := regexp.Compile(pattern) // nil for a valid expression of another engine
	return mark
}

// rangeText returns the greatest rate of a counter, or the range of a gauge.
func (s *spark) rangeText() string {
	if len(s.points) < 2 {
		return ""
	}
	switch low, high := slices.Min(s.points), slices.Max(s.points); {
	case s.fromZero && high == 0, !s.fromZero && low == high:
		return ""
	case s.fromZero:
		return "peak " + numfmt.Rate(high)
	default:
		return numfmt.Significant(low) + " to " + numfmt.Significant(high)
	}
}

// trend appends the cell that shows the line of a counter or gauge and its range, or the
// distribution of a histogram.
func (v *view) trend(g *grid, r *statRow) {
	if r.histogram == nil {
		g.marked("", "graph", func() {
			v.Put(h(" data-spark"))
			v.sparkData(&r.past)
		}, func() {
			v.sparkLine(&r.past)
			v.Put(r.past.rangeText())
		})
		return
	}
	s := r.histogram.Snapshot()
	if !s.Used {
		g.marked("", "quiet", nil, v.text("No recorded values"))
		return
	}
	unit := r.histogram.Layout().Unit()
	from, title := s.Interval, "quantiles of the last interval with values"
	if from.Count() == 0 {
		from, title = s.Cumulative, "quantiles since the start"
	}
	q := from.Quantiles(nil, []float64{0.5, 0.9, 0.99})
	g.marked(fmt.Sprintf("p50=%v p90=%v p99=%v", q[0], q[1], q[2]), "graph", v.text(h(" data-quantiles='"), r.name, h("' title='"), title, h("'")), func() {
		v.miniHistogram(s.Cumulative)
		for i, name := range [...]string{"p50 ", "p90 ", "p99 "} {
			text := measuredText(q[i], unit)
			symbol := strings.TrimLeft(text, "0123456789.,\u2212")
			v.Put(h("<span class='tx'>"), name, h("<b data-value='"), exactValue(q[i]), h("' data-unit='"), exactValue(numfmt.UnitOf(unit.String(), strings.TrimPrefix(symbol, thin))), h("' data-symbol='"), symbol, h("'>"), text, h("</b></span>"))
		}
	})
}
