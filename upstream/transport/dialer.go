package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// Options are the settings of one connection. The zero value is valid.
type Options struct {
	// ServerName, if not empty, replaces the server name of the socket, for proxies
	// that derive it from a request.
	ServerName string
	// SubjectAltNames, if not empty, replaces the configured checks of alternative
	// names: the peer must have at least one.
	SubjectAltNames []string
	// ALPN replaces the offered protocols.
	ALPN []string
	// DefaultALPN is offered if neither ALPN nor the socket names protocols.
	DefaultALPN []string
}

// Stage is the stage at which a connection attempt failed.
type Stage string

// The stages.
const (
	Bind      Stage = "bind"
	Connect   Stage = "connect"
	Handshake Stage = "handshake"
)

// Error is a failed connection attempt.
type Error struct {
	Cluster string
	Address string // of the host
	Stage   Stage
	Timeout bool // the connect timeout of the cluster passed
	// Local means that this machine lacked a descriptor, buffer, port or secret, could
	// not bind to the source address, or that the caller canceled the attempt, so the
	// error says nothing about the host.
	Local bool
	Err   error
}

// Error returns the message, which contains no secrets.
func (e *Error) Error() string {
	stage := string(e.Stage) + ": "
	return fmt.Sprintf("transport: cluster %q: host %s: %s", e.Cluster, e.Address, stage+strings.TrimPrefix(fmt.Sprint(e.Err), stage))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Dialer connects to the hosts of a cluster. It is safe for concurrent use.
type Dialer struct {
	f       *Factory
	cluster *config.Cluster
	scope   *store.Scope
	source  *source

	namespace string // of the metadata that matches look at
	matches   []choice
	fallback  choice
	check     *socket // of health checks with criteria of their own; nil: as the host

	mu     sync.RWMutex
	chosen map[*host.Host]*socket // only with matches
}

// socket is one transport socket: plain text if tls is nil.
type socket struct {
	tls *tlsContext
}

func (f *Factory) newDialer(c *config.Cluster, scope *store.Scope) (_ *Dialer, err error) {
	d := &Dialer{f: f, cluster: c, scope: scope, namespace: scope.Store().Product() + ".transport_socket_match", chosen: make(map[*host.Host]*socket)}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	bind, at := c.Bind, "upstream_bind_config"
	if bind == nil {
		bind, at = f.c.Bind, "cluster_manager.upstream_bind_config"
	}
	if d.source, err = newSource(bind, c.Keepalive, at); err != nil {
		return nil, err
	}
	stats := sync.OnceValue(func() *tlsStats { return newTLSStats(scope) })
	for i := range c.Sockets.Matches {
		m := &c.Sockets.Matches[i]
		s, err := f.socket(c.Name, &m.Socket, stats, fmt.Sprintf("transport_socket_matches[%d].transport_socket", i))
		if err != nil {
			return nil, err
		}
		d.matches = append(d.matches, choice{match: m.Match, socket: s, counts: []*store.Counter{scope.Counter(oneline.Clean(m.Name) + ".total_match_count")}})
	}
	s, err := f.socket(c.Name, &c.Sockets.Default, stats, "transport_socket")
	if err != nil {
		return nil, err
	}
	d.fallback = choice{socket: s, counts: []*store.Counter{
		scope.Counter("default.total_match_count"),
		scope.Counter("defaulttotal_match_count"), // as some read it
	}}
	if len(c.HealthChecks) > 0 && c.HealthChecks[0].TransportSocketMatch != nil {
		d.check = d.choose(c.HealthChecks[0].TransportSocketMatch)
	}
	return d, nil
}

// socket creates a socket of a cluster. path is that of its field.
func (f *Factory) socket(cluster string, s *config.Socket, stats func() *tlsStats, path string) (*socket, error) {
	switch s.Kind {
	case config.RawBuffer:
		return &socket{}, nil
	case config.OtherSocket:
		return nil, fmt.Errorf("%s: %q is not supported; known: tls, raw_buffer", path, s.Name)
	}
	t, err := f.newTLSContext(cluster, s.TLS, path+".typed_config", stats())
	if err != nil {
		return nil, err
	}
	return &socket{tls: t}, nil
}

// Close releases the certificates. Open connections stay.
func (d *Dialer) Close() {
	for _, c := range d.matches {
		c.close()
	}
	d.fallback.close()
}

// Secure reports whether connections to h use TLS.
func (d *Dialer) Secure(h *host.Host) bool { return d.socket(h).tls != nil }

// Dial connects to h within the connect timeout of the cluster, handshake included.
// If the host has several addresses, the first successful connection wins: attempts
// alternate between address families, and each starts when the previous one has
// failed or after 300 ms (RFC 8305). The error is an [*Error]. The result is a
// *net.TCPConn, a *net.UnixConn or a *tls.Conn.
func (d *Dialer) Dial(ctx context.Context, h *host.Host, o Options) (net.Conn, error) {
	late := errors.New("not connected in " + d.cluster.ConnectTimeout.String())
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, d.cluster.ConnectTimeout, late)
	defer cancel()
	conn, stage, err := d.connect(ctx, h, order(h.Addresses(), d.cluster.HappyEyeballs), d.socket(h), o)
	if err == nil {
		return conn, nil
	}
	e := &Error{Cluster: d.cluster.Name, Address: h.AddressText(), Stage: stage, Local: local(stage, err) || caller.Err() == context.Canceled, Err: err}
	if context.Cause(ctx) == late || expired(err) && !sameDeadline(caller, ctx) {
		e.Timeout, e.Local, e.Err = true, false, late
	}
	return nil, e
}

