package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// daemon is the running server as the command sees it.
type daemon interface {
	// Run serves until ctx is done, then stops in order: accept nothing more,
	// flush, close. It returns nil after a clean stop.
	Run(ctx context.Context) error
	// ReopenLogs reopens the log and all access logs.
	ReopenLogs()
	// Reload rereads the files that can change while the server runs.
	Reload()
	// Upgrade starts the program again, to take over by hot restart.
	Upgrade()
	// Logger returns the logger with the given name.
	Logger(name string) *slog.Logger
}

// errForced is returned after a second signal to stop.
var errForced = errors.New("error: second signal to stop: exiting at once")

// serve runs d until it ends or is stopped by TERM or INT, of which a second one does
// not wait for a clean stop. USR1 reopens logs, USR2 upgrades, HUP reloads: beside the
// loop, so that the process can be stopped while a disk hangs, and no signal is lost
// meanwhile.
func serve(ctx context.Context, d daemon, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	ended := make(chan struct{})
	defer close(ended)
	g := guard.New(d.Logger("main"))
	reopen, upgrade, reload := beside(g, ended, d.ReopenLogs), beside(g, ended, d.Upgrade), beside(g, ended, d.Reload)
	stopping := false
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			switch s {
			case reopenSignal:
				reopen()
			case upgradeSignal:
				upgrade()
			case syscall.SIGHUP:
				reload()
			default:
				if stopping {
					return errForced
				}
				stopping = true
				stop()
			}
		}
	}
}

// beside returns a function that asks for a call of f in another goroutine. A request
// while f runs leads to one more call. Once ended is closed, there are none.
func beside(g guard.Guard, ended <-chan struct{}, f func()) (ask func()) {
	asked := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-asked:
				g.Run("signal", f)
			}
		}
	}()
	return func() {
		select {
		case asked <- struct{}{}:
		default:
		}
	}
}
