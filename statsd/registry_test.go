package statsd

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestKindConflicts(t *testing.T) {
	for _, tt := range []struct {
		name      string
		in        []string
		want      []string
		conflicts uint64
	}{
		{"counter-then-timer", []string{"foo:1|c", "foo:1|ms", "foo:2|c", "foo:3|h"}, []string{"foo 3", "foo_histogram count=2 sum=4"}, 1},
		{"timer-then-counter", []string{"foo:1|ms", "foo:1|c"}, []string{"foo count=1 sum=1", "foo_counter 1"}, 1},
		{"all", []string{"foo:1|g", "foo:1|c", "foo:1|d", "foo:x|s"}, []string{"foo 1", "foo_counter 1", "foo_histogram count=1 sum=1", "foo_set 0"}, 3},
		{"other-tags", []string{"foo:1|c|#a:b", "foo:1|g|#a:c", "foo:2|g|#a:d"}, []string{"foo.a.b 1", "foo_gauge.a.c 1", "foo_gauge.a.d 2"}, 1},
		{"sample-names", []string{"stat_count:1|c", "stat:1|ms"}, []string{"stat_count 1", "stat_histogram count=1 sum=1"}, 1},
		{"sample-names-after", []string{"stat:1|ms", "stat_count:1|c", "stat_sum:1|g", "stat_bucket:x|s"},
			[]string{"stat count=1 sum=1", "stat_bucket_set 0", "stat_count_counter 1", "stat_sum_gauge 1"}, 3},
		{"sample-names-cleaned", []string{"stat-x:1|ms", "stat.x.count:1|c"}, []string{"stat-x count=1 sum=1", "stat.x.count_counter 1"}, 1},
		{"cleaned", []string{"a-b:1|c", "a.b:1|g"}, []string{"a-b 1", "a.b_gauge 1"}, 1},
		{"suffix-taken", []string{"foo_gauge:1|c", "foo:1|c", "foo:1|g"}, []string{"foo 1", "foo_gauge 1", "foo_gauge_2 1"}, 0},
		{"suffixes-taken", []string{"foo_gauge:1|c", "foo_gauge_2:1|c", "foo_gauge_3:1|c", "foo_gauge_4:1|c", "foo_gauge_5:1|c", "foo_gauge_6:1|c", "foo:1|c", "foo:1|g"},
			[]string{"foo 1", "foo_gauge 1", "foo_gauge_2 1", "foo_gauge_3 1", "foo_gauge_4 1", "foo_gauge_5 1", "foo_gauge_6 1", "foo_gauge_7 1"}, 0},
		{"dots-in-tags", []string{"a.b:1|c|#c:d", "a:2|c|#b:c.d", "a.b.c.d:4|c", "a:8|c|#b:c.d"}, []string{"a.b.c.d 1", "a.b.c.d_counter 4", "a_counter.b.c.d 10"}, 0},
		{"dots-in-tags-other-kind", []string{"a.b:1|c|#c", "a:2|g|#b:c"}, []string{"a.b.c 1", "a_gauge.b.c 2"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, prefix := range []string{"", "in"} {
				r := newRig(t, Config{Prefix: prefix})
				for range 2 {
					if prefix == "" {
						r.send(tt.in[0]) // a cached key changes nothing
						r.Forget(func(string) bool { return true })
					}
				}
				for _, in := range tt.in {
					r.send(in)
				}
				want := make([]string, len(tt.want))
				for i, w := range tt.want {
					want[i] = w
					if prefix != "" {
						want[i] = prefix + "." + w
					}
				}
				r.want(want...)
				r.conserved()
				rep := r.Report()
				if rep.TypeConflicts != tt.conflicts {
					t.Errorf("%d conflicts, want %d: %v", rep.TypeConflicts, tt.conflicts, rep.Conflicts)
				}
				if n := rep.TypeConflicts + rep.Collisions; n != uint64(len(rep.Conflicts)) {
					t.Errorf("%d conflicts listed, want %d", len(rep.Conflicts), n)
				}
			}
		})
	}
}

