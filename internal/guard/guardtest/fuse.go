package guardtest

import "sync/atomic"

// Fuse makes code of a test panic with [Canary] a given number of times. The zero
// value never panics. It is safe for concurrent use.
type Fuse struct{ left atomic.Int32 }

// Light makes the next calls of Burn panic, as many as times says.
func (f *Fuse) Light(times int32) { f.left.Store(times) }

// Lit reports whether the next call of Burn panics.
func (f *Fuse) Lit() bool { return f.left.Load() > 0 }

// Burn panics if f is lit.
func (f *Fuse) Burn() {
	for n := f.left.Load(); n > 0; n = f.left.Load() {
		if f.left.CompareAndSwap(n, n-1) {
			panic(Canary)
		}
	}
}
