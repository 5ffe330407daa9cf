//go:build !unix

package main

import "syscall"

// reopenSignal makes the daemon reopen its logs. This system has no such signal.
const reopenSignal = syscall.Signal(-1)
