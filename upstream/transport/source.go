package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// source configures sockets before they connect.
type source struct {
	addresses []netip.AddrPort // to bind to: the first of the family of the remote; empty: no bind
	freebind  bool
	prebind   []config.SocketOption
	bound     []config.SocketOption
	keepalive *config.Keepalive
}

// bindError means that binding to the source address failed.
type bindError struct {
	address netip.AddrPort
	err     error
}

func (e *bindError) Error() string { return fmt.Sprintf("source address %s: %v", e.address, e.err) }
func (e *bindError) Unwrap() error { return e.err }

// newSource checks a binding, which may be nil. at is its field.
func newSource(b *config.Bind, k *config.Keepalive, at string) (*source, error) {
	s := &source{keepalive: k}
	if b == nil {
		return s, nil
	}
	s.freebind = b.Freebind
	for i, a := range append([]config.AddressSpec{b.Source}, b.Additional...) {
		field := at + ".source_address"
		if i > 0 {
			field = fmt.Sprintf("%s.additional_source_addresses[%d]", at, i-1)
		}
		if a.IsZero() || a.Host == "" && a.Port == 0 && a.NamedPort == "" {
			continue // nothing to bind to
		}
		ap, ok := a.AddrPort()
		switch {
		case !ok && a.Host == "" && a.NamedPort == "":
			ap = netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port)
		case !ok:
			return nil, fmt.Errorf("%s: %q is not an IP address with a port number", field, a.Host)
		case ap.Addr().IsUnspecified() && ap.Port() == 0:
			continue
		}
		s.addresses = append(s.addresses, ap)
	}
	for i, o := range b.Options {
		field := fmt.Sprintf("%s.socket_options[%d]", at, i)
		switch o.State {
		case config.StatePrebind:
			s.prebind = append(s.prebind, o)
		case config.StateBound:
			s.bound = append(s.bound, o)
		default:
			return nil, fmt.Errorf("%s.state: STATE_LISTENING is for listeners, not for connections; use STATE_PREBIND or STATE_BOUND", field)
		}
		if o.IsInt && o.Int != int64(int32(o.Int)) && o.Int != int64(uint32(o.Int)) {
			return nil, fmt.Errorf("%s.int_value: %d does not fit in 32 bits", field, o.Int)
		}
	}
	if err := s.supported(at); err != nil {
		return nil, err
	}
	return s, nil
}

// address returns the source address for a remote address, and false if there is
// none.
func (s *source) address(remote netip.Addr) (netip.AddrPort, bool) {
	if len(s.addresses) == 0 {
		return netip.AddrPort{}, false
	}
	for _, a := range s.addresses {
		if a.Addr().Unmap().Is4() == remote.Unmap().Is4() {
			return a, true
		}
	}
	return s.addresses[0], true // the bind says why it is wrong
}

func (s *source) dial(ctx context.Context, a config.Address) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1} // off unless it is asked for
	if a.Pipe == "" {
		remote := a.IP.Addr()
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) { err = s.prepare(int(fd), remote) }); e != nil {
				return e
			}
			return err
		}
	}
	conn, err := d.DialContext(ctx, a.Network(), a.String())
	if err != nil {
		return nil, plain(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && s.keepalive != nil {
		if err := tcp.SetKeepAliveConfig(keepalive(s.keepalive)); err != nil {
			conn.Close()
			return nil, fmt.Errorf("keepalive: %w", plain(err))
		}
	}
	return conn, nil
}

// keepalive returns the settings for the net package. Unset values keep the system
// defaults.
func keepalive(k *config.Keepalive) net.KeepAliveConfig {
	given := func(d time.Duration) time.Duration {
		if d <= 0 {
			return -1
		}
		return d
	}
	c := net.KeepAliveConfig{Enable: true, Idle: given(k.Time), Interval: given(k.Interval), Count: -1}
	if k.Probes > 0 {
		c.Count = int(min(k.Probes, 1<<31-1))
	}
	return c
}

// plain strips the addresses from an error of the net package, because the message
// has them already.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err
	}
	return err
}
