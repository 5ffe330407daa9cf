package store

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
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

// TestFirstSortHoldsNoLock: while names are sorted for the first time, other views open,
// and stats are created and end.
func TestFirstSortHoldsNoLock(t *testing.T) {
	st := New(Options{})
	net := st.ScopeWith("", ScopeOptions{Network: true})
	for _, name := range []string{"a", "b", "ends"} {
		net.Counter(name)
	}
	o := &st.byName[Scalars]
	key, keys := o.key, 0
	o.key = func(s *Store, dst []byte, x id) []byte {
		if keys++; keys == 2 {
			net.Counter("new")
			st.RemoveNetwork(func(name string) bool { return name == "ends" })
			st.View().Close()
		}
		return key(s, dst, x)
	}
	v := st.View()
	defer v.Close()
	var names []string
	for c := v.ByName(Scalars); c.Next(); {
		names = append(names, string(c.AppendName(nil)))
	}
	if got := strings.Join(names, " "); got != "a b new" {
		t.Errorf("names %q", got)
	}
	var later []string
	w := st.View()
	defer w.Close()
	for c := w.ByName(Scalars); c.Next(); {
		later = append(later, string(c.AppendName(nil)))
	}
	if !slices.Equal(later, names) || slices.ContainsFunc(slices.Concat(o.chunks...), st.isDead) {
		t.Errorf("names %q of %d ids, want %q", later, len(slices.Concat(o.chunks...)), names)
	}
}
