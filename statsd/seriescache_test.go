package statsd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// plenty returns a budget that no test exceeds.
func plenty() *cacheBudget { return &cacheBudget{max: 1 << 40} }

// keyFor returns the key of a line.
func keyFor(t testing.TB, tab *seriesCache, text string) (lineKey, *line.Line) {
	t.Helper()
	var l line.Line
	if r := line.New(line.Config{TagContainer: true}).Split(&l, []byte(text)); r != line.OK {
		t.Fatal(text, r)
	}
	return tab.keyOf(&l), &l
}

// TestSeriesCacheAgainstMap does random things to a table and a map.
func TestSeriesCacheAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tab := newSeriesCache(1<<20, plenty())
	model := map[string]uint32{}
	for i := range uint32(50_000) {
		text := fmt.Sprintf("name%d,k=%d:1|c|#a:%d", rnd.IntN(3000), rnd.IntN(2), rnd.IntN(3))
		k, _ := keyFor(t, tab, text)
		s := tab.find(&k, line.Counter)
		want, known := model[text]
		if (s != nil) != known || known && s.cell != want {
			t.Fatalf("%s: found %v, want %d, %v", text, s, want, known)
		}
		switch {
		case s == nil:
			if tab.put(&k, line.Counter, cacheEntry{cell: i}) {
				t.Fatal("evicted with room left")
			}
			model[text] = i
		case rnd.IntN(2) == 0:
			tab.forget(s)
			delete(model, text)
		}
		if tab.used != len(model) {
			t.Fatalf("%d in use, want %d", tab.used, len(model))
		}
	}
	for text, want := range model {
		k, _ := keyFor(t, tab, text)
		if s := tab.find(&k, line.Counter); s == nil || s.cell != want {
			t.Fatalf("%s is lost", text)
		}
		if s := tab.find(&k, line.Gauge); s != nil {
			t.Fatalf("%s is known as a gauge", text)
		}
	}
}

func TestSeriesCacheEviction(t *testing.T) {
	tab := newSeriesCache(1000, plenty())
	hot, _ := keyFor(t, tab, "hot:1|c")
	tab.put(&hot, line.Counter, cacheEntry{cell: 7})
	for i := range 100_000 {
		k, _ := keyFor(t, tab, fmt.Sprintf("cold.%d.%s:1|c", i, strings.Repeat("x", i%50)))
		tab.put(&k, line.Counter, cacheEntry{})
		if s := tab.find(&hot, line.Counter); s == nil || s.cell != 7 {
			t.Fatalf("the one that is used all the time went after %d others", i)
		}
		if tab.used > 1000 {
			t.Fatalf("%d entries in use", tab.used)
		}
	}
	if len(tab.slots) > 2048 {
		t.Errorf("%d slots for 1000 entries", len(tab.slots))
	}
}

// TestFullSeriesCacheProbesFewSlots fills a cache several times with keys that are
// never used again. The work for a further one does not depend on the size of the
// cache.
func TestFullSeriesCacheProbesFewSlots(t *testing.T) {
	for _, size := range []int{1000, 20_000} {
		tab := newSeriesCache(size, plenty())
		for i := range 5 * size {
			tab.put(&lineKey{mix(uint64(i)), uint64(i)}, line.Counter, cacheEntry{})
		}
		probes := 0
		for i := range tab.slots {
			for ; tab.slots[i].print[0] != 0; i = tab.after(i) {
				probes++
			}
		}
		if mean := probes / len(tab.slots); mean > 20 {
			t.Errorf("a cache of %d entries needs %d probes to find that a key is absent", size, mean)
		}
	}
}

