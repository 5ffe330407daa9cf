package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

const defaultIdleTimeout = time.Hour

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

// close closes the connections to a host.
func (r *tcpRoute) close(h *host.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.open {
		if t.upstream != nil && t.upstream.Host() == h {
			_ = t.client.Close() // the copies end, and close the other
		}
	}
}

// handle implements the Handle of a listener.
func (r *tcpRoute) handle(ctx context.Context, c net.Conn) {
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

	up.Tunnel(ctx, c, r.IdleTimeout.or(defaultIdleTimeout))
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
