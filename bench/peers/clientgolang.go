package peers

import (
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

type promRegistry struct{ *prometheus.Registry }

func (r promRegistry) write(w io.Writer) error {
	families, err := r.Gather()
	if err != nil {
		return err
	}
	enc := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

func clientGolang() library {
	return library{
		name: "client_golang",
		counter: func() loop {
			c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c"})
			return func(_, n int) {
				for range n {
					c.Inc()
				}
			}
		},
		gaugeSet: func() loop {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
			return func(_, n int) {
				for i := range n {
					g.Set(float64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
			return func(_, n int) {
				for range n {
					g.Add(1)
				}
			}
		},
		record: func(vals []uint64) loop {
			h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: prometheus.ExponentialBuckets(1, 2, 19)})
			return func(_, n int) {
				for i := range n {
					h.Observe(float64(vals[i%len(vals)]))
				}
			}
		},
		byName: func(names []string) loop {
			v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"name"})
			return func(core, n int) {
				i := core * 97
				for range n {
					v.WithLabelValues(names[i]).Inc()
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total"}, []string{"region", "service", "status"})
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					v.WithLabelValues(e.Region, e.Service, e.Status).Inc()
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			r := prometheus.NewRegistry()
			v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"name"})
			r.MustRegister(v)
			for _, n := range names {
				v.WithLabelValues(n)
			}
			return promRegistry{r}
		},
		histograms: func(names []string) population {
			r := prometheus.NewRegistry()
			v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Buckets: prometheus.ExponentialBuckets(1, 2, 19)}, []string{"name"})
			r.MustRegister(v)
			for i, n := range names {
				h := v.WithLabelValues(n)
				for _, x := range workload.Lognormal(1000, uint64(i)) {
					h.Observe(float64(x))
				}
			}
			return promRegistry{r}
		},
	}
}
