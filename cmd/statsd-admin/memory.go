package main

import (
	"math"
	"runtime/debug"

	"github.com/statsd-admin/statsd-admin/internal/cgroup"
)

// memoryVariable is the variable with the memory limit of Go programs.
const memoryVariable = "GOMEMLIMIT"

// environmentMemory returns the memory limit that the environment sets, 0 if it sets
// none.
func environmentMemory(getenv func(string) string) int64 {
	if n := debug.SetMemoryLimit(-1); getenv(memoryVariable) != "" && n < math.MaxInt64 {
		return n // as the runtime has read it
	}
	return 0
}

// limitMemory sets the memory limit of the garbage collector to 90 % of the memory
// of the process, unless the environment sets one.
func limitMemory(getenv func(string) string, read func(string) ([]byte, error)) {
	if getenv(memoryVariable) != "" {
		return
	}
	if n := cgroup.Memory(read); n > 0 {
		debug.SetMemoryLimit(n / 10 * 9)
	}
}
