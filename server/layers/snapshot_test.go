package layers

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSnapshotsDoNotChange(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "admin", Kind: Admin}}})
	before := l.Snapshot()
	if err := l.Modify(map[string]string{"k": "1"}); err != nil {
		t.Fatal(err)
	}
	if before.Uint("k", 9) != 9 || l.Snapshot().Uint("k", 9) != 1 {
		t.Error("a snapshot changed, or the new one did not")
	}
}

// TestManyChanges compares the snapshot after each of many random changes with a complete
// build, and checks that earlier snapshots stay as they were.
func TestManyChanges(t *testing.T) {
	stats, s := newStats()
	l := mustNew(t, Config{Stats: s, Layers: []Layer{
		{Name: "base", Kind: Static, Values: map[string]any{"k0": "base", "k1": "", "k2": 5}},
		{Name: "admin", Kind: Admin}, {Name: "last", Kind: Static, Values: map[string]any{"k2": 6, "k3": ""}},
	}})
	random := rand.New(rand.NewPCG(1, 2))
	var earlier *Snapshot
	var was string
	for i := range 1000 {
		values := make(map[string]string)
		for range 1 + random.IntN(3) {
			values["k"+strconv.Itoa(random.IntN(3*maxRecent))] = strconv.Itoa(i)[random.IntN(2):]
		}
		if err := l.Modify(values); err != nil {
			t.Fatal(err)
		}
		now, want := l.Snapshot(), newSnapshot(l.stack)
		if dump(now) != dump(want) || !reflect.DeepEqual(now.merged(), want.merged()) || now.Len() != want.Len() || stats.NumKeys.Value() != uint64(want.Len()) {
			t.Fatalf("change %d, %v: %d keys, gauge %d:\n%s\nwant %d keys:\n%s", i, values, now.Len(), stats.NumKeys.Value(), dump(now), want.Len(), dump(want))
		}
		if size := overrideBytes(l.fixed[l.admin]); l.bytes != size {
			t.Fatalf("change %d, %v: %d bytes of overrides, want %d", i, values, l.bytes, size)
		}
		if i%100 == 0 {
			if earlier != nil && dump(earlier) != was {
				t.Fatalf("an earlier snapshot changed to %s, was %s", dump(earlier), was)
			}
			earlier, was = now, dump(now)
		}
	}
}

// TestChangesAndReads: every snapshot contains complete requests only.
func TestChangesAndReads(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "r", Kind: RTDS}, {Name: "a", Kind: Admin}}})
	var writers, readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				s := l.Snapshot()
				if x, y := s.Uint("x", 0), s.Uint("y", 0); x != y {
					t.Errorf("x %d, y %d in one snapshot", x, y)
					return
				}
			}
		})
	}
	for w := range 3 {
		writers.Go(func() {
			for i := range 200 {
				n := strconv.Itoa(w*1000 + i)
				if w == 0 {
					if err := l.SetLayer("r", map[string]any{"x": n, "y": n}); err != nil {
						t.Error(err)
					}
				} else if err := l.Modify(map[string]string{"x": n, "y": n}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}
