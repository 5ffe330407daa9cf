package naming

import (
	"math/rand/v2"
	"testing"
)

// TestAlphabetWordIsTheAlphabet compares eight bytes at once with one at a time,
// each byte next to all sorts of others.
func TestAlphabetWordIsTheAlphabet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for n := range 256 * 8 * 50 {
		b := make([]byte, 8+n%3)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		b[n%8] = byte(n / 8)
		want := make([]byte, len(b))
		for i, c := range b {
			want[i] = alphabet[c]
		}
		if got := string(appendAlphabet([]byte("x"), string(b))); got != "x"+string(want) {
			t.Fatalf("%q is %q, want %q", b, got, "x"+string(want))
		}
	}
}
