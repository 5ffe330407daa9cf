package guardtest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// TestFuseBurnsAsOftenAsItWasLit, however many hold it.
func TestFuseBurnsAsOftenAsItWasLit(t *testing.T) {
	var f Fuse
	f.Burn() // is not lit
	f.Light(5)
	var panics atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				if !(guard.Guard{}).Run("burn", f.Burn) {
					panics.Add(1)
				}
			}
		})
	}
	all.Wait()
	if panics.Load() != 5 || f.Lit() {
		t.Errorf("%d panics, lit %t; want 5 and no more", panics.Load(), f.Lit())
	}
}
