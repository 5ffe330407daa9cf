//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns the seconds of processor time that the process took.
func processorTime() (user, system float64) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano()).Seconds(), time.Duration(usage.Stime.Nano()).Seconds()
}
