package sinkqueue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFifo compares a fifo with a slice.
func TestFifo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		var want []packet
		next := func() packet { return packet{metrics: rapid.Int().Draw(t, "metrics")} }
		var taken []packet // in front of the others, until something is added there
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				p := next()
				f.push(p)
				want = append(want, p)
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "n")
				taken = append(taken, f.all()[:n]...)
				f.drop(n)
				want = want[n:]
			},
			"put back": func(*rapid.T) {
				f.putBack(taken...)
				want = slices.Concat(taken, want)
				taken = nil
			},
			"insert": func(t *rapid.T) {
				i, p := rapid.IntRange(0, len(want)).Draw(t, "i"), next()
				f.insert(i, p)
				want = slices.Insert(slices.Clone(want), i, p)
			},
			"": func(t *rapid.T) {
				same := func(a, b packet) bool { return a.metrics == b.metrics }
				if f.len() != len(want) || !slices.EqualFunc(f.all(), want, same) {
					t.Fatalf("%v, want %v", f.all(), want)
				}
			},
		})
	})
}

// TestFifoMovesNothing takes packets of a long queue and puts them back, as attempts that
// fail do. The others stay where they are, or each attempt would cost as much as the queue
// is long. Packets that left are freed.
func TestFifoMovesNothing(t *testing.T) {
	var f fifo
	for i := range 10_000 {
		f.push(packet{data: fmt.Append(nil, i)})
	}
	last := &f.all()[f.len()-1]
	for range 100 {
		taken := slices.Clone(f.all()[:32])
		f.drop(32)
		f.putBack(taken...)
		first := f.all()[0]
		f.drop(1)
		f.putBack(first)
		f.drop(1)
	}
	if &f.all()[f.len()-1] != last {
		t.Error("the last packet moved")
	}
	for i, p := range f.buf[:f.head] {
		if p.data != nil {
			t.Fatalf("packet %d is kept after it left", i)
		}
	}
	for range 100_000 { // packets come and go
		f.push(packet{})
		f.drop(1)
	}
	if cap(f.buf) > 3*f.len() {
		t.Errorf("a queue of %d packets has room for %d", f.len(), cap(f.buf))
	}
}
