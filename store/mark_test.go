package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestOnlyMarkedStatsAreRemoved: stats without a mark stay, whatever matches.
func TestOnlyMarkedStatsAreRemoved(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("in", store.ScopeOptions{Network: true})
	sc.Histogram("never", store.Milliseconds) // of a kind without any mark
	sc.Counter("a")
	sc.Counter("b")
	sc.Counter("c")
	sc.Mark(7, "a")
	sc.Mark(8, "b")
	if n := st.RemoveMarked(func(mark uint32) bool { return mark != 8 }); n != 1 {
		t.Errorf("%d stats ended, want 1", n)
	}
	v := st.View()
	defer v.Close()
	for name, want := range map[string]bool{"in.a": false, "in.b": true, "in.c": true, "in.never": true} {
		if _, ok := v.Find(name); ok != want {
			t.Errorf("%s is there: %t", name, ok)
		}
	}
}

func TestMarksLeadFromNamesToStats(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("own") // without a mark, before the others
	sc := st.ScopeWith("in", store.ScopeOptions{Network: true})
	var ended []uint32
	st.OnNetworkEnd(func(mark uint32) { ended = append(ended, mark) })
	kept := []tags.Tag{{Name: "k", Value: "v.w"}, {Name: "bare"}}
	for i, tt := range []struct {
		name string
		tags []tags.Tag
	}{{"a.b", nil}, {"a", kept}, {"", nil}} {
		mark := uint32(i + 1)
		if m, _ := sc.Marked(tt.name, tt.tags...); m != 0 {
			t.Errorf("%q has the mark %d before it exists", tt.name, m)
		}
		if sc.Mark(mark, tt.name, tt.tags...) {
			t.Errorf("%q is marked before it exists", tt.name)
		}
		c := sc.Counter(tt.name, tt.tags...)
		if m, same := sc.Marked(tt.name, tt.tags...); m != 0 || !same {
			t.Errorf("%q has the mark %d, same %t, before it gets one", tt.name, m, same)
		}
		if !sc.Mark(mark, tt.name, tt.tags...) {
			t.Errorf("%q is not marked", tt.name)
		}
		if m, same := sc.Marked(tt.name, tt.tags...); m != mark || !same {
			t.Errorf("%q has the mark %d, same %t; want %d", tt.name, m, same, mark)
		}
		want := "in"
		if tt.name != "" {
			want += "." + tt.name
		}
		if got := st.NameOf(c); got != want {
			t.Errorf("the name is %q, want %q", got, want)
		}
	}
	for _, other := range [][]tags.Tag{
		{{Name: "k", Value: "v"}, {Name: "w", Value: "bare"}},
		{{Name: "k.v.w", Value: "bare"}},
		{{Name: "k", Value: "v.w.bare"}},
		{{Name: "k", Value: "v"}, {Name: "w.bare"}},
		{{Name: "k.v"}, {Name: "w", Value: "bare"}},
		nil,
	} {
		name := "a"
		if other == nil {
			name = "a.k.v.w.bare"
		}
		if m, same := sc.Marked(name, other...); m != 2 || same {
			t.Errorf("%s %v: mark %d, same %t; want 2 of another stat", name, other, m, same)
		}
	}
	if m, same := sc.Marked("a.b", kept...); m != 0 || same {
		t.Errorf("an unknown stat has the mark %d", m)
	}
	c := sc.Counter("a.b")
	sc.Counter("unmarked")
	st.RemoveNetwork(func(name string) bool { return name != "in" })
	slices.Sort(ended)
	if !slices.Equal(ended, []uint32{1, 2}) {
		t.Errorf("the ends of %v were reported, want 1 and 2", ended)
	}
	if got := st.NameOf(c); got != "" {
		t.Errorf("an ended stat is called %q", got)
	}
	if sc.Mark(9, "a.b") {
		t.Error("an ended stat was marked")
	}
	sc.Counter("left")
	sc.Mark(8, "left")
	st.OnNetworkEnd(nil)
	if m, _ := sc.Marked("left"); m != 8 {
		t.Errorf("the mark is %d after the end of the input, want 8", m)
	}
	st.OnNetworkEnd(func(uint32) {})
	if m, _ := sc.Marked("left"); m != 0 {
		t.Errorf("the mark %d is left of a former input", m)
	}
	own := st.Scope("own")
	own.Counter("c")
	if own.Mark(1, "c") {
		t.Error("a stat of the program was marked")
	}
	if m, same := own.Marked("c"); m != 0 || same {
		t.Errorf("a stat of the program has the mark %d, same %t", m, same)
	}
	if got := st.NameOf(own.Gauge("g")); got != "own.g" {
		t.Errorf("the gauge is called %q", got)
	}
	if got := st.NameOf(own.FloatGauge("f", kept[:1]...)); got != "own.f" {
		t.Errorf("the gauge with tags is called %q", got)
	}
	if got := st.NameOf(st.Root().Counter("cluster.web.rq")); got != "cluster.web.rq" {
		t.Errorf("the counter with extracted tags is called %q", got)
	}
	own.Counter("limited")
	if got := st.NameOf(own.Gauge("limited")); got != "" {
		t.Errorf("a null gauge is called %q", got)
	}
}

func TestRemoveMarked(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("own") // cannot have marks
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	for i, name := range []string{"a", "b", "c"} {
		net.Counter(name)
		if i < 2 && !net.Mark(uint32(i+1), name) {
			t.Fatalf("%s cannot be marked", name)
		}
	}
	if n := st.RemoveMarked(func(mark uint32) bool { return mark != 1 }); n != 1 {
		t.Errorf("%d stats ended, want 1", n)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if got := st.Has(true, name); got != want {
			t.Errorf("%s exists: %t, want %t", name, got, want)
		}
	}
}

// TestOnNetworkInterval: only a marked gauge of network input can have another value
// for the interval.
func TestOnNetworkInterval(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	for i, name := range []string{"a", "b"} {
		if err := net.FloatGauge(name).Set(5); err != nil || !net.Mark(uint32(i+1), name) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	net.FloatGauge("unmarked")
	st.Scope("own").Gauge("c").Set(7)
	st.OnNetworkInterval(func(mark uint32) (float64, bool) { return 1.5, mark == 2 })
	v := st.View()
	defer v.Close()
	got := ""
	for c := v.ByName(store.Scalars); c.Next(); {
		got += fmt.Sprintf("%s %s %s\n", c.Name(), c.AppendValue(nil), c.AppendInterval(nil))
	}
	if want := "a 5 5\nb 5 1.5\nown.c 7 7\nunmarked 0 0\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
