package pages

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// explorerRows is how many groups the page shows.
const explorerRows = 100

// exploreOrders maps columns of the explorer to orders.
var exploreOrders = [...]struct {
	sort, by string
	order    store.By
}{
	{"-series", "series", store.BySeries}, {"name", "name", store.ByName}, {"-new", "new", store.ByNew},
	{"-bytes", "bytes", store.ByBytes}, {"-rate", "rate", store.ByRate}, {"-samples", "samples", store.BySamples},
}

func showExplorer(v *view) error {
	q := store.Explore{Prefix: v.query.Value("prefix"), Tag: v.query.Value("tag"), Limit: explorerRows, Tags: v.query.Value("tag") == ""}
	var columns []string
	for _, o := range exploreOrders {
		if o.order == store.ByRate && v.src.History == nil || o.order == store.BySamples && (v.src.Ingest == nil || q.Tag != "") {
			continue
		}
		columns = append(columns, o.sort)
	}
	by := v.sorted(columns...)
	by.desc = by.by != "name"
	request := ""
	for _, o := range exploreOrders {
		if strings.TrimPrefix(o.sort, "-") == by.by {
			q.By, request = o.order, url("/stats/explore", "prefix", q.Prefix, "tag", q.Tag, "by", o.by, "limit", fmt.Sprint(explorerRows))
		}
	}
	tiled := v.choice("view", "table", "map") == "map"
	v.explorerForm(q, tiled)
	v.Put(h("<div id='results'>\n"))
	defer v.Put(h("</div>\n"))
	if v.tsv.id == "" && !v.site.srv.ExploreReady(q.Tag) {
		v.again = true
		v.note("info", "", v.text("The names are put in order and counted, for the first time since the start. The page shows them in a moment. ", h("<a href='"), v.here(), h("'>Show</a>")))
		return nil
	}
	got, err := v.site.srv.Explore(q)
	if err != nil {
		return v.problem(err)
	}
	v.summary = plural(got.Total.Series, "stat")
	v.limitsNear(got.Limits)
	v.crumbs(q)
	v.sums(&got)
	title := "By segment"
	if q.Tag != "" {
		title = "By value of the tag"
	}
	v.panel("groups-head", title, func() { v.actions("groups", request) }, func() {
		if len(got.Groups) == 0 {
			v.empty("No stat has this prefix", h(", or the tag. <a href='explorer'>Show all</a>"))
			return
		}
		if tiled {
			v.treemap(got.Groups, got.Others.Series)
		}
		v.groupTable(q, &got, by)
		if !got.Complete {
			v.empty("There are too many groups to compare all: ", count(got.Found), " were, among them each with more than ", plural(got.Bound, "stat"), ".")
		}
	})
	if q.Tags && len(got.Tags) > 0 {
		v.tagTable(q.Prefix, got.Tags)
	}
	if got.Received {
		v.Put(h("<p class='quiet'>Samples are estimated for the names with the most. Senders are the addresses whose lines made the newest received stats.</p>\n"))
	}
	return nil
}

// explorerForm appends the controls.
func (v *view) explorerForm(q store.Explore, tiled bool) {
	v.Put(h("<form class='panel pad row' method='get' action='explorer' data-live='results'><label class='grow'><span class='vh'>Beginning of the names</span>"+
		"<input type='search' name='prefix' class='find' placeholder='Prefix of names' spellcheck='false' autocomplete='off' value='"),
		q.Prefix, h("'></label>"))
	v.keep("tag", "sort", "dir")
	v.Put(h("<fieldset class='seg'><legend class='vh'>View</legend>"))
	for _, o := range [...]struct{ value, label string }{{"table", "Table"}, {"map", "Treemap"}} {
		v.choose("<label><input type='radio'", "view", o.value, o.label, (o.value == "map") == tiled)
	}
	v.Put(h("</fieldset><button type='submit' class='primary'>Explore</button></form>\n"))
}

// limitsNear warns of limits.
func (v *view) limitsNear(list []report.Limit) {
	if len(list) == 0 {
		return
	}
	v.note("warn", "limits-near", func() {
		v.Put("Limits near or reached: ")
		for i, l := range list {
			if i > 0 {
				v.Put(", ")
			}
			use, most := count(l.Use), count(l.Max)
			if strings.HasSuffix(l.Name, "_bytes") {
				use, most = sizeText(float64(l.Use)), sizeText(float64(l.Max))
			}
			v.Put(limitName(l), " (", use, " of ", most, ")")
		}
		v.Put(h(". <a href='ingest'>Ingest</a>"))
	})
}

