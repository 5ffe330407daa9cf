//go:build !linux

package logctl

// threadID returns 0: this system does not identify threads.
func threadID() int { return 0 }
