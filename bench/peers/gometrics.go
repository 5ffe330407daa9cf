package peers

import (
	"io"

	metrics "github.com/rcrowley/go-metrics"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

type goRegistry struct{ metrics.Registry }

func (r goRegistry) write(w io.Writer) error {
	metrics.WriteOnce(r.Registry, w)
	return nil
}

func goMetrics() library {
	sample := func() metrics.Sample { return metrics.NewUniformSample(1028) }
	return library{
		name: "go-metrics",
		counter: func() loop {
			c := metrics.NewCounter()
			return func(_, n int) {
				for range n {
					c.Inc(1)
				}
			}
		},
		gaugeSet: func() loop {
			g := metrics.NewGauge()
			return func(_, n int) {
				for i := range n {
					g.Update(int64(i))
				}
			}
		},
		record: func(vals []uint64) loop {
			h := metrics.NewHistogram(sample())
			return func(_, n int) {
				for i := range n {
					h.Update(int64(vals[i%len(vals)]))
				}
			}
		},
		byName: func(names []string) loop {
			r := metrics.NewRegistry()
			return func(core, n int) {
				i := core * 97
				for range n {
					metrics.GetOrRegisterCounter(names[i], r).Inc(1)
					i = workload.Next(i, len(names))
				}
			}
		},
		create: func(names []string) population {
			r := metrics.NewRegistry()
			for _, n := range names {
				metrics.NewRegisteredCounter(n, r)
			}
			return goRegistry{r}
		},
		histograms: func(names []string) population {
			r := metrics.NewRegistry()
			for i, n := range names {
				h := metrics.NewRegisteredHistogram(n, r, sample())
				for _, x := range workload.Lognormal(1000, uint64(i)) {
					h.Update(int64(x))
				}
			}
			return goRegistry{r}
		},
		json: func(p population, w io.Writer) error {
			metrics.WriteJSONOnce(p.(goRegistry).Registry, w)
			return nil
		},
		quantiles: func(vals []uint64) func() []float64 {
			h := metrics.NewHistogram(sample())
			for _, v := range vals {
				h.Update(int64(v))
			}
			qs := nineQuantiles()
			return func() []float64 { return h.Snapshot().Percentiles(qs) }
		},
	}
}
