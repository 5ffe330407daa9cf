package jsontext

import (
	"math"
	"testing"
)

// TestNumbersAtTheEdges has the ends of the range without an exponent, and values that
// JSON has no number for.
func TestNumbersAtTheEdges(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		bits int
		want string
	}{
		{math.NaN(), 64, `"NaN"`}, {math.Inf(1), 64, `"Infinity"`}, {math.Inf(-1), 64, `"-Infinity"`}, {math.Inf(1), 32, `"Infinity"`},
		{0, 64, "0"}, {1e-6, 64, "0.000001"}, {-1e-6, 64, "-0.000001"}, {9.9e-7, 64, "9.9e-07"}, {1e20, 64, "100000000000000000000"}, {1e21, 64, "1e+21"}, {-1e21, 64, "-1e+21"},
		{float64(float32(0.1)), 32, "0.1"}, {float64(float32(0.1)), 64, "0.10000000149011612"},
	} {
		if got := string(appendNumber([]byte("x"), tt.f, tt.bits)); got != "x"+tt.want {
			t.Errorf("%v in %d bits: %s, want x%s", tt.f, tt.bits, got, tt.want)
		}
	}
}
