// Package peers does the work of the main benchmarks with other libraries, so
// that one run compares them. It is a module of its own: who uses the stats
// engine does not download its rivals.
//
//	make bench-peers
//	go test -run '^$' -bench 'Counter|Histogram' -count 6 | go run ./table
package peers

import (
	"io"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

// loop makes n calls in goroutine number core. Each library brings its own, so
// that calls are direct and may be inlined.
type loop func(core, n int)

// population is a library with many counters in it.
type population interface {
	// write renders all of them; errCannot if the library has no function for it.
	write(w io.Writer) error
}

// library is what one of them can do; nil for what it cannot.
type library struct {
	name string

	counter  func() loop               // increments a counter of its own
	gaugeSet func() loop               // sets a gauge
	gaugeAdd func() loop               // adds to a gauge
	record   func(vals []uint64) loop  // records into a histogram of its own
	byName   func(names []string) loop // finds counters by name and increments them
	byTags   func(es []workload.Endpoint) loop

	create     func(names []string) population // counters with these names
	histograms func(names []string) population // with values in them
	json       func(p population, w io.Writer) error
	flush      func(names []string) (change func(), flush func()) // deltas of an interval
	quantiles  func(vals []uint64) (read func() []float64)
}

func libraries() []library {
	return []library{
		ours(),
		limit(),
		clientGolang(),
		victoria(),
		otelSDK(),
		tallyLib(),
		goMetrics(),
		gostats(),
		hdrMutex(),
		expvars(),
	}
}
