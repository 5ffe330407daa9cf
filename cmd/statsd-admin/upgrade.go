//go:build unix

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// upgradeSignal has the daemon start its program again, by hot restart.
const upgradeSignal = syscall.SIGUSR2

// upgrader replaces this process with a new one, which takes over its sockets,
// connections and stats. It is safe for concurrent use.
type upgrader struct {
	executable string
	args       []string // without the program's name
	refusal    error    // why hot restarts do not work; nil if they do
	logger     *slog.Logger

	mu      sync.Mutex
	running bool // a successor
}

// newUpgrader returns the upgrader of a process that was started with options o.
// The program is found when the process starts, because a new one can then be
// installed at its path.
func newUpgrader(o *Options, logger *slog.Logger) *upgrader {
	u := &upgrader{logger: logger, args: successorArgs(o)}
	switch {
	case o.DisableHotRestart:
		u.refusal = errors.New("hot restarts are disabled")
	case o.UseDynamicBaseID:
		u.refusal = errors.New("--use-dynamic-base-id picks another base id each time; use --base-id")
	default:
		u.executable, u.refusal = os.Executable()
	}
	return u
}

// successorArgs returns the arguments of the next process. The last
// --restart-epoch counts.
func successorArgs(o *Options) []string {
	return append(slices.Clip(o.Args), fmt.Sprintf("--restart-epoch=%d", o.RestartEpoch+1))
}

// upgrade starts the successor and returns at once. While one runs, it does
// nothing. If the successor ends before it is live, this process continues.
func (u *upgrader) upgrade() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running {
		u.logger.Warn("upgrade refused: a successor is running")
		return
	}
	if u.refusal != nil {
		u.logger.Warn("upgrade refused: " + u.refusal.Error())
		return
	}
	cmd := exec.Command(u.executable, u.args...)
	cmd.Env = successorEnvironment(os.Environ())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		u.logger.Error("upgrade failed: " + err.Error())
		return
	}
	u.logger.Info(fmt.Sprintf("upgrade: started process %d", cmd.Process.Pid))
	u.running = true
	go func() { guard.New(u.logger).Run("upgrade", func() { u.wait(cmd) }) }()
}

// wait reaps the successor, so that another can be started.
func (u *upgrader) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	if err == nil {
		u.logger.Warn(fmt.Sprintf("upgrade: process %d has stopped", cmd.Process.Pid))
	} else {
		u.logger.Error(fmt.Sprintf("upgrade: process %d failed: %v", cmd.Process.Pid, err))
	}
	u.mu.Lock()
	u.running = false
	u.mu.Unlock()
}

// successorEnvironment returns the environment without the variables that a
// service manager addresses to one process. Sockets that it passed on are handed over
// by the hot restart.
func successorEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "LISTEN_PID" || name == "LISTEN_FDS" || name == "LISTEN_FDNAMES" || name == "WATCHDOG_PID"
	})
}
