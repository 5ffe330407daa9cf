//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reopenSignal has the daemon reopen its logs.
const reopenSignal = syscall.SIGUSR1

// resizes returns the signals that say that the terminal has another size.
func resizes() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals
}
