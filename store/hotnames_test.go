package store

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// remembered reports whether sc finds text without composing a name, as one
// kind of stat or another.
func remembered(sc *Scope, text string) bool {
	for v := range variant(variants) {
		if b, _ := sc.recall(v, Accumulate, text, nil); b != nil {
			return true
		}
	}
	return false
}

func TestHotNamesAreFoundWhileTheTableGrows(t *testing.T) {
	st := New(Options{})
	var scopes []*Scope
	for i := range 10 {
		scopes = append(scopes, st.Scope(fmt.Sprintf("s%d", i)))
	}
	first := map[*Counter]string{}
	for round := range 3 {
		for i, sc := range scopes {
			for j := range 1000 {
				text := fmt.Sprintf("name.%d", j)
				if remembered(sc, text) != (round == 2) {
					t.Fatalf("round %d: scope %d, %s: remembered %v", round, i, text, round != 2)
				}
				c, full := sc.Counter(text), fmt.Sprintf("s%d.%s", i, text)
				if round == 0 {
					first[c] = full
				} else if first[c] != full {
					t.Fatalf("round %d: %s is %q", round, full, first[c])
				}
			}
		}
	}
	if table := st.hot.table.Load(); table.used != 10_000 || table.stats.Cap() != 1<<14 {
		t.Errorf("%d names in a table of %d", table.used, table.stats.Cap())
	}
}

func TestHotNamesOfEndedStatsAreNotFound(t *testing.T) {
	st := New(Options{})
	sc, other := st.Scope("s"), st.Scope("s")
	c := sc.Counter("a")
	sc.Counter("a")
	for range 2 {
		if other.Counter("a") != c {
			t.Error("the scopes do not share the counter")
		}
	}
	if !remembered(sc, "a") || !remembered(other, "a") {
		t.Error("a scope does not remember the counter")
	}
	sc.Close()
	if _, err := sc.TryCounter("a"); err == nil {
		t.Error("a closed scope handed out a counter")
	}
	if other.Counter("a") != c {
		t.Error("the other scope lost its counter")
	}
	other.Close()
	if remembered(other, "a") {
		t.Error("an ended counter is found")
	}
	if st.Scope("s").Counter("a") == c {
		t.Error("a new scope got an ended counter")
	}
}

func TestHotNamesStartAnewWhenFull(t *testing.T) {
	st := New(Options{})
	ask := func(from, n int) {
		for range 2 {
			for i := range n {
				st.Root().Counter(fmt.Sprintf("c%d", from+i))
			}
		}
	}
	const most = 1 << 10
	const room = most / 16 * 13
	st.hot.most = most
	ask(0, room+100)
	if table := st.hot.table.Load(); table.used != room || remembered(st.Root(), fmt.Sprintf("c%d", room+99)) {
		t.Errorf("%d names are remembered, want %d", table.used, room)
	}
	ask(room+100, room+100)
	if used := st.hot.table.Load().used; used == room || used == 0 {
		t.Errorf("%d names are remembered after as many others were turned away", used)
	}
	if last := fmt.Sprintf("c%d", 2*room+199); !remembered(st.Root(), last) {
		t.Errorf("%s is not remembered", last)
	}
}

func TestHotNamesKeepKindsAndTagsApart(t *testing.T) {
	st := New(Options{})
	sc := st.Scope("s")
	tag := tags.Tag{Name: "k", Value: "v"}
	for range 3 {
		c := sc.Counter("a", tag)
		if sc.Counter("a.k.v") != c || sc.Counter("a.k.v..") != c {
			t.Error("a name with tags is not the name that they compose")
		}
		if sc.Counter("a") == c || sc.Counter("a.k") == c {
			t.Error("different names are one counter")
		}
		if _, err := sc.TryGauge("a"); err == nil {
			t.Error("a counter was handed out as a gauge")
		}
		g := sc.Gauge("g")
		if _, err := sc.TryGaugeWithMode("g", NeverImport); err == nil || sc.Gauge("g") != g {
			t.Error("the mode of a gauge changed")
		}
	}
}

