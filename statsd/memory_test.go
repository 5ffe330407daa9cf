package statsd

import (
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestMemoryIsReturnedExactly creates, grows, expires and forgets random series
// of all kinds. After everything is forgotten nothing is charged.
func TestMemoryIsReturnedExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{
			Limits: Limits{
				MemoryBytes: rapid.SampledFrom([]int{100_000, 1 << 20, 1 << 30}).Draw(rt, "budget"), Series: 50, SeriesPerName: 5, OverflowedNames: 3,
				ValuesPerTagKey: rapid.SampledFrom([]int{0, 4}).Draw(rt, "values"),
			},
			TTL: TTL{Counter: time.Minute, Gauge: time.Minute, Histogram: time.Minute, Set: time.Minute},
		})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			name := fmt.Sprintf("a%d.b%d", rapid.IntRange(0, 3).Draw(rt, "first"), rapid.IntRange(0, 20).Draw(rt, "second"))
			tags := fmt.Sprintf("|#k%d:%s", rapid.IntRange(0, 2).Draw(rt, "key"), strings.Repeat("v", rapid.IntRange(0, 9).Draw(rt, "value")))
			switch rapid.IntRange(0, 7).Draw(rt, "what") {
			case 0:
				r.send(name + ":1|c" + tags)
			case 1:
				r.send(name + ":1|g")
			case 2:
				for e := range 60 {
					r.send(fmt.Sprintf("%s:%d|ms|@0.0001%s", name, 1<<e, tags))
				}
			case 3:
				n := rapid.SampledFrom([]int{1, 3000, 5000}).Draw(rt, "members")
				for i := range n {
					r.send(fmt.Sprintf("%s:%d|s", name, i))
				}
			case 4:
				r.flush()
			case 5:
				r.Forget(func(full string) bool { return strings.HasPrefix(full, name) })
			case 6:
				r.now = r.now.Add(40 * time.Second)
				r.flush()
				r.Sweep(false)
			case 7:
				r.now = r.now.Add(time.Second)
			}
			if used := r.registry.memory.used.Load(); used < 0 {
				rt.Fatalf("%d bytes are charged", used)
			}
		}
		r.Forget(func(string) bool { return true })
		if used := r.registry.memory.used.Load(); used != 0 {
			rt.Fatalf("%d bytes are charged for nothing", used)
		}
		r.Close()
	})
}

// TestMemoryBudget fills a small budget: further counters go to the overflow
// series and count for the limit, known ones stay exact, and when series are
// forgotten others take their place.
func TestMemoryBudget(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{MemoryBytes: 1 << 20}})
	for i := range 10_000 {
		r.send(fmt.Sprintf("old:1|c\nn%d:1|c|#tag:%s", i, strings.Repeat("x", 100)))
	}
	made := r.registry.live
	if made < 500 || made > 5000 {
		t.Fatalf("%d series of 10,001 fit into 1 MiB", made)
	}
	if got := r.Scope().Counter("old").Total(); got != 10_000 {
		t.Errorf("old is %d, want 10000", got)
	}
	limited := uint64(10_001 - made)
	if got := r.Scope().Counter("overflow.counter").Total(); got != limited {
		t.Errorf("%d samples overflowed, want %d", got, limited)
	}
	if got := r.metrics.limited[limitMemory].Total(); got != limited {
		t.Errorf("%d lines are counted by the limit, want %d", got, limited)
	}
	r.flush()
	if m := r.metrics; m.memoryLimit.Value() != 1<<20 || m.memoryUsed.Value() < 700_000 || m.memoryUsed.Value() > 1<<20 || m.near[limitMemory].Value() != 1 {
		t.Errorf("used %d of %d, near %d", m.memoryUsed.Value(), m.memoryLimit.Value(), m.near[limitMemory].Value())
	}
	found := false
	for _, l := range r.Report().Limits {
		if l.Name == "memory_bytes" {
			found = l.Max == 1<<20 && l.Use > 700_000 && l.Limited == limited
		}
	}
	if !found {
		t.Errorf("limits: %+v", r.Report().Limits)
	}
	r.Forget(func(name string) bool { return strings.HasPrefix(name, "n1") })
	r.send("new:1|c")
	if got := r.Scope().Counter("new").Total(); got != 1 {
		t.Errorf("new is %d although there is memory again", got)
	}
	r.conserved()
}

