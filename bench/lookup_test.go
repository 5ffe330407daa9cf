package bench

import (
	"hash/maphash"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// probe is the minimum work to find a counter by name: hash the name, look in one
// place, compare the text.
type probe struct {
	seed   maphash.Seed
	places []probePlace
}

type probePlace struct {
	name string
	n    *atomic.Uint64
}

func newProbe(names []string) *probe {
	p := &probe{maphash.MakeSeed(), make([]probePlace, 4*len(names))}
	for _, n := range names {
		at := maphash.String(p.seed, n) % uint64(len(p.places))
		for p.places[at].n != nil {
			at = (at + 1) % uint64(len(p.places))
		}
		p.places[at] = probePlace{n, new(atomic.Uint64)}
	}
	return p
}

func (p *probe) find(name string) *atomic.Uint64 {
	at := maphash.String(p.seed, name) % uint64(len(p.places))
	for p.places[at].name != name {
		at = (at + 1) % uint64(len(p.places))
	}
	return p.places[at].n
}

// BenchmarkLookup finds a counter by an existing name of 60 bytes and increments it.
// The caller has composed the name, so it lies in other memory than the name that
// created the counter, next to the names asked for just before.
func BenchmarkLookup(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		names := workload.Dynamic(n)
		st := store.New(store.Options{})
		for _, name := range names {
			st.Root().Counter(name)
		}
		limit := newProbe(names)
		workload.Spread(names)
		workload.Compose(names)
		ours := func(core, n int) {
			i := core * 97
			for range n {
				st.Root().Counter(names[i]).Inc()
				i = workload.Next(i, len(names))
			}
		}
		probed := func(core, n int) {
			i := core * 97
			for range n {
				limit.find(names[i]).Add(1)
				i = workload.Next(i, len(names))
			}
		}
		ours(0, 2*len(names))
		b.Run("case=one/impl=ours", func(b *testing.B) {
			b.ReportAllocs()
			m := budget.StartMeter(b)
			ours(0, b.N)
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=one/impl=probe", func(b *testing.B) {
			m := budget.StartMeter(b)
			probed(0, b.N)
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=all/impl=ours", func(b *testing.B) {
			b.ReportAllocs()
			m := budget.StartMeter(b)
			onAllCores(b.N, ours)
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=all/impl=probe", func(b *testing.B) {
			m := budget.StartMeter(b)
			onAllCores(b.N, probed)
			m.Report("cpu-ns/op", 1)
		})
	})
}

// BenchmarkLookupScope is BenchmarkLookup with the first 24 bytes of the names as a
// scope, the usual form in a proxy.
func BenchmarkLookupScope(b *testing.B) {
	names := workload.Dynamic(100)
	st := store.New(store.Options{})
	sc := st.Scope(names[0][:24])
	for i := range names {
		names[i] = names[i][25:]
		sc.Counter(names[i])
	}
	i := 0
	b.ReportAllocs()
	m := budget.StartMeter(b)
	for b.Loop() {
		sc.Counter(names[i]).Inc()
		if i++; i == len(names) {
			i = 0
		}
	}
	m.Report("cpu-ns/op", 1)
}

// BenchmarkLookupTags finds a counter by its name and three tags.
func BenchmarkLookupTags(b *testing.B) {
	es := workload.Endpoints(10_000)
	sc := store.New(store.Options{}).Scope("http")
	counter := func(e *workload.Endpoint) *store.Counter {
		return sc.Counter("requests_total",
			tags.Tag{Name: "region", Value: e.Region},
			tags.Tag{Name: "service", Value: e.Service},
			tags.Tag{Name: "status", Value: e.Status})
	}
	ours := func(core, n int) {
		i := core * 97
		for range n {
			counter(&es[i]).Inc()
			i = workload.Next(i, len(es))
		}
	}
	ours(0, 2*len(es))
	workload.Spread(es)
	workload.ComposeEndpoints(es)
	b.Run("case=one/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		ours(0, b.N)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=all/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		onAllCores(b.N, ours)
		m.Report("cpu-ns/op", 1)
	})
}

// BenchmarkScope creates and closes a scope, as a proxy does when a cluster is added
// and removed.
func BenchmarkScope(b *testing.B) {
	st := store.New(store.Options{})
	held := st.Scope("cluster.web")
	held.Counter("upstream_rq_total")
	b.Run("stats=0", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			st.Scope("cluster.web").Close()
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("stats=1-existing", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			sc := st.Scope("cluster.web")
			sc.Counter("upstream_rq_total")
			sc.Close()
		}
		m.Report("cpu-ns/op", 1)
	})
	stats := make([]string, 100)
	for i, n := range workload.Dynamic(100) {
		stats[i] = n[25:]
	}
	b.Run("stats=100-new", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			sc := st.Scope("cluster.other")
			for _, n := range stats {
				sc.Counter(n)
			}
			sc.Close()
		}
		m.Report("cpu-ns/op", 1)
	})
}
