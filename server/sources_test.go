package server

import (
	"runtime"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
)

// TestContentionCounts lets a goroutine wait for a mutex.
func TestContentionCounts(t *testing.T) {
	s, _ := made(t, Config{})
	if _, traced := s.Contention(); traced {
		t.Error("traced without the setting")
	}
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	s.cfg.TraceMutexes = true
	var c admin.Contention
	for tries := 10_000; c.Contentions == 0 && tries > 0; tries-- { // until the goroutine waits in time
		var mu sync.Mutex
		var waiting sync.WaitGroup
		mu.Lock()
		waiting.Go(func() {
			mu.Lock()
			defer mu.Unlock()
		})
		for range 1000 {
			runtime.Gosched()
		}
		mu.Unlock()
		waiting.Wait()
		c, _ = s.Contention()
	}
	if c.Contentions == 0 || c.Contentions >= 1<<40 || c.CurrentWaitCycles == 0 || c.CurrentWaitCycles > c.LifetimeWaitCycles || c.LifetimeWaitCycles >= 1<<60 {
		t.Errorf("%+v", c)
	}
}
