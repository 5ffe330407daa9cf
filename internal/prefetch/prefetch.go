// Package prefetch asks the processor for memory that will be read soon, so
// that a walk over scattered data does not wait for each piece of it.
//
// A hint changes nothing but the time that later reads take. It never faults,
// so addresses need not be valid any more when they are passed.
package prefetch

// Max is the most addresses that a call of [Lines] takes.
const Max = 64

// Batch holds addresses for [Lines].
type Batch [Max]uintptr
