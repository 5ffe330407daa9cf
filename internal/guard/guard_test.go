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

func TestRun(t *testing.T) {
	var told []string
	g := Told(func(where string, v any) { told = append(told, fmt.Sprint(where, " ", v)) })
	calm, wild := func() {}, func() { panic("boom") }
	if !g.Run("calm", calm) || g.Run("wild", wild) || Told(nil).Run("nobody", wild) || !Told(nil).Run("calm", calm) {
		t.Error("panics are not told apart")
	}
	if len(told) != 1 || told[0] != "wild boom" {
		t.Errorf("told %q", told)
	}
	if Told(func(string, any) { panic("bang") }).Run("wild", wild) {
		t.Error("a panic went well")
	}
}

// TestLog has panics of several values: only what the runtime says is logged as it is.
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
			counted := 0
			Log(slog.New(slog.NewTextHandler(&out, nil)), func() { counted++ }).Run("a place", tt.wild)
			text := out.String()
			if strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=ERROR msg="recovered from a panic" where="a place" `) || !strings.Contains(text, tt.want) {
				t.Errorf("logged %q", text)
			}
			if !strings.Contains(text, "guard_test.go") || strings.Contains(text, "canary") {
				t.Errorf("the log lacks the stack, or has the value: %q", text)
			}
			if counted != 1 {
				t.Errorf("counted %d times", counted)
			}
		})
	}
}

// wildHandler is a log that panics.
type wildHandler struct{ slog.Handler }

func (wildHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (wildHandler) Handle(context.Context, slog.Record) error { panic("bang") }

// TestLogPanics: a panic that cannot be logged counts all the same.
func TestLogPanics(t *testing.T) {
	counted := 0
	if Log(slog.New(wildHandler{slog.DiscardHandler}), func() { counted++ }).Run("a place", func() { panic("boom") }) || counted != 1 {
		t.Errorf("counted %d times", counted)
	}
}