// TestKindConflictsOfExtractedNames sends names that differ only in their
// extracted tags: they share a name in the exposition and so a kind.
func TestKindConflictsOfExtractedNames(t *testing.T) {
	for _, extract := range []bool{true, false} {
		r := newRig(t, Config{ExtractTags: extract})
		r.send("cluster.shop.rq:1|c\ncluster.cart.rq:2|g\ncluster.cart.rq:3|g|#a:b\ncluster.mail.rq:4|c")
		if extract {
			r.want("cluster.cart.rq.a.b 3", "cluster.cart.rq_gauge 2", "cluster.mail.rq 4", "cluster.shop.rq 1")
		} else {
			r.want("cluster.cart.rq 2", "cluster.cart.rq.a.b 3", "cluster.mail.rq 4", "cluster.shop.rq 1")
		}
		rep := r.Report()
		if want := map[bool]uint64{true: 1}[extract]; rep.TypeConflicts != want {
			t.Errorf("extract %t: %d conflicts, want %d", extract, rep.TypeConflicts, want)
		}
		if rep.Collisions != 0 {
			t.Errorf("extract %t: collisions of series that differ: %v", extract, rep.Conflicts)
		}
		if top := rep.TopSeries[0]; extract && top.Count != 2 {
			t.Errorf("the name with the most series has %v", top)
		}
	}
}

// TestNoNameLeft: a sample is rejected at last if all names that it could have
// belong to something else.
func TestNoNameLeft(t *testing.T) {
	r := newRig(t, Config{})
	r.send("foo:1|c\nfoo_gauge:1|c")
	for i := 2; i < nameAttempts; i++ {
		r.send(fmt.Sprintf("foo_gauge_%d:1|c", i))
	}
	r.send("foo:1|g\nfoo:1|g")
	if n := r.rejected()["type_conflict"]; n != 2 {
		t.Errorf("%d lines rejected, want 2", n)
	}
	r.conserved()
}

// TestUnits: timers are milliseconds, other observations have no unit.
func TestUnits(t *testing.T) {
	r := newRig(t, Config{})
	r.send("a:1|ms\nb:1|h\nc:1|d")
	for name, want := range map[string]store.Unit{"a": store.Milliseconds, "b": store.Unspecified, "c": store.Unspecified} {
		if got := r.Scope().Histogram(name, store.Bytes).Layout().Unit(); got != want {
			t.Errorf("%s is in %v, want %v", name, got, want)
		}
	}
}

func TestRejectConflicts(t *testing.T) {
	r := newRig(t, Config{RejectConflicts: true})
	r.send("foo:1|c\nfoo:1|ms\nfoo:2|c:1|g\nfoo:1|c")
	r.want("foo 2")
	if n := r.rejected()["type_conflict"]; n != 2 {
		t.Errorf("%d lines rejected, want 2", n)
	}
	r.conserved()
}

// TestConflictsAreCached sends lines in conflict until their name is free.
func TestConflictsAreCached(t *testing.T) {
	r := newRig(t, Config{RejectConflicts: true, ExporterMetrics: true})
	r.send("foo:1|c\n" + strings.Repeat("foo:1|ms\n", 10) + "foo:x|ms\nfoo:1|ms:2|ms\nfoo:-1|ms\nfoo:1|ms|@2\nfoo:+1|g\nfoo:+1e308:+1e308|g")
	if got, want := r.rejected(), (map[string]uint64{"type_conflict": 12, "out_of_range": 1, "bad_value": 1, "negative_timer": 1, "bad_sample_rate": 1}); !maps.Equal(got, want) {
		t.Errorf("rejected %v, want %v", got, want)
	}
	r.flush()
	if want := "events_conflict_total.type.observer.metric_name.foo 11\n"; !strings.Contains(exporterStats(r), want) {
		t.Errorf("no %q in\n%s", want, exporterStats(r))
	}
	if got := r.metrics.misses.Total(); got != 4 { // the first of each kind, and two samples
		t.Errorf("%d lines were looked up", got)
	}
	r.send("foo:1|ms") // a flush may have ended foo
	if got := r.metrics.misses.Total(); got != 5 {
		t.Errorf("%d lines were looked up by the next interval", got)
	}
	r.Forget(func(string) bool { return true })
	r.send("foo:5|ms")
	r.want("foo count=1 sum=5")
	r.conserved()
}