func TestHotNamesTellTagsFromDots(t *testing.T) {
	sc := New(Options{}).Scope("s")
	for _, c := range []struct {
		name string
		tag  tags.Tag
		text string // what they compose, which is another stat as a name
	}{
		{"a", tags.Tag{Name: "k"}, "a.k."},
		{"a", tags.Tag{Name: "k", Value: "v."}, "a.k.v."},
		{"", tags.Tag{Name: "k", Value: "v"}, ".k.v"},
	} {
		tagged, plain := sc.Counter(c.name, c.tag), sc.Counter(c.text)
		if tagged == plain {
			t.Errorf("%q: one counter with tags and without", c.text)
		}
		for range 2 {
			if sc.Counter(c.name, c.tag) != tagged || sc.Counter(c.text) != plain {
				t.Errorf("%q: another counter than before", c.text)
			}
		}
	}
}

func TestHotNamesCostNothing(t *testing.T) {
	sc := New(Options{}).Scope("scope.with.a.prefix")
	tgs := []tags.Tag{{Name: "region", Value: "eu-west-1"}, {Name: "status", Value: "200"}}
	ask := func() {
		sc.Counter("a.name").Inc()
		sc.Counter("a.name", tgs...).Inc()
		sc.Histogram("latency", Milliseconds)
	}
	ask()
	ask()
	if n := testing.AllocsPerRun(100, ask); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRecentLookupsSeeHotNames(t *testing.T) {
	st := New(Options{})
	sc := st.Scope("s")
	ask := func() {
		sc.Counter("a")
		sc.Counter("b", tags.Tag{Name: "k", Value: "v"})
	}
	for range 3 {
		ask()
		sc.Gauge("gauge")
		sc.FloatGauge("float")
		sc.Text("text")
		sc.Histogram("histogram", Bytes)
	}
	before := st.Symbols().RecentTotal()
	st.Symbols().EnableRecent()
	ask()
	ask()
	st.Symbols().DisableRecent()
	ask()
	if n := st.Symbols().RecentTotal() - before; n != 6 {
		t.Errorf("%d look-ups were counted, want 6", n)
	}
	st.Symbols().EnableRecent()
	ask()
	got := fmt.Sprint(st.Symbols().Recent())
	if want := "[{s.a 1} {s.b.k.v 1}]"; got != want {
		t.Errorf("recent look-ups are %s, want %s", got, want)
	}
	st.Symbols().DisableRecent() // so that the table answers
	for name, ask := range map[string]func(){
		"counter": func() { sc.Counter("a") },
		"gauge":   func() { sc.Gauge("gauge") }, "signed gauge": func() { sc.FloatGauge("float") },
		"text": func() { sc.Text("text") }, "histogram": func() { sc.Histogram("histogram", Bytes) },
	} {
		before := st.Symbols().RecentTotal()
		if ask(); st.Symbols().RecentTotal() != before+1 {
			t.Errorf("%s: a look-up is counted %d times", name, st.Symbols().RecentTotal()-before)
		}
	}
}

// TestHotNamesAreKeptByASweep: a sweep that spares a stat leaves it among the recent lookups.
func TestHotNamesAreKeptByASweep(t *testing.T) {
	st := New(Options{})
	sc := st.ScopeWith("", ScopeOptions{Evict: true})
	for range 3 {
		sc.Counter("c").Inc()
	}
	st.Sweep(false) // forgets that it was looked up
	st.Sweep(true)  // spares it because of the increments
	b, i := sc.Counter("c").w.home()
	if b.ending.has(i) || !remembered(sc, "c") || st.Len(KindCounter) != 1 {
		t.Error("a stat that was spared is about to end")
	}
}

// TestSaltsDiffer between scopes and stores, in both halves.
func TestSaltsDiffer(t *testing.T) {
	var a, b hotNames
	a.init()
	b.init()
	seen := map[uint64]bool{}
	for _, h := range []*hotNames{&a, &b} {
		for scope := range uint32(3) {
			for _, half := range h.salt(scope) {
				seen[half] = true
			}
		}
		if first, again := h.salt(1), h.salt(1); first != again {
			t.Error("a scope has two salts")
		}
	}
	if len(seen) != 2*3*2 {
		t.Errorf("%d different halves of 6 salts", len(seen))
	}
}

// TestHotNamesOfEndedStatsAreNotKept: a stat that ends during a lookup gets no entry, which
// would keep its block.
func TestHotNamesOfEndedStatsAreNotKept(t *testing.T) {
	st := New(Options{})
	sc := st.Scope("s")
	b, i := sc.Counter("a").w.home()
	sc.Close()
	if st.hot.keep(sc, "a", b, i); st.hot.table.Load().used != 0 || len(st.hot.table.Load().where) != 0 {
		t.Error("an ended stat is kept")
	}
}

// TestHotNamesLetGoOfBlocks checks that an idle table does not keep dropped
// blocks.
func TestHotNamesLetGoOfBlocks(t *testing.T) {
	st := New(Options{})
	sc := st.Scope("s")
	for range 2 {
		for i := range 3 * slotsPerBlock {
			sc.Histogram(fmt.Sprintf("h%d", i), Milliseconds)
		}
	}
	var blocks []weak.Pointer[block]
	for _, b := range st.eachBlock() {
		blocks = append(blocks, weak.Make(b))
	}
	sc.Close()
	st.View().Close()
	runtime.GC()
	kept := 0
	for _, b := range blocks {
		if b.Value() != nil {
			kept++
		}
	}
	if len(blocks) != 3 || kept != 0 {
		t.Errorf("%d of %d blocks are kept", kept, len(blocks))
	}
	if remembered(sc, "h0") {
		t.Error("an ended histogram is found")
	}
	runtime.KeepAlive(st)
}

// TestHotNamesHaveOneEntryEach: neither asking in a way that the table cannot
// answer nor a name that ends and begins again makes entries for a key it has.
func TestHotNamesHaveOneEntryEach(t *testing.T) {
	count := func(st *Store) (n int) {
		for range st.hot.table.Load().stats.All() {
			n++
		}
		return n
	}
	t.Run("asked for with no mode", func(t *testing.T) {
		st := New(Options{})
		g := st.Root().Gauge("g")
		for range 10_000 {
			if st.Root().GaugeWithMode("g", Uninitialized) != g {
				t.Fatal("another gauge")
			}
		}
		if n := count(st); n != 1 || st.hot.table.Load().stats.Cap() != minHotNames {
			t.Errorf("%d entries in a table of %d", n, st.hot.table.Load().stats.Cap())
		}
	})
	t.Run("ended and begun", func(t *testing.T) {
		st := New(Options{})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for range 3 {
			sc.Counter("stays")
		}
		var last *Counter
		for i := range 2000 {
			c := sc.Counter("c")
			if c == last {
				t.Fatal("an ended counter was handed out")
			}
			last = c
			for range 2 {
				if sc.Counter("c") != c || !remembered(sc, "c") {
					t.Fatalf("round %d: the counter is not remembered", i)
				}
			}
			st.RemoveNetwork(func(name string) bool { return name == "c" })
			if remembered(sc, "c") {
				t.Fatalf("round %d: an ended counter is found", i)
			}
			if n := count(st); n > 2 {
				t.Fatalf("%d entries for two names", n)
			}
			if table := st.hot.table.Load(); table.placed > table.used || table.used > table.stats.Cap() {
				t.Fatalf("%d blocks for %d of %d entries", table.placed, table.used, table.stats.Cap())
			}
		}
		if !remembered(sc, "stays") || st.hot.table.Load().stats.Cap() != minHotNames {
			t.Errorf("a table of %d, with the other counter %v", st.hot.table.Load().stats.Cap(), remembered(sc, "stays"))
		}
	})
}

// TestHotNamesWhileStatsEndAndBegin asks from many sides for names that end all
// the time, of several blocks, so that places change and blocks are forgotten.
func TestHotNamesWhileStatsEndAndBegin(t *testing.T) {
	st := New(Options{})
	st.hot.most = minHotNames // replaced often
	sc := st.ScopeWith("", ScopeOptions{Network: true})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var room [64]byte
			for i := 0; !done.Load(); i++ {
				want := fmt.Sprintf("n%d", i%300)
				b, slot, err := sc.ask(variantCounter, Accumulate, 0, want, nil)
				if err != nil {
					t.Error(err)
					return
				}
				enc, _ := splitRecord(b.record(slot))
				// The symbols of a stat that ended are released when no view is open.
				if got := string(st.symbols.AppendText(room[:0], enc)); got != want && b.alive.has(slot) {
					t.Errorf("asked for %q, got %q", want, got)
					return
				}
			}
		})
	}
	for i := range 300 {
		st.RemoveNetwork(func(name string) bool { return len(name)%3 == i%3 || i%7 == 0 })
	}
	done.Store(true)
	wg.Wait()
}
