package guard_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
)

// burning is a log that panics when its fuse is lit.
type burning struct {
	slog.Handler
	*guardtest.Fuse
}

func (b burning) Handle(ctx context.Context, r slog.Record) error {
	b.Burn()
	return b.Handler.Handle(ctx, r)
}

// TestPanicsOfTheLog: a panic of the log that is observed does not reach the code that
// logs, and is observed as well. One about a panic is not logged again.
func TestPanicsOfTheLog(t *testing.T) {
	panics, fuse := guardtest.New(t), new(guardtest.Fuse)
	observed := 0
	log := guard.Observe(slog.New(burning{panics.Logger().Handler(), fuse}), func(string, any) { observed++ })
	fuse.Light(1)
	log.Info("about anything")
	panics.Caught("log")
	if observed != 1 {
		t.Errorf("observed %d panics, want 1", observed)
	}
	fuse.Light(1)
	guard.New(log).Run("elsewhere", func() { panic(guardtest.Canary) })
	if observed != 2 || fuse.Lit() {
		t.Errorf("observed %d panics, want 2", observed)
	}
}
