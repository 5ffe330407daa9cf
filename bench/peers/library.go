// Package peers runs the main benchmarks on other libraries, so that one run compares
// them. It is a separate module, so that users of the stats engine do not download
// other libraries.
//
//	make bench-peers
//	go test -run '^$' -bench 'Counter|Histogram' -count 6 | go run ./table
package peers

import (
	"io"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

// loop makes n calls in goroutine number core. Each library has its own, so that
// calls are direct and can be inlined.
type loop func(core, n int)

// population is a library with many counters.
type population interface {
	// write renders all of them, or returns errCannot if the library has no function
	// for it.
	write(w io.Writer) error
}

// library holds the functions of one library. A function is nil if the library lacks
// it.
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
