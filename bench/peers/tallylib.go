package peers

import (
	"io"

	"github.com/uber-go/tally/v4"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

type tallyScope struct{ tally.Scope }

func (tallyScope) write(io.Writer) error { return errCannot }

func newTally() tally.Scope {
	s, _ := tally.NewRootScope(tally.ScopeOptions{OmitCardinalityMetrics: true}, 0)
	return s
}

func tallyLib() library {
	return library{
		name: "tally",
		counter: func() loop {
			c := newTally().Counter("c")
			return func(_, n int) {
				for range n {
					c.Inc(1)
				}
			}
		},
		gaugeSet: func() loop {
			g := newTally().Gauge("g")
			return func(_, n int) {
				for i := range n {
					g.Update(float64(i))
				}
			}
		},
		record: func(vals []uint64) loop {
			h := newTally().Histogram("h", tally.MustMakeExponentialValueBuckets(1, 2, 19))
			return func(_, n int) {
				for i := range n {
					h.RecordValue(float64(vals[i%len(vals)]))
				}
			}
		},
		byName: func(names []string) loop {
			s := newTally()
			return func(core, n int) {
				i := core * 97
				for range n {
					s.Counter(names[i]).Inc(1)
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			s := newTally()
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					s.Tagged(map[string]string{"region": e.Region, "service": e.Service, "status": e.Status}).
						Counter("requests_total").Inc(1)
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			s := newTally()
			for _, n := range names {
				s.Counter(n)
			}
			return tallyScope{s}
		},
	}
}