// TestHistogramsStopGrowingAtTheBudget sends values of all magnitudes between two
// flushes. What takes no further memory stays exact, the rest goes to the overflow
// histogram, and nothing is lost.
func TestHistogramsStopGrowingAtTheBudget(t *testing.T) {
	const budget = 1 << 20
	r := newRig(t, Config{Limits: Limits{MemoryBytes: budget}})
	r.send("steady:5|h")
	sent := 1
	for e := range 53 {
		for i := range 200 {
			for _, rate := range []string{"", "|@0.00001"} {
				r.send(fmt.Sprintf("n%d:%d|h%s\nn%d:-%d|h%s", i, uint64(1)<<e, rate, i, uint64(1)<<e, rate))
				sent += 2
				if rate != "" {
					sent += 2 * 99_999
				}
			}
		}
		r.send("steady:5|h")
		sent++
		if got := r.registry.memory.total(); got > budget*21/20 {
			t.Fatalf("%d bytes in use at 2^%d, the budget is %d", got, e, budget)
		}
	}
	r.flush()
	count := func(name string) int {
		return int(r.Scope().Histogram(name, store.Unspecified).Snapshot().Cumulative.Count())
	}
	if got := count("steady"); got != 54 {
		t.Errorf("steady counts %d values, want 54", got)
	}
	all, over := count("steady"), count("overflow.histogram")
	for i := range 200 {
		all += count(fmt.Sprint("n", i))
	}
	if all+over != sent || over == 0 {
		t.Errorf("%d values are counted and %d overflowed of %d", all, over, sent)
	}
	lines := r.metrics.limited[limitMemory].Total()
	if lines == 0 || lines != r.l.metrics.limited.Load() {
		t.Errorf("%d lines count as limited", lines)
	}
	r.conserved()
}

// TestValuesWithRoomCountBehindOneThatIsLost: no histogram takes what does not fit into
// that of the name, as a counter has the name of the overflow series.
func TestValuesWithRoomCountBehindOneThatIsLost(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{MemoryBytes: 1 << 20}})
	r.send("overflow.histogram:1|c\nh:5|h")
	r.registry.memory.max = 1
	r.send("h:1000000000:5|h")
	r.want("h count=2 sum=10", "overflow.histogram 1")
}

// TestSetsKeepCountingAtTheBudget: a set that gets no larger table estimates.
func TestSetsKeepCountingAtTheBudget(t *testing.T) {
	m, seed := newMemory(1, func() int64 { return 0 }), maphash.MakeSeed()
	s := newTestSet()
	s.memory = &m
	for i := range 3000 {
		s.add(seed, fmt.Append(nil, i))
	}
	if got := count(s); got < 2900 || got > 3100 || m.used.Load() != 0 {
		t.Errorf("%v members of 3000, %d bytes charged", got, m.used.Load())
	}
}

// TestMemoryComesBack ends many series and compares what stays with the start.
func TestMemoryComesBack(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1}})
	for range 3 {
		for i := range 20_000 {
			r.send(fmt.Sprintf("some.name.%d:1|c|#tag:%d", i, i%100))
		}
		r.Forget(func(string) bool { return true })
		r.flush()
		g := r.registry
		if g.cells.count() != 0 || len(g.families.list) != 0 || g.families.owners.Len() != 0 || len(g.exposed.slots) > 64 {
			t.Fatalf("%d cells, %d families, %d owners and %d slots stay", g.cells.count(), len(g.families.list), g.families.owners.Len(), len(g.exposed.slots))
		}
		if n := r.streamWorkers[0].cache; n.used != 0 || len(n.slots) >= 2*cacheFirst {
			t.Fatalf("%d entries in %d slots stay cached", n.used, len(n.slots))
		}
	}
}

