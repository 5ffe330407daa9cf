//go:build amd64 && !purego

package prefetch

// Enabled reports whether Lines does anything.
const Enabled = true

// Lines asks for the cache lines of the first n addresses, at most [Max].
//
//go:noescape
func Lines(b *Batch, n int)
