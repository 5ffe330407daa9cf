package jsontext

import (
	"math"
	"testing"
)

func TestWholeNumbers(t *testing.T) {
	for want, write := range map[string]func(w *Writer){
		"4294967295":              func(w *Writer) { w.Uint32(math.MaxUint32) },
		"-2147483648":             func(w *Writer) { w.Int32(math.MinInt32) },
		`"18446744073709551615"`:  func(w *Writer) { w.Uint64(math.MaxUint64) },
		`"-9223372036854775808"`:  func(w *Writer) { w.Int64(math.MinInt64) },
		`"0s"`:                    func(w *Writer) { w.Seconds(0, 0) },
		`"12.500s"`:               func(w *Writer) { w.Seconds(12, 500_000_000) },
		`"-12.500s"`:              func(w *Writer) { w.Seconds(-12, -500_000_000) },
		`"-0.500s"`:               func(w *Writer) { w.Seconds(0, -500_000_000) },
		`"-9223372036854775808s"`: func(w *Writer) { w.Seconds(math.MinInt64, 0) },
		`"10.999999999s"`:         func(w *Writer) { w.Seconds(10, math.MaxInt32) },
		`"-10.999999999s"`:        func(w *Writer) { w.Seconds(-10, math.MinInt32) },
	} {
		var w Writer
		if write(&w); string(w.buf) != want {
			t.Errorf("%s, want %s", w.buf, want)
		}
	}
}

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
