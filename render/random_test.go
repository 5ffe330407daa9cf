package render

import (
	"math/rand/v2"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// nasty are pieces of names and values that make trouble.
func nasty() []string {
	return []string{
		"a", "b", "a.b", "a_b", "a-b", "stat", "stat_count", "stat_sum", "stat_bucket", "x_total", "x", "9lives",
		"le", "quantile", "__name__", "-_name", "text_value", "true", "\"", "\\", "\n", "<i>", "&", "'", "\x00", "\xff\xfe", "\x80",
		"é", "\u2028", "cluster.one.upstream_rq_200", "cluster.one.upstream_rq_total", "_counter", "proxy.a", " ", "{", "}", "=", ",", "#", "", ":", "a:b",
	}
}

// randomStore returns a store with own stats and stats from network input of
// all kinds, whose names and tags are made of nasty pieces.
func randomStore(tb testing.TB, seed uint64) *store.Store {
	tb.Helper()
	st := newStore(store.Options{})
	fill(tb, st, seed, 60)
	return st
}

// fill adds random stats, less than most and a few more.
func fill(tb testing.TB, st *store.Store, seed uint64, most int) {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := nasty()
	pick := func() string { return pieces[r.IntN(len(pieces))] }
	few := func() string { return pieces[r.IntN([...]int{5, len(pieces)}[r.IntN(2)])] } // often those that meet
	summaries := store.ScopeOptions{Network: true, Histograms: &store.HistogramForm{Quantiles: []float64{0.5}}}
	scopes := []*store.Scope{st.Root(), st.Scope("in"), st.ScopeWith("", store.ScopeOptions{Network: true}), st.ScopeWith("", summaries)}
	for range 5 + r.IntN(most) {
		sc := scopes[r.IntN(len(scopes))]
		name := few()
		if r.IntN(2) == 0 {
			name += "." + pick()
		}
		var tgs []tags.Tag
		for range max(0, r.IntN(6)-2) {
			tgs = append(tgs, tags.Tag{Name: few(), Value: few()})
		}
		switch r.IntN(6) {
		case 0, 1:
			sc.Counter(name, tgs...).Add(r.Uint64N(1 << 40))
		case 2:
			sc.GaugeWithMode(name, store.ImportMode(r.IntN(2)*3), tgs...).Set(r.Uint64N(1000))
		case 3:
			if err := sc.FloatGauge(name, tgs...).Set(r.NormFloat64() * 1e3); err != nil {
				tb.Fatal(err)
			}
		case 4:
			sc.Text(name, tgs...).Set(pick() + pick())
		case 5:
			h := sc.Histogram(name, store.Unit(r.IntN(5)), tgs...)
			for range r.IntN(4) {
				h.Record(r.Uint64N(5000))
			}
		}
	}
	st.Flush(store.FlushOptions{}).Close()
}