// crumbs appends the way to the prefix, as links.
func (v *view) crumbs(q store.Explore) {
	v.Put(h("<p class='crumbs'>"))
	link := func(text, prefix, tag string) {
		v.Put(h("<a href='"), v.here("prefix", prefix, "tag", tag), h("'>"), text, h("</a>"))
	}
	link("All stats", "", "")
	if q.Prefix != "" {
		v.Put(" / ")
		from := 0
		for range 32 {
			n := strings.IndexByte(q.Prefix[from:], '.')
			if end := from + n + 1; n >= 0 && (end < len(q.Prefix) || q.Tag != "") {
				link(q.Prefix[from:end], q.Prefix[:end], "")
				from = end
			}
		}
		v.Put(q.Prefix[from:])
	}
	if q.Tag != "" {
		v.Put(" / tag ", q.Tag)
	}
	v.Put(h("</p>\n"))
}

// sums appends the sums over all groups.
func (v *view) sums(got *admin.Explored) {
	v.Put(h("<dl class='panel pad strip' aria-label='Sums'>"))
	fact := func(name, exact, shown string) {
		v.Put(h("<div><dt>"), name, h("</dt><dd data-value='"), exact, h("'>"), shown, h("</dd></div>"))
	}
	t := &got.Total
	fact("Series", fmt.Sprint(t.Series), count(t.Series))
	fact("New in the last minute", fmt.Sprint(t.New), count(t.New))
	fact("Memory", fmt.Sprint(t.Bytes), sizeText(float64(t.Bytes)))
	if got.Rates {
		fact("Changes per second", exactValue(t.PerSecond), numfmt.Rate(t.PerSecond))
	}
	v.Put(h("</dl>\n"))
}

func (v *view) groupTable(q store.Explore, got *admin.Explored, by order) {
	columns := []column{{head: "Name", class: "name", sort: "name"}, {head: "Series", class: "num", sort: "series"}, {head: "Share", class: "num"}, {head: "New per minute", class: "num", sort: "new"}, {head: "Memory", class: "num", sort: "bytes"}}
	if got.Rates {
		columns = append(columns, column{head: "Changes per second", class: "num", sort: "rate"})
	}
	samples := got.Received && q.Tag == ""
	if samples {
		columns = append(columns, column{head: "Samples per second", class: "num", sort: "samples"}, column{head: "Senders"})
	}
	columns = append(columns, column{head: "First seen", class: "num spare"}, column{head: "Stats", unlisted: true})
	g := v.grid("groups", "Groups of stats", "cards dense groups", by, columns...)
	row := func(x *store.Group, name string, show, link func()) {
		g.row("")
		g.head(name, show)
		g.num(fmt.Sprint(x.Series))
		share := float64(x.Series) / float64(max(got.Total.Series, 1))
		g.cell(exactValue(share), func() {
			v.Put(strconv.FormatFloat(100*share, 'f', 2, 64), thin, "%")
			v.bar(share, "")
		})
		g.num(fmt.Sprint(x.New))
		g.shown(fmt.Sprint(x.Bytes), sizeText(float64(x.Bytes)))
		if got.Rates {
			g.shown(exactValue(x.PerSecond), numfmt.Rate(x.PerSecond))
		}
		if samples {
			g.shown(exactValue(x.Samples), numfmt.Rate(x.Samples))
			var names []string
			for _, c := range got.Senders[x.Name] {
				names = append(names, c.Name)
			}
			list := strings.Join(names[:min(len(names), 3)], ", ")
			g.cell(list, func() { v.orNone(list) })
		}
		g.cell(isoTime(x.First), func() { v.when(x.First) })
		g.cell("", link)
	}
	for i := range got.Groups {
		x := &got.Groups[i]
		row(x, x.Name, func() { v.groupName(q, got, x) }, func() {
			v.Put(h("<a href='"), url("stats", "filter", groupFilter(q, x)), h("'>Show<span class='vh'> the stats of "), x.Name, h("</span></a>"))
		})
	}
	if got.Others.Series > 0 {
		row(&got.Others, "(others)", v.text(h("<span class='quiet'>All others</span>")), v.text(h("<i>"), none, h("</i>")))
	}
	g.end()
}

// groupName appends the name of a group, a link to its members.
func (v *view) groupName(q store.Explore, got *admin.Explored, x *store.Group) {
	switch {
	case q.Tag != "":
		v.Put(h("<a href='"), url("stats", "filter", groupFilter(q, x)), h("'>"))
		if x.Name == "" {
			v.Put("(empty)")
		}
		v.dotted(x.Name)
	case x.Leaf:
		v.Put(h("<a href='"), url("stat", "name", x.Name), h("'><i>"))
		v.dotted(q.Prefix)
		v.Put(h("</i><wbr>"))
		v.dotted(x.Name[len(q.Prefix):])
	default:
		v.Put(h("<a href='"), v.here("prefix", x.Name), h("'><i>"))
		v.dotted(q.Prefix)
		v.Put(h("</i><wbr>"))
		v.dotted(x.Name[len(q.Prefix):])
	}
	v.Put(h("</a>"))
	if got.Overflowed[x.Name] {
		v.Put(" ")
		v.word("warn", "overflow")
	}
}

