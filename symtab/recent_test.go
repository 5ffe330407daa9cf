package symtab

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

func TestCountLookup(t *testing.T) {
	tests := []struct {
		name  string
		count uint64
		row   string
	}{
		{"a.b", 1, "a.b"},
		{"a.b..", 1, "a.b"},
		{".a", 1, ".a"},
		{"", 0, ""},
		{"...", 0, ""},
	}
	for _, tt := range tests {
		tab := New(Options{})
		tab.EnableRecent()
		tab.CountLookup(tt.name)
		var want []Lookup
		if tt.row != "" {
			want = []Lookup{{tt.row, 1}}
		}
		if got, rows := tab.RecentTotal(), tab.Recent(); got != tt.count || !slices.Equal(rows, want) {
			t.Errorf("after CountLookup(%q): total %d, rows %v; want %d, %v", tt.name, got, rows, tt.count, want)
		}
	}
}

// TestCountUntracked counts while no list is kept, and leaves the lookup to CountLookup
// otherwise.
func TestCountUntracked(t *testing.T) {
	tab, fake := New(Options{}), New(Options{Fake: true})
	for i, want := range []bool{true, false, true, true} {
		before := tab.RecentTotal()
		if got := tab.CountUntracked(); got != want || tab.RecentTotal()-before != map[bool]uint64{true: 1}[want] {
			t.Errorf("step %d: %t, counted %d", i, got, tab.RecentTotal()-before)
		}
		[]func(){tab.EnableRecent, tab.DisableRecent, func() {}, func() {}}[i]()
	}
	if fake.CountUntracked() || fake.RecentTotal() != 0 {
		t.Error("a fake table counts")
	}
}

// TestNothingElseCounts checks that encoding, joining, printing and literals
// are no lookups.
func TestNothingElseCounts(t *testing.T) {
	tab := New(Options{})
	tab.EnableRecent()
	enc := tab.AppendEncode(nil, "a.b")
	tab.AppendText(nil, tab.AppendJoin(nil, enc, tab.AppendLiteral(nil, "c.d")))
	tab.EqualText(enc, "a.b")
	tab.Release(enc)
	if got := tab.RecentTotal(); got != 0 {
		t.Errorf("total = %d, want 0", got)
	}
}

func TestRecentOrder(t *testing.T) {
	tab := New(Options{})
	tab.EnableRecent()
	for name, n := range map[string]int{"http.rq": 14, "edge.restarts": 1, "cluster.rq": 1, "b": 2} {
		for range n {
			tab.CountLookup(name)
		}
	}
	want := []Lookup{{"cluster.rq", 1}, {"edge.restarts", 1}, {"b", 2}, {"http.rq", 14}}
	if got := tab.Recent(); !slices.Equal(got, want) {
		t.Errorf("Recent() = %v, want %v", got, want)
	}
}

// TestRecentCapacity fills the list: the name looked up least recently goes,
// and starts over when it comes back.
func TestRecentCapacity(t *testing.T) {
	tab := New(Options{})
	tab.EnableRecent()
	for i := range 100 {
		tab.CountLookup(fmt.Sprintf("n%03d", i))
	}
	tab.CountLookup("n000") // now n001 is the oldest
	tab.CountLookup("new")
	has := func(name string) uint64 {
		for _, l := range tab.Recent() {
			if l.Name == name {
				return l.Count
			}
		}
		return 0
	}
	if n := len(tab.Recent()); n != 100 {
		t.Errorf("%d rows, want 100", n)
	}
	if has("n001") != 0 || has("n000") != 2 || has("new") != 1 || has("n002") != 1 {
		t.Errorf("counts of n001, n000, new, n002 = %d %d %d %d, want 0 2 1 1",
			has("n001"), has("n000"), has("new"), has("n002"))
	}
	tab.CountLookup("n001")
	if has("n001") != 1 || has("n002") != 0 {
		t.Errorf("counts of n001, n002 = %d %d, want 1 0", has("n001"), has("n002"))
	}
	if got := tab.RecentTotal(); got != 103 {
		t.Errorf("total = %d, want 103", got)
	}
}

