package store_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestNothingLostOrInvented lets writers, flushes, resets, sweeps, renders and
// the creation and end of other stats race. Each increment must be in exactly
// one interval, and totals must be the sums of the increments.
func TestNothingLostOrInvented(t *testing.T) {
	const counters, writers = 300, 4
	rounds := 2_000_000
	if testing.Short() {
		rounds = 20_000
	}
	st := store.New(store.Options{})
	names := make([]string, counters)
	added := make([]atomic.Uint64, counters)
	for i := range names {
		names[i] = fmt.Sprintf("model.c%d", i)
	}
	recorded := new(atomic.Uint64)
	hist := st.Root().Histogram("model.h", store.Unspecified)

	var writing, helping sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			held := make([]*store.Counter, counters)
			for i := range held {
				held[i] = st.Root().Counter(names[i])
			}
			for range rounds {
				i := rng.IntN(counters)
				n := uint64(rng.IntN(3))
				if rng.IntN(4) == 0 {
					st.Root().Counter(names[i]).Add(n)
				} else {
					held[i].Add(n)
				}
				added[i].Add(n)
				hist.Record(uint64(i))
				recorded.Add(1)
			}
		})
	}
	helper := func(f func(round int)) {
		helping.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-done:
					return
				default:
					f(round)
				}
			}
		})
	}
	intervals := map[string]uint64{} // by the flusher alone, then read at the end
	var seen uint64                  // histogram values in intervals
	flush := func() {
		snap := st.Flush(store.FlushOptions{Totals: true})
		defer snap.Close()
		snap.CounterChanges(func(c *store.Cursor, d uint64) bool {
			intervals[c.Name()] += d
			if total, ok := snap.Total(c); !ok || total < d {
				t.Errorf("%s: total %d at the flush, %d of it in the interval", c.Name(), total, d)
			}
			return true
		})
		snap.HistogramChanges(func(_ *store.Cursor, h *histogram.Snapshot) bool {
			seen += h.Interval.Count()
			return true
		})
	}
	helper(func(int) { flush() })
	helper(func(int) { st.ResetCounters() })
	helper(func(round int) {
		sc := st.ScopeWith("churn", store.ScopeOptions{Evict: true})
		for i := range 100 {
			sc.Counter(fmt.Sprintf("n%d.%d", round, i)).Inc()
			sc.GaugeWithMode(fmt.Sprintf("g%d.%d", round, i), store.NeverImport).Set(1)
		}
		if round%2 == 0 {
			sc.Close()
		}
	})
	helper(func(int) { st.Sweep(true) })
	helper(func(round int) {
		var b bytes.Buffer
		if err := render.Text(&b, st, render.Options{}); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(b.String()) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			if !strings.HasPrefix(name, "model.") && !strings.HasPrefix(name, "churn.") && !strings.HasPrefix(name, "server.") {
				t.Errorf("a stat called %q was invented", name)
			}
			if strings.HasPrefix(name, "model.c") {
				if v, err := strconv.ParseUint(value, 10, 64); err != nil || v > 3*writers*uint64(rounds) {
					t.Errorf("%s has the impossible value %q", name, value)
				}
			}
		}
		if err := render.Exposition(io.Discard, st, render.Options{UsedOnly: round%2 == 0}); err != nil {
			t.Error(err)
		}
	})
	writing.Wait()
	close(done)
	helping.Wait()
	flush()
	for i, name := range names {
		want := added[i].Load()
		if got := st.Root().Counter(name).Total(); got != want {
			t.Errorf("%s: total %d, added %d", name, got, want)
		}
		if got := intervals[name]; got != want {
			t.Errorf("%s: the intervals add up to %d, added %d", name, got, want)
		}
	}
	if seen != recorded.Load() {
		t.Errorf("the histogram's intervals hold %d values, %d were recorded", seen, recorded.Load())
	}
	st.Flush(store.FlushOptions{}).Close()
	st.Sweep(true)
	st.Sweep(true)
}