// TestExpositionCollisions has stats that differ, but not in the exposition.
func TestExpositionCollisions(t *testing.T) {
	for _, in := range []string{
		"a-b:1|c\na.b:1|c", "a:1|c|#k-x:1\na:1|c|#k.x:1", "a:1|c|#k\na:1|c|#k:true",
	} {
		r := newRig(t, Config{})
		r.send(in)
		if rep := r.Report(); rep.Collisions != 1 || len(rep.Conflicts) != 1 || rep.Conflicts[0].What != "exposition" {
			t.Errorf("%q: %d collisions, %v", in, rep.Collisions, rep.Conflicts)
		}
		if n := len(r.stats()); n != 2 {
			t.Errorf("%q: %d stats, want 2", in, n)
		}
	}
}

func TestLimits(t *testing.T) {
	lines := func(format string, n int) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf(format, i))
		}
		return strings.Join(s, "\n")
	}
	for _, tt := range []struct {
		name    string
		limits  Limits
		in      string
		want    []string
		limited uint64
	}{
		{"series", Limits{Series: 2}, lines("a%d:1|c", 5) + "\na0:5|c",
			[]string{"a0 6", "a1 1", "overflow.counter 3"}, 3},
		{"series_per_first_segment", Limits{FirstSegment: 2}, lines("a.x%d:1|c", 4) + "\nb.x:1|c",
			[]string{"a.x0 1", "a.x1 1", "b.x 1", "overflow.counter 2"}, 2},
		{"series_per_name", Limits{SeriesPerName: 2}, lines("a:1|c|#t:%d", 5) + "\nb:2:4|ms\n" + lines("b:2:4|ms|#t:%d", 3),
			[]string{"a.t.0 1", "a.t.1 1", "b count=2 sum=6", "b.t.0 count=2 sum=6",
				"overflow.counter.metric.a 3", "overflow.histogram.metric.b count=4 sum=12"}, 5},
		{"series_per_name", Limits{SeriesPerName: 1, OverflowedNames: 1}, "a:1|c\nb:1|c\na:1|c|#x\nb:1|c|#x\na:1|c|#y",
			[]string{"a 1", "b 1", "overflow.counter 1", "overflow.counter.metric.a 2"}, 3},
		{"values_per_tag_key", Limits{ValuesPerTagKey: 2}, lines("a:1|c|#k:%d", 4) + "\n" + lines("b:1|c|#k:%d", 3) + "\n" + lines("c:1|c|#k:0,l:%d", 3) + "\nd:1|c\na:1|ms|#k:9",
			[]string{"a.k.0 1", "a.k.1 1", "b.k.0 1", "b.k.1 1", "c.k.0.l.0 1", "c.k.0.l.1 1", "d 1",
				"overflow.counter.metric.a 2", "overflow.counter.metric.b 1", "overflow.counter.metric.c 1", "overflow.histogram count=1 sum=1"}, 5},
		{"new_series_per_second", Limits{NewPerSecond: 3}, lines("a%d:1|c", 5),
			[]string{"a0 1", "a1 1", "a2 1", "overflow.counter 2"}, 2},
		{"sets", Limits{Sets: 2}, lines("s%d:x|s", 4), []string{"s0 0", "s1 0"}, 2},
		{"series", Limits{Series: 1}, "a:1|c\ng:1|g\ns:x|s\na:1|c:1|g", []string{"a 2"}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Config{Limits: tt.limits})
			r.send(tt.in)
			r.want(tt.want...)
			r.conserved()
			for _, l := range r.Report().Limits {
				if want := map[bool]uint64{true: tt.limited}[l.Name == tt.name]; l.Limited != want {
					t.Errorf("limit %s kept out %d lines, want %d", l.Name, l.Limited, want)
				}
			}
			// Existing series stay exact, and series over the limit stay out.
			r.send(tt.in)
			r.conserved()
		})
	}
}

