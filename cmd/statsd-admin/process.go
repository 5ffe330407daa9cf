package main

import (
	"runtime"
	"runtime/debug"
)

// prepare lets the options take effect that are about the process. It says what
// cannot be done here.
func prepare(o *Options) (warning string) {
	runtime.GOMAXPROCS(processors(o, runtime.NumCPU()))
	if !o.EnableCoreDump {
		return ""
	}
	debug.SetTraceback("crash") // end by a signal for which the system dumps
	if err := allowCoreDumps(); err != nil {
		return "--enable-core-dump: " + err.Error()
	}
	return ""
}

// processors returns how many threads are to work at a time, on a machine with so
// many CPUs. 0 leaves it to the Go runtime, which knows of quotas.
func processors(o *Options, hardware int) int {
	switch {
	case o.CPUSetThreads:
		return hardware // it counts those that the affinity allows
	case o.ConcurrencySet:
		return int(min(uint64(o.Concurrency), uint64(hardware)))
	}
	return 0
}
