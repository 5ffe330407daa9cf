package server

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/internal/accept"
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
