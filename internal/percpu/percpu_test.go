package percpu_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

type words []struct {
	n uint64
	_ [56]byte
}

func (w words) addPinned() {
	p := percpu.Pin()
	w[p].n++
	percpu.Unpin()
}

//go:nosplit
func (w words) addHeld() {
	p := percpu.Hold()
	w[p].n++
	percpu.Release()
}

// TestPlainAddsAreExact adds to per-slot words without atomics from more
// goroutines than there are slots, which another one preempts all the time.
// Without the pin, increments would be lost.
func TestPlainAddsAreExact(t *testing.T) {
	if percpu.CanHold() != percpu.Enabled {
		t.Fatalf("CanHold() = %t where Enabled = %t", percpu.CanHold(), percpu.Enabled)
	}
	if !percpu.Enabled {
		p, h := percpu.Pin(), percpu.Hold()
		percpu.Release()
		percpu.Unpin()
		if p != 0 || h != 0 {
			t.Fatalf("portable Pin() = %d, Hold() = %d, want 0", p, h)
		}
		return
	}
	t.Run("pin", func(t *testing.T) { testAdds(t, words.addPinned) })
	t.Run("hold", func(t *testing.T) { testAdds(t, words.addHeld) })
}

func testAdds(t *testing.T, add func(words)) {
	const goroutines, each = 16, 500_000
	words := make(words, runtime.GOMAXPROCS(0))
	var wg, preempter sync.WaitGroup
	done := make(chan struct{})
	preempter.Go(func() {
		var m runtime.MemStats
		for {
			select {
			case <-done:
				return
			default:
				runtime.ReadMemStats(&m) // stops all others
			}
		}
	})
	for range goroutines {
		wg.Go(func() {
			for range each {
				add(words)
			}
		})
	}
	wg.Wait()
	close(done)
	preempter.Wait()
	var sum uint64
	for i := range words {
		sum += atomic.LoadUint64(&words[i].n)
	}
	if sum != goroutines*each {
		t.Errorf("sum of the slots = %d, want %d", sum, goroutines*each)
	}
}

func BenchmarkPin(b *testing.B) {
	w := make(words, runtime.GOMAXPROCS(0))
	b.Run("pin", func(b *testing.B) {
		for b.Loop() {
			w.addPinned()
		}
	})
	b.Run("hold", func(b *testing.B) {
		for b.Loop() {
			w.addHeld()
		}
	})
}
