package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// distribution is an answer of /stats/histogram.
type distribution struct {
	Unit      string
	Count     any
	Quantiles [][2]float64
	Min, Max  float64
	Bins      []entry
}

func histogramPath(name string) string {
	return "/stats/histogram?bins&q=50,75,90,95,99,99.9&name=" + escapeQuery(name)
}

func readDistribution(answer []byte) (*distribution, error) {
	var d distribution
	dec := json.NewDecoder(bytes.NewReader(answer))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("malformed answer: %w", err)
	}
	return &d, nil
}

// lines draws the bins, of which neighbors are merged until they fit, as bars.
func (d *distribution) lines(st Style, columns, lines int) []string {
	if len(d.Bins) == 0 {
		return []string{"No recorded values"}
	}
	quantiles := make([]string, len(d.Quantiles))
	for i, q := range d.Quantiles {
		quantiles[i] = fmt.Sprintf("p%g %s", q[0], st.measured(q[1], d.Unit, 9))
	}
	out := []string{
		fmt.Sprintf("%s values from %s to %s, buckets in %s", numfmt.Grouped(oneline.Escape(entry{d.Count}.text(0))), st.measured(d.Min, d.Unit, 9), st.measured(d.Max, d.Unit, 9), oneline.Escape(d.Unit)),
		strings.Join(quantiles, "  "), "",
	}
	per := max(1, (len(d.Bins)+lines-len(out)-1)/max(1, lines-len(out)))
	type group struct{ from, to, count float64 }
	var groups []group
	most, all := 0.0, 0.0
	for i := 0; i < len(d.Bins); i += per {
		g := group{from: d.Bins[i].number(0)}
		for _, b := range d.Bins[i:min(i+per, len(d.Bins))] {
			g.to = b.number(0) + b.number(1)
			g.count += b.number(2)
		}
		most, all = max(most, g.count), all+g.count
		groups = append(groups, g)
	}
	const fixed = 9 + 3 + 9 + 2 + 9 + 2 + 6 + 2
	for _, g := range groups {
		out = append(out, fmt.Sprintf("%s - %s  %s  %s  %s", st.right(st.number(g.from, 9), 9), st.fit(st.number(g.to, 9), 9), st.right(st.number(g.count, 9), 9),
			st.right(fmt.Sprintf("%.1f%%", 100*g.count/max(all, 1)), 6), st.bar(g.count/max(most, 1), max(4, columns-fixed))))
	}
	return out
}
