package exponential

import "testing"

// TestIndex compares the bucket of schemas below 0 with their bounds.
func TestIndex(t *testing.T) {
	for _, tt := range []struct {
		x      float64
		schema int
		want   int32
	}{{1, 0, 0}, {1.5, 0, 1}, {2, 0, 1}, {4, -1, 1}, {4.1, -1, 2}, {16, -2, 1}, {17, -2, 2}, {1, -4, 0}, {0.5, -1, 0}, {0.25, -1, -1}} {
		if got := index(tt.x, tt.schema); got != tt.want {
			t.Errorf("%v in schema %d: got %d, want %d", tt.x, tt.schema, got, tt.want)
		}
	}
}
