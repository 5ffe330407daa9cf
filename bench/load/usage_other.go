//go:build !unix

package main

// processorTime would return the seconds of processor time that the process
// took.
func processorTime() (user, system float64) { return 0, 0 }
