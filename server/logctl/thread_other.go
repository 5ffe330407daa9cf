//go:build !linux

package logctl

// threadID returns 0: this system does not tell the thread.
func threadID() int { return 0 }
