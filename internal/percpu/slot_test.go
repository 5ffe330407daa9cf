//go:build !schedule && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package percpu

import "testing"

// TestUnknownCodeHasNoOffset: code that differs from procPin's in one instruction is not used.
func TestUnknownCodeHasNoOffset(t *testing.T) {
	if at := slotOffset(Pin); at == 0 || at%8 != 0 {
		t.Errorf("offset in procPin = %d, want a multiple of 8 above 0", at)
	}
	if at := slotOffset(func() int { return Hold() }); at != 0 {
		t.Errorf("offset in another function = %d, want 0", at)
	}
}

// TestHoldWithoutOffset: where the number of the slot is not known, Hold reads some number.
func TestHoldWithoutOffset(t *testing.T) {
	defer func(known uintptr) { offset = known }(offset)
	offset = 0
	_ = Hold()
	if CanHold() {
		t.Error("slots can be held")
	}
}
