// Package percpu pins a goroutine to its scheduler slot for a few instructions,
// so that a word that belongs to the slot can be changed with a plain add
// instead of an atomic one.
//
//	p := percpu.Pin()
//	words[p]++ // nothing else can run on p now
//	percpu.Unpin()
//
// Hold and Release do the same for a function that the runtime does not preempt
// anyway, and cost no more than finding the number of the slot. Such a function is
// marked go:nosplit, and calls nothing in between:
//
//	//go:nosplit
//	func (c *counter) inc() {
//		if p := percpu.Hold(); p < len(c.words) {
//			c.words[p]++
//		}
//		percpu.Release()
//	}
//
// The goroutine is not preempted between Pin and Unpin, so the code there must
// be short: no allocation, no lock, no call that can block. It must not panic
// either, because a recovered panic would leave the slot pinned and hang the
// next garbage collection. TestPinned of internal/arch lists what pinned code may
// call. Slots are numbered from 0 to GOMAXPROCS-1. GOMAXPROCS
// can grow while the program runs, so callers fall back to an atomic for a slot
// that they did not prepare for.
//
// Other slots can read such words at any time with atomic loads. That is sound
// where an aligned 64-bit store is one instruction and stores become visible
// in program order.
//
// What Hold relies on: the runtime interrupts a running goroutine by a signal, and
// the handler lets it continue where the compiler marked the code as an unsafe
// point, which is all of a nosplit function but its calls. TestPinned checks the
// marks and the calls in what the compiler made. In programs for debugging or for
// measuring coverage (-gcflags=-l, -cover), the compiler inlines less, and hot
// histograms can lose a value when they are preempted.
//
// Pin and Hold use functions of the runtime that are not part of its API. They
// are therefore compiled in only for amd64, the gc toolchain and the Go releases it
// was verified with, now Go 1.26. Otherwise, under the race detector and the
// sanitizers, and with the build tag purego, Enabled is false and callers use
// atomics. Hold also depends on where the runtime keeps the number; if that cannot
// be found, CanHold is false. To support a new release, verify procPin, procUnpin
// and isAsyncSafePoint in its runtime and change the build constraints of this
// package, histogram and store.
package percpu
