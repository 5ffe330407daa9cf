package store

import (
	"math/bits"
	"slices"
	"strconv"
	"testing"
)

func TestFewEndsDoNotVisitAllNames(t *testing.T) {
	s := New(Options{})
	for i := range 60_000 {
		s.root.Counter("a." + strconv.Itoa(i))
	}
	v := s.View()
	defer v.Close()
	v.ByName(Scalars)
	o := &s.byName[Scalars]
	before, keys := slices.Concat(o.chunks...), 0
	key := o.key
	o.key = func(s *Store, dst []byte, x id) []byte {
		keys++
		return key(s, dst, x)
	}
	remove := func(gone []id, n int) (visited int) {
		t.Helper()
		dead := func(x id) bool {
			visited++
			return slices.Contains(gone, x)
		}
		o.remove(s, gone, n, dead)
		before = slices.DeleteFunc(before, func(x id) bool { return slices.Contains(gone, x) })
		if !slices.Equal(slices.Concat(o.chunks...), before) {
			t.Fatal("the order has other ids than those that remain")
		}
		return visited
	}

	few := []id{before[0], before[511], before[512], before[30_000], before[len(before)-1]}
	most := len(few) * (bits.Len(uint(len(o.chunks))) + 1)
	if visited := remove(few, len(few)); visited != 0 || keys > most {
		t.Errorf("visited %d ids and %d keys to remove %d, want at most %d keys", visited, keys, len(few), most)
	}
	if remove(slices.Clone(before[:512]), 512) == 0 {
		t.Error("many ids were looked up one by one")
	}

	// An id whose key has changed is found nevertheless.
	o.key = func(_ *Store, dst []byte, _ id) []byte { return dst }
	if remove([]id{before[40_000]}, 1) == 0 {
		t.Error("an id was not removed, but not looked for either")
	}
}
