package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

const (
	defaultIdleTimeout = time.Hour
	tunnelBuffer       = 32 << 10 // bytes under way in each direction, at most
)

// tcpRoute forwards the connections of a listener.
type tcpRoute struct {
	Route
	proxy *proxy

	mu   sync.Mutex
	open map[*tunnel]bool
}

// tunnel is a client connection with its connection to a host.
type tunnel struct {
	client   net.Conn
	upstream *upstream.Conn // nil while it is being made; guarded by the route's mu
}

// serve implements the Serve of a listener.
func (r *tcpRoute) serve(ctx context.Context, l net.Listener) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			return err
		}
		running.Go(func() { r.handle(ctx, c) })
	}
	<-ctx.Done() // connections go on
	r.close(nil)
	return nil
}

// close closes the connections to a host, or all if h is nil.
func (r *tcpRoute) close(h *host.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.open {
		if h == nil || t.upstream != nil && t.upstream.Host() == h {
			_ = t.client.Close() // the copies end, and close the other
		}
	}
}

// handle serves one connection.
func (r *tcpRoute) handle(ctx context.Context, c net.Conn) {
	defer c.Close()
	t := &tunnel{client: c}
	r.mu.Lock()
	r.open[t] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.open, t)
		r.mu.Unlock()
	}()
	up := r.connect(ctx)
	if up == nil {
		return
	}
	defer up.Close()
	r.mu.Lock()
	t.upstream = up
	r.mu.Unlock()

	idle := r.IdleTimeout.or(defaultIdleTimeout)
	size := bufferSize(up.Cluster(), tunnelBuffer)
	var back sync.WaitGroup
	var last atomic.Int64
	back.Go(func() { copyUntilIdle(c.(half), up, size, idle, &last) })
	copyUntilIdle(up, c, size, idle, &last)
	back.Wait()
}

// connect connects to a host, with as many attempts as configured. It returns nil if
// none succeeds.
func (r *tcpRoute) connect(ctx context.Context) *upstream.Conn {
	cl := r.proxy.cluster(&r.Route)
	if cl == nil {
		return nil
	}
	defer cl.Release()
	var tried []*host.Host
	pick := lb.Context{Retries: 3, Reject: func(h *host.Host) bool { return slices.Contains(tried, h) }}
	for range max(r.ConnectAttempts, 1) {
		h, err := cl.Pick(&pick)
		if err != nil {
			return nil
		}
		up, err := cl.ConnectTunnel(ctx, h, r.priority(), transport.Options{})
		if err == nil {
			return up
		}
		if errors.Is(err, upstream.ErrOverflow) {
			return nil
		}
		tried = append(tried, h)
	}
	cl.Stats().CxConnectAttemptsExceeded.Inc()
	return nil
}

// half is a connection whose sending side can be closed alone.
type half interface {
	net.Conn
	CloseWrite() error
}

// copyUntilIdle copies until from ends, and then closes the sending side of to. If
// neither direction moves for the idle time, to does not accept data for as long, or an
// error occurs, it closes both. last is the time of the last data, in nanoseconds of
// Unix time.
func copyUntilIdle(to half, from net.Conn, size int, idle time.Duration, last *atomic.Int64) {
	buffer := make([]byte, size)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idle)) // a closed one shows it in Read
		n, err := from.Read(buffer)
		if n > 0 {
			last.Store(time.Now().UnixNano())
			_ = to.SetWriteDeadline(time.Now().Add(idle)) // a closed one shows it in Write
			if _, werr := to.Write(buffer[:n]); werr != nil {
				_, _ = to.Close(), from.Close() // part of it may have gone
				return
			}
		}
		if err == io.EOF {
			_ = to.CloseWrite()
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, last.Load())) < idle {
			continue // the other way is busy
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}
