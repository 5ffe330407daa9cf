package hotrestart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
)

func TestNames(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Path: filepath.Join(dir, "hot"), Mode: 0o640, BaseID: 12, Epoch: 5}
	p, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hot_parent_122")
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("twice: %v", err)
	}
	cfg.Path = "@" + cfg.Path
	abstract, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("twice, abstract: %v", err)
	}
	abstract.Close()
	// The socket of another server at the same path stays.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	cfg.Path = filepath.Join(dir, "hot")
	q, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error("a server removed the socket of another one")
	}
	// A name that is too long for a successor is refused at once.
	for _, path := range []string{filepath.Join(dir, strings.Repeat("h", 100)), "@" + strings.Repeat("h", 100)} {
		if _, err := Listen(Config{Path: path}); err == nil || !strings.Contains(err.Error(), "more than the 107 of an address") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A stale one is replaced, a file is not.
	q.ln.(*unixsock.Listener).Keep(true)
	q.ln.Close()
	r, err := Listen(cfg)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	r.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("files stay: %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file in the way: %v", err)
	}
}
