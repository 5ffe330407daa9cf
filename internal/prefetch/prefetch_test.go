package prefetch

import (
	"math"
	"testing"
	"unsafe"
)

// TestLinesNeverFault passes arbitrary addresses, and counts that are too large or 0.
func TestLinesNeverFault(t *testing.T) {
	data := make([]byte, 1<<16)
	var b Batch
	for i := range b {
		switch i % 4 {
		case 0:
			b[i] = uintptr(unsafe.Pointer(&data[i*64]))
		case 1:
			b[i] = uintptr(i)
		case 2:
			b[i] = ^uintptr(i)
		}
	}
	before := b
	for _, n := range []int{-1, 0, 1, Max, Max + 1, math.MaxInt} {
		Lines(&b, n)
	}
	if b != before {
		t.Error("the addresses changed")
	}
}

// BenchmarkLines measures a hint for cached lines.
func BenchmarkLines(b *testing.B) {
	var at Batch
	data := make([]byte, 64*Max)
	for i := range at {
		at[i] = uintptr(unsafe.Pointer(&data[i*64]))
	}
	for b.Loop() {
		Lines(&at, Max)
	}
}
