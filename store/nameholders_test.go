package store_test

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestNamesEndWithTheirStats: families and tags of all forms are let go of.
func TestNamesEndWithTheirStats(t *testing.T) {
	rules, err := tags.New(tags.Config{Tags: []tags.Spec{
		{Name: "first", Tokens: "$.first.**"}, {Name: "part", Regex: `part_((\w+)_)end`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(store.Options{Tags: rules})
	for _, network := range []bool{false, true} {
		sc := st.ScopeWith("", store.ScopeOptions{Network: network, ExtractTags: true})
		for name, want := range map[string]string{"a.first.rq": "first=a", "x.part_abc_end": "part=abc"} {
			sc.Counter(name)
			v := st.View()
			for c := v.ByName(store.Scalars); c.Next(); {
				if got := c.AppendTags(nil); c.Network() == network && len(got) != 1 || len(got) == 1 && c.Name() == name && got[0].Name+"="+got[0].Value != want {
					t.Errorf("network %t: %s has the tags %v", network, c.Name(), got)
				}
			}
			v.Close()
			sc.Counter(name, tags.Tag{Name: "k", Value: "v.w"}, tags.Tag{Name: "bare"}, tags.Tag{Name: "l", Value: "x"}, tags.Tag{Name: "first", Value: ""})
			sc.Gauge(name, tags.Tag{Name: "m", Value: "é\""})
			sc.Close()
			st.View().Close()
			if n, symbols := st.NamesHeld(), st.Symbols().NumSymbols(); n != 0 || symbols != 0 {
				t.Errorf("network %t: %d names and %d symbols are left of %s", network, n, symbols, name)
			}
			sc = st.ScopeWith("", store.ScopeOptions{Network: network, ExtractTags: true})
		}
	}
}

// TestNameOfAFamilyAndOfATag ends stats in the order in which a tag is the last
// holder of a name that a family had, too. The metric name is free again then.
func TestNameOfAFamilyAndOfATag(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("", store.ScopeOptions{Network: true})
	both := tags.Tag{Name: "both", Value: "1"}
	list := func() {
		v := st.View()
		for k := range store.KindHistogram + 1 {
			v.ByFamily(k)
		}
		v.Close()
	}
	sc.Counter("both", tags.Tag{Name: "other", Value: "1"}).Inc()
	sc.Counter("last", both).Inc()
	list()
	for _, family := range []string{"both.", "last."} {
		if n := st.RemoveNetwork(func(name string) bool { return strings.HasPrefix(name, family) }); n != 1 {
			t.Fatalf("%d stats of %s removed", n, family)
		}
	}
	if st.HasMetric("both") || st.HasMetric("last") {
		t.Error("a metric name of an ended family is taken")
	}
	sc.Gauge("both", tags.Tag{Name: "other", Value: "2"}).Set(1)
	list()
	if n := st.Collisions(); n != 0 {
		t.Errorf("%d conflicts with ended families", n)
	}
}
