package store

import (
	"strconv"
	"testing"
)

// TestDecimalDigits has all numbers of up to four digits in both halves of eight, powers of
// ten and two with their neighbors, and keeps what stands before and behind a number.
func TestDecimalDigits(t *testing.T) {
	room := []byte("before behind it there is room")
	check := func(v uint64) {
		t.Helper()
		if got, want := string(appendUint(room[:6], v)), "before"+strconv.FormatUint(v, 10); got != want {
			t.Fatalf("%d: %q", v, got)
		}
	}
	for v := range uint64(1e4) {
		check(v)
		check(1e4 * v)
		check(1e4*v + 9999 - v)
	}
	for p := uint64(1); p < 1e19; p *= 10 {
		check(p - 1)
		check(p)
		check(p + 1)
	}
	for shift := range 64 {
		check(1<<shift - 1)
		check(1 << shift)
	}
	check(1<<64 - 1)
	if got := string(appendUint(nil, 1234567)); got != "1234567" {
		t.Errorf("%q", got)
	}
}
