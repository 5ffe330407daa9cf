package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestClosedScopesArePurged: the stats of a large scope leave the orders at once, the few of a
// small one at the next view.
func TestClosedScopesArePurged(t *testing.T) {
	for _, tt := range []struct{ others, ends, left int }{
		{0, 100, 100},
		{0, purgeAfter, purgeAfter},
		{0, purgeAfter + 1, 0},
		{1600, purgeAfter + 200, purgeAfter + 200},
		{1600, purgeAfter + 201, 0},
	} {
		st := New(Options{})
		for i := range tt.others {
			st.Root().Counter(fmt.Sprint("other", i))
		}
		sc := st.Scope("s")
		for i := range tt.ends {
			sc.Counter(fmt.Sprint(i))
		}
		sc.Close()
		if got := len(st.dead); got != tt.left {
			t.Errorf("%d of %d ended stats wait for a view, want %d", got, tt.ends, tt.left)
		}
		st.View().Close()
		if len(st.dead) != 0 || st.Len(KindCounter) != tt.others {
			t.Errorf("%d ended stats are left, %d live", len(st.dead), st.Len(KindCounter))
		}
	}
}

// TestNamingBelowTheOwnPrefix: namespaces and bare segments hold below it too.
func TestNamingBelowTheOwnPrefix(t *testing.T) {
	for prefix, want := range map[string][2][]string{
		"":     {{"ns"}, {"go", "process"}},
		"own.": {{"ns", "own.ns"}, {"go", "process", "own.go", "own.process"}},
	} {
		rules := naming.Rules{Namespaces: []string{"ns"}, Bare: []string{"go", "process"}}
		st := New(Options{OwnPrefix: prefix, Naming: rules})
		if got := st.Naming(); !slices.Equal(got.Namespaces, want[0]) || !slices.Equal(got.Bare, want[1]) {
			t.Errorf("prefix %q: namespaces %q, bare %q", prefix, got.Namespaces, got.Bare)
		}
	}
}

// TestRulesDoNotSeeTheOwnPrefix, but they see all of what only looks like it.
func TestRulesDoNotSeeTheOwnPrefix(t *testing.T) {
	st := New(Options{OwnPrefix: "own"})
	none := New(Options{})
	for _, tt := range []struct {
		st                   *Store
		full                 string
		network              bool
		prefix, rest, family string
		tags                 int
	}{
		{st, "own.cluster.a.rq", false, "own", "cluster.a.rq", "own.cluster.rq", 1},
		{st, "own.cluster.a.rq", true, "", "own.cluster.a.rq", "own.cluster.a.rq", 0},
		{st, "cluster.own.rq", false, "", "cluster.own.rq", "cluster.rq", 1},
		{st, "own", false, "", "own", "own", 0},
		{st, "ow", false, "", "ow", "ow", 0},
		{st, "", false, "", "", "", 0},
		{st, "own.", false, "own", "", "own", 0},
		{st, "own-cluster.a", false, "", "own-cluster.a", "own-cluster.a", 0},
		{st, "one.cluster.a", false, "", "one.cluster.a", "one.cluster.a", 0},
		{none, ".cluster.a.rq", false, "", ".cluster.a.rq", ".cluster.a.rq", 0},
		{none, "cluster.a.rq", false, "", "cluster.a.rq", "cluster.rq", 1},
	} {
		prefix, rest := tt.st.ruled(tt.full, tt.network)
		if prefix != tt.prefix || rest != tt.rest {
			t.Errorf("%q, network %t: prefix %q, rest %q", tt.full, tt.network, prefix, rest)
		}
		family, tgs := tt.st.extract(tt.full, tt.network)
		if family != tt.family || len(tgs) != tt.tags {
			t.Errorf("%q, network %t: family %q, tags %v", tt.full, tt.network, family, tgs)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind][3]string{
		KindCounter:   {"counter", "counter", "_counter"},
		KindGauge:     {"gauge", "gauge", "_gauge"},
		KindText:      {"text readout", "text", "_text"},
		KindHistogram: {"histogram", "histogram", "_histogram"},
		99:            {"unknown kind", "unknown kind", "_unknown kind"},
	} {
		if k.String() != want[0] || k.Word() != want[1] || k.suffix() != want[2] {
			t.Errorf("kind %d is called %q, %q and %q", k, k, k.Word(), k.suffix())
		}
	}
	for v, want := range map[variant]string{variantFloat: "signed gauge", variantGauge: "gauge", variantText: "text readout"} {
		if v.String() != want {
			t.Errorf("variant %d is called %q", v, v)
		}
	}
}

// TestFixedTagsOfTheStore: the store returns the fixed tags of its rules.
func TestFixedTagsOfTheStore(t *testing.T) {
	zone := "eu"
	rules, err := tags.New(tags.Config{Tags: []tags.Spec{{Name: "zone", Fixed: &zone}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := New(Options{Tags: rules}).FixedTags(); !slices.Equal(got, []tags.Tag{{Name: "zone", Value: "eu"}}) {
		t.Errorf("fixed tags %v", got)
	}
}

// TestOverflowsWithoutACounter: a stat of another kind has the name of the counter of
// overflows, and does not change.
func TestOverflowsWithoutACounter(t *testing.T) {
	st := New(Options{MaxStats: 1})
	g := st.Root().Gauge("server.stats_overflow.gauge")
	g.Set(5)
	for range 2 {
		if _, err := st.Root().TryGauge("more"); err == nil {
			t.Error("a stat beyond the limit is not refused")
		}
	}
	if got := shown(st); got != "server.stats_overflow.gauge: 5\n" {
		t.Errorf("the stats are %q", got)
	}
}

// TestDerivedNamesAreMadeOnce for each name and slot.
func TestDerivedNamesAreMadeOnce(t *testing.T) {
	a, b := &Name{key: nameKey{text: "a"}}, &Name{key: nameKey{true, "b"}}
	made := ""
	for range 2 {
		for _, n := range []*Name{a, b} {
			for slot := range naming.Slots {
				got := n.Derived(slot, func(n *Name) []byte {
					made += n.String()
					return fmt.Append(nil, n, slot)
				})
				if want := fmt.Sprint(n, slot); string(got) != want {
					t.Errorf("slot %d of %s is %q", slot, n, got)
				}
			}
		}
	}
	if want := "aaaaaaaaabbbbbbbbb"; made != want || a.Network() || !b.Network() {
		t.Errorf("made %q, want %q", made, want)
	}
}
