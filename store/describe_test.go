package store

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestScopesDescribeTheirStats: the name is that of the stat, tags apart, and stats from
// the network have descriptions of their own.
func TestScopesDescribeTheirStats(t *testing.T) {
	st := New(Options{OwnPrefix: "own"})
	network := st.ScopeWith("", ScopeOptions{Network: true})
	st.Scope("cluster.web").Describe("upstream_rq_total", Description{Help: "program"})
	st.Own().Describe("cluster.web.upstream_cx_total", Description{Help: "own"})
	network.Describe("cluster.web.upstream_rq_total", Description{Help: "network"})

	st.Scope("cluster.web").Counter("upstream_rq_total")
	st.Own().Counter("cluster.web.upstream_cx_total")
	st.Scope("cluster.api").Counter("upstream_rq_total")
	network.Counter("cluster.web.upstream_rq_total", tags.Tag{Name: "a", Value: "b"})
	want := map[string]string{
		"cluster.web.upstream_rq_total":     "program",
		"cluster.api.upstream_rq_total":     "program",
		"own.cluster.web.upstream_cx_total": "own",
		"cluster.web.upstream_rq_total.a.b": "network",
	}
	compare := func(t *testing.T) {
		t.Helper()
		v := st.View()
		defer v.Close()
		n := 0
		for c := v.ByName(Scalars); c.Next(); n++ {
			if got := st.DescriptionOf(&c).Help; got != want[c.Name()] {
				t.Errorf("%s is described as %q, want %q", c.Name(), got, want[c.Name()])
			}
		}
		if n != len(want) {
			t.Errorf("%d stats, want %d", n, len(want))
		}
	}
	compare(t)

	for i := range 3 { // later ones replace the texts of their names alone
		st.Scope("cluster.api").Help(map[string]string{"upstream_rq_total": "help", "other": "unseen"})
		want["cluster.web.upstream_rq_total"], want["cluster.api.upstream_rq_total"] = "help", "help"
		network.Help(map[string]string{"cluster.web.upstream_rq_total": "network help"})
		want["cluster.web.upstream_rq_total.a.b"] = "network help"
		compare(t)
		if got := st.Descriptions(); len(got) != 3 || got["cluster.other"].Help != "unseen" {
			t.Errorf("round %d: the descriptions are %v", i, got)
		}
	}

	// The function for network stats comes first, where it has a description.
	st.DescribeNetwork(func(string) Description { return Description{} })
	compare(t)
	st.DescribeNetwork(func(string) Description { return Description{Help: "rule"} })
	want["cluster.web.upstream_rq_total.a.b"] = "rule"
	compare(t)
	st.DescribeNetwork(nil)
	want["cluster.web.upstream_rq_total.a.b"] = "network help"
	compare(t)
}

// TestNoDescriptions: stats of a store without descriptions have the zero value.
func TestNoDescriptions(t *testing.T) {
	st := New(Options{})
	if got := st.Descriptions(); got != nil {
		t.Errorf("descriptions %v", got)
	}
	st.Root().Counter("own")
	st.ScopeWith("", ScopeOptions{Network: true}).Counter("network")
	v := st.View()
	defer v.Close()
	for c := v.ByName(Scalars); c.Next(); {
		if got := st.DescriptionOf(&c); got != (Description{}) {
			t.Errorf("%s is described as %+v", c.Name(), got)
		}
	}
	st.DescribeNetwork(func(family string) Description { return Description{Help: "rule for " + family} })
	for c := v.ByName(Scalars); c.Next(); {
		want := map[string]string{"network": "rule for network"}[c.Name()]
		if got := st.DescriptionOf(&c).Help; got != want {
			t.Errorf("%s is described as %q, want %q", c.Name(), got, want)
		}
	}
}

// TestScopesInheritTheFormOfHistograms, also through WithHistograms, which keeps the
// other settings.
func TestScopesInheritTheFormOfHistograms(t *testing.T) {
	st := New(Options{})
	form := &HistogramForm{Scale: 1000, Buckets: []float64{3}}
	for name, sc := range map[string]*Scope{
		"ScopeWith":      st.ScopeWith("a", ScopeOptions{Histograms: form}).Scope("b"),
		"WithHistograms": st.Scope("c").WithHistograms(form).Scope("d"),
	} {
		h := sc.Histogram("h", Unspecified)
		h.RecordFloat(1.25, 1)
		if l := h.Layout(); len(l.Bounds()) != 1 || l.Divisor() != 1000 || h.Merge().Cumulative.Sum() != 1.25 {
			t.Errorf("%s: bounds %v, divisor %v", name, l.Bounds(), l.Divisor())
		}
	}
	network := st.ScopeWith("n", ScopeOptions{Network: true})
	if network.WithHistograms(form).Histogram("h", Unspecified); !st.Has(true, "n.h") {
		t.Error("WithHistograms left the name space of the network")
	}
}
