package lazyregexp

import "testing"

func TestNewCompilesOnceAndLater(t *testing.T) {
	re := New(`^a+$`)
	first, second := re(), re()
	if first != second || !first.MatchString("aa") || first.MatchString("b") {
		t.Errorf("%v and %v", first, second)
	}
	invalid := New(`(`) // no panic yet
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression compiles")
		}
	}()
	invalid()
}
