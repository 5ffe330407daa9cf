// Package guard keeps a panic in a goroutine from ending the process.
//
// A guard sits at the root of a goroutine, or around a call of code that users
// of the library supply. It logs the panic; [Observe] lets a program count and
// report the panics of all components that share a logger.
package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Guard recovers from panics and logs them. The zero value logs nothing.
type Guard struct{ log *slog.Logger }

// New returns a guard that logs to log, which may be nil.
func New(log *slog.Logger) Guard { return Guard{log} }

// Run calls f and reports whether it returned without a panic. The name where
// identifies the place in the log.
func (g Guard) Run(where string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			g.Report(where, v)
		}
	}()
	f()
	return true
}

// Report logs a panic that the caller has recovered from, with the stack. The
// value of the panic is logged by its type alone unless it is an error of the
// runtime, since it may hold parts of received data.
func (g Guard) Report(where string, v any) {
	defer func() { _ = recover() }() // the log handler may panic
	if g.log != nil {
		g.log.Error("recovered from a panic", "where", where, "panic", caught{where, v}, "stack", string(debug.Stack()))
	}
}

// caught is the value of a panic as an attribute of a log record.
type caught struct {
	where string
	value any
}

// String returns the text of c that is safe to log.
func (c caught) String() string {
	if e, ok := c.value.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", c.value)
}

// LogValue implements [slog.LogValuer].
func (c caught) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Observe returns a logger that writes to log, and calls report for each panic
// that a guard logs through it, even where log drops errors. A panic of log itself
// is such a panic, too, and goes no further. A nil log writes nothing.
func Observe(log *slog.Logger, report func(where string, value any)) *slog.Logger {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return slog.New(observer{log.Handler(), report})
}

// observer is a log handler that looks for panics.
type observer struct {
	slog.Handler
	report func(where string, value any)
}

// Enabled implements [slog.Handler].
func (o observer) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError || o.Handler.Enabled(ctx, l)
}

// Handle implements [slog.Handler]. A panic of the log becomes an error, and is observed.
func (o observer) Handle(ctx context.Context, r slog.Record) (err error) {
	found := false // a panic
	if r.Level >= slog.LevelError {
		r.Attrs(func(a slog.Attr) bool {
			var c caught
			if c, found = a.Value.Any().(caught); found {
				o.report(c.where, c.value)
			}
			return !found
		})
	}
	if !o.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	defer func() {
		v := recover()
		if v != nil {
			err = errors.New("guard: the log panicked")
		}
		if v != nil && !found {
			New(slog.New(o)).Report("log", v)
		}
	}()
	return o.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (o observer) WithAttrs(list []slog.Attr) slog.Handler {
	return observer{o.Handler.WithAttrs(list), o.report}
}

// WithGroup implements [slog.Handler].
func (o observer) WithGroup(name string) slog.Handler {
	return observer{o.Handler.WithGroup(name), o.report}
}