// TestLimitsLookAgain sends what a limit kept out once there is room.
func TestLimitsLookAgain(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Series: 1}})
	r.send("a:1|c\nb:1|c\nb:1|c")
	r.want("a 1", "overflow.counter 2")
	if n := r.Forget(func(name string) bool { return name == "a" }); n != 1 {
		t.Fatalf("%d forgotten", n)
	}
	r.send("b:1|c")
	r.want("b 1", "overflow.counter 2")
	r.conserved()

	r = newRig(t, Config{Limits: Limits{NewPerSecond: 1}})
	r.send("a:1|c\nb:1|c")
	r.now = r.now.Add(time.Second)
	r.send("b:1|c")
	r.want("a 1", "b 1", "overflow.counter 1")
}

// TestLimitsCountRefusals: what a limit keeps from being made counts as stats
// that the store refuses do.
func TestLimitsCountRefusals(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Series: 1}})
	r.send("a:1|c\nb:1|c\nc:1|c\nc:1|c\ng:1|g\ns:x|s\nt:1|ms")
	root := r.store.Root()
	for kind, want := range map[string]uint64{"counter": 2, "gauge": 2, "histogram": 1} {
		if got := root.Counter("server.stats_overflow." + kind).Value(); got != want {
			t.Errorf("%d of kind %s were refused, want %d", got, kind, want)
		}
	}
}

// TestTagValuesGo: values count as long as series have them.
func TestTagValuesGo(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{ValuesPerTagKey: 1}})
	r.send("a:1|c|#k:1\nb:1|c|#k:1,l\na:1|c|#k:2")
	r.want("a.k.1 1", "b.k.1.l 1", "overflow.counter.metric.a 1")
	r.Forget(func(name string) bool { return name == "a.k.1" })
	r.send("a:1|c|#k:2")
	r.want("b.k.1.l 1", "overflow.counter 1", "overflow.counter.metric.a 1") // a has no series any more
	r.Forget(func(name string) bool { return name == "b.k.1.l" })
	r.send("a:1|c|#k:2")
	r.want("a.k.2 1", "overflow.counter 1", "overflow.counter.metric.a 1")
	r.conserved()
}

// TestLimitNear: a gauge warns from 80 % of a limit on.
func TestLimitNear(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Series: 10, FirstSegment: -1, SeriesPerName: 5, Sets: 5, ValuesPerTagKey: 5}})
	near := func() (names []string) {
		r.flush()
		for lim, g := range r.metrics.near {
			if g != nil && g.Value() != 0 {
				names = append(names, limit(lim).String())
			}
		}
		return names
	}
	for i, step := range []struct {
		send, want string
	}{
		{"a.1:1|c\na.2:1|c\na.3:1|c", ""},
		{"b:1|c|#k:1\nb:1|c|#k:2\nb:1|c|#k:3", ""},
		{"b:1|c|#k:4", "series_per_name values_per_tag_key"}, // 4 of 5; 7 of 10 series
		{"a.4:1|c", "series series_per_name values_per_tag_key"},
	} {
		r.send(step.send)
		if got := strings.Join(near(), " "); got != step.want {
			t.Errorf("step %d: %q is near, want %q", i, got, step.want)
		}
	}
	r.Forget(func(name string) bool { return strings.HasPrefix(name, "b") })
	if got := near(); got != nil {
		t.Errorf("%q is near although there is room", got)
	}
	for _, l := range r.Report().Limits {
		want := map[string]int{"series": 10, "series_per_first_segment": -1, "series_per_name": 5, "new_series_per_second": 50_000,
			"sets": 5, "values_per_tag_key": 5, "store": -1, "memory_bytes": r.cfg.Limits.MemoryBytes}[l.Name]
		if l.Max != want {
			t.Errorf("limit %s is %d, want %d", l.Name, l.Max, want)
		}
	}
}

