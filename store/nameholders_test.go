package store_test

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

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
