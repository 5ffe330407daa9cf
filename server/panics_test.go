package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/statsd"
)

// TestHotRestartPanics checks that a server survives a panic while it waits for a
// successor.
func TestHotRestartPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		h := &hotRestart{
			s:    &Server{guard: panics.Guard(), log: panics.Logger()},
			next: new(hotrestart.Parent),
		}
		if err := h.run(t.Context()); err != nil {
			t.Error(err)
		}
		panics.Caught("hot restart")
	})
}

// TestClusterDialPanics checks that a panic on the way to the receiver of a sink is an
// error. Here the panic is a nil cluster manager.
func TestClusterDialPanics(t *testing.T) {
	panics := guardtest.New(t)
	s := &Server{guard: panics.Guard()}
	if conn, err := s.dialCluster(t.Context(), "c"); conn != nil || err == nil {
		t.Errorf("%v, %v", conn, err)
	}
	panics.Caught("connection to a cluster")
}

// TestTokensPanic checks that tokens are reloaded when their file changes, even if
// the previous reload panicked. Here the panic is a nil admin server.
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
	s := &Server{guard: panics.Guard(), log: panics.Logger(), tokens: &tokenFile{path: file}}
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

// TestPanicsAreReportedOnce checks that a panic of any component is counted once and
// reported to the program once.
func TestPanicsAreReportedOnce(t *testing.T) {
	var where []string
	s, err := New(Config{
		Admin:   admin.Config{Address: "127.0.0.1:0"},
		StatsD:  &statsd.Config{},
		OnPanic: func(at string, value any) { where = append(where, at+"="+value.(string)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	boom := func() { panic("boom") }
	s.guard.Run("server", boom)
	guard.New(s.logger("upstream")).Run("upstream", boom)
	if got, want := strings.Join(where, " "), "server=boom upstream=boom"; got != want {
		t.Errorf("reported %q, want %q", got, want)
	}
	s.admin.Handle(admin.Endpoint{Path: "/boom", Serve: func(*admin.Response, *admin.Request) error { panic("boom") }})
	s.admin.Request("GET", "/boom", nil)
	if got := where[len(where)-1]; got != "/boom=boom" {
		t.Errorf("the last panic reported is %q", got)
	}
	if got := s.store.Scope("server").Counter("recovered_panics").Total(); got != 3 {
		t.Errorf("%d panics counted, want 3", got)
	}
}
