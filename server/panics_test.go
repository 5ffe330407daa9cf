package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
)

// TestHotRestartPanics: a server in whose place in the line of processes
// something panics goes on without one, and closes its admin port as far as it
// can. Neither is in working order here.
func TestHotRestartPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		h := &hotRestart{
			s:    &Server{recovered: panics.Told, log: slog.New(slog.DiscardHandler), admin: new(admin.Server)},
			post: new(hotrestart.Parent),
		}
		if err := h.run(t.Context()); err != nil {
			t.Error(err)
		}
		panics.Caught("hot restart")
		(*followed)(h).CloseAdmin()
		panics.Caught("end of the admin port")
	})
}

// TestTokensPanic: tokens are read again when their file changes, also if that
// panicked the last time. Here there is nowhere to put them.
func TestTokensPanic(t *testing.T) {
	panics := guardtest.New(t)
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		next := file + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	s := &Server{recovered: panics.Told, log: slog.New(slog.DiscardHandler), tokens: &tokenFile{path: file}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.watchSecrets(ctx) }()
	panics.Caught("tokens and certificates")
	write("# none\n")
	panics.Caught("tokens and certificates")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
