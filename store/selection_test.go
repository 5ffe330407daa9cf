package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestSelectionJudgesNewNamesOnly counts the calls of the predicate while stats are added
// and end in all parts of the order.
func TestSelectionJudgesNewNamesOnly(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	const n = 5000
	for i := range n {
		net.Counter(fmt.Sprintf("s%04d", i))
	}
	var sel store.Selection
	check := func(what string, wantCalls, wantHits int) {
		t.Helper()
		v := st.View()
		defer v.Close()
		calls, hits := 0, 0
		c := v.ByNameIn(store.Scalars, &sel, func(c *store.Cursor) (bool, error) {
			calls++
			return strings.HasSuffix(c.Name(), "1"), nil
		})
		for c.Next() {
			if hits++; !strings.HasSuffix(c.Name(), "1") {
				t.Fatalf("%s: %s is selected", what, c.Name())
			}
		}
		if calls != wantCalls || hits != wantHits {
			t.Errorf("%s: %d calls and %d stats, want %d and %d", what, calls, hits, wantCalls, wantHits)
		}
	}
	check("new", n, n/10)
	check("again", 0, n/10)
	for i := range 100 {
		net.Counter(fmt.Sprintf("s%02d_1", i)) // everywhere in the order
	}
	check("added", 100, n/10+100)
	st.RemoveNetwork(func(name string) bool { return strings.HasSuffix(name, "7") })
	check("ended", 0, n/10+100)
}

// TestSelectionOfAnUnchangedOrder does not use the index, which is slower than the order: a
// walk that misses a chunk makes a new one.
func TestSelectionOfAnUnchangedOrder(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 3000 {
		st.Root().Counter(fmt.Sprintf("s%04d", i))
	}
	var sel store.Selection
	v := st.View()
	defer v.Close()
	for i := range 2 {
		for c := v.ByNameIn(store.Scalars, &sel, func(*store.Cursor) (bool, error) { return false, nil }); c.Next(); {
		}
		if got := sel.DropIndex(store.Scalars); got != (i == 0) {
			t.Errorf("walk %d: %t, want an index of the first walk only", i, got)
		}
	}
}

// TestSelectionOfNothing: stats that a predicate was asked about are not visited for that.
func TestSelectionOfNothing(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 3000 {
		st.Root().Counter(fmt.Sprintf("s%04d", i))
	}
	v := st.View()
	defer v.Close()
	for _, last := range []int{-1, 0, 1500} { // the only stat that is selected; none at first
		var sel store.Selection
		for range 2 {
			var got []string
			c := v.ByNameIn(store.Scalars, &sel, func(c *store.Cursor) (bool, error) { return c.Name() == fmt.Sprintf("s%04d", last), nil })
			for c.Next() {
				got = append(got, c.Name())
			}
			if want := []string{fmt.Sprintf("s%04d", last)}; !slices.Equal(got, want[:min(1, last+1)]) {
				t.Errorf("got %v with only stat %d selected", got, last)
			}
		}
	}
}

// TestSymbolsOfSegments has more segments than fit in a byte of a symbol.
func TestSymbolsOfSegments(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 40000 {
		st.Root().Counter(fmt.Sprintf("a.b%d.c", i))
	}
	v := st.View()
	defer v.Close()
	seen := map[uint32]bool{}
	var ends [2]uint32
	c := v.ByName(store.Scalars)
	for c.Next() {
		syms, whole := c.AppendSymbols(nil)
		if !whole || len(syms) != 3 || seen[syms[1]] {
			t.Fatalf("%s: symbols %v, %t", c.Name(), syms, whole)
		}
		if now := [2]uint32{syms[0], syms[2]}; len(seen) > 0 && now != ends {
			t.Fatalf("%s: symbols of a and c are %v, were %v", c.Name(), now, ends)
		} else {
			ends = now
		}
		seen[syms[1]] = true
	}
}

