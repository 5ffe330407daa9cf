//go:build unix

package main

import "syscall"

// reopenSignal has the daemon reopen its logs.
const reopenSignal = syscall.SIGUSR1
