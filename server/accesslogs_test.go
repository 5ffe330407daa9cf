package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestLostLinesAreShown: an access log that cannot be written is counted and
// told of while the server runs.
func TestLostLinesAreShown(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	var out lines
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Admin: anyPort(), Loggers: loggers, AccessLogs: []accesslog.Config{
		{Path: "/dev/full", FlushBytes: 1, FlushInterval: time.Hour}, {Path: filepath.Join(t.TempDir(), "log"), FlushBytes: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	}()
	<-s.Initialized()
	failed := func() string {
		return string(s.Admin().Request("GET", "/stats?filter=^filesystem", nil).Body)
	}
	if got, want := failed(), "filesystem.write_dropped: 0\nfilesystem.write_failed: 0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 3 {
		before := failed()
		eventually(t, "a failed write is counted", func() bool {
			s.Flusher().FlushNow()
			return failed() != before
		})
	}
	if n := out.count("access logs lose lines"); n == 0 || !strings.Contains(failed(), "write_dropped: 0\n") {
		t.Errorf("%d lines of the log tell of it; %s", n, failed())
	}
}