// TestSymbolsAfterOthers: the last segment is a symbol only behind the same segments.
func TestSymbolsAfterOthers(t *testing.T) {
	st := store.New(store.Options{})
	for _, name := range []string{"a.b.c", "a.b.d", "a.x.c", "a.b.c.d", "a.b", "a", "b.b.c"} {
		st.Root().Counter(name)
	}
	v := st.View()
	defer v.Close()
	var before []byte // of a.b.c
	symbols := map[string]uint32{}
	for c := v.ByName(store.Scalars); c.Next(); {
		all, _ := c.AppendSymbols(nil)
		symbols[c.Name()] = all[len(all)-1]
		if c.Name() == "a.b.c" {
			before = c.AppendBeforeLast(nil)
		}
		if _, ok := c.SymbolAfter(nil); ok {
			t.Errorf("%s: a symbol after nothing", c.Name())
		}
	}
	for c := v.ByName(store.Scalars); c.Next(); {
		symbol, ok := c.SymbolAfter(before)
		if want := c.Name() == "a.b.c" || c.Name() == "a.b.d"; ok != want || ok && symbol != symbols[c.Name()] {
			t.Errorf("%s: symbol %d, %t; want %d, %t", c.Name(), symbol, ok, symbols[c.Name()], want)
		}
	}
}

