//go:build !unix

package main

import (
	"log/slog"
	"os"
	"syscall"
)

// reopenSignal makes the daemon reopen its logs. This system has no such signal.
const reopenSignal = syscall.Signal(-1)

// upgradeSignal is missing too.
const upgradeSignal = syscall.Signal(-2)

// upgrader does nothing: this system has no hot restarts.
type upgrader struct{}

func newUpgrader(*Options, *slog.Logger) *upgrader { return nil }

func (*upgrader) upgrade() {}

// resizes returns nil: the size is asked for when the screen is drawn.
func resizes() <-chan os.Signal { return nil }
