package pages

import (
	"fmt"
	"strings"
)

// cdf appends the share of the values up to each value, of the interval and since the
// start.
func (v *view) cdf(s *both, a axis, list []bin) {
	unit := s.Cumulative.Layout().Unit()
	line := func(total uint64, n func(*bin) uint64) string {
		var b strings.Builder
		fmt.Fprintf(&b, "M0 %.1f", plotFloor)
		sum := uint64(0)
		for i := range list {
			sum += n(&list[i])
			fmt.Fprintf(&b, "L%.2f %.1f", float64(i+1)/float64(len(list))*100, plotFloor-plotTall*float64(sum)/float64(max(total, 1)))
		}
		return b.String()
	}
	r := rules{at: []float64{0, 25, 50, 75, 100}, high: 100, unit: thin + "%"}
	v.scale(r)
	v.Put(h("<svg class='plot' role='img' height='"), plotAll, h("' aria-label='Share of the values up to each value; the table of quantiles has the numbers'>"))
	v.rules(r)
	v.Put(h("<svg viewBox='0 0 100 "), plotAll, h("' width='100%' height='"), plotAll, h("' preserveAspectRatio='none'><path class='step dashed' d='"),
		line(s.Cumulative.Count(), func(b *bin) uint64 { return b.cumulative }), h("'/>"))
	if s.Interval.Count() > 0 {
		v.Put(h("<path class='ln' d='"), line(s.Interval.Count(), func(b *bin) uint64 { return b.interval }), h("'/>"))
	}
	v.Put(h("</svg>"))
	for _, x := range a.ticks() {
		at := a.at(x)
		v.Put(h("<text x='"), min(max(at, 3), 97), h("%' y='"), plotFloor+17, h("'>"), measuredText(x, unit), h("</text>"))
	}
	v.marks(s.Cumulative.Quantiles(nil, quantiles[:]), a, func(x float64) string { return measuredText(x, unit) })
	v.Put(h("</svg></div>\n<p class='legend'><span><svg class='key' aria-hidden='true'><path class='ln' d='M0 5h14'/></svg> "), s.bars,
		h("</span><span><svg class='key' aria-hidden='true'><path class='step dashed' d='M0 5h14'/></svg> "), s.outline, h("</span><span>Marks: quantiles of the dashed line</span></p>\n"))
}
