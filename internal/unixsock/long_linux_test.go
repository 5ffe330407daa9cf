package unixsock

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
)

// TestLongPaths binds to the longest path that clients can connect to.
func TestLongPaths(t *testing.T) {
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	deep := filepath.Join(dir, strings.Repeat("d", maxAddress-len(dir)-len("//s")))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(deep, "s")
	if len(path) != maxAddress {
		t.Fatalf("%d bytes", len(path))
	}
	l, err := Listen(path, 0o600, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 || l.Addr().String() != path {
		t.Errorf("%v, %v, %s", info, err, l.Addr())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	descriptors.Check(t, "listen", func() {
		if l, err := Listen(path, 0o600, ""); err == nil {
			l.Close()
		}
	})
	if left, _ := os.ReadDir(deep); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
