package pages

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

// quantiles are the quantiles of the JSON form of stats.
var quantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// quantileName returns the usual name, such as P99.9.
func quantileName(q float64) string { return "P" + numfmt.Trimmed(q*100, 4) }

// major reports whether a quantile is marked by a solid line.
func major(q float64) bool { return q == 0.5 || q == 0.9 || q == 0.99 }

// The rows of the plot in pixels: rows of labels, the bars, the axis.
const (
	labelRow  = 14.0
	labelRows = 4
	plotTop   = labelRows*labelRow + 6
	plotTall  = 190.0
	plotFloor = plotTop + plotTall
	plotAll   = plotFloor + 22
)

// label is the label of a quantile mark.
type label struct {
	text   string
	x      float64 // percent
	level  int     // row; -1: no room
	anchor string  // start, middle or end
	major  bool
}

// The estimated width of a character of a label, in percent of the plot: in windows
// just wide enough for all labels, and on phones, which show only the major ones.
const (
	letter = 1.15
	phone  = 2.6
)

// extent returns the ends of a label whose characters have the given width.
func (l *label) extent(letter float64) (from, to float64) {
	width := letter * float64(utf8.RuneCountInString(l.text))
	switch l.anchor {
	case "start":
		return l.x, l.x + width
	case "end":
		return l.x - width, l.x
	}
	return l.x - width/2, l.x + width/2
}

// placeLabels gives each label a row where it does not touch another one, above its mark
// or beside it; major ones choose first.
func placeLabels(list []label) {
	var placed []*label
	place := func(l *label, letter float64) {
		for _, l.anchor = range [...]string{"middle", "start", "end"} {
			from, to := l.extent(letter)
			if from < 0 || to > 100 {
				continue
			}
			for l.level = range labelRows {
				free := true
				for _, p := range placed {
					left, right := p.extent(letter)
					free = free && (p.level != l.level || to+1 < left || from > right+1)
				}
				if free {
					placed = append(placed, l)
					return
				}
			}
		}
		l.level = -1
	}
	for i := range list {
		if list[i].major {
			place(&list[i], phone)
		}
	}
	for i := range list {
		if !list[i].major {
			place(&list[i], letter)
		}
	}
}

// plot appends the picture of a histogram: bars of the interval, the outline of all
// values since the start, marks of the quantiles.
func (v *view) plot(s *both, a axis, list []bin, shares bool) {
	unit := s.Cumulative.Layout().Unit()
	marked, which, of := s.Cumulative, "outline", s.outline
	if s.Interval.Count() > 0 {
		marked, which, of = s.Interval, "bars", s.bars
	}
	values := marked.Quantiles(nil, quantiles[:])
	summary := fmt.Sprintf("%s: %s values, median %s, 90th percentile %s, 99th percentile %s, greatest %s.", of, count(marked.Count()),
		measuredText(values[2], unit), measuredText(values[4], unit), measuredText(values[6], unit), measuredText(values[8], unit))
	height := func(n, total uint64) float64 {
		if total == 0 {
			return 0
		}
		if shares {
			return float64(n) / float64(total)
		}
		return float64(n)
	}
	top := 0.0
	for _, b := range list {
		top = max(top, height(b.interval, s.Interval.Count()), height(b.cumulative, s.Cumulative.Count()))
	}
	top = max(top, 1e-9)
	r := rules{high: top}
	if shares {
		r = rules{high: 100 * top, unit: thin + "%"}
	}
	r.at = axis{high: r.high}.ticks()
	v.scale(r)
	v.Put(h("<svg class='plot' role='img' tabindex='0' height='"), plotAll, h("' aria-label='"), summary, h("' data-bins='bins'>"))
	v.rules(r)
	width := 100 / float64(len(list))
	for i, b := range list {
		if b.interval > 0 || b.cumulative > 0 { // those of the table, in its order
			v.Put(h("<rect class='bin' x='"), float64(i)*width, h("%' width='"), width, h("%' y='"), plotTop, h("' height='"), plotTall, h("'/>"))
		}
	}
	var outline strings.Builder
	for i, b := range list {
		x := float64(i) * width
		if n := height(b.interval, s.Interval.Count()) / top * plotTall; n > 0 {
			n = max(n, 1)
			v.Put(h("<rect class='f' x='"), x+width*.06, h("%' width='"), width*.88, h("%' y='"), plotFloor-n, h("' height='"), n, h("'/>"))
		}
		n := height(b.cumulative, s.Cumulative.Count()) / top * plotTall
		if n > 0 {
			n = max(n, 1)
		}
		fmt.Fprintf(&outline, "%c%.2f %.1fH%.2f", "ML"[min(i, 1)], x, plotFloor-n, x+width)
	}
	v.Put(h("<svg viewBox='0 0 100 "), plotAll, h("' width='100%' height='"), plotAll, h("' preserveAspectRatio='none'><path class='step' d='"), outline.String(), h("'/></svg>"))
	for i, x := range a.ticks() {
		at := a.at(x)
		v.Put(h("<line class='rule' x1='"), at, h("%' x2='"), at, h("%' y1='"), plotFloor, h("' y2='"), plotFloor+4, h("'/><text class='"))
		switch {
		case at < 3:
			v.Put(h("start"))
		case at > 97:
			v.Put(h("end"))
		}
		if i%3 > 0 {
			v.Put(h(" spare"))
		}
		v.Put(h("' x='"), at, h("%' y='"), plotFloor+17, h("'>"), measuredText(x, unit), h("</text>"))
	}
	v.marks(values, a, func(x float64) string { return measuredText(x, unit) })
	v.Put(h("</svg></div>\n<p class='legend'><span><svg class='key' aria-hidden='true'><rect class='f' width='14' height='10'/></svg> "), s.bars,
		h("</span><span><svg class='key' aria-hidden='true'><rect class='step' x='.5' y='.5' width='13' height='9'/></svg> "), s.outline,
		h("</span><span>Marks: quantiles of the "), which, h("</span></p>\n"))
}

