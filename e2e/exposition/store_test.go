package exposition

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// pieces are the parts of names, tags and values: names that collide after cleaning,
// reserved names, and bytes that need escaping.
func pieces() []string {
	return []string{
		"a", "b", "a.b", "a_b", "a-b", "stat", "stat_count", "stat.sum", "stat_bucket", "x_total", "x", "x.total", "x_created", "stat.created", "9lives",
		"le", "quantile", "__name__", "-_name__", "text_value", "text.value", "exported_le", "exported_a_b", "true", "\"", "\\", "\n", "<i>",
		"\x00", "\xff\xfe", "\xfe", "\ufffd", "é", "\u2028", "cluster.one.upstream_rq_200", "cluster.one.upstream_rq_total",
		"cluster.two.upstream_rq", "x_counter", "x_gauge", "proxy.a", "proxy_x", " ", "{", "}", "=", ",", "#", "", "_total", "total", "plug.x", "plug.9",
	}
}

// randomStore creates a store with own and received stats of all kinds. Their names
// are composed of few pieces, so they often collide. stable reports whether no stat
// was removed after names had been assigned.
func randomStore(tb testing.TB, seed uint64, more ...string) (st *store.Store, stable bool) {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	all := append(pieces(), more...)
	some := make([]string, 3+r.IntN(12)) // a few, so that there are collisions
	for i := range some {
		some[i] = all[r.IntN(len(all))]
	}
	some = append(some, more...)
	pick := func() string { return some[r.IntN(len(some))] }
	listed := false
	stable = true
	config := tags.Config{UseDefaults: true}
	for range max(0, r.IntN(5)-2) {
		if name := pick(); name != "" {
			config.CommandLine = append(config.CommandLine, tags.Tag{Name: name, Value: pick()})
		}
	}
	extractor, err := tags.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	now := time.UnixMilli(1_700_000_000_001)
	st = store.New(store.Options{
		Now: func() time.Time {
			now = now.Add(37 * time.Millisecond)
			return now
		},
		Tags:   extractor,
		Naming: naming.Rules{Namespaces: []string{"plug"}, NetworkTotal: r.IntN(3) == 0, NetworkPrefix: []string{"", "", "net_"}[r.IntN(3)]},
		Histograms: []store.HistogramSetting{
			{Match: func(n string) bool { return len(n)%3 == 0 }, Buckets: []float64{0.1, 1, 300000}, SignificantDigits: 1 + r.IntN(5)},
		},
	})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	scopes := []*store.Scope{st.Root(), network, network, st.Scope("stat")}
	for range 2 + r.IntN(60) {
		sc := scopes[r.IntN(len(scopes))]
		name := pick()
		if r.IntN(3) == 0 {
			name += "." + pick()
		}
		var tgs []tags.Tag
		for range max(0, r.IntN(6)-2) {
			tgs = append(tgs, tags.Tag{Name: pick(), Value: pick()})
		}
		switch r.IntN(7) {
		case 0, 1, 2:
			sc.Counter(name, tgs...).Add(r.Uint64N(1 << 30))
		case 3:
			sc.Gauge(name, tgs...).Set(r.Uint64N(1000))
		case 4:
			if err := sc.FloatGauge(name, tgs...).Set(r.NormFloat64() * 1e3); err != nil {
				tb.Fatal(err)
			}
		case 5:
			sc.Text(name, tgs...).Set(pick() + pick())
		case 6:
			h := sc.Histogram(name, store.Unit(r.IntN(5)), tgs...)
			for range r.IntN(5) {
				h.RecordFloat(r.ExpFloat64()*1e4-500*float64(r.IntN(2)), 1)
			}
		}
		if r.IntN(20) == 0 {
			// Listed early, because the order of arrival matters.
			v := st.View()
			for k := range store.KindHistogram + 1 {
				v.ByFamily(k)
			}
			v.Close()
			listed = true
		}
		if r.IntN(30) == 0 && st.RemoveNetwork(func(string) bool { return r.IntN(2) == 0 }) > 0 {
			stable = stable && !listed
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	return st, stable
}