// groupFilter returns the filter that selects the stats of a group.
func groupFilter(q store.Explore, x *store.Group) string {
	switch {
	case q.Tag != "":
		return `(^|\.)` + quoteMeta(x.Name) + `(\.|$)`
	case x.Leaf:
		return "^" + quoteMeta(x.Name) + "$"
	}
	return "^" + quoteMeta(x.Name)
}

// tagTable appends the tags of the stats.
func (v *view) tagTable(prefix string, list []store.TagCount) {
	v.panel("tags-head", "By tag", func() { v.actions("tags", url("/stats/explore", "prefix", prefix, "tags", "1")) }, func() {
		g := v.grid("tags", "Tags of the stats", "", order{}, column{head: "Tag"}, column{head: "Series", class: "num"}, column{head: "Values", class: "num"})
		for i := range list {
			t := &list[i]
			g.row("")
			g.head(t.Name, func() {
				v.Put(h("<a class='wrap' href='"), url("explorer", "prefix", prefix, "tag", t.Name), h("'>"), t.Name, h("</a>"))
			})
			g.num(fmt.Sprint(t.Series))
			shown := count(t.Values)
			if !t.Exact {
				shown = "about " + shown
			}
			g.shown(fmt.Sprint(t.Values), shown)
		}
		g.end()
	})
}

// The treemap.
const (
	mapWidth = 1000 // for the shapes; the real width is that of the page
	mapTall  = 300
	mapTiles = 60
	// Smaller tiles have no label.
	labelWidth = 70
	labelTall  = 18
)

// rect is a place in a treemap.
type rect struct{ x, y, w, h float64 }

// squarify cuts r into rectangles of the sizes, which are descending and positive, such
// that they are about square (Bruls, Huizing, van Wijk 2000).
func squarify(sizes []float64, r rect) (out []rect) {
	total := 0.0
	for _, s := range sizes {
		total += s
	}
	for len(sizes) > 0 {
		side := min(r.w, r.h)
		scale := r.w * r.h / total
		// A row along the shorter side grows while its worst shape gets better.
		n, sum, worst := 0, 0.0, 0.0
		for n < len(sizes) {
			next := sum + sizes[n]
			thick := next * scale / side
			long, short := sizes[0]*scale/thick, sizes[n]*scale/thick
			shape := max(long/thick, thick/short)
			if n > 0 && shape > worst {
				break
			}
			n, sum, worst = n+1, next, shape
		}
		thick := sum * scale / side
		at := 0.0
		for _, s := range sizes[:n] {
			length := s * scale / thick
			if r.w < r.h {
				out = append(out, rect{r.x + at, r.y, length, thick})
			} else {
				out = append(out, rect{r.x, r.y + at, thick, length})
			}
			at += length
		}
		if r.w < r.h {
			r.y, r.h = r.y+thick, max(r.h-thick, 0)
		} else {
			r.x, r.w = r.x+thick, max(r.w-thick, 0)
		}
		total -= sum
		sizes = sizes[n:]
	}
	return out
}

// treemap appends the groups as areas.
func (v *view) treemap(groups []store.Group, others int) {
	list := slices.Clone(groups)
	slices.SortStableFunc(list, func(a, b store.Group) int { return b.Series - a.Series })
	for _, g := range list[min(len(list), mapTiles):] {
		others += g.Series
	}
	list = list[:min(len(list), mapTiles)]
	if others > 0 {
		list = append(list, store.Group{Name: "all others", Series: others})
		slices.SortStableFunc(list, func(a, b store.Group) int { return b.Series - a.Series })
	}
	sizes := make([]float64, len(list))
	for i := range list {
		sizes[i] = float64(list[i].Series)
	}
	v.Put(h("<div class='pad'><svg class='plot map' role='img' height='"), mapTall, h("' aria-label='"),
		fmt.Sprintf("Areas of %s by their number of stats; the table has the numbers.", plural(len(list), "group")), h("'>"))
	for i, r := range squarify(sizes, rect{0, 0, mapWidth, mapTall}) {
		g, level := &list[i], 2
		if g.New > 0 {
			level = 3
		}
		v.Put(h("<svg x='"), r.x*100/mapWidth, h("%' y='"), r.y, h("' width='"), r.w*100/mapWidth, h("%' height='"), r.h, h("'><title>"),
			g.Name, ": ", plural(g.Series, "stat"), h("</title><rect class='f l"), level, h("' width='100%' height='100%'/>"))
		if r.w >= labelWidth && r.h >= labelTall {
			v.Put(h("<text x='6' y='14'>"), tileName(g.Name), h("</text>"))
			if r.h >= 2*labelTall {
				v.Put(h("<text class='spare' x='6' y='30'>"), count(g.Series), h("</text>"))
			}
		}
		v.Put(h("</svg>"))
	}
	v.Put(h("</svg><p class='legend'><span>Area: stats. Stronger color: some are new in the last minute.</span></p></div>\n"))
}

// tileName returns the last segment of a name, with what follows it.
func tileName(name string) string {
	if n := strings.LastIndexByte(strings.TrimSuffix(name, "."), '.'); n >= 0 {
		return name[n+1:]
	}
	return name
}
