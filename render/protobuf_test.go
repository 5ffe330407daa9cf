package render

import (
	"encoding/binary"
	"testing"
)

// TestUvarintLen: a length that is told wrongly spoils all that follows, and only
// values of more than 16 KiB have one of three bytes.
func TestUvarintLen(t *testing.T) {
	for shift := range 31 {
		for _, n := range []int{1<<shift - 1, 1 << shift} {
			if got, want := uvarintLen(n), len(binary.AppendUvarint(nil, uint64(n))); got != want {
				t.Errorf("%d takes %d bytes, want %d", n, got, want)
			}
		}
	}
}
