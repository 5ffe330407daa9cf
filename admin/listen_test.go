package admin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

func TestAddressesWithoutASocket(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"":              "admin: no address configured",
		"localhost:80":  `admin: address "localhost:80" is neither ip:port`,
		"unix:":         `admin: address "unix:" has no path`,
		"unix:@":        `admin: address "unix:@" has no path`,
		"192.0.2.1:1":   "admin: cannot listen on 192.0.2.1:1: ",
		"unix:" + plain: "admin: cannot listen on unix:" + plain + ": ",
	} {
		s, err := New(Config{Address: address})
		if err == nil {
			err = s.Run(t.Context())
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
}

// TestRunListens expects Run to bind the address if Listen was not called, and Listen to
// refuse a second call.
func TestRunListens(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0"})
	done := make(chan error)
	go func() { done <- s.Run(t.Context()) }()
	waittest.Until(t, "the address", func() bool { return s.Addr() != nil })
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if err := s.Listen(); err == nil || err.Error() != "admin: already listening" {
		t.Errorf("Listen: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Listen(); err != ErrClosed {
		t.Errorf("Listen after Close: %v", err)
	}
}

// TestGivenSocket listens on a socket that is already bound, in place of the address.
func TestGivenSocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Socket: f})
	if got := s.Addr().String(); got != ln.Addr().String() {
		t.Errorf("listens on %s, want %s", got, ln.Addr())
	}
	if err := f.Close(); err == nil {
		t.Error("the file was open")
	}
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}
