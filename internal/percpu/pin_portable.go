//go:build !amd64 || race || msan || asan || purego

package percpu

// Enabled tells whether Pin really pins. Here it does not.
const Enabled = false

// Pin does nothing and returns 0.
func Pin() int { return 0 }

// Unpin does nothing.
func Unpin() {}
