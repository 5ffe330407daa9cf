package store

import (
	"math/rand/v2"
	"testing"
)

// TestMarksAreDroppedOneByOne: a gauge that is written between the two steps of a
// flush, of which the first sees marks and the second drops them, stays marked.
func TestMarksAreDroppedOneByOne(t *testing.T) {
	p := newPages()[0]
	p.blk = new(block)
	rnd := rand.New(rand.NewPCG(1, 2))
	var want bitset
	for range 1000 {
		for range rnd.IntN(300) {
			i := rnd.IntN(slotsPerBlock)
			p.word(i).set(0)
			want.set(i)
		}
		var drop bitset
		for w := range drop {
			drop[w] = rnd.Uint64()
			want[w] &^= drop[w]
		}
		p.dropTouched(&drop)
		var got bitset
		p.eachTouched(&got, slotsPerBlock)
		if got != want {
			t.Fatalf("marked are\n%x, want\n%x", got, want)
		}
	}
}

// TestOneMarkIsEnough: a mark at any place makes a page marked, and is taken with the
// number of stats that it belongs to.
func TestOneMarkIsEnough(t *testing.T) {
	p := newPages()[0]
	p.blk = new(block)
	for i := range slotsPerBlock {
		if !p.unmarked(slotsPerBlock) {
			t.Fatalf("marked before word %d is", i)
		}
		p.word(i).set(0)
		var want, seen, taken bitset
		want.set(i)
		if p.unmarked(i+1) || !p.eachTouched(&seen, i+1) || !p.takeTouched(&taken, i+1) || seen != want || taken != want {
			t.Errorf("the mark of word %d is not seen: %x, taken %x", i, seen, taken)
		}
	}
}
