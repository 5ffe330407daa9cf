// Package percpu lets a goroutine own its scheduler slot for a few
// instructions, so that a word that belongs to that slot can be changed with a
// plain add instead of an atomic one.
//
//	p := percpu.Pin()
//	words[p]++ // nothing else can run on p now
//	percpu.Unpin()
//
// Between Pin and Unpin the goroutine is not preempted, so the code there must
// be short: no allocation, no lock, no call that may block. Slots are numbered
// from 0; their number is GOMAXPROCS, which may grow while the program runs, so
// a slot beyond what the caller prepared for must fall back to an atomic.
//
// Other slots may read such words at any time with atomic loads. That is sound
// where an aligned 64-bit store is one instruction and stores become visible
// in program order, so the trick is compiled in for amd64 only. Everywhere
// else, under the race detector and the sanitizers, and with the build tag
// purego, Enabled is false and callers use atomics.
package percpu
