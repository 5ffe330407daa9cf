package store

import (
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestNamesThatShareAMetricCostTheSameEach counts allocations: senders choose how
// many names differ only in replaced bytes, so the cost of a new one must not grow
// with their number.
func TestNamesThatShareAMetricCostTheSameEach(t *testing.T) {
	const names, most = 1 << 11, 100 // allocations for each; thousands if it looks at all
	for _, unique := range []bool{false, true} {
		st := New(Options{Naming: naming.Rules{Unique: unique}})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for i := range names {
			var name []byte
			for bit := range 11 {
				name = append(name, 'a', "._"[i>>bit&1])
			}
			sc.Counter(string(append(name, 'a')))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = st.View().ByFamily(KindCounter)
		runtime.ReadMemStats(&after)
		if got := (after.Mallocs - before.Mallocs) / names; got > most {
			t.Errorf("unique %t: %d allocations for each name, want %d at most", unique, got, most)
		}
		if got := st.Collisions(); got != names-1 {
			t.Errorf("unique %t: %d collisions of %d names", unique, got, names)
		}
	}
}

// TestSharedMetricsEnd: nothing is kept of names that shared a metric name once their stats
// have ended.
func TestSharedMetricsEnd(t *testing.T) {
	for _, unique := range []bool{false, true} {
		st := New(Options{Naming: naming.Rules{Unique: unique}})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for round := range 3 {
			for _, name := range []string{"a.b", "a-b", "a+b", "c.d", "c-d", "alone"} {
				sc.Counter(name).Inc()
			}
			v := st.View()
			for c := v.ByFamily(KindCounter); c.Next(); {
				c.Series()
			}
			v.Close()
			st.RemoveNetwork(func(string) bool { return true })
			st.View().Close()
			if n, m := len(st.series.shared), st.series.specials.Load(); n != 0 || m != 0 {
				t.Errorf("unique %t, round %d: %d shared names and %d special families are left", unique, round, n, m)
			}
		}
	}
}

// TestSharedMetricOfBothForms: a family with and without tags is no collision with itself,
// and a name that ended before it was listed does not count.
func TestSharedMetricOfBothForms(t *testing.T) {
	st := New(Options{})
	sc := st.ScopeWith("", ScopeOptions{Network: true})
	merged := func() (names string) {
		v := st.View()
		defer v.Close()
		for c := v.ByFamily(KindCounter); c.Next(); {
			if s := c.Series(); s != nil && s.Merged {
				names += c.Name() + " "
			}
		}
		return names
	}
	sc.Counter("a.b")
	sc.Counter("a.b", tags.Tag{Name: "x", Value: "1"})
	if got := merged(); got != "" || st.Collisions() != 0 {
		t.Errorf("one family in both forms: %q are merged, %d collisions", got, st.Collisions())
	}
	sc.Counter("a-b")
	st.RemoveNetwork(func(name string) bool { return name == "a-b" })
	st.View().Close()
	sc.Counter("a+b")
	if got, want := merged(), "a.b a.b.x.1 a+b "; got != want || st.Collisions() != 1 {
		t.Errorf("%q are merged, want %q; %d collisions", got, want, st.Collisions())
	}
	st.RemoveNetwork(func(name string) bool { return name == "a.b" })
	st.View().Close()
	if got, want := merged(), "a.b.x.1 a+b "; got != want {
		t.Errorf("%q are merged after a form ended, want %q", got, want)
	}
}

// TestDisplacedNamesCollideOnce: the program takes a metric name from network input, which is a
// collision unless there was one about that name already.
func TestDisplacedNamesCollideOnce(t *testing.T) {
	for _, names := range [][]string{{"go.b.c"}, {"go.b.c", "go-b.c"}, {"go.b.c", "go-b.c", "go+b.c"}} {
		st := New(Options{Naming: naming.Rules{Bare: []string{"go"}}})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for _, name := range names {
			sc.Counter(name)
		}
		st.View().ByFamily(KindCounter)
		st.Root().Counter("go.b_c")
		suffixes := map[string]string{}
		for c := st.View().ByFamily(KindCounter); c.Next(); {
			if s := c.Series(); s != nil {
				suffixes[c.Name()] = s.Suffix
			}
		}
		if want := uint64(max(len(names)-1, 1)); st.Collisions() != want {
			t.Errorf("%q: %d collisions, want %d", names, st.Collisions(), want)
		}
		for _, name := range names {
			if suffixes[name] == "" {
				t.Errorf("%q: the suffixes are %q", names, suffixes)
			}
		}
		if _, ok := suffixes["go.b_c"]; ok {
			t.Errorf("%q: the name of the program has the suffix %q", names, suffixes["go.b_c"])
		}
	}
}
