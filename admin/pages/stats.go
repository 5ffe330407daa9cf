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
	ref       uint64 // its id in the stream
	past      spark
	rate      float64 // in the last interval, of counters and histograms
	base      string  // exact value at the zero point; "" if it is unknown
	gone      bool    // a pinned stat that does not exist
}

func readStat(c *store.Cursor) statRow {
	r := statRow{name: c.Name(), kind: c.Kind(), ref: c.Ref(), used: c.Used(), key: valueKey(c)}
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

// choose is which stats a page shows, in which order.
type choose struct {
	render.Options
	key  func(*store.Cursor) float64 // nil: in the order of the names
	desc bool
	skip func(*store.Cursor) bool // nil: none
	from int
	rows int
}

// selectStats returns a page of stats, and how many there are in all.
func selectStats(list *store.View, c choose) (out selected, err error) {
	if c.key == nil && c.desc {
		return lastStats(list, c)
	}
	w := render.NewWalk(list, c.Options)
	if c.key != nil {
		return topStats(w, c)
	}
	out.offset = c.from
	for len(out.rows) < c.rows && w.Next() {
		if c.skip != nil && c.skip(w.Stat()) {
			continue
		}
		out.total++
		if out.total > c.from {
			out.rows = append(out.rows, readStat(w.Stat()))
		}
	}
	out.total += rest(w, c.skip)
	return out, w.Err()
}

// rest returns how many stats are left.
func rest(w *render.Walk, skip func(*store.Cursor) bool) (n int) {
	if skip == nil {
		return w.Rest()
	}
	for w.Next() {
		if !skip(w.Stat()) {
			n++
		}
	}
	return n
}

// lastStats returns a page in the reverse order of the names.
func lastStats(list *store.View, c choose) (out selected, err error) {
	w := render.NewWalk(list, c.Options)
	total := rest(w, c.skip)
	if err := w.Err(); err != nil {
		return out, err
	}
	end := max(0, total-c.from)
	page := c
	page.desc, page.from, page.rows = false, max(0, end-c.rows), min(c.rows, end)
	out, err = selectStats(list, page)
	slices.Reverse(out.rows)
	out.offset = c.from
	return out, err
}

// topStats keeps the rows that can still be on the page, and drops the others whenever
// there are twice as many.
func topStats(w *render.Walk, c choose) (out selected, err error) {
	out.offset = min(c.from, deepest)
	keep := out.offset + c.rows
	compare := func(a, b statRow) int {
		switch {
		case a.key == b.key:
			return strings.Compare(a.name, b.name)
		case (a.key < b.key) != c.desc:
			return -1
		}
		return 1
	}
	var rows []statRow
	bound, bounded := 0.0, false
	for w.Next() {
		if c.skip != nil && c.skip(w.Stat()) {
			continue
		}
		out.total++
		key := c.key(w.Stat())
		if bounded && (key < bound) == c.desc && key != bound {
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
	out.rows = rows[min(out.offset, len(rows)):min(keep, len(rows))]
	return out, w.Err()
}
