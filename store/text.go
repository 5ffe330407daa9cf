package store

import (
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// TextReadout is a string, such as a version, shared by any number of
// goroutines. A nil readout takes writes, and its value is "".
type TextReadout struct {
	_ noCopy

	v    atomic.Pointer[string] // nil: never set
	seen *string                // v at the last flush; guarded by Store.flushMu
	null bool
}

// Set sets the value of t to s.
func (t *TextReadout) Set(s string) {
	if t != nil {
		if schedule.Enabled { // a call, even of nothing, would cost the inlining
			schedule.Point()
		}
		t.v.Store(&s)
	}
}

// Value returns the value of t, "" if it was never set.
func (t *TextReadout) Value() string {
	if t == nil || t.null {
		return ""
	}
	if p := t.v.Load(); p != nil {
		return *p
	}
	return ""
}
