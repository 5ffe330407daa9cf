//go:build !amd64 || purego

package prefetch

// Enabled reports whether Lines has an effect.
const Enabled = false

// Lines has no effect on this platform.
func Lines(*Batch, int) {}
