package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestWatchingIsOptional checks that a server whose system has no watches left logs a
// warning and continues.
func TestWatchingIsOptional(t *testing.T) {
	var log strings.Builder
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &log})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{log: loggers.Logger("main")}
	full := func(context.Context) error { return errors.New("too many open files") }
	if err := s.watching("tokens", full)(t.Context()); err != nil {
		t.Errorf("the server would end: %v", err)
	}
	for _, want := range []string{"warning", "SIGHUP", "what=tokens", "too many open files"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	log.Reset()
	if err := s.watching("tokens", func(context.Context) error { return nil })(t.Context()); err != nil || log.Len() > 0 {
		t.Errorf("a watch that ends: %v, %q", err, log.String())
	}
}

// TestDirectoriesToComeAreLogged expects a warning about a directory that does not exist.
func TestDirectoriesToComeAreLogged(t *testing.T) {
	s, log := made(t, Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "none", "file")
	if err := s.watchFiles(ended, "files", []string{file}, stamps([]string{file}), func() { t.Error("nothing has changed") }); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "cannot watch directory yet") || !strings.Contains(log.String(), filepath.Dir(file)) {
		t.Errorf("the log says %s", log)
	}
}

// TestStamps expects a file's stamp to change with its size, mode and target.
func TestStamps(t *testing.T) {
	dir := t.TempDir()
	file, other, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "l")
	if got := stamps([]string{file, other}); got != "none\nnone\n" {
		t.Errorf("%q", got)
	}
	seen := map[string]bool{stamps([]string{link}): true}
	for i, change := range []func() error{
		func() error { return os.WriteFile(file, []byte("x"), 0o600) }, func() error { return os.Symlink(file, link) }, func() error { return os.WriteFile(file, []byte("xy"), 0o600) }, func() error { return os.Chmod(file, 0o640) },
		func() error { return os.Chtimes(file, time.Unix(7, 0), time.Unix(7, 1)) }, func() error { return os.Chtimes(file, time.Unix(7, 0), time.Unix(7, 2)) },
		func() error { return errors.Join(os.Rename(file, other), os.Remove(link), os.Symlink(other, link)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if now := stamps([]string{link}); seen[now] && i > 0 {
			t.Errorf("change %d: the stamp is %q again", i, now)
		} else {
			seen[now] = true
		}
	}
}
