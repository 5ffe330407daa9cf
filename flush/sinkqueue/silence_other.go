//go:build !linux

package sinkqueue

import "syscall"

// limitSilence does nothing: the system has its own limit.
func limitSilence(_, _ string, _ syscall.RawConn) error { return nil }
