package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMergedSections merges sections of random blocks, each in some of them and with several
// reuses of an index, and compares all changes with sums.
func TestMergedSections(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		signed := round%2 == 0
		sums := map[uint64]uint64{}
		var w writer
		var sections []section
		for range 1 + rnd.IntN(5) {
			changes := map[uint64]uint64{}
			for range rnd.IntN(90) {
				b := blockOf{uint32(rnd.IntN(9) * 10), uint32(rnd.IntN(3))}
				diff := rnd.Uint64N(9) + 1
				if signed && rnd.IntN(2) == 0 {
					diff = -diff
				}
				changes[b.ref([]int{0, 1, 63, 64, 500, 1023}[rnd.IntN(6)])] = diff
			}
			refs := make([]uint64, 0, len(changes))
			for ref, diff := range changes {
				refs = append(refs, ref)
				sums[ref] += diff
			}
			slices.SortFunc(refs, func(a, b uint64) int {
				x, i := split(a)
				y, j := split(b)
				switch {
				case x == y:
					return i - j
				case x.less(y):
					return -1
				}
				return 1
			})
			w.reset(signed)
			for _, ref := range refs {
				w.add(ref, changes[ref])
			}
			sections = append(sections, w.section())
		}
		merged := merge(&w, sections)
		listed := map[uint64]uint64{}
		var last blockOf
		for r, first := merged.reader(), true; r.next(); first = false {
			if !first && !last.less(r.block) {
				t.Fatalf("block %v follows %v", r.block, last)
			}
			last = r.block
			r.each(func(slot int, diff uint64) bool {
				listed[r.block.ref(slot)] = diff
				return true
			})
		}
		for ref, want := range sums {
			if listed[ref] != want || merged.find(ref) != want {
				t.Fatalf("%x: listed as %d, found as %d, want %d", ref, int64(listed[ref]), int64(merged.find(ref)), int64(want))
			}
			n := 0
			b, _ := split(ref)
			for r := merged.readerAt(b); r.next() && r.block.less(b); n++ {
			}
			if n > marked {
				t.Fatalf("%x is behind %d other blocks", ref, n)
			}
			if want == 0 {
				delete(sums, ref)
			}
		}
		if len(listed) != len(sums) {
			t.Fatalf("%d changes, want %d", len(listed), len(sums))
		}
		for _, other := range []uint64{blockOf{9, 0}.ref(0), blockOf{0, 9}.ref(1), blockOf{1, 1}.ref(7)} {
			if got := merged.find(other); got != 0 {
				t.Fatalf("%x: found a change of %d that was not made", other, got)
			}
		}
	}
}

// TestSectionsHaveNoEmptyBlocks: a section without changes has no bytes, and one with a change
// of a high block begins with that block.
func TestSectionsHaveNoEmptyBlocks(t *testing.T) {
	var w writer
	if n := w.section().size(); n != 0 {
		t.Errorf("a section without changes has %d bytes", n)
	}
	want := blockOf{7, 2}
	w.add(want.ref(3), 1)
	if r := w.section().reader(); !r.next() || r.block != want {
		t.Errorf("the first block is %v, want %v", r.block, want)
	}
}

// TestBlocksAreOrdered by their index, and then by their reuse.
func TestBlocksAreOrdered(t *testing.T) {
	list := []blockOf{{0, 0}, {0, 1}, {1, 0}, {1, 5}, {2, 0}}
	for i, a := range list {
		for j, b := range list {
			if got := a.less(b); got != (i < j) {
				t.Errorf("%v before %v: %t", a, b, got)
			}
		}
	}
}
