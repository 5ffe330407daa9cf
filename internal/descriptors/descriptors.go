// Package descriptors lets tests check that no file or socket stays open.
package descriptors

import (
	"os"
	"runtime/debug"
	"testing"
	"time"
)

// Check calls f several times and fails if each call leaves a descriptor open. It is
// skipped where the system does not list descriptors.
func Check(t testing.TB, what string, f func()) {
	t.Helper()
	const calls = 16
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would close forgotten files
	f()                                              // opens what all calls share, such as the poller
	before := count(t)
	for range calls {
		f()
	}
	n := count(t) - before
	for range 1000 { // the other end of a connection may close its own later
		if n < calls {
			return
		}
		time.Sleep(time.Millisecond)
		n = count(t) - before
	}
	t.Errorf("%s: %d calls leave %d descriptors open", what, calls, n)
}

func count(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}
