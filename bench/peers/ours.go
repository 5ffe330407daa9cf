package peers

import (
	"io"

	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

type ourStats struct{ *store.Store }

func (s ourStats) write(w io.Writer) error { return render.Exposition(w, s.Store, render.Options{}) }

func ours() library {
	made := func(names []string) (ourStats, []*store.Counter) {
		st := store.New(store.Options{})
		cs := make([]*store.Counter, len(names))
		for i, n := range names {
			cs[i] = st.Root().Counter(n)
		}
		return ourStats{st}, cs
	}
	shared := store.New(store.Options{})
	return library{
		name: "ours",
		counter: func() loop {
			c := shared.Root().Counter("c")
			return func(_, n int) {
				for range n {
					c.Inc()
				}
			}
		},
		gaugeSet: func() loop {
			g := shared.Root().Gauge("g")
			return func(_, n int) {
				for i := range n {
					g.Set(uint64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			g := shared.Root().Gauge("g")
			return func(_, n int) {
				for range n {
					g.Add(1)
				}
			}
		},
		record: func(vals []uint64) loop {
			h := store.New(store.Options{}).Root().Histogram("h", store.Milliseconds)
			return func(_, n int) {
				for i := range n {
					h.Record(vals[i%len(vals)])
				}
			}
		},
		byName: func(names []string) loop {
			st, _ := made(names)
			root := st.Root()
			return func(core, n int) {
				i := core * 97
				for range n {
					root.Counter(names[i]).Inc()
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			root := store.New(store.Options{}).Root()
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					root.Counter("requests_total", tags.Tag{Name: "region", Value: e.Region},
						tags.Tag{Name: "service", Value: e.Service}, tags.Tag{Name: "status", Value: e.Status}).Inc()
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			st := store.New(store.Options{})
			for _, n := range names {
				st.Root().Counter(n)
			}
			return ourStats{st}
		},
		histograms: func(names []string) population {
			st := store.New(store.Options{})
			for i, n := range names {
				h := st.Root().Histogram(n, store.Milliseconds)
				for _, v := range workload.Lognormal(1000, uint64(i)) {
					h.Record(v)
				}
			}
			st.Flush(store.FlushOptions{}).Close()
			return ourStats{st}
		},
		json: func(p population, w io.Writer) error {
			return render.JSON(w, p.(ourStats).Store, render.Options{})
		},
		flush: func(names []string) (func(), func()) {
			st, cs := made(names)
			return func() {
				for i := 0; i < len(cs); i += 100 {
					cs[i].Inc()
				}
			}, func() { st.Flush(store.FlushOptions{}).Close() }
		},
		quantiles: func(vals []uint64) func() []float64 {
			st := store.New(store.Options{})
			h := st.Root().Histogram("h", store.Milliseconds)
			for _, v := range vals {
				h.Record(v)
			}
			st.Flush(store.FlushOptions{}).Close()
			var dst []float64
			qs := nineQuantiles()
			return func() []float64 {
				dst = h.Snapshot().Cumulative.Quantiles(dst[:0], qs)
				return dst
			}
		},
	}
}

func nineQuantiles() []float64 {
	return []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}
}
