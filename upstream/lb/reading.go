package lb

import (
	"math"
	"sync/atomic"
)

// reading is a number of the configuration as of the last refresh. Weights are computed
// while pinned to a scheduler slot, where the function that provides the number must
// not run: it can take a lock or log.
type reading struct {
	provide func() float64
	bits    atomic.Uint64
}

func (r *reading) value() float64 { return math.Float64frombits(r.bits.Load()) }

// readings are refreshed before each pick that depends on them.
type readings []*reading

// add adds the number that provide returns and returns a function that reads it
// without blocking. Nil stays nil.
func (rs *readings) add(provide func() float64) func() float64 {
	if provide == nil {
		return nil
	}
	r := &reading{provide: provide}
	*rs = append(*rs, r)
	return r.value
}

func (rs readings) refresh() {
	for _, r := range rs {
		if b := math.Float64bits(r.provide()); r.bits.Load() != b { // mostly equal: keep the cache line shared
			r.bits.Store(b)
		}
	}
}
