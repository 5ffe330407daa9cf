//go:build !gc || !go1.26 || go1.27 || !amd64 || race || msan || asan || purego

package percpu

// Enabled reports whether Pin pins.
const Enabled = false

// Pin does nothing and returns 0.
func Pin() int { return 0 }

// Unpin does nothing.
func Unpin() {}

// CanHold reports whether Hold can be used.
func CanHold() bool { return false }

// Hold returns 0.
func Hold() int { return 0 }

// Release does nothing.
func Release() {}
