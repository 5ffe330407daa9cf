package statsd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestUnixSocketPaths(t *testing.T) {
	for _, scheme := range []string{"unixgram", "unixstream", "unixlines"} {
		t.Run(scheme, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			cfg := Config{Listeners: []ListenerConfig{{Address: scheme + "://" + path, Mode: 0o620, Group: fmt.Sprint(os.Getgid())}}}
			listen := func() (*Server, error) {
				cfg.Store = store.New(store.Options{})
				s, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				return s, s.Listen()
			}
			// A file in the way stays.
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err := listen(); err == nil || !strings.Contains(err.Error(), "not a socket") {
				s.Close()
				t.Errorf("a file in the way: %v", err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
				t.Errorf("the file was touched: %q, %v", b, err)
			}
			_ = os.Remove(path)

			// An unused socket is removed.
			stale(t, scheme, path)
			s, err := listen()
			if err != nil {
				t.Fatalf("a stale socket: %v", err)
			}
			fi, err := os.Lstat(path)
			if err != nil || fi.Mode().Perm() != 0o620 {
				t.Errorf("mode %v, %v; want 0620", fi.Mode(), err)
			}
			// A socket in use stays.
			if other, err := listen(); err == nil || !errors.Is(err, unixsock.ErrInUse) {
				other.Close()
				t.Errorf("a socket in use: %v", err)
			}
			s.Close()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("the socket is still there after the end: %v", err)
			}

			// A socket that took the place is not removed.
			if s, err = listen(); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path)
			stale(t, scheme, path)
			s.Close()
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("somebody else's socket was removed: %v", err)
			}
		})
	}
}

// stale leaves an unused socket at path.
func stale(t *testing.T, scheme, path string) {
	t.Helper()
	if scheme == "unixgram" {
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		return
	}
	c, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	c.SetUnlinkOnClose(false)
	_ = c.Close()
}

func TestUnknownOwnersOfSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, cfg := range []ListenerConfig{{Owner: "no such user"}, {Group: "no such group"}} {
		cfg.Address = "unixgram://" + path
		s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{cfg}})
		if err == nil {
			err = s.Listen()
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "no such") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
