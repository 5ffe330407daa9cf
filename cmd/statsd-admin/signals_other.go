//go:build !unix

package main

import "syscall"

// reopenSignal has the daemon reopen its logs. Nobody can send it here.
const reopenSignal = syscall.Signal(-1)
