package decode

import "testing"

// TestValuesOfAText: ten for each byte, but a thousand for any text and five million
// for none.
func TestValuesOfAText(t *testing.T) {
	for size, want := range map[int]int{0: 1000, 100: 1000, 101: 1010, 499_999: 4_999_990, 500_000: 5_000_000, 64 << 20: 5_000_000} {
		if got := nodeBudget(size); got != want {
			t.Errorf("%d bytes: %d values, want %d", size, got, want)
		}
	}
}
