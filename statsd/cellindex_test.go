package statsd

import (
	"math/rand/v2"
	"testing"
)

// TestCellIndexAgainstMap does random things to an index and a map. Hashes are
// few, so that they crowd.
func TestCellIndexAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var c cells
	x := newCellIndex(&c)
	model := map[uint64]uint32{}
	for range 20_000 {
		h := uint64(rnd.IntN(300))<<rnd.IntN(3) | uint64(rnd.IntN(2))<<40
		got, ok := x.find(h)
		want, known := model[h]
		if ok != known || got != want {
			t.Fatalf("hash %d: cell %d, %v; want %d, %v", h, got, ok, want, known)
		}
		switch {
		case !ok:
			n, _ := c.take()
			c.setHash(n, h)
			x.insert(n)
			model[h] = n
		case rnd.IntN(2) == 0:
			x.remove(got)
			x.remove(got) // a second time does nothing
			delete(model, h)
			c.retire(got)
			c.recycle(c.retired)
			c.retired = nil
		}
		if x.used != len(model) {
			t.Fatalf("%d in use, want %d", x.used, len(model))
		}
	}
}
