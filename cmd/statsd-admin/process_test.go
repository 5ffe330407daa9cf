package main

import (
	"runtime"
	"testing"
)

func TestProcessors(t *testing.T) {
	for _, tt := range []struct {
		concurrency uint32
		set, cpuset bool
		want        int
	}{
		{8, false, false, 0}, // the default
		{1, true, false, 1},
		{3, true, false, 3},
		{1<<32 - 1, true, false, 8},
		{8, false, true, 8},
	} {
		o := Options{ConcurrencySet: tt.set}
		o.Concurrency, o.CPUSetThreads = tt.concurrency, tt.cpuset
		if got := processors(&o, 8); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestPrepare expects the number of threads that the options ask for.
func TestPrepare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	o := &Options{ConcurrencySet: true}
	o.Concurrency = 1
	if w := prepare(o); w != "" || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d threads, %q", runtime.GOMAXPROCS(0), w)
	}
}
