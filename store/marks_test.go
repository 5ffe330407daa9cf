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
