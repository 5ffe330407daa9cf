package server

import (
	"bytes"
	"os"
	"strconv"
)

// residentBytes returns the physical memory of the process, or the estimate
// where the system does not tell.
func residentBytes(estimate uint64) uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return estimate
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return estimate
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return estimate
	}
	return pages * uint64(os.Getpagesize())
}
