package statsd

import (
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// framing is how a socket delivers lines.
type framing uint8

const (
	datagrams framing = iota // packets of lines
	lines                    // a stream of lines
	frames                   // a stream of packets with length prefixes
)

// protocols lists the prefixes of addresses.
var protocols = []struct {
	scheme  string
	network string
	framing framing
}{
	{"udp", "udp", datagrams},
	{"udp4", "udp4", datagrams},
	{"udp6", "udp6", datagrams},
	{"tcp", "tcp", lines},
	{"tcp4", "tcp4", lines},
	{"tcp6", "tcp6", lines},
	{"tls", "tcp", lines}, // tcp with ListenerConfig.TLS
	{"unixgram", "unixgram", datagrams},
	{"unixstream", "unix", frames},
	{"unixlines", "unix", lines},
}

// address is a parsed listener address.
type address struct {
	scheme   string
	network  string // for package net
	framing  framing
	location string // host:port, path, or "@" and an abstract name
}

func (a address) unix() bool     { return strings.HasPrefix(a.network, "unix") }
func (a address) abstract() bool { return a.unix() && strings.HasPrefix(a.location, "@") }

// parseAddress reads the address of a listener.
func parseAddress(s string) (address, error) {
	scheme, place, ok := strings.Cut(s, "://")
	if !ok {
		return address{}, fmt.Errorf("statsd: address %q has no protocol; write udp://host:port or unixgram:///path", s)
	}
	for _, p := range protocols {
		if p.scheme != scheme {
			continue
		}
		a := address{scheme, p.network, p.framing, place}
		if a.unix() {
			return a, checkPath(s, a)
		}
		_, port, err := net.SplitHostPort(place)
		if err != nil {
			return a, fmt.Errorf("statsd: address %q: %q is not host:port", s, place)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return a, fmt.Errorf("statsd: address %q: port %q not in [0,65535]", s, port)
		} else if n == 0 {
			a.location = strings.TrimSuffix(place, port) + "0"
		}
		return a, nil
	}
	var names []string
	for _, p := range protocols {
		names = append(names, p.scheme)
	}
	return address{}, fmt.Errorf("statsd: address %q: protocol %q is not one of %s", s, scheme, strings.Join(names, ", "))
}

// maxPath is the longest path of a unix socket on Linux. Other systems allow
// less.
const maxPath = 107

func checkPath(s string, a address) error {
	switch {
	case len(a.location) < 2 || len(a.location) > maxPath:
		return fmt.Errorf("statsd: address %q: a socket path has 2 to %d bytes", s, maxPath)
	case strings.IndexByte(a.location, 0) >= 0:
		return fmt.Errorf("statsd: address %q: NUL in the path", s)
	case a.abstract() && runtime.GOOS != "linux":
		return fmt.Errorf("statsd: address %q: abstract sockets exist on Linux only", s)
	case !a.abstract() && !filepath.IsAbs(a.location):
		return fmt.Errorf("statsd: address %q: the path is not absolute", s)
	}
	return nil
}

// bound returns the address with the port or path that the kernel assigned.
func (a address) bound(local net.Addr) string {
	if a.unix() {
		return a.scheme + "://" + a.location
	}
	return a.scheme + "://" + local.String()
}