// local reports whether err is caused by this machine.
func local(s Stage, err error) bool {
	return errors.Is(err, errNoSecret) || s == Bind || isBind(err) || s != Handshake && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EADDRNOTAVAIL))
}

// expired reports whether err is a timeout. The net package applies the deadline of a
// context and may notice it before the context does.
func expired(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// sameDeadline reports whether a, derived from b, has the same deadline.
func sameDeadline(a, b context.Context) bool {
	at, ok := a.Deadline()
	bt, _ := b.Deadline()
	return ok && at.Equal(bt)
}

// dial connects without TLS.
func (d *Dialer) dial(ctx context.Context, a config.Address) (net.Conn, error) {
	conn, err := d.source.dial(ctx, a)
	if err != nil && isBind(err) {
		d.scope.Counter("bind_errors").Inc()
	}
	return conn, err
}

func isBind(err error) bool {
	var b *bindError
	return errors.As(err, &b)
}

// DialCheck connects to an address of h for an active health check, which has its own
// timeout. It uses the socket and the protocols that the check requires.
func (d *Dialer) DialCheck(ctx context.Context, h *host.Host, a config.Address) (net.Conn, error) {
	s, o := d.check, Options{}
	if s == nil {
		s = d.socket(h)
	}
	if len(d.cluster.HealthChecks) > 0 {
		o.ALPN = d.cluster.HealthChecks[0].ALPN
	}
	conn, stage, err := d.connect(ctx, h, []config.Address{a}, s, o)
	if err != nil {
		return nil, &Error{Cluster: d.cluster.Name, Address: a.String(), Stage: stage, Local: local(stage, err), Err: err}
	}
	return conn, nil
}

// connect connects to the first address that accepts.
func (d *Dialer) connect(ctx context.Context, h *host.Host, list []config.Address, s *socket, o Options) (net.Conn, Stage, error) {
	if err := s.await(); err != nil {
		return nil, Handshake, err
	}
	conn, err := race(ctx, list, d.dial, guard.New(d.f.c.Logger))
	if err != nil {
		if isBind(err) {
			return nil, Bind, err
		}
		return nil, Connect, err
	}
	if s.tls == nil {
		return conn, "", nil
	}
	c, err := s.tls.handshake(ctx, conn, h, &o)
	if err != nil {
		conn.Close()
		return nil, Handshake, err
	}
	return c, "", nil
}
