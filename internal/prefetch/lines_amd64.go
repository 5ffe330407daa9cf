//go:build amd64 && !purego

package prefetch

// Enabled reports whether Lines has an effect.
const Enabled = true

// Lines prefetches the cache lines of the first n addresses, at most [Max].
//
//go:noescape
func Lines(b *Batch, n int)