// TestRecentModes walks through enabling, disabling and clearing.
func TestRecentModes(t *testing.T) {
	tab := New(Options{})
	enable, disable, clearAll := tab.EnableRecent, tab.DisableRecent, tab.ClearRecent
	look := func() { tab.CountLookup("x") }
	steps := []struct {
		name  string
		do    func()
		on    bool
		total uint64
		rows  []Lookup
	}{
		{"start", func() {}, false, 0, nil},
		{"lookup while off", look, false, 1, nil},
		{"disable while off", disable, false, 1, nil},
		{"enable", enable, true, 1, nil},
		{"lookup", look, true, 2, []Lookup{{"x", 1}}},
		{"enable again keeps the list", enable, true, 2, []Lookup{{"x", 1}}},
		{"lookup", look, true, 3, []Lookup{{"x", 2}}},
		{"clear", clearAll, true, 0, nil},
		{"lookup", look, true, 1, []Lookup{{"x", 1}}},
		{"disable empties the list", disable, false, 1, nil},
		{"lookup while off", look, false, 2, nil},
		{"enable", enable, true, 2, nil},
		{"disable", disable, false, 2, nil},
		{"clear while off", clearAll, false, 0, nil},
		{"lookup while off", look, false, 1, nil},
	}
	for i, s := range steps {
		s.do()
		if on, total, rows := tab.RecentEnabled(), tab.RecentTotal(), tab.Recent(); on != s.on || total != s.total || !slices.Equal(rows, s.rows) {
			t.Errorf("step %d (%s): on %t, total %d, rows %v; want %t, %d, %v", i, s.name, on, total, rows, s.on, s.total, s.rows)
		}
	}
}

func TestRecentFake(t *testing.T) {
	tab := New(Options{Fake: true})
	for i, do := range []func(){tab.EnableRecent, func() { tab.CountLookup("x") }, tab.ClearRecent, tab.EnableRecent, tab.DisableRecent} {
		do()
		tab.CountLookup("y")
		if on, total, rows := tab.RecentEnabled(), tab.RecentTotal(), tab.Recent(); on || total != 0 || len(rows) != 0 {
			t.Errorf("step %d: on %t, total %d, rows %v; want false, 0, none", i, on, total, rows)
		}
	}
	if enc := tab.AppendEncode(nil, "a.b"); text(tab, enc) != "a.b" {
		t.Errorf("names do not work")
	}
}

// TestRecentKeepsNoCallerMemory changes the bytes of a name after the lookup.
func TestRecentKeepsNoCallerMemory(t *testing.T) {
	tab := New(Options{})
	tab.EnableRecent()
	b := []byte("name")
	tab.CountLookup(view(b))
	copy(b, "XXXX")
	if got := tab.Recent(); !slices.Equal(got, []Lookup{{"name", 1}}) {
		t.Errorf("Recent() = %v", got)
	}
}

// TestLookupsAreExact counts from more goroutines than there are stripes while
// the list is switched.
func TestLookupsAreExact(t *testing.T) {
	const goroutines, each = 16, 20_000
	tab := New(Options{})
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				tab.CountLookup("x")
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			tab.EnableRecent()
			tab.Recent()
			tab.DisableRecent()
		}
	})
	wg.Wait()
	if got := tab.RecentTotal(); got != goroutines*each {
		t.Errorf("total = %d, want %d", got, goroutines*each)
	}
	// A slot beyond the stripes has none, where slots own them.
	if percpu.Enabled {
		tab.recent.stripes = nil
	}
	before := tab.RecentTotal()
	tab.CountLookup("x")
	if got := tab.RecentTotal(); got != before+1 {
		t.Errorf("total with a late slot = %d, want %d", got, before+1)
	}
}
