//go:build !race

package render

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// meter is a writer that remembers the largest write and the largest heap.
type meter struct {
	largest, total int
	heap           uint64
	every          int
}

func (m *meter) Write(p []byte) (int, error) {
	m.largest = max(m.largest, len(p))
	m.total += len(p)
	if m.every++; m.every%200 == 1 {
		m.heap = max(m.heap, heapInUse())
	}
	return len(p), nil
}

func heapInUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestMemoryIsBounded renders a million counters: neither a write nor the heap
// grows with their number.
func TestMemoryIsBounded(t *testing.T) {
	names := 1_000_000
	if testing.Short() {
		names = 100_000
	}
	st := benchStore(names)
	for i := range 200 {
		h := st.Root().Histogram(fmt.Sprintf("histogram.%d", i), store.Bytes)
		for v := range uint64(50) {
			h.Record(v * v * v)
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	for name, write := range forms() {
		t.Run(name, func(t *testing.T) {
			if err := write(io.Discard, st, Options{}); err != nil { // makes the orders
				t.Fatal(err)
			}
			before := heapInUse()
			var m meter
			if err := write(&m, st, Options{}); err != nil {
				t.Fatal(err)
			}
			if limit := bufferSize + bufferRoom; m.largest > limit {
				t.Errorf("a write of %d bytes, at most %d are allowed", m.largest, limit)
			}
			if grown := int64(m.heap) - int64(before); grown > 1<<20 {
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if m.total < names*40 {
				t.Errorf("only %d bytes for %d names", m.total, names)
			}
		})
	}
}
