package percpu_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

// TestPinnedPlainAddsAreExact adds to per-slot words without atomics from more
// goroutines than there are slots. Without the pin, increments would be lost.
func TestPinnedPlainAddsAreExact(t *testing.T) {
	if !percpu.Enabled {
		p := percpu.Pin()
		percpu.Unpin()
		if p != 0 {
			t.Fatalf("portable Pin() = %d, want 0", p)
		}
		return
	}
	const goroutines, each = 16, 200_000
	words := make([]struct {
		n uint64
		_ [56]byte
	}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				p := percpu.Pin()
				words[p].n++
				percpu.Unpin()
			}
		})
	}
	wg.Wait()
	var sum uint64
	for i := range words {
		sum += atomic.LoadUint64(&words[i].n)
	}
	if sum != goroutines*each {
		t.Errorf("sum of the slots = %d, want %d", sum, goroutines*each)
	}
}

func BenchmarkPin(b *testing.B) {
	for b.Loop() {
		percpu.Pin()
		percpu.Unpin()
	}
}