func TestExpiry(t *testing.T) {
	r := newRig(t, Config{SetWindow: -1, TTL: TTL{Counter: 10 * time.Second, Gauge: 20 * time.Second, Set: 30 * time.Second}})
	r.send("c:1|c\ng:1|g\nh:1|ms\ns:x|s")
	step := func(d time.Duration) {
		r.now = r.now.Add(d)
		r.flush()
		r.Sweep(false)
	}
	step(5 * time.Second) // everything was updated at 5 s
	r.want("c 1", "g 1", "h count=1 sum=1", "s 1")
	step(11 * time.Second)
	r.want("g 1", "h count=1 sum=1", "s 0") // the set changed to 0: at 16 s
	r.send("c:1|c\nc:1|c")                  // a cached key of a stat that ended: a new stat
	r.want("c 2", "g 1", "h count=1 sum=1", "s 0")
	step(5 * time.Second) // 21 s
	step(5 * time.Second) // 26 s: the gauge is too old
	r.want("c 2", "h count=1 sum=1", "s 0")
	step(14 * time.Second) // 40 s: the counter too
	r.want("h count=1 sum=1", "s 0")
	step(7 * time.Second) // 47 s: and the set
	r.want("h count=1 sum=1")
	r.send("s:y|s\ng:2|g")
	step(time.Second)
	r.want("g 2", "h count=1 sum=1", "s 1")
	r.conserved()
	r.Flush(r.now)
	for _, k := range r.Report().Series {
		want := map[string]string{"counter": "0 2 2", "gauge": "1 2 1", "histogram": "1 1 0", "set": "1 2 1"}[k.Kind]
		if got := fmt.Sprint(k.Series, k.Created, k.Expired); got != want {
			t.Errorf("%s: series, created, expired %s; want %s", k.Kind, got, want)
		}
	}
}

// TestHistogramsExpire checks that a sample between a flush and the following
// sweep keeps a histogram alive.
func TestHistogramsExpire(t *testing.T) {
	r := newRig(t, Config{SetWindow: -1, TTL: TTL{Histogram: 10 * time.Second}})
	r.send("h:1|ms\nc:1|c\ng:1|g\ns:x|s")
	r.now = r.now.Add(5 * time.Second)
	r.flush()
	r.now = r.now.Add(11 * time.Second)
	r.flush()
	r.send("h:2|ms")
	r.Sweep(false)
	r.want("c 1", "g 1", "h count=2 sum=3", "s 0")
	r.now = r.now.Add(11 * time.Second)
	r.flush()
	r.Sweep(false)
	r.want("c 1", "g 1", "s 0")
}

// TestExpiryBehindTheServersBack lets the store end stats without the server.
func TestExpiryBehindTheServersBack(t *testing.T) {
	r := newRig(t, Config{})
	for range 5 {
		r.send("a:1|c\nb:0.5|c")
		r.store.RemoveNetwork(func(string) bool { return true })
		r.send("a:1|c\nb:0.5|c\nb:0.5|c")
		r.want("a 1", "b 1") // what b had collected before is gone too
		r.store.RemoveNetwork(func(string) bool { return true })
		r.flush()
	}
	n := 0
	for x := range uint32(cellsPerChunk) {
		if r.registry.cells.at(x).gen.Load() > 0 {
			n++
		}
	}
	if n > 4 || r.registry.cells.count() != cellsPerChunk {
		t.Errorf("%d of %d cells were needed for 2 series at a time", n, r.registry.cells.count())
	}
}

