package server

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
)

// TestSec_24_HotRestartPanics: a server in whose place in the line of processes
// something panics goes on without one, and closes its admin port as far as it
// can. Neither is in working order here.
func TestSec_24_HotRestartPanics(t *testing.T) {
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
