package main

import "testing"

func TestProcessors(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want int
	}{
		{Options{Concurrency: 8}, 0}, // the default
		{Options{Concurrency: 1, ConcurrencySet: true}, 1},
		{Options{Concurrency: 3, ConcurrencySet: true}, 3},
		{Options{Concurrency: 1<<32 - 1, ConcurrencySet: true}, 8},
		{Options{Concurrency: 8, CpusetThreads: true}, 8},
	} {
		if got := processors(&tt.o, 8); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.o, got, tt.want)
		}
	}
}