// TestFamiliesEnd checks that nothing is kept of series that ended.
func TestFamiliesEnd(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{SeriesPerName: 2}})
	for range 3 {
		r.send("a.b:1|c|#x:1\na.b:1|c|#x:2\na.b:1|c|#x:3\na-b:1|c|#x:1\nc:1|ms\nc:x|s")
		r.Forget(func(string) bool { return true })
		g := r.registry
		if g.exposed.used+g.setCells.Len()+g.families.owners.Len()+g.families.named.Len()+g.segments.numbers.Len()+g.live+len(g.overflowed)+g.perGroup[counters]+int(g.memory.used.Load()) != 0 {
			t.Fatalf("left: %+v", g)
		}
	}
	for _, s := range r.registry.segments.list {
		if s != (segment{}) {
			t.Errorf("the first segment %q is kept", s.name)
		}
	}
	if n := len(r.registry.families.list); n > 4 {
		t.Errorf("%d families were needed for 4 at a time", n)
	}
}

func TestNetworkNamesNeverMeetOwnStats(t *testing.T) {
	r := newRig(t, Config{})
	own := r.store.Root().Counter("server.live")
	own.Add(5)
	r.send("server.live:1|c\ningest.lines.listener.test:1|g")
	r.want("ingest.lines.listener.test 1", "server.live 1")
	if own.Total() != 5 {
		t.Errorf("the own counter is %d, want 5", own.Total())
	}
}

// TestNamesOfOwnStatsAreListed receives names that the program has too: they are
// stats apart, and the page says so.
func TestNamesOfOwnStatsAreListed(t *testing.T) {
	for _, prefix := range []string{"", "in"} {
		r := newRig(t, Config{Prefix: prefix})
		for _, name := range []string{"server.live", "in.server.live"} {
			r.store.Root().GaugeWithMode(name, store.NeverImport).Set(1)
		}
		r.send("server.live:5|g\nserver.live:6|g\nserver.live:7|g|#a:b\nother:1|c")
		want := report.Conflict{Time: r.now, Name: "server.live", Group: "gauge", Other: "server.live", What: "own stat"}
		if prefix != "" {
			want.Other = "in.server.live"
		}
		if rep := r.Report(); len(rep.Conflicts) != 1 || rep.Conflicts[0] != want || rep.Collisions != 0 || rep.TypeConflicts != 0 {
			t.Errorf("%+v, want %+v", rep.Conflicts, want)
		}
	}
}

func TestReportLists(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 30 {
		r.send(fmt.Sprintf("many:1|c|#user:%d,region:eu\nn%02d:1|ms", i, i))
	}
	for range 64 * 10 {
		r.send("hot:1|c")
	}
	r.now = r.now.Add(10 * time.Second)
	r.flush()
	rep := r.Report()
	if len(rep.TopSeries) != 20 || rep.TopSeries[0] != (report.NameCount{Name: "many", Count: 30}) || rep.TopSeries[1].Name != "hot" {
		t.Errorf("top series %v", rep.TopSeries)
	}
	if len(rep.TopTags) != 2 || rep.TopTags[0].Name != "user" || rep.TopTags[0].Count < 20 || rep.TopTags[0].Count > 40 || rep.TopTags[1] != (report.NameCount{Name: "region", Count: 1}) {
		t.Errorf("top tags %v", rep.TopTags)
	}
	if len(rep.TopSamples) == 0 || rep.TopSamples[0].Name != "hot" || rep.TopSamples[0].PerSecond < 55 || rep.TopSamples[0].PerSecond > 70 {
		t.Errorf("top samples %v", rep.TopSamples)
	}
	if n := len(rep.Newest); n != 61 || rep.Newest[0].Tags != "region:eu,user:0" || rep.Newest[60].Name != "hot" {
		t.Errorf("%d newest, %v", n, rep.Newest)
	}
}

