//go:build !unix

package main

// processorTime is not available on this system.
func processorTime() (user, system float64) { return 0, 0 }
