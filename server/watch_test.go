package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestWatchingIsOptional checks that a server whose system has no watches left logs a
// warning and continues.
func TestWatchingIsOptional(t *testing.T) {
	var log strings.Builder
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &log})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{log: loggers.Logger("main")}
	full := func(context.Context) error { return errors.New("too many open files") }
	if err := s.watching("tokens", full)(t.Context()); err != nil {
		t.Errorf("the server would end: %v", err)
	}
	for _, want := range []string{"warning", "SIGHUP", "what=tokens", "too many open files"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	log.Reset()
	if err := s.watching("tokens", func(context.Context) error { return nil })(t.Context()); err != nil || log.Len() > 0 {
		t.Errorf("a watch that ends: %v, %q", err, log.String())
	}
}
