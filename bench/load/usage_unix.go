//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns the processor time of this process in seconds.
func processorTime() (user, system float64) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano()).Seconds(), time.Duration(usage.Stime.Nano()).Seconds()
}
