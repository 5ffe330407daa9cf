//go:build unix

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestUnwritableAddressFile checks that a server that cannot write its address file
// logs the error and continues.
func TestUnwritableAddressFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	checkUnwritableAddressFile(t, pipe, syscall.ENXIO)
	checkUnwritableAddressFile(t, filepath.Join(dir, "nowhere", "address"), syscall.ENOENT)
}

func checkUnwritableAddressFile(t *testing.T, path string, reason error) {
	t.Helper()
	logFile := filepath.Join(t.TempDir(), "log")
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Format: "%l %n %v", Path: logFile})
	if err != nil {
		t.Fatal(err)
	}
	start(t, server.Config{Admin: anyPort(), AdminAddressPath: path, Loggers: loggers})
	for _, want := range []string{"critical main cannot open admin address output file " + path + " for writing. error=\"open " + path + ": " + reason.Error() + "\"\n", "info admin admin address: 127.0.0.1:"} {
		waittest.Until(t, fmt.Sprintf("%q in the log", want), func() bool {
			log, err := os.ReadFile(logFile)
			return err == nil && strings.Contains(string(log), want)
		})
	}
}
