//go:build !linux

package unixsock

// connectsAsAnother: there is no such thing as a user of one thread here.
func connectsAsAnother(string) bool { return false }
