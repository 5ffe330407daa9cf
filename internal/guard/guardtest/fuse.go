package guardtest

import "sync/atomic"

// Fuse lets code of a test panic with [Canary] as often as it was lit. The zero
// value is not lit. It is safe for concurrent use.
type Fuse struct{ left atomic.Int32 }

// Light lets the next calls of Burn panic, so many of them.
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
