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
	family  byte   // '4' or '6' if it receives only this version of IP
	at      netip.AddrPort
	path    string
}

// parseListener reads an address such as "udp://0.0.0.0:8125".
func parseListener(address string) (listener, error) {
	scheme, place, _ := strings.Cut(address, "://")
	l := listener{address: address, network: strings.TrimRight(scheme, "46")}
	switch {
	case strings.HasPrefix(scheme, "unix"):
		l.network, l.path = "unix", place
		return l, nil
	case scheme == "tls":
		l.network = "tcp"
	case scheme != l.network:
		l.family = scheme[len(scheme)-1]
	}
	var err error
	if l.at, err = netip.ParseAddrPort(place); err != nil {
		return listener{}, fmt.Errorf("relay: the listener %q has no address: %w", address, err)
	}
	return l, nil
}

// SetListeners sets the addresses on which the program itself receives lines,
// such as "udp://0.0.0.0:8125". It returns an error if a target has such an
// address, because every line would loop. For targets with host names other than
// localhost, the check is made when a connection is opened, which then fails.
func (r *Relay) SetListeners(addresses []string) error {
	var own []listener
	for _, a := range addresses {
		l, err := parseListener(a)
		if err != nil {
			return err
		}
		own = append(own, l)
	}
	r.mu.Lock()
	r.own = own
	r.mu.Unlock()
	for _, t := range r.targets {
		if l := OwnListener(t.cfg.Address, addresses); l != "" {
			return loopError(t, l)
		}
	}
	return nil
}

// OwnListener returns the first of listeners, the addresses of a program as in
// [Relay.SetListeners], that receives what the program sends to a target, or "".
// No host name is resolved; localhost is 127.0.0.1.
func OwnListener(target string, listeners []string) string {
	network, location, _, err := SplitAddress(target)
	if err != nil {
		return ""
	}
	var at netip.AddrPort
	switch network {
	case sinkqueue.TCP, sinkqueue.UDP:
		if port, ok := strings.CutPrefix(location, "localhost:"); ok {
			location = "127.0.0.1:" + port
		}
		if at, err = netip.ParseAddrPort(location); err != nil {
			return ""
		}
		location = ""
	default:
		network = "unix"
	}
	for _, a := range listeners {
		if l, err := parseListener(a); err == nil && l.receives(string(network), location, at) {
			return a
		}
	}
	return ""
}

// checkLoop returns an error if the connection of t is to a listener of the program.
func (r *Relay) checkLoop(t *target, remote net.Addr) error {
	network, path := string(t.network), ""
	var at netip.AddrPort
	switch a := remote.(type) {
	case *net.TCPAddr:
		at = a.AddrPort()
	case *net.UDPAddr:
		at = a.AddrPort()
	case *net.UnixAddr:
		network, path = "unix", t.location
	default:
		return nil
	}
	r.mu.Lock()
	own := r.own
	r.mu.Unlock()
	for _, l := range own {
		if l.receives(network, path, at) {
			return loopError(t, l.address)
		}
	}
	return nil
}

func loopError(t *target, listener string) error {
	return fmt.Errorf("relay: target %q is the listener %s of this server: lines would loop", t.cfg.Name, listener)
}

// receives reports whether l receives what this host sends to a path or to at.
func (l *listener) receives(network, path string, at netip.AddrPort) bool {
	return l.network == network && l.path == path && (path != "" || l.at.Port() == at.Port() && l.hears(at.Addr()) && covers(l.at.Addr(), at.Addr()))
}

// hears reports whether l receives the version of IP of the address to. What the system
// connects to for an unspecified address is not known.
func (l *listener) hears(to netip.Addr) bool {
	return l.family == 0 || to.IsUnspecified() || to.Unmap().Is4() == (l.family == '4')
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
