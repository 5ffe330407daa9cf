package peers

import (
	"io"

	stats "github.com/lyft/gostats"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

// deaf is a sink that discards everything.
type deaf struct{}

func (deaf) FlushCounter(string, uint64) {}
func (deaf) FlushGauge(string, uint64)   {}
func (deaf) FlushTimer(string, float64)  {}

type gostatsStore struct{ stats.Store }

func (gostatsStore) write(io.Writer) error { return errCannot }

func gostats() library {
	return library{
		name: "gostats",
		counter: func() loop {
			c := stats.NewStore(deaf{}, false).NewCounter("c")
			return func(_, n int) {
				for range n {
					c.Inc()
				}
			}
		},
		gaugeSet: func() loop {
			g := stats.NewStore(deaf{}, false).NewGauge("g")
			return func(_, n int) {
				for i := range n {
					g.Set(uint64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			g := stats.NewStore(deaf{}, false).NewGauge("g")
			return func(_, n int) {
				for range n {
					g.Inc()
				}
			}
		},
		byName: func(names []string) loop {
			s := stats.NewStore(deaf{}, false)
			return func(core, n int) {
				i := core * 97
				for range n {
					s.NewCounter(names[i]).Inc()
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			s := stats.NewStore(deaf{}, false)
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					s.NewCounterWithTags("requests_total", map[string]string{"region": e.Region, "service": e.Service, "status": e.Status}).Inc()
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			s := stats.NewStore(deaf{}, false)
			for _, n := range names {
				s.NewCounter(n)
			}
			return gostatsStore{s}
		},
		flush: func(names []string) (func(), func()) {
			s := stats.NewStore(deaf{}, false)
			cs := make([]stats.Counter, len(names))
			for i, n := range names {
				cs[i] = s.NewCounter(n)
			}
			return func() {
				for i := 0; i < len(cs); i += 100 {
					cs[i].Inc()
				}
			}, s.Flush
		},
	}
}
