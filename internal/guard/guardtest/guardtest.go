// Package guardtest collects the panics that guards catch, for tests that make
// a goroutine panic.
//
//	panics := guardtest.New(t)
//	startPart(Config{Logger: panics.Logger(), Source: func() { panic(guardtest.Canary) }})
//	panics.Caught("source of a part")
//
// Every place that has a guard has such a test; a rule of the module looks for the call
// of Caught with its name. Only test files import this package.
package guardtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// Canary is a value to panic with that no log may show, since the value of a
// panic may hold parts of received data.
const Canary = "canary of a panic"

// Panics collects panics. Its methods are safe for concurrent use; Caught is for
// one goroutine at a time.
type Panics struct {
	t    testing.TB
	more chan struct{} // has an element if places has grown

	mu     sync.Mutex // guards the rest
	places []string   // of panics not yet passed to Caught
	faults []string   // of the log records
}

// New returns an empty collection. At its end, t fails if a panic was caught that it
// did not expect, or was logged incorrectly. A test with a synctest bubble calls New
// inside the bubble.
func New(t testing.TB) *Panics {
	p := &Panics{t: t, more: make(chan struct{}, 1)}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, where := range p.places {
			t.Errorf("there was a panic at %q", where)
		}
		for _, fault := range p.faults {
			t.Error(fault)
		}
	})
	return p
}

// Guard returns a guard whose panics p collects.
func (p *Panics) Guard() guard.Guard { return guard.New(p.Logger()) }

// Observe returns a logger that writes to log, and collects the panics that guards
// log through it.
func (p *Panics) Observe(log *slog.Logger) *slog.Logger {
	return guard.Observe(log, func(where string, _ any) { p.note(where) })
}

func (p *Panics) note(where string) {
	p.mu.Lock()
	p.places = append(p.places, where)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Caught waits until a panic is caught at the place, and removes it from the
// collection. If there is none within a minute, t fails immediately.
func (p *Panics) Caught(where string) {
	p.t.Helper()
	late := time.NewTimer(time.Minute)
	for !p.take(where) {
		select {
		case <-p.more:
		case <-late.C:
			p.t.Fatalf("there was no panic at %q", where)
		}
	}
}

func (p *Panics) take(where string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.places, where)
	if i < 0 {
		return false
	}
	p.places = slices.Delete(p.places, i, i+1)
	return true
}

// Logger returns a logger that collects the panics that guards log to it. It checks
// that each is logged with its stack, and that no record contains [Canary].
func (p *Panics) Logger() *slog.Logger { return slog.New(handler{p, nil}) }

// handler is the log of a collection.
type handler struct {
	p    *Panics
	with []slog.Attr
}

// Enabled implements [slog.Handler].
func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// WithGroup implements [slog.Handler]. Groups are ignored.
func (h handler) WithGroup(string) slog.Handler { return h }

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(list []slog.Attr) slog.Handler {
	return handler{h.p, slices.Concat(h.with, list)}
}

// Handle implements [slog.Handler].
func (h handler) Handle(_ context.Context, r slog.Record) error {
	text, values := r.Message, map[string]string{}
	note := func(a slog.Attr) bool {
		values[a.Key] = a.Value.String()
		text += fmt.Sprintf(" %s=%s", a.Key, values[a.Key])
		return true
	}
	for _, a := range h.with {
		note(a)
	}
	r.Attrs(note)
	if strings.Contains(text, Canary) {
		h.p.fault("the log shows the value of a panic: " + text)
	}
	if r.Message != "recovered from a panic" {
		return nil
	}
	if r.Level != slog.LevelError || values["where"] == "" || values["panic"] == "" || !strings.Contains(values["stack"], "panic(") {
		h.p.fault("a panic is logged in another way: " + text)
	}
	h.p.note(values["where"])
	return nil
}

func (p *Panics) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}
