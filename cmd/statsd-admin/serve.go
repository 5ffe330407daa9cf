package main

import (
	"context"
	"errors"
	"os"
	"syscall"
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
}

// errForced is returned after a second signal to stop.
var errForced = errors.New("error: second signal to stop: exiting at once")

// serve runs d until it ends or is stopped by TERM or INT, of which a second one does
// not wait for a clean stop. USR1 reopens logs, USR2 upgrades, HUP reloads.
func serve(ctx context.Context, d daemon, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stopping := false
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			switch s {
			case reopenSignal:
				d.ReopenLogs()
			case upgradeSignal:
				d.Upgrade()
			case syscall.SIGHUP:
				d.Reload()
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
