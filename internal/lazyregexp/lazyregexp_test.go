package lazyregexp

import "testing"

func TestNewCompilesOnceAndLater(t *testing.T) {
	re := New(`^a+$`)
	if re() != re() || !re().MatchString("aa") || re().MatchString("b") {
		t.Errorf("%v", re())
	}
	invalid := New(`(`) // no panic yet
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression compiles")
		}
	}()
	invalid()
}
