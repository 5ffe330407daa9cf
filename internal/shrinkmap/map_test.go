package shrinkmap

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestMapIsAMap(t *testing.T) {
	var m Map[int, int]
	want := map[int]int{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 6 {
		for range 10_000 {
			k := rnd.IntN(3000)
			if rnd.IntN(8) == 0 == (round%2 == 0) {
				m.Delete(k)
				delete(want, k)
			} else {
				m.Set(k, round)
				want[k] = round
			}
			if v, ok := m.Get(k); ok != (len(want) > 0 && contains(want, k)) || v != want[k] || m.At(k) != v || m.Len() != len(want) {
				t.Fatalf("%d: %d %t, want %d", k, v, ok, want[k])
			}
		}
		if got := maps.Collect(m.All()); !maps.Equal(got, want) {
			t.Fatalf("%d keys, want %d", len(got), len(want))
		}
	}
}

func contains(m map[int]int, k int) bool {
	_, ok := m[k]
	return ok
}

func TestMemoryComesBack(t *testing.T) {
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var m Map[int, [4]int]
	before := heap()
	for i := range 100_000 {
		m.Set(i, [4]int{})
	}
	for i := range 100_000 {
		m.Delete(i)
	}
	if after := heap(); after > before+100_000 {
		t.Errorf("an empty map keeps %d bytes", after-before)
	}
	runtime.KeepAlive(&m)
}
