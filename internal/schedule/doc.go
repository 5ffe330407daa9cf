// Package schedule explores the interleavings of short concurrent programs.
//
// Lock-free code calls [Point] between the steps that other goroutines can see.
// With the build tag schedule, [Explore] runs programs one step at a time in
// every order that needs at most a given number of preemptions, and reports the
// first order whose result is wrong. Without the tag, Point is empty and
// [Mutex] is sync.Mutex.
//
// Steps are interleaved as if each were visible at once to all processors, so
// effects of store buffers are not explored.
package schedule
