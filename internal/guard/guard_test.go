package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestRunReportsWhetherThereWasAPanic(t *testing.T) {
	returns, panics := func() {}, func() { panic("boom") }
	for name, g := range map[string]Guard{"zero": {}, "nil": New(nil), "logging": New(slog.New(slog.DiscardHandler)), "broken-log": New(slog.New(wildHandler{}))} {
		if !g.Run("returns", returns) || g.Run("panics", panics) {
			t.Errorf("%s: Run does not tell a return from a panic", name)
		}
	}
}

// TestLog logs panics with several values: only errors of the runtime are logged verbatim.
func TestLog(t *testing.T) {
	var none []int
	for name, tt := range map[string]struct {
		wild func()
		want string
	}{
		"text":    {func() { panic("canary") }, "panic=string "},
		"error":   {func() { panic(errors.New("canary")) }, "panic=*errors.errorString "},
		"runtime": {func() { none[len(none)]++ }, `panic="runtime error: index out of range [0] with length 0" `},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			New(slog.New(slog.NewTextHandler(&out, nil))).Run("a place", tt.wild)
			text := out.String()
			if strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=ERROR msg="recovered from a panic" where="a place" `) || !strings.Contains(text, tt.want) {
				t.Errorf("logged %q", text)
			}
			if !strings.Contains(text, "guard_test.go") || strings.Contains(text, "canary") {
				t.Errorf("the log lacks the stack, or has the value: %q", text)
			}
		})
	}
}

// wildHandler is a log that panics.
type wildHandler struct{ slog.Handler }

func (wildHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (wildHandler) Handle(context.Context, slog.Record) error { panic("bang") }

// TestObserve counts panics whatever happens to the log lines, and nothing else.
func TestObserve(t *testing.T) {
	var out bytes.Buffer
	for name, tt := range map[string]struct {
		log   *slog.Logger
		lines int
	}{
		"nil":        {nil, 0},
		"discarded":  {slog.New(slog.DiscardHandler), 0},
		"text":       {slog.New(slog.NewTextHandler(&out, nil)), 3},
		"off":        {slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError + 1})), 0},
		"broken-log": {slog.New(wildHandler{slog.DiscardHandler}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			var got []string
			log := Observe(tt.log, func(where string, v any) { got = append(got, fmt.Sprint(where, "=", v)) })
			New(log).Run("a", func() { panic(1) })
			New(log.With("x", "y").WithGroup("z")).Run("b", func() { panic(2) })
			if name != "broken-log" {
				log.Error("recovered from a panic", "where", "c", "panic", "3")
				log.Info("d", "panic", "4")
			}
			if want := "a=1 b=2"; strings.Join(got, " ") != want {
				t.Errorf("observed %q, want %q", got, want)
			}
			if n := strings.Count(out.String(), "level=ERROR"); n != tt.lines {
				t.Errorf("%d lines logged, want %d: %s", n, tt.lines, out.String())
			}
		})
	}
}