// TestAgainstModel runs random operations on a store and on a plain map.
func TestAgainstModel(t *testing.T) {
	type stat struct {
		kind    store.Kind
		value   uint64
		pending uint64
		base    uint64
		holders map[int]bool
	}
	rapid.Check(t, func(t *rapid.T) {
		st := store.New(store.Options{})
		st.KeepEnded()
		model := map[string]*stat{}
		owed := map[string]uint64{} // pending increments of counters that ended
		scopes := map[int]*store.Scope{}
		prefixes := []string{"", "a", "a.b", "x:y"}
		clean := []string{"", "a", "a.b", "x_y"}
		name := rapid.SampledFrom([]string{"n", "m.n", "b.n", "k", "k..", "a-b", "q.", "z.upstream_rq_200"})
		scope := func(i int) *store.Scope {
			if scopes[i] == nil {
				scopes[i] = st.Scope(prefixes[i])
			}
			return scopes[i]
		}
		full := func(i int, n string) string {
			n = strings.TrimRight(n, ".")
			if clean[i] == "" {
				return n
			}
			return clean[i] + "." + n
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i, n := rapid.IntRange(0, 3).Draw(t, "scope"), name.Draw(t, "name")
				d := rapid.Uint64Range(0, 5).Draw(t, "n")
				c, err := scope(i).TryCounter(n)
				m := model[full(i, n)]
				if m != nil && m.kind != store.KindCounter {
					if err == nil {
						t.Fatalf("%q is a %s and was given out as a counter", full(i, n), m.kind)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if m == nil {
					m = &stat{kind: store.KindCounter, holders: map[int]bool{}}
					model[full(i, n)] = m
				}
				m.holders[i] = true
				c.Add(d)
				m.value += d
				m.pending += d
			},
			"gauge": func(t *rapid.T) {
				i, n := rapid.IntRange(0, 3).Draw(t, "scope"), name.Draw(t, "name")
				d := rapid.Uint64Range(0, 5).Draw(t, "n")
				g, err := scope(i).TryGauge(n)
				m := model[full(i, n)]
				if m != nil && m.kind != store.KindGauge {
					if err == nil {
						t.Fatalf("%q is a %s and was given out as a gauge", full(i, n), m.kind)
					}
					return
				}
				if m == nil {
					m = &stat{kind: store.KindGauge, holders: map[int]bool{}}
					model[full(i, n)] = m
				}
				m.holders[i] = true
				g.Set(d)
				m.value = d
			},
			"reset": func(t *rapid.T) {
				st.ResetCounters()
				for _, m := range model {
					if m.kind == store.KindCounter {
						m.base = m.value
					}
				}
			},
			"close": func(t *rapid.T) {
				i := rapid.IntRange(1, 3).Draw(t, "scope")
				scope(i).Close()
				delete(scopes, i)
				for n, m := range model {
					if delete(m.holders, i); len(m.holders) == 0 {
						delete(model, n)
						owed[n] += m.pending
					}
				}
			},
			"flush": func(t *rapid.T) {
				got := deltas(st)
				for n, m := range model {
					owed[n] += m.pending
					m.pending = 0
				}
				for n := range got {
					owed[n] += 0
				}
				for n, want := range owed {
					if got[n] != want {
						t.Fatalf("flush gives %d for %q, want %d", got[n], n, want)
					}
				}
				clear(owed)
			},
			"": func(t *rapid.T) {
				v := st.View()
				defer v.Close()
				c := v.ByName(store.Scalars)
				last, seen := "", 0
				for c.Next() {
					m := model[c.Name()]
					if m == nil {
						t.Fatalf("%q is listed and should not exist", c.Name())
					}
					if seen++; seen > 1 && c.Name() <= last {
						t.Fatalf("%q comes after %q", c.Name(), last)
					}
					last = c.Name()
					if c.Kind() != m.kind || c.Uint() != m.value-m.base {
						t.Fatalf("%q is a %s with %d, want %s with %d", last, c.Kind(), c.Uint(), m.kind, m.value-m.base)
					}
				}
				if seen != len(model) {
					t.Fatalf("%d stats are listed, want %d", seen, len(model))
				}
			},
		})
	})
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	st := store.New(store.Options{})
	in := st.Scope("http.ingress")
	c, g, f := in.Counter("c"), in.Gauge("g"), in.FloatGauge("f")
	h := in.Histogram("h", store.Milliseconds)
	for i := range uint64(5000) {
		h.Record(i)
		c.Inc()
	}
	eu := []tags.Tag{{Name: "region", Value: "eu"}, {Name: "tier", Value: "1"}, {Name: "zone", Value: "b"}}
	in.Counter("tagged", eu...)
	for _, tt := range []struct {
		name string
		f    func()
	}{
		{"Counter.Inc", c.Inc},
		{"Gauge.Set", func() { g.Set(3) }},
		{"Gauge.Add", func() { g.Add(3) }},
		{"FloatGauge.Set", func() { f.Set(-1.5) }},
		{"FloatGauge.Add", func() { f.Add(0.5) }},
		{"Histogram.Record", func() { h.Record(17) }},
		{"Counter.Value", func() { c.Value() }},
		{"look-up by name", func() { in.Counter("c").Inc() }},
		{"look-up by name and tags", func() { in.Counter("tagged", eu...).Inc() }},
	} {
		if n := testing.AllocsPerRun(200, tt.f); n != 0 {
			t.Errorf("%s allocates %v times", tt.name, n)
		}
	}
}
