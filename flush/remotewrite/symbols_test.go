package remotewrite

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

// TestSymbols compares with a map over several requests, the first of which makes the
// table grow.
func TestSymbols(t *testing.T) {
	seed := maphash.MakeSeed()
	r := rand.New(rand.NewPCG(1, 2))
	constant := [][]byte{[]byte("host"), []byte("route"), []byte("host"), {}}
	var table symbols
	for request := range 4 {
		table.reset(seed)
		want := []string{""}
		refs := map[string]uint64{"": 0}
		ref := func(text string) uint64 {
			n, ok := refs[text]
			if !ok {
				n = uint64(len(want))
				refs[text], want = n, append(want, text)
			}
			return n
		}
		room := make([]byte, 0, 300)
		for i := range 5000 >> request {
			room = fmt.Append(room[:0], r.IntN(3000)) // the same memory for all
			if i%500 == 0 {
				room = append(room, make([]byte, 200)...)
			}
			if got, n := table.ref(room, maphash.Bytes(seed, room)), ref(string(room)); got != n {
				t.Fatalf("symbol %d for %q, want %d", got, room, n)
			}
			place := r.IntN(3)
			text := constant[r.IntN(len(constant))]
			if got, n := table.lasting(place, text), ref(string(text)); got != n {
				t.Fatalf("symbol %d for %q, want %d", got, text, n)
			}
			if got, n := table.lastingString(3, "help"), ref("help"); got != n {
				t.Fatalf("symbol %d for the help, want %d", got, n)
			}
		}
		var got []string
		protobuf.Fields(table.table, func(f protobuf.Field) { got = append(got, string(f.Bytes)) })
		if !slices.Equal(got, want) {
			t.Fatalf("request %d: the table has %d symbols, want %d, or other ones", request, len(got), len(want))
		}
	}
}
