package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
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
