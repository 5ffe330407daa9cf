//go:build !unix

package logfile

// mayCreate always succeeds: permissions are checked when a file is created.
func mayCreate(string) error { return nil }
