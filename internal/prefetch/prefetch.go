// Package prefetch hints to the processor which memory will be read soon, so that a
// walk over scattered data overlaps its cache misses.
//
// A hint only affects the time of later reads. It never faults, so addresses need not
// be valid any more.
package prefetch

// Max is the maximum number of addresses per call of [Lines].
const Max = 64

// Batch holds addresses for [Lines].
type Batch [Max]uintptr
