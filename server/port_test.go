package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/store"
)

// listenerFunc is a listener whose Accept calls the function.
type listenerFunc func() (net.Conn, error)

func (f listenerFunc) Accept() (net.Conn, error) { return f() }
func (f listenerFunc) Close() error              { return nil }
func (f listenerFunc) Addr() net.Addr            { return nil }

// TestPortsSurviveALackOfFileDescriptors makes Accept fail for some time.
func TestPortsSurviveALackOfFileDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := store.New(store.Options{}).Scope("listener.x")
		left := 20
		p := &port{
			log: slog.New(slog.DiscardHandler), total: sc.Counter("total"), active: sc.Gauge("active"), length: sc.Histogram("length", store.Milliseconds),
			gate: accept.NewGate(listenerFunc(func() (net.Conn, error) {
				switch left--; {
				case left > 0:
					return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
				case left == 0:
					near, far := net.Pipe()
					t.Cleanup(func() { _ = far.Close() })
					return near, nil
				}
				return nil, &net.OpError{Op: "accept", Err: net.ErrClosed}
			})),
		}
		c, err := p.Accept()
		if err != nil {
			t.Fatalf("accepting ends with %v though the listener is open", err)
		}
		if p.total.Total() != 1 || p.active.Value() != 1 || p.open.Load() != 1 {
			t.Errorf("counted %d, %d active, %d open, want one each", p.total.Total(), p.active.Value(), p.open.Load())
		}
		_ = c.Close()
		if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener answers %v", err)
		}
	})
}

// TestPortsAdoptSockets gives ports sockets of the right kind and others.
func TestPortsAdoptSockets(t *testing.T) {
	dir := t.TempDir()
	file := func(l net.Listener, err error) *os.File {
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	descriptors.Check(t, "adopting sockets", func() {
		p := port{cfg: Listener{Name: "a", Address: "b:1"}}
		if err := p.adopt(file(net.Listen("unix", filepath.Join(dir, "s")))); err == nil || err.Error() != "unexpected inherited *net.UnixListener" {
			t.Error(err)
		}
		plain, err := os.Create(filepath.Join(dir, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.adopt(plain); err == nil {
			t.Error("a file is a socket")
		}
		if err := p.adopt(file(net.Listen("tcp", "127.0.0.1:0"))); err != nil {
			t.Fatal(err)
		}
		so, ok := p.socket()
		if !ok || so.Address != "listener a b:1" || len(so.Files) != 1 {
			t.Fatalf("%+v", so)
		}
		_ = so.Files[0].Close()
		_ = p.tcp.Close()
		if _, ok := p.socket(); ok {
			t.Error("a closed port has a socket")
		}
	})
}

// TestSocketsOfRemovedListeners expects what no listener takes over to be closed.
func TestSocketsOfRemovedListeners(t *testing.T) {
	s, _ := made(t, Config{})
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	s.hot = &hotRestart{s: s, ports: map[string]*os.File{"listener gone": f}}
	if err := s.bindPorts(); err != nil {
		t.Error(err)
	}
	if !errors.Is(f.Close(), os.ErrClosed) {
		t.Error("the socket is open")
	}
}

// TestHandlersMayAbort expects the panic that breaks a connection to be no error, and
// other panics to be reported.
func TestHandlersMayAbort(t *testing.T) {
	s, log := made(t, Config{})
	for _, x := range []struct {
		value, want any
		reported    bool
	}{{nil, nil, false}, {http.ErrAbortHandler, http.ErrAbortHandler, false}, {"mistake", http.ErrAbortHandler, true}} {
		log.Reset()
		var got any
		func() {
			defer func() { got = recover() }()
			defer s.abort()
			if x.value != nil {
				panic(x.value)
			}
		}()
		if got != x.want || strings.Contains(log.String(), "request of a listener") != x.reported {
			t.Errorf("%v: %v, %s", x.value, got, log)
		}
	}
}
