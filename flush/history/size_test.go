//go:build !race

package history_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestBudget: the memory stays within the limit, the coarsest steps go first, and
// whatever is left is right.
func TestBudget(t *testing.T) {
	const limit = 400 << 10
	w := newWorld(limit)
	rnd := rand.New(rand.NewPCG(5, 6))
	var counters []*store.Counter
	for i := range 5000 {
		counters = append(counters, w.store.Root().Counter(fmt.Sprint("c", i)))
	}
	h := w.store.Root().Histogram("h", store.Unspecified)
	values := map[time.Time]string{}
	for range 3000 {
		for range 1000 {
			counters[rnd.IntN(len(counters))].Inc()
			h.Record(rnd.Uint64N(1 << 40))
		}
		w.flush(5 * time.Second)
		w.find(t, "c9", func(c *store.Cursor) { values[w.now] = string(c.AppendValue(nil)) })
		if used, most := w.h.Bytes(); used > most || most != limit {
			t.Fatalf("%d bytes in use, %d allowed", used, most)
		}
	}
	since := w.h.Since()
	if d := w.now.Sub(since); d < 2*time.Minute || d > 30*time.Minute {
		t.Errorf("complete since %v", d)
	}
	for at, want := range values {
		m, err := w.h.At(at)
		if at.Before(since) != errors.Is(err, history.ErrTooOld) {
			t.Fatalf("%v with history since %v: %v", at, since, err)
		}
		if err == nil && m.Time().Equal(at) && w.value(t, m, "c9") != want {
			t.Errorf("at %v: %s, want %s", at, w.value(t, m, "c9"), want)
		}
	}
}

// TestBytesPerChange is the target of three bytes for a counter that changed.
func TestBytesPerChange(t *testing.T) {
	w := newWorld(0)
	var counters []*store.Counter
	for i := range 100_000 {
		counters = append(counters, w.store.Root().Counter(fmt.Sprint("c", i)))
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	step := func() (changed int) {
		for i := range counters {
			if rnd.IntN(100) == 0 {
				counters[i].Add(1 + rnd.Uint64N(100))
				changed++
			}
		}
		w.flush(time.Second)
		return changed
	}
	for range 5 {
		step()
	}
	before, _ := w.h.Bytes()
	changed := 0
	for range 20 {
		changed += step()
	}
	after, _ := w.h.Bytes()
	per := float64(after-before) / float64(changed)
	t.Logf("%.2f bytes a change", per)
	if per > 3 {
		t.Errorf("%.2f bytes a change, want at most 3", per)
	}
}

// TestEndedStats: a stat that ends and comes back is another one, and the memory for
// the first is released.
func TestEndedStats(t *testing.T) {
	w := newWorld(0)
	for round := range 200 {
		w.now = w.now.Add(time.Second)
		sc := w.store.Scope("x")
		for i := range 2000 {
			sc.Counter(fmt.Sprint("a", i)).Add(uint64(round) + 1)
		}
		w.flush(10 * time.Second)
		w.find(t, "x.a5", func(c *store.Cursor) {
			points, _ := w.h.Series(c, time.Time{})
			if p := points[len(points)-1]; p.Raw != uint64(round)+1 || p.Delta != p.Raw {
				t.Fatalf("round %d: %+v", round, p)
			}
			if n := len(points); n > 1 && points[n-2].Raw != 0 {
				t.Fatalf("round %d: it has the history of another stat", round)
			}
			if m := w.at(t, w.now.Add(-10*time.Second)); round > 0 && m.Has(c) {
				t.Fatalf("round %d: it is there before its creation", round)
			}
		})
		sc.Close()
	}
	if used, _ := w.h.Bytes(); used > 3<<20 {
		t.Errorf("%d bytes in use", used)
	}
}
