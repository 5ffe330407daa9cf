// Package guard keeps a panic in a goroutine of its own from ending the process.
package guard

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Told is told of a panic that was caught: where, and its value. A panic of its
// own is dropped. A nil one tells nobody.
type Told func(where string, v any)

// Log returns one that logs a line with the stack, after it has called count,
// which may be nil. The value of the panic is logged by its type alone unless it
// is an error of the runtime, since it may hold parts of what was received.
func Log(l *slog.Logger, count func()) Told {
	return func(where string, v any) {
		if count != nil {
			count()
		}
		what := fmt.Sprintf("%T", v)
		if e, ok := v.(runtime.Error); ok {
			what = e.Error()
		}
		l.Error("recovered from a panic", "where", where, "panic", what, "stack", string(debug.Stack()))
	}
}

// Run runs f. A panic ends f and is told; Run then reports false.
func (t Told) Run(where string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			t.Tell(where, v)
		}
	}()
	f()
	return true
}

// Tell tells of a panic that somebody else has caught.
func (t Told) Tell(where string, v any) {
	defer func() { _ = recover() }() // it may be the log that panics
	if t != nil {
		t(where, v)
	}
}