// TestRemainsOfEndedSeriesCount sends short-lived names among a few that last. The memory
// that these keep for all is charged: at the budget there are no new series.
func TestRemainsOfEndedSeriesCount(t *testing.T) {
	r := newRig(t, Config{
		Limits: Limits{MemoryBytes: 4 << 20, FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1},
		TTL:    TTL{Counter: 10 * time.Second},
	})
	round := func(n int) {
		for i := range 2000 {
			r.send(fmt.Sprintf("n%d.%d:1|c", n, i))
		}
		r.now = r.now.Add(9 * time.Second)
		for i := range n + 1 {
			r.send(fmt.Sprintf("n%d.5:1|c\nn%d.1005:1|c", i, i))
		}
		r.now = r.now.Add(2 * time.Second)
		r.flush()
		r.Sweep(false)
		r.flush()
	}
	if real := r.chargesAsUsed(20, 300, round); real > 6<<20 {
		t.Errorf("%d bytes are in use with a budget of 4 MiB", real)
	}
	if r.registry.live > 300 {
		t.Errorf("%d series", r.registry.live)
	}
	r.Forget(func(string) bool { return true })
	r.flush()
	if left := r.registry.memory.series(); left != 0 {
		t.Errorf("%d bytes are charged for nothing", left)
	}
}