// TestSeriesCachesShareABudget fills two caches: together they stay within the
// budget, and the second one gets its fair part although the first came first.
func TestSeriesCachesShareABudget(t *testing.T) {
	budget := &cacheBudget{max: 4096 * entryBytes, fair: 1024 * entryBytes}
	first, second := newSeriesCache(1<<20, budget), newSeriesCache(1<<20, budget)
	for _, tab := range []*seriesCache{first, second} {
		for i := range 20_000 {
			k, _ := keyFor(t, tab, fmt.Sprintf("n%d:1|c", i))
			tab.put(&k, line.Counter, cacheEntry{cell: uint32(i)})
			if s := tab.find(&k, line.Counter); s == nil || s.cell != uint32(i) {
				t.Fatalf("key %d is not cached", i)
			}
		}
	}
	if n := len(first.slots); n < 2048 || n > 4096 {
		t.Errorf("the first cache has %d slots of 4096", n)
	}
	if n := len(second.slots); n < 512 || budget.used.Load() > budget.max+budget.fair {
		t.Errorf("the second cache has %d slots, its fair part is 1024; %d bytes are charged", n, budget.used.Load())
	}
	if got, want := budget.used.Load(), int64(len(first.slots)+len(second.slots)-2*cacheFirst)*entryBytes; got != want {
		t.Errorf("%d bytes charged, want %d", got, want)
	}
	for _, tab := range []*seriesCache{first, second} {
		tab.prune(func(e *cacheEntry) bool { return e.cell == 19_999 })
		k, _ := keyFor(t, tab, "n19999:1|c")
		if s := tab.find(&k, line.Counter); s == nil || tab.used != 1 || len(tab.slots) >= 2*cacheFirst {
			t.Errorf("after pruning: entry %v, %d in use, %d slots", s, tab.used, len(tab.slots))
		}
	}
	if got := budget.used.Load(); got >= 2*cacheFirst*entryBytes {
		t.Errorf("%d bytes charged for two pruned caches", got)
	}
}

func TestSeriesCacheKeepsFewRejected(t *testing.T) {
	tab := newSeriesCache(1000, plenty())
	for i := range 2000 {
		k, _ := keyFor(t, tab, fmt.Sprintf("n%d:1|c", i))
		tab.put(&k, line.Counter, cacheEntry{reason: line.NameTooLong})
	}
	if tab.negative != 250 || tab.used != 250 {
		t.Errorf("%d rejected of %d, want 250", tab.negative, tab.used)
	}
}

// TestLineKeysDiffer has lines whose keys hold nearly the same bytes.
func TestLineKeysDiffer(t *testing.T) {
	tab := newSeriesCache(1000, plenty())
	texts := []string{"a:1|c", "a:1|c|#", "a:1|c|#|#", "a:1|c|#x", "a:1|c|##x", "a:1|c|#|#x", "a:1|c|#x|#", "a:1|c|c:x", "a:1|c|c:", "a:1|c|#x|c:x", "a,x=1:1|c", "ax:1|c"}
	for i, text := range texts {
		k, _ := keyFor(t, tab, text)
		if s := tab.find(&k, line.Counter); s != nil {
			t.Errorf("%s equals %s", text, texts[s.cell])
		}
		tab.put(&k, line.Counter, cacheEntry{cell: uint32(i)})
	}
}

// TestManyTagsAreNotCached sends more tags than a cached entry can count.
func TestManyTagsAreNotCached(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Tags: 1000}})
	for _, n := range []int{255, 256, 300} {
		var tags []string
		for i := range n {
			tags = append(tags, fmt.Sprintf("k%d:v", i))
		}
		used := r.streamWorkers[0].cache.used
		before := r.l.metrics.tags.Load()
		for range 3 {
			r.send(fmt.Sprintf("n%d:1|c|#%s", n, strings.Join(tags, ",")))
		}
		if got := r.l.metrics.tags.Load() - before; got != uint64(3*n) {
			t.Errorf("%d tags are counted of 3 lines with %d", got, n)
		}
		if cached := r.streamWorkers[0].cache.used > used; cached != (n == 255) {
			t.Errorf("a line with %d tags is cached: %t", n, cached)
		}
	}
}

