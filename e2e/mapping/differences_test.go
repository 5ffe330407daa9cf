package mapping

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/statsd_exporter/pkg/listener"
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
		// Counters are whole numbers; the rest comes with later samples.
		{"half:0.4|c", "half", "{} 0.4", "{} 0"},
		{"halves:0.4|c\nhalves:0.4|c\nhalves:0.4|c\nhalves:0.4|c\nhalves:0.4|c", "halves", "{} 2", "{} 2"},
		{"third:9|ms|@0.3\nthird:9|ms|@0.3\nthird:9|ms|@0.3", "third", "{} count 9", "{} count 10"},
		{"tiny:0.0000001|h", "tiny", "{} sum 1e-07", "{} sum 0"},
		// Labels that the page needs itself.
		{"le:1|c|#le:x", "le", `{le="x"} 1`, `{exported_le="x"} 1`},
		{"quantile:1|g|#quantile:x", "quantile", `{quantile="x"} 1`, `{exported_quantile="x"} 1`},
		// Refused by statsd_exporter.
		{"pack:1:2|c", "pack", "", "{} 3"},
		{"option:1|c|", "option", "", "{} 1"},
		{"card:1|c|card:low", "card", "", "{} 1"},
		{"container:1|c|c:ci-1", "container", "", `{container_id="ci-1"} 1`},
		{"users:anna|s", "users", "", "{} 1"},
		// Accepted by statsd_exporter.
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
		{"w.:1|c", "w_", "{} 1", "{} 1"},
		{"w.:1|c", "w", "", ""},
		{"dots.x.:1|c\ndots.x_:2|c\ndots.x:4|c", "dots_x_", "{} 3", "{} 3"},
		{"dots.x.:1|c\ndots.x_:2|c\ndots.x:4|c", "dots_x", "{} 4", "{} 4"},
		{"bare:1|c|#sometag", "bare", "{} 1", "{} 1"},
		{"blank:1|c|#a:\nblank:1|c|#a:,kk:1", "blank", "{} 1", "{} 1"},
		{"blank:1|c|#a:\nblank:1|c|#a:,kk:1", "blank", `{kk="1"} 1`, `{kk="1"} 1`},
		{"second:1|c\nsecond:2|ms\nsecond:3|g\nsecond:4|c|#kk:1\nsecond:5|g|#kk:2", "second", "{} 1", "{} 1"},
		{"second:1|c\nsecond:2|ms\nsecond:3|g\nsecond:4|c|#kk:1\nsecond:5|g|#kk:2", "second", `{kk="1"} 4`, `{kk="1"} 4`},
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

// TestSelfMetrics compares what the programs count of the same datagrams, of which one
// has a line feed at its end and two have lines of a second type.
func TestSelfMetrics(t *testing.T) {
	packets := []string{"a:1|c|#kk:1,zz:2\nnonsense\nb:1:2|ms|@0.5|#kk:1\n", "a:1|g\nb:1|c|#bare,kk:1\na:x|c", "d:1|c|#bare\ng:1|g"}
	p := newPeer(t, "")
	l := listener.StatsDUnixgramListener{
		EventHandler: p.listener.EventHandler, Logger: p.listener.Logger, LineParser: p.listener.LineParser,
		UnixgramPackets: p.listener.TCPConnections, LinesReceived: p.listener.LinesReceived, SampleErrors: p.listener.SampleErrors,
		SamplesReceived: p.listener.SamplesReceived, TagErrors: p.listener.TagErrors, TagsReceived: p.listener.TagsReceived,
	}
	for _, packet := range packets {
		l.HandlePacket([]byte(packet))
	}
	close(p.events)
	<-p.done
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := selfCounters(families)

	d, _ := startOurs(t, "--statsd.listen-unixgram=$DIR/in.sock")
	conn, err := net.Dial("unixgram", d.Dir+"/in.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, packet := range packets {
		if _, err := conn.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
	}
	var here map[string]float64
	d.Until("all lines", func() bool {
		here = selfCounters(familiesOf(t, d))
		// Conflicts are counted after the line that has one.
		return here["lines_total"] >= 8 && here["events_conflict_total a gauge"] > 0 && here["events_conflict_total b counter"] > 0
	})
	for _, row := range []struct {
		name        string
		there, here float64
	}{
		{"lines_total", 9, 8},   // the end of a datagram is not a line
		{"samples_total", 8, 5}, // those that were accepted
		{"tags_total", 4, 3},    // tags, there samples that have some
		{"tag_errors_total", 2, 1},
		{"events_total observer", 4, 2}, // a sampled value is one event
		{"events_unmapped_total", 9, 5},
		// The same.
		{"events_total counter", 2, 2},
		{"events_total gauge", 1, 1},
		{"events_conflict_total a gauge", 1, 1},
		{"events_conflict_total b counter", 1, 1},
		{"sample_errors_total malformed_line", 1, 1},
		{"sample_errors_total malformed_value", 1, 1},
	} {
		if there[row.name] != row.there || here[row.name] != row.here {
			t.Errorf("%s: there %v, here %v; want %v and %v", row.name, there[row.name], here[row.name], row.there, row.here)
		}
	}
}

// selfCounters returns the counters that statsd_exporter has of itself, by name and
// values of labels.
func selfCounters(families []*dto.MetricFamily) map[string]float64 {
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			words := []string{strings.TrimPrefix(f.GetName(), "statsd_exporter_")}
			for _, l := range m.GetLabel() {
				words = append(words, l.GetValue())
			}
			slices.Sort(words[1:])
			if words[0] != f.GetName() && m.Counter != nil {
				all[strings.Join(words, " ")] = m.GetCounter().GetValue()
			}
		}
	}
	return all
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