// rules are the horizontal lines of a plot from 0 to high.
type rules struct {
	at   []float64
	high float64
	unit string
}

func (r *rules) y(value float64) float64 { return plotFloor - plotTall*value/r.high }

// scale starts a plot with the labels of its rules, which stand in a column of their own.
func (v *view) scale(r rules) {
	v.Put(h("<div class='plotbox'><svg class='plot scale' aria-hidden='true' width='52' height='"), plotAll, h("'>"))
	for _, x := range r.at {
		v.Put(h("<text class='end' x='46' y='"), r.y(x)+4, h("'>"), numfmt.Significant(x), r.unit, h("</text>"))
	}
	v.Put(h("</svg>"))
}

// rules appends a line for each rule.
func (v *view) rules(r rules) {
	for _, x := range r.at {
		class := h("rule")
		if x == 0 {
			class = "base"
		}
		v.Put(h("<line class='"), class, h("' x2='100%' y1='"), r.y(x), h("' y2='"), r.y(x), h("'/>"))
	}
}

// marks appends the lines of the quantiles with their labels. Neighbors with one value
// share a label.
func (v *view) marks(values []float64, a axis, text func(float64) string) {
	var list []label
	for i := 0; i < len(values); {
		name, l := quantileName(quantiles[i]), label{x: a.at(values[i])}
		first := i
		for ; i < len(values) && values[i] == values[first]; i++ {
			l.major = l.major || major(quantiles[i])
		}
		if i-first > 1 {
			name += "–" + quantileName(quantiles[i-1])
		}
		l.text = name + " " + text(values[first])
		list = append(list, l)
	}
	placeLabels(list)
	for _, l := range list {
		class := h("mark minor")
		if l.major {
			class = "mark"
		}
		y := plotTop - 4.0
		if l.level >= 0 {
			y = plotTop - 6 - labelRow*float64(labelRows-1-l.level)
		}
		v.Put(h("<line class='"), class, h("' x1='"), l.x, h("%' x2='"), l.x, h("%' y1='"), y+3, h("' y2='"), plotFloor, h("'/>"))
		if l.level >= 0 {
			v.Put(h("<text class='"), class, " ", l.anchor, h("' x='"), l.x, h("%' y='"), y, h("'>"), l.text, h("</text>"))
		}
	}
}