// TestVariantsOfASeriesAreBounded sends one series with its tags in random orders,
// and in other forms that mean the same. Few entries are kept of them, every line
// is counted, and the entries go when the series expires.
func TestVariantsOfASeriesAreBounded(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	tags := []string{"a:1", "b:2", "c:3", "d:4", "e:5", "f", "g:7", "h:8"}
	shuffled := func() string {
		rnd.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
		return strings.Join(tags, ",")
	}
	over := Limits{SeriesPerName: 1}
	for name, tt := range map[string]struct {
		cfg   Config
		first string // sent once
		line  func() string
	}{
		"orders":      {Config{}, "app:0|c", func() string { return "app:1|c|#" + shuffled() }},
		"empty-tags":  {Config{}, "app:0|c", func() string { return "app:1|c|#a:1" + strings.Repeat(",", rnd.IntN(1000)) }},
		"last-values": {Config{}, "app:0|c", func() string { return fmt.Sprintf("app:1|c|#a:%d,a:1", rnd.IntN(n)) }},
		"dots":        {Config{}, "app:0|c", func() string { return "app" + strings.Repeat(".", rnd.IntN(500)) + ":1|c" }},
		"several":     {Config{}, "app:0|c", func() string { return "app:1|c:1|c|#" + shuffled() }},
		"timers":      {Config{}, "app:0|ms", func() string { return "app:1|" + []string{"ms", "h", "d"}[rnd.IntN(3)] + "|#" + shuffled() }},
		"over-limit":  {Config{Limits: over}, "app:0|c", func() string { return "app:1|c|#" + shuffled() }},
		"sets":        {Config{Limits: over}, "app:0|s", func() string { return "app:1|s|#" + shuffled() }},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.TTL = TTL{Counter: time.Minute, Histogram: time.Minute, Set: time.Minute}
			r := newRig(t, tt.cfg)
			cache := r.streamWorkers[0].cache
			r.send(tt.first)
			for range n {
				r.send(tt.line())
			}
			types := 1
			if name == "timers" {
				types = 3
			}
			if most := 1 + types*(3+maxVariants); cache.used > most || len(cache.slots) != cacheFirst {
				t.Errorf("%d entries in %d slots are kept of %d lines, at most %d are allowed", cache.used, len(cache.slots), n, most)
			}
			r.conserved()
			r.flush()
			r.now = r.now.Add(3 * time.Minute)
			r.flush()
			r.Sweep(false)
			r.now = r.now.Add(3 * time.Minute)
			r.flush()
			r.Sweep(false)
			if r.registry.live != 0 {
				t.Errorf("%d series did not expire", r.registry.live)
			}
			cache.prune(r.streamWorkers[0].valid)
			if used := r.registry.memory.caches.used.Load(); used != 0 || cache.used > 0 || cache.varied != nil {
				t.Errorf("after expiry %d bytes of caches are charged, %d entries and %d words of bits are left", used, cache.used, len(cache.varied))
			}
			// Another series takes the cell: its lines are not counted for the old one.
			r.send("other:1|c")
			r.send(tt.line())
			r.conserved()
		})
	}
}

// TestFirstVariant: each cell has one first variant, whatever the others have.
func TestFirstVariant(t *testing.T) {
	tab := newSeriesCache(1000, plenty())
	for _, want := range []bool{true, false} {
		for cell := range uint32(200) {
			if got := tab.firstVariant(cell); got != want {
				t.Errorf("cell %d: first %t, want %t", cell, got, want)
			}
		}
	}
	if tab.firstVariant(noCell) {
		t.Error("a line without a cell has a variant")
	}
}

// TestFingerprintsAreComparedCompletely has keys that differ only in one part of their
// fingerprints: each is another key.
func TestFingerprintsAreComparedCompletely(t *testing.T) {
	tab := newSeriesCache(1000, plenty())
	key := lineKey{1, 1}
	same, _ := key.print(line.Counter)
	near := key // the same slot, another fingerprint
	for near[0]++; ; near[0]++ {
		if p, _ := near.print(line.Counter); p != same && tab.home(p[0]) == tab.home(same[0]) {
			break
		}
	}
	tab.put(&key, line.Counter, cacheEntry{cell: 1})
	for _, other := range []lineKey{{1, 2}, near, {near[0], 2}} {
		if s := tab.find(&other, line.Counter); s != nil {
			t.Errorf("%v is found as %v", other, key)
		}
	}
	if s := tab.find(&key, line.Counter); s == nil || s.cell != 1 {
		t.Errorf("found %v", s)
	}
}
