package peers

import (
	"io"

	"github.com/VictoriaMetrics/metrics"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

type victoriaSet struct{ *metrics.Set }

func (s victoriaSet) write(w io.Writer) error {
	s.WritePrometheus(w)
	return nil
}

func victoria() library {
	return library{
		name: "victoriametrics",
		counter: func() loop {
			c := metrics.NewSet().NewCounter("c")
			return func(_, n int) {
				for range n {
					c.Inc()
				}
			}
		},
		gaugeSet: func() loop {
			g := metrics.NewSet().NewGauge("g", nil)
			return func(_, n int) {
				for i := range n {
					g.Set(float64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			g := metrics.NewSet().NewGauge("g", nil)
			return func(_, n int) {
				for range n {
					g.Add(1)
				}
			}
		},
		record: func(vals []uint64) loop {
			h := metrics.NewSet().NewHistogram("h")
			return func(_, n int) {
				for i := range n {
					h.Update(float64(vals[i%len(vals)]))
				}
			}
		},
		byName: func(names []string) loop {
			s := metrics.NewSet()
			return func(core, n int) {
				i := core * 97
				for range n {
					s.GetOrCreateCounter(names[i]).Inc()
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			s := metrics.NewSet()
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					s.GetOrCreateCounter(`requests_total{region="` + e.Region + `",service="` + e.Service + `",status="` + e.Status + `"}`).Inc()
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			s := metrics.NewSet()
			for _, n := range names {
				s.NewCounter(n)
			}
			return victoriaSet{s}
		},
		histograms: func(names []string) population {
			s := metrics.NewSet()
			for i, n := range names {
				h := s.NewHistogram(n)
				for _, x := range workload.Lognormal(1000, uint64(i)) {
					h.Update(float64(x))
				}
			}
			return victoriaSet{s}
		},
	}
}
