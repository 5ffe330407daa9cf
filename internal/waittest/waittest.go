// Package waittest waits in tests for what other goroutines and processes do.
package waittest

import (
	"testing"
	"time"
)

// limit is long enough for a loaded machine: only a test that fails waits this long.
const limit = time.Minute

// Until returns as soon as ok does true, which it asks every few milliseconds, and
// fails the test after a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute: %s", what)
		}
	}
}

// Equal returns as soon as get returns want, and fails the test after a minute with
// the last value.
func Equal[T comparable](t testing.TB, what string, want T, get func() T) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		got := get()
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited a minute: %s = %v, want %v", what, got, want)
		}
	}
}