// TestRecent checks what an explorer shows of the input.
func TestRecent(t *testing.T) {
	r := newRig(t, Config{Prefix: "in", Limits: Limits{SeriesPerName: 4}})
	r.send("few:1|c")
	if got := r.Recent(); len(got.Limits)+len(got.Overflowed)+len(got.Samples) != 0 || len(got.Newest) != 1 {
		t.Errorf("%+v", got)
	}
	for i := range 6 {
		r.send(fmt.Sprintf("many:1|c|#user:%d", i))
	}
	r.now = r.now.Add(10 * time.Second)
	r.flush()
	got := r.Recent()
	if want := (report.Limit{Name: "series_per_name", Max: 4, Use: 4, Limited: 2}); len(got.Limits) != 1 || got.Limits[0] != want {
		t.Errorf("limits %+v, want %+v", got.Limits, want)
	}
	if len(got.Samples) == 0 || got.Samples[0].Name != "in.many" {
		t.Errorf("samples %+v", got.Samples)
	}
	if n := got.Newest; len(n) != 5 || n[4].Name != "in.many" || n[4].Sender != "tester" {
		t.Errorf("newest %+v", n)
	}
	if !slices.Equal(got.Overflowed, []string{"in.many"}) {
		t.Errorf("overflowed %q", got.Overflowed)
	}
	r.Forget(func(string) bool { return true })
	r.flush()
	if got := r.Recent(); len(got.Overflowed) != 0 {
		t.Errorf("%q overflowed after all stats ended", got.Overflowed)
	}
}

// TestNearLimitsAreTheStatsOwn expects limits per name, first segment and key only for
// stats that are near them.
func TestNearLimitsAreTheStatsOwn(t *testing.T) {
	r := newRig(t, Config{Prefix: "in", Limits: Limits{SeriesPerName: 5, FirstSegment: 10, ValuesPerTagKey: 5}})
	r.send("shop.few:1|c|#zone:a\nplain:1|c\nrt:1|ms")
	for i := range 4 {
		r.send(fmt.Sprintf("shop.many:1|c|#user:%d\nshop.many_too:1|ms|#code:%d", i, i))
	}
	segment := report.Limit{Name: "series_per_first_segment", Max: 10, Use: 9}
	perName := report.Limit{Name: "series_per_name", Max: 5, Use: 4}
	values := report.Limit{Name: "values_per_tag_key", Max: 5, Use: 4}
	for _, tt := range []struct {
		name, key string
		want      []report.Limit
	}{
		{"in.shop.many", "user", []report.Limit{segment, perName, values}},
		{"in.shop.many_too", "code", []report.Limit{segment, perName, values}},
		{"in.shop.few", "zone", []report.Limit{segment}},
		{"in.shop.few", "user", []report.Limit{segment, values}},
		{"in.plain", "", nil},
		{"in.rt", "", nil},
		{"in.gone", "", nil},
	} {
		if got := r.NearLimits(tt.name, []tags.Tag{{Name: tt.key}}); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %q: %+v, want %+v", tt.name, tt.key, got, tt.want)
		}
	}
	r.send("plain:1|c|#a:b\nplain:1|c|#a:c\nplain:1|c|#a:d\nplain:1|c|#a:e\nplain:1|c|#a:f")
	full := []report.Limit{{Name: "series_per_name", Max: 5, Use: 5, Limited: 1}}
	if got := r.NearLimits("in.plain", nil); !slices.Equal(got, full) {
		t.Errorf("at the limit: %+v, want %+v", got, full)
	}
}

