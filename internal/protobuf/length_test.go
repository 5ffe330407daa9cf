package protobuf

import (
	"encoding/binary"
	"testing"
)

// TestUvarintLen checks lengths around each width. A wrong length corrupts all
// following messages, and only values above 16 KiB have a length of three
// bytes.
func TestUvarintLen(t *testing.T) {
	for shift := range 31 {
		for _, n := range []int{1<<shift - 1, 1 << shift} {
			if got, want := UvarintLen(n), len(binary.AppendUvarint(nil, uint64(n))); got != want {
				t.Errorf("%d takes %d bytes, want %d", n, got, want)
			}
		}
	}
}
