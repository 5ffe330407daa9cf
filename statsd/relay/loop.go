package relay

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
)

// listener is an address on which the program itself receives lines.
type listener struct {
	address string
	network string // udp, tcp or unix
	at      netip.AddrPort
	path    string
}

// SetListeners sets the addresses on which the program itself receives lines,
// such as "udp://0.0.0.0:8125". It returns an error if a target has such an
// address, because every line would loop. For targets with host names, the
// check is made when a connection is opened, which then fails.
func (r *Relay) SetListeners(addresses []string) error {
	var own []listener
	for _, a := range addresses {
		scheme, place, _ := strings.Cut(a, "://")
		l := listener{address: a, network: strings.TrimRight(scheme, "46")}
		switch {
		case strings.HasPrefix(scheme, "unix"):
			l.network, l.path = "unix", place
		case scheme == "tls":
			l.network = "tcp"
		}
		if l.path == "" {
			var err error
			if l.at, err = netip.ParseAddrPort(place); err != nil {
				return fmt.Errorf("relay: the listener %q has no address: %w", a, err)
			}
		}
		own = append(own, l)
	}
	r.mu.Lock()
	r.own = own
	r.mu.Unlock()
	for _, t := range r.targets {
		if err := r.checkLoop(t, literal(t)); err != nil {
			return err
		}
	}
	return nil
}

// literal returns the address of t if no name has to be resolved, or nil.
func literal(t *target) net.Addr {
	switch t.network {
	case sinkqueue.TCP, sinkqueue.UDP:
		at, err := netip.ParseAddrPort(t.location)
		if err != nil {
			return nil
		}
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: t.location}
}

// checkLoop returns an error if t is a listener of the program.
func (r *Relay) checkLoop(t *target, remote net.Addr) error {
	network, path := "unix", ""
	var at netip.AddrPort
	switch a := remote.(type) {
	case *net.TCPAddr:
		network, at = "tcp", a.AddrPort()
	case *net.UDPAddr:
		network, at = "udp", a.AddrPort()
	case *net.UnixAddr:
		path = t.location
	default:
		return nil
	}
	if t.network == sinkqueue.UDP {
		network = "udp"
	}
	r.mu.Lock()
	own := r.own
	r.mu.Unlock()
	for _, l := range own {
		if l.network == network && l.path == path && (path != "" || l.at.Port() == at.Port() && covers(l.at.Addr(), at.Addr())) {
			return fmt.Errorf("relay: target %q is the listener %s of this server: lines would loop", t.cfg.Name, l.address)
		}
	}
	return nil
}

// covers reports whether a listener on the address own receives what this host sends
// to the address to.
func covers(own, to netip.Addr) bool {
	own, to = own.WithZone("").Unmap(), to.WithZone("").Unmap()
	if to.IsUnspecified() { // the system connects to this host
		return own.IsUnspecified() || own.IsLoopback()
	}
	if !own.IsUnspecified() {
		return own == to
	}
	if to.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // without them only loopback addresses are known
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == to
	})
}
