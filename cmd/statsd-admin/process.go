package main

import (
	"runtime"
	"runtime/debug"
)

// prepare applies the options that affect the process. The warning is about an option
// that has no effect.
func prepare(o *Options) (warning string) {
	runtime.GOMAXPROCS(processors(o, runtime.NumCPU()))
	if !o.EnableCoreDump {
		return ""
	}
	debug.SetTraceback("crash") // abort on a panic, which dumps core
	if err := allowCoreDumps(); err != nil {
		return "--enable-core-dump: " + err.Error()
	}
	return ""
}

// processors returns GOMAXPROCS for a machine with the given number of CPUs. 0 leaves it
// to the Go runtime, which respects quotas.
func processors(o *Options, hardware int) int {
	switch {
	case o.CPUSetThreads:
		return hardware // counts only the CPUs that the affinity allows
	case o.ConcurrencySet:
		return int(min(uint64(o.Concurrency), uint64(hardware)))
	}
	return 0
}