// TestListsAreBounded: what the page lists of the past, and the keys of tags that
// it watches, take only so much memory.
func TestListsAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 300 {
		r.send(fmt.Sprintf("n%03d:1|c|#k%d:v\nn%03d:1|g", i, i, i))
	}
	rep := r.Report()
	if n := len(rep.Conflicts); n != 100 || rep.Conflicts[0].Name != "n200" || rep.Conflicts[99].Name != "n299" {
		t.Errorf("%d conflicts from %+v to %+v, want the last 100", n, rep.Conflicts[0], rep.Conflicts[n-1])
	}
	if n := len(rep.Newest); n != 256 || rep.Newest[0].Name != "n172" || rep.Newest[255].Kind != "gauge" {
		t.Errorf("%d newest from %+v to %+v, want the last 256", n, rep.Newest[0], rep.Newest[n-1])
	}
	if n := len(r.registry.tagKeys); n != 256 {
		t.Errorf("%d keys of tags are watched, want 256", n)
	}
	r.send("more:1|c|#beyond:v,k0:w,k1:w")
	for _, key := range []string{"k0", "k1"} { // behind one that is not watched
		if n := r.registry.tagKeys[key].count(); n != 2 {
			t.Errorf("%s has %d values, want 2", key, n)
		}
	}
}

// TestFewValuesOfATagAreCountedExactly counts up to some values of a key under
// many seeds: an estimate would now and then take two values for one.
func TestFewValuesOfATagAreCountedExactly(t *testing.T) {
	for range 500 {
		r := &registry{tagKeys: map[string]*tagKey{}, idSeed: maphash.MakeSeed()}
		for n := range 40 {
			for range 2 {
				r.watchTags([]tags.Tag{{Name: "k", Value: strconv.Itoa(n)}})
			}
			got := r.tagKeys["k"].count()
			if n+1 < fewValues && got != uint64(n+1) || got < uint64(min(n+1, fewValues)) || got > uint64(2*n+1) {
				t.Fatalf("%d values are counted as %d", n+1, got)
			}
		}
	}
}

// TestFlushAfterSeriesAndTheirMemoryAreGone removes so many series that the memory of
// their cells is freed, before a flush names the busiest.
func TestFlushAfterSeriesAndTheirMemoryAreGone(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{FirstSegment: -1, NewPerSecond: -1}})
	for i := range cellsPerChunk + 1 {
		r.send(fmt.Sprintf("n%d:1|c", i))
	}
	if n := r.Forget(func(string) bool { return true }); n != cellsPerChunk+1 || r.registry.cells.count() != 0 {
		t.Fatalf("%d series removed, memory for %d left", n, r.registry.cells.count())
	}
	r.flush()
	r.send("later:1|c")
	r.flush()
	r.want("later 1")
}

// TestAllTagValuesGo: a value that another series still has keeps no other value of an
// ended series.
func TestAllTagValuesGo(t *testing.T) {
	for _, kept := range []string{"k:1", "l:1", "m:1"} {
		r := newRig(t, Config{Limits: Limits{ValuesPerTagKey: 1}})
		r.send("a:1|c|#k:1,l:1,m:1\nb:1|c|#" + kept)
		r.Forget(func(name string) bool { return name[0] == 'a' })
		for _, key := range []string{"k", "l", "m"} {
			if key != kept[:1] {
				r.send("c:1|c|#" + key + ":2")
			}
		}
		if n := r.registry.live; n != 3 {
			t.Errorf("with %s kept: %d series, want 3: %q", kept, n, r.stats())
		}
	}
}

// TestSamplesByType counts values, and a member of a set as one.
func TestSamplesByType(t *testing.T) {
	r := newRig(t, Config{})
	r.send("c:1:2|c\ng:1|g\nt:1:2:3|ms\nh:1|h\nd:1|d\ns:x|s\ns:y|s")
	for typ, want := range map[line.Type]uint64{line.Counter: 2, line.Gauge: 1, line.Timer: 3, line.Histogram: 1, line.Distribution: 1, line.Set: 2} {
		if got := r.metrics.byType[typ].Total(); got != want {
			t.Errorf("%d samples of type %v, want %d", got, typ, want)
		}
	}
}