// TestSelectionIsWhatThePredicateSelects compares selections with the predicate while stats
// end and are created, so that chunks are replaced, dropped and split.
func TestSelectionIsWhatThePredicateSelects(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	var byName, byFamily store.Selection
	selects := func(name string) bool { return strings.Contains(name, "3") }
	alive := map[string]bool{}
	for i := range 3000 {
		alive[fmt.Sprintf("s%04d", 2*i)] = true
	}
	for round := range 30 {
		for name := range alive {
			net.Counter(name)
		}
		v := st.View()
		for form, walk := range map[string]func(judge func(*store.Cursor) (bool, error)) store.Cursor{
			"name": func(f func(*store.Cursor) (bool, error)) store.Cursor { return v.ByNameIn(store.Scalars, &byName, f) },
			"family": func(f func(*store.Cursor) (bool, error)) store.Cursor {
				return v.ByFamilyIn(store.KindCounter, &byFamily, f)
			},
		} {
			var got, want []string
			c := walk(func(c *store.Cursor) (bool, error) { return selects(c.Name()), nil })
			for c.Next() {
				got = append(got, c.Name())
			}
			for name := range alive {
				if selects(name) {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) || c.Err() != nil {
				t.Fatalf("round %d, by %s: %d are selected, want %d, or others; error %v", round, form, len(got), len(want), c.Err())
			}
		}
		v.Close()
		end := func(name string) bool { return random.IntN(20) == 0 }
		if round%3 == 0 { // whole chunks
			from := random.IntN(4000)
			low, high := fmt.Sprintf("s%04d", from), fmt.Sprintf("s%04d", from+2500)
			end = func(name string) bool { return low <= name && name < high }
		}
		st.RemoveNetwork(func(name string) bool {
			ends := end(name)
			if ends {
				delete(alive, name)
			}
			return ends
		})
		for range random.IntN(300) {
			alive[fmt.Sprintf("s%04d", random.IntN(6000))] = true
		}
	}
}

// TestSelectionAfterAnError: a walk ends at the first error of the predicate and keeps
// nothing for the next one.
func TestSelectionAfterAnError(t *testing.T) {
	st := store.New(store.Options{})
	const n = 2500
	for i := range n {
		st.Root().Counter(fmt.Sprintf("s%04d", i))
	}
	v := st.View()
	defer v.Close()
	var sel store.Selection
	failed := errors.New("failed")
	for _, at := range []int{0, 700, 1200, n - 1} {
		judged := 0
		c := v.ByNameIn(store.Scalars, &sel, func(*store.Cursor) (bool, error) {
			if judged++; judged > at {
				return false, failed
			}
			return true, nil
		})
		walked := 0
		for c.Next() {
			walked++
		}
		if !errors.Is(c.Err(), failed) || judged != at+1 || walked > at || sel.Bytes() != 0 {
			t.Errorf("error at stat %d: %v after %d, %d are selected, and %d bytes are kept", at, c.Err(), judged, walked, sel.Bytes())
		}
	}
	c := v.ByNameIn(store.Scalars, &sel, func(*store.Cursor) (bool, error) { return true, nil })
	walked := 0
	for c.Next() {
		walked++
	}
	if walked != n || c.Err() != nil {
		t.Errorf("then %d are selected, error %v", walked, c.Err())
	}
	plain := v.ByName(store.Scalars)
	if plain.Next(); plain.Err() != nil {
		t.Errorf("a walk without a predicate has the error %v", plain.Err())
	}
}

// TestSelectionForgetsReusedIDs: stats that have the ids of ended ones are judged anew.
func TestSelectionForgetsReusedIDs(t *testing.T) {
	st := store.New(store.Options{})
	var sel store.Selection
	for round := range 3 {
		sc := st.Scope("s")
		for i := range 2 * 896 {
			sc.Counter(fmt.Sprint("c", i, ".", round))
		}
		v := st.View()
		n := 0
		c := v.ByNameIn(store.Scalars, &sel, func(c *store.Cursor) (bool, error) { return strings.HasSuffix(c.Name(), ".1"), nil })
		for c.Next() {
			n++
		}
		v.Close()
		if want := []int{0, 2 * 896, 0}[round]; n != want {
			t.Errorf("round %d: %d are selected, want %d", round, n, want)
		}
		sc.Close()
		st.View().Close()
	}
}

// TestSelectionBytes: each order that was walked counts, with about four bytes and a bit for each stat.
func TestSelectionBytes(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 2000 {
		st.Root().Counter(fmt.Sprint("s", i))
	}
	v := st.View()
	defer v.Close()
	var sel store.Selection
	all := func(*store.Cursor) (bool, error) { return true, nil }
	walk := func(c store.Cursor) {
		for c.Next() {
		}
	}
	if got := sel.Bytes(); got != 0 {
		t.Errorf("%d bytes before the first walk", got)
	}
	walk(v.ByNameIn(store.Scalars, &sel, all))
	one := sel.Bytes()
	if one < 2000*33/8 || one > 2*2000*33/8 {
		t.Errorf("%d bytes for 2000 stats", one)
	}
	walk(v.ByFamilyIn(store.KindCounter, &sel, all))
	if got := sel.Bytes(); got != 2*one {
		t.Errorf("%d bytes after a walk of another order, want twice %d", got, one)
	}
}

// TestSymbolsOfLiterals: a literal segment has no symbol, and cannot be before one.
func TestSymbolsOfLiterals(t *testing.T) {
	st := store.New(store.Options{})
	long := strings.Repeat("l", 200) // its length takes two bytes
	last := []tags.Tag{{Name: "k", Value: "v.w"}}
	middle := []tags.Tag{{Name: "k.l", Value: "v"}}
	behind := []tags.Tag{{Name: "k", Value: long + "."}}
	st.Root().Counter("a.b")
	st.Root().Counter("a", last...)
	st.Root().Counter("a", middle...)
	st.Root().Counter("a", behind...)
	v := st.View()
	defer v.Close()
	find := func(name string) *store.Cursor {
		c, ok := v.Find(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return &c
	}
	symbols := func(name string) []uint32 { s, _ := find(name).AppendSymbols(nil); return s }
	plain := symbols("a.b")
	for name, n := range map[string]int{"a.k.v.w": 2, "a.k.l.v": 1, "a.k." + long + ".": 2} {
		c := find(name)
		got, whole := c.AppendSymbols([]uint32{7})
		if whole || len(got) != 1+n || got[0] != 7 || got[1] != plain[0] {
			t.Errorf("%s: symbols %v, whole %t; want %d before the literal", name, got, whole, n)
		}
		if got := c.AppendBeforeLast([]byte("x")); string(got) != "x" {
			t.Errorf("%s: %q before the last segment, want nothing", name, got[1:])
		}
	}
	// The segments a and k, which are before a literal.
	st.Root().Counter("a.k.z")
	before := find("a.k.z").AppendBeforeLast(nil)
	for _, name := range []string{"a.k.v.w", "a.k." + long + "."} {
		if symbol, ok := find(name).SymbolAfter(before); ok {
			t.Errorf("%s: symbol %d of a literal", name, symbol)
		}
	}
	if symbol, ok := find("a.k.z").SymbolAfter(before); !ok || symbol != symbols("a.k.z")[2] {
		t.Errorf("symbol %d, %t", symbol, ok)
	}
}

// TestSegmentsOfACursor: the segments are those between the dots of the name.
func TestSegmentsOfACursor(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a.b.c")
	v := st.View()
	defer v.Close()
	c, _ := v.Find("a.b.c")
	var got []string
	for s := c.Segments(); s.Next(); {
		got = append(got, string(s.Text()))
	}
	equal(t, got, []string{"a", "b", "c"})
}
