package histogram

import (
	"math/rand/v2"
	"testing"
)

// TestHasRoom records random values: values that a histogram has room for make it
// allocate nothing, and Bytes estimates its allocations.
func TestHasRoom(t *testing.T) {
	l, err := NewLayout(Config{Signed: true, Scale: 1000})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	h := New(l)
	empty, roomy := h.Bytes(), 0
	for range 4000 {
		v, weight := float64(int64(rnd.Uint64()>>rnd.IntN(64))), []float64{1, 7, 1 << 20}[rnd.IntN(3)]
		room, before := h.HasRoom(v, weight), l.Made()
		h.RecordFloat(v, weight)
		made := l.Made() - before
		if room && made != 0 || !room && made == 0 {
			t.Fatalf("%v with weight %v allocated %d bytes, HasRoom is %t", v, weight, made, room)
		}
		if room {
			roomy++
		}
		if got := int64(h.Bytes() - empty); got != l.Made() {
			t.Fatalf("Bytes grew by %d, Made by %d", got, l.Made())
		}
	}
	if roomy < 1000 || roomy > 3950 {
		t.Errorf("there was room for %d of 4000 values", roomy)
	}
}
