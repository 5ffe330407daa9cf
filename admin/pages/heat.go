package pages

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

// The strip of distributions over time.
const (
	heatColumns = 60
	heatRows    = 24
	heatLevels  = 5

	stripRows = 30
	stripTall = 4 // pixels of a row
)

// ranges are the times that the strip covers.
var ranges = [...]duration{{"", 5 * time.Minute, "5 min"}, {"1h", time.Hour, "1 h"}, {"1d", 24 * time.Hour, "1 d"}}

// heat appends the distributions over time: a column for each step, darker where more
// values are.
func (v *view) heat(columns []history.Point, l *histogram.Layout, log bool) {
	all := l.Empty()
	for i := range columns {
		all = histogram.MergeStats(all, columns[i].Stats)
	}
	if all.Count() == 0 {
		v.empty("No values in this time.")
		return
	}
	unit := l.Unit()
	a := newAxis(all, log)
	n := binCount(all, a, heatRows)
	cells := make([][]bin, len(columns))
	var most uint64
	for i := range columns {
		cells[i] = bins(&histogram.Snapshot{Interval: columns[i].Stats, Cumulative: columns[i].Stats}, a, n)
		for _, b := range cells[i] {
			most = max(most, b.interval)
		}
	}
	const tall, foot = 12 * heatRows, 22
	row := float64(tall) / float64(n)
	v.Put(h("<div class='plotbox'><svg class='plot scale' aria-hidden='true' height='"), tall+foot, h("'>"))
	for _, x := range a.ticks() {
		v.Put(h("<text class='end' x='46' y='"), math.Max(tall*(1-a.at(x)/100)+4, 9), h("'>"), measuredText(x, unit), h("</text>"))
	}
	v.Put(h("</svg><svg class='plot' role='img' height='"), tall+foot, h("' aria-label='"), fmt.Sprintf("%s in %s, from %s to %s; the table of steps has the numbers.",
		plural(all.Count(), "value"), plural(len(columns), "step"), measuredText(all.Min(), unit), measuredText(all.Max(), unit)), h("'>"))
	width := 100 / float64(len(columns))
	for i, list := range cells {
		for y := 0; y < n; { // cells of the same level are one
			at, level := y, heatLevel(list[y].interval, most)
			for y++; y < n && heatLevel(list[y].interval, most) == level; y++ {
			}
			if level > 0 {
				v.Put(h("<rect class='f l"), level, h("' x='"), float64(i)*width, h("%' width='"), width, h("%' y='"), tall-row*float64(y), h("' height='"), row*float64(y-at), h("'/>"))
			}
		}
	}
	v.Put(h("<line class='base' x2='100%' y1='"), tall, h("' y2='"), tall, h("'/><text class='start' y='"), tall+17, h("'>"),
		numfmt.Span(v.now.Sub(columns[0].Start)), h(" ago</text><text class='end' x='100%' y='"), tall+17, h("'>now</text></svg></div>\n"))
	v.Put(h("<p class='legend'><span>Values in a step and bucket: few "))
	v.Put(h("<svg class='key heat' aria-hidden='true'>"))
	for level := range heatLevels {
		v.Put(h("<rect class='f l"), level+1, h("' x='"), level*14, h("' width='14' height='10'/>"))
	}
	v.Put(h("</svg> "), count(most), h("</span></p>\n"))
}

// strip appends the distributions over time under the bars, on their axis: a row for each
// step, the newest on top, with the median and the 99th percentile.
func (v *view) strip(rows []history.Point, a axis, n int) {
	if len(rows) == 0 {
		return
	}
	slices.Reverse(rows)
	cells := make([][]bin, len(rows))
	var most, total uint64
	for i := range rows {
		total += rows[i].Stats.Count()
		cells[i] = bins(&histogram.Snapshot{Interval: rows[i].Stats, Cumulative: rows[i].Stats}, a, n)
		for _, b := range cells[i] {
			most = max(most, b.interval)
		}
	}
	tall := stripTall * len(rows)
	var levels [heatLevels + 1]strings.Builder
	var lines [2]strings.Builder
	width := 100 / float64(n)
	for i, list := range cells {
		for x := 0; x < n; { // cells of the same level are one
			at, level := x, heatLevel(list[x].interval, most)
			for x++; x < n && heatLevel(list[x].interval, most) == level; x++ {
			}
			if level > 0 {
				fmt.Fprintf(&levels[level], "M%.2f %dh%.2fv%dH%.2fz", float64(at)*width, i*stripTall, float64(x-at)*width, stripTall, float64(at)*width)
			}
		}
		if rows[i].Stats.Count() == 0 {
			continue
		}
		for j, q := range [...]float64{.5, .99} {
			x := a.at(rows[i].Stats.Quantile(q))
			if i == 0 || rows[i-1].Stats.Count() == 0 { // nothing is known of the gap
				fmt.Fprintf(&lines[j], "M%.2f %d", x, i*stripTall)
			}
			fmt.Fprintf(&lines[j], "L%.2f %d", x, i*stripTall+stripTall/2)
		}
	}
	v.Put(h("<div class='plotbox'><svg class='plot scale' aria-hidden='true' height='"), max(tall, 24), h("'><text class='end' x='46' y='10'>now</text><text class='end' x='46' y='"), max(tall, 24)-2, h("'>"),
		numfmt.Age(v.now.Sub(rows[len(rows)-1].Start)), h("</text></svg><svg class='plot strip' role='img' viewBox='0 0 100 "), tall, h("' width='100%' height='"), tall, h("' preserveAspectRatio='none' aria-label='"),
		fmt.Sprintf("The same axis over time: %s in %s, the newest on top. “Over time” has the numbers.", plural(total, "value"), plural(len(rows), "step")), h("'>"))
	for level := 1; level <= heatLevels; level++ {
		if levels[level].Len() > 0 {
			v.Put(h("<path class='f l"), level, h("' d='"), levels[level].String(), h("'/>"))
		}
	}
	for j := range lines {
		if lines[j].Len() > 0 {
			v.Put(h("<path class='halo' d='"), lines[j].String(), h("'/><path class='through' d='"), lines[j].String(), h("'/>"))
		}
	}
	v.Put(h("</svg></div>\n<p class='legend'><span>Below, over time: the stronger the color, the more values; lines are P50 and P99</span></p>\n"))
}

// heatLevel returns a level from 1 for few values to heatLevels for the most, 0 for none.
// Areas of the levels are like their counts, so that single values are visible.
func heatLevel(n, most uint64) int {
	if n == 0 {
		return 0
	}
	return max(1, int(math.Ceil(heatLevels*math.Sqrt(float64(n)/float64(most)))))
}

// stepTable appends the steps as numbers.
func (v *view) stepTable(columns []history.Point, l *histogram.Layout) {
	unit := l.Unit()
	g := v.grid("steps", "Steps", "", order{}, column{head: "Until"}, column{head: "From", class: "spare"}, column{head: "Values", class: "num spare"}, column{head: "P50", class: "num"},
		column{head: "P90", class: "num"}, column{head: "P99", class: "num"}, column{head: "Max", class: "num"})
	for i := len(columns) - 1; i >= 0; i-- {
		s := columns[i].Stats
		g.row("")
		g.head(isoTime(columns[i].End), func() { v.when(columns[i].End) })
		g.cell(isoTime(columns[i].Start), func() { v.when(columns[i].Start) })
		g.num(fmt.Sprint(s.Count()))
		for _, q := range [...]float64{0.5, 0.9, 0.99, 1} {
			x := s.Quantile(q)
			g.shown(exactValue(x), measuredText(x, unit))
		}
	}
	g.end()
}
