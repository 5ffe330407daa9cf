//go:build !linux

package logctl

// threadID returns 0, since this system does not expose thread IDs.
func threadID() int { return 0 }
