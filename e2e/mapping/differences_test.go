package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// differenceRules are the rules of TestDifferences.
const differenceRules = `
mappings:
- {match: kind.*, match_metric_type: counter, action: drop, name: kind}
- {match: low, name: low, observer_type: histogram, histogram_options: {buckets: [-1, 1]}}
`

// TestDifferences shows the lines that the programs treat differently, as
// docs/migration.md lists them.
func TestDifferences(t *testing.T) {
	rows := []struct{ lines, metric, there, here string }{
		// Counters are whole numbers; what is missing comes with later samples.
		{"half:0.4|c", "half", "{} 0.4", "{} 0"},
		{"halves:0.4|c\nhalves:0.4|c\nhalves:0.4|c\nhalves:0.4|c\nhalves:0.4|c", "halves", "{} 2", "{} 2"},
		{"third:9|ms|@0.3\nthird:9|ms|@0.3\nthird:9|ms|@0.3", "third", "{} count 9", "{} count 10"},
		{"tiny:0.0000001|h", "tiny", "{} sum 1e-07", "{} sum 0"},
		// Labels that the page needs itself.
		{"le:1|c|#le:x", "le", `{le="x"} 1`, `{exported_le="x"} 1`},
		{"quantile:1|g|#quantile:x", "quantile", `{quantile="x"} 1`, `{exported_quantile="x"} 1`},
		// What statsd_exporter refuses.
		{"pack:1:2|c", "pack", "", "{} 3"},
		{"option:1|c|", "option", "", "{} 1"},
		{"card:1|c|card:low", "card", "", "{} 1"},
		{"container:1|c|c:ci-1", "container", "", `{container_id="ci-1"} 1`},
		{"users:anna|s", "users", "", "{} 1"},
		// What it takes.
		{"hex:0x1p4|c", "hex", "{} 16", ""},
		{"infinite:inf|g", "infinite", "{} +Inf", ""},
		{"much:4|c|@2", "much", "{} 2", ""},
		{"none:4|c|@0", "none", "{} 4", ""},
		{"partly:1|c:x|c", "partly", "{} 1", ""},
		{"kinds:1|c:2|g", "kinds", "{} 1", "{} 0"}, // a line counts as a whole or not at all
		// Names.
		{" space:1|c", "_space", "{} 1", ""},
		{" space:1|c", "space", "", "{} 1"},
		{"one.name:1|g\none-name:2|g", "one_name", "{} 2", "{} 1"},
		// Timestamps.
		{"old:1|g|T1700000002\nold:2|g|T1700000001", "old", "{} 2", "{} 1"},
		// Rules.
		{"kind.x:1|c\nkind.x:1|g", "kind_x", "{} 1", "{} 1"},
		{"low:0.5|h", "low", "{} le -1 0", "{} le 1 1"},
		// The same.
		{"late:-1|ms", "late", "{} sum -0.001", "{} sum -0.001"},
	}
	var lines strings.Builder
	sent := make(map[string]bool)
	for _, row := range rows {
		if !sent[row.lines] {
			lines.WriteString(row.lines + "\n")
		}
		sent[row.lines] = true
	}
	there, here := theirPage(t, differenceRules, lines.String()), ourPage(t, differenceRules, lines.String())
	for _, row := range rows {
		for side, p := range map[string]page{row.there: there, row.here: here} {
			if got := samplesOf(p[row.metric]); side == "" && got != nil || side != "" && !slices.Contains(got, side) {
				t.Errorf("%q: %s: want %q in %q", row.lines, row.metric, side, got)
			}
		}
	}
}

// samplesOf returns the samples of a family as text.
func samplesOf(f *family) (all []string) {
	if f == nil {
		return nil
	}
	for labels, samples := range f.series {
		for _, part := range slices.Sorted(maps.Keys(samples)) {
			text := fmt.Sprintf("{%s} %s %v", labels, part, samples[part])
			all = append(all, strings.Replace(text, "} value ", "} ", 1))
		}
	}
	return all
}