// chargesAsUsed runs rounds of input. In the first few, the charge must grow about as the
// heap does, and at the end it must be within the budget. It returns the growth of the heap.
func (r *rig) chargesAsUsed(few, all int, round func(n int)) int64 {
	r.t.Helper()
	round(0)
	first, begin := r.registry.memory.series(), heap()
	for n := 1; n < few; n++ {
		round(n)
	}
	grown, real := r.registry.memory.series()-first, heap()-begin
	r.t.Logf("%d bytes charged, %d in use, %d series", grown, real, r.registry.live)
	if grown < real/2 || grown > 2*real {
		r.t.Errorf("%d bytes are charged for %d in use", grown, real)
	}
	for n := few; n < all; n++ {
		round(n)
	}
	if used, limit := r.registry.memory.total(), r.registry.memory.limit(); used > limit {
		r.t.Errorf("%d bytes of %d are charged", used, limit)
	}
	return heap() - begin
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEndedSeriesInAViewCount sends short-lived names while a view is open, as that of a sink
// that does not return. The ended ones, which it keeps, are charged: at the budget there are
// no new series.
func TestEndedSeriesInAViewCount(t *testing.T) {
	r := newRig(t, Config{
		Limits: Limits{MemoryBytes: 8 << 20, FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1},
		TTL:    TTL{Counter: 10 * time.Second, Histogram: 10 * time.Second},
	})
	v := r.store.View()
	round := func(n int) {
		for i := range 2000 {
			r.send(fmt.Sprintf("n%d.%d:1|c", n, i))
		}
		for i := range 100 {
			r.send(fmt.Sprintf("n%d.h%d:1|h", n, i))
		}
		r.now = r.now.Add(11 * time.Second)
		r.flush()
		r.Sweep(false)
		r.flush()
	}
	if real := r.chargesAsUsed(10, 100, round); real > 12<<20 {
		t.Errorf("%d bytes are in use with a budget of 8 MiB", real)
	}
	v.Close()
	r.Forget(func(string) bool { return true })
	r.flush()
	if left := r.registry.memory.series(); left != 0 {
		t.Errorf("%d bytes are charged for nothing", left)
	}
}

// TestCacheOfOneSeriesComesBack sends many lines that a filter maps to one series.
func TestCacheOfOneSeriesComesBack(t *testing.T) {
	r := newRig(t, Config{Filters: Filters{Tags: []TagFilter{{Drop: []string{"k"}}}}})
	for i := range 20_000 {
		r.send(fmt.Sprintf("a:1|c|#k:%d", i))
	}
	cache := r.streamWorkers[0].cache
	if r.registry.live != 1 || cache.used < 20_000 {
		t.Fatalf("%d series, %d keys", r.registry.live, cache.used)
	}
	r.Forget(func(string) bool { return true })
	if cache.used != 0 || len(cache.slots) >= 2*cacheFirst {
		t.Errorf("%d keys in %d slots stay", cache.used, len(cache.slots))
	}
}

// TestMemoryLimitBeforeAFlush: the limit is shown from the start on.
func TestMemoryLimitBeforeAFlush(t *testing.T) {
	s, err := New(Config{Store: store.New(store.Options{}), Limits: Limits{MemoryBytes: 100 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.metrics.memoryLimit.Value(); got != 100<<20 {
		t.Errorf("%d bytes", got)
	}
}

func TestAvailableMemory(t *testing.T) {
	const gib = 1 << 30
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":    {nil, 0},
		"machine": {map[string]string{"proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 1 kB\n"}, 4 * gib},
		"v2": {map[string]string{
			"proc/meminfo": "MemTotal: 4194304 kB\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n",
		}, gib},
		"v2-namespace": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, gib},
		"v1": {map[string]string{
			"proc/meminfo": "MemTotal: 4194304 kB\n", "proc/self/cgroup": "9:cpu:/x\n5:memory:/c\n",
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes": "1073741824\n",
		}, gib},
		"v1-unlimited": {map[string]string{
			"proc/meminfo": "MemTotal: 4194304 kB\n", "proc/self/cgroup": "5:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 4 * gib},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tt.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := memoryLimit(root); got != tt.want {
				t.Errorf("%d bytes, want %d", got, tt.want)
			}
		})
	}
}

// TestChargesOfSeries pins what series are charged: their names and tags, tokens and
// families, and for sets and histograms what these need at least.
func TestChargesOfSeries(t *testing.T) {
	for in, want := range map[string]int64{
		"a:1|c":                          192 + 60 + 151, // 140 and 20 for the token, and 1, rounded up to 32
		strings.Repeat("a", 32) + ":1|c": 224 + 60 + 182,
		"a.b.c:1|c":                      224 + 60 + 151,
		"a:1|g|#k:v":                     224 + 60 + 151,
		"a:1|c|#k:v,l":                   256 + 60 + 151,
		"a:1|c\na:1|c|#k:v":              192 + 224 + 60 + 151,
		"a.b:1|c\na.c:1|c":               2*192 + 2*60 + 151,
		"a:1|ms":                         1376 + 60 + 151 + 102,
		"a:x|s":                          16<<10 + 192 + 60 + 151,
	} {
		r := newRig(t, Config{})
		r.send(in)
		for _, when := range []string{"created", "flushed"} {
			if got := r.registry.memory.used.Load(); got != want {
				t.Errorf("%.20q, %s: %d bytes are charged, want %d", in, when, got, want)
			}
			r.flush()
		}
	}
}

// TestRareTagKeysCostMore: the store keeps a record of each key, so keys beyond the first
// ones are charged.
func TestRareTagKeysCostMore(t *testing.T) {
	r := newRig(t, Config{})
	w := &wanted{group: counters, name: "a", tags: []tags.Tag{{Name: "key", Value: "value"}}}
	before := r.registry.cost(w)
	for i := range maxTagKeys {
		r.registry.watchTags([]tags.Tag{{Name: fmt.Sprint("other", i), Value: "x"}})
	}
	if got := r.registry.cost(w); got < before+rareKeyCost-costUnit || got > before+rareKeyCost+costUnit {
		t.Errorf("a series with a rare key costs %d, with a known one %d, want about %d more", got, before, rareKeyCost)
	}
}

// TestForgetLetsSamplesPass: names of all received stats are compared while samples go on.
func TestForgetLetsSamplesPass(t *testing.T) {
	r := newRig(t, Config{})
	r.send("a:1|c\nb:1|c\nb.x:1|c")
	for range 2 {
		forget := func(string) bool {
			r.send("later:1|c")
			return false
		}
		if n := r.Forget(forget) + r.Matching(forget); n != 0 {
			t.Errorf("%d stats match", n)
		}
	}
	if got := r.Scope().Counter("later").Total(); got < 12 {
		t.Errorf("later is %d, want a sample for each name", got)
	}
	prefix := func(name string) bool { return strings.HasPrefix(name, "b") }
	if n := r.Matching(prefix); n != 2 {
		t.Errorf("%d stats would be forgotten, want 2", n)
	}
	if n := r.Forget(prefix); n != 2 {
		t.Errorf("%d stats are forgotten, want 2", n)
	}
	r.want("a 1", fmt.Sprint("later ", r.Scope().Counter("later").Total()))
}
