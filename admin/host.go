package admin

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// HostMode selects the host names that requests may use. A web page can make
// its own name resolve to this server (DNS rebinding), but it cannot make the
// browser send another name in Host.
type HostMode uint8

// The modes of the host check. In all of them but HostOff, IP addresses,
// localhost, names under .localhost and the allowed names are accepted.
const (
	// HostAuto is HostStrict on loopback addresses and unix sockets. On other
	// addresses it also accepts names that cannot be owned in the public DNS:
	// those without a dot, and those under .local, .internal, .lan,
	// .home.arpa, .svc and .cluster.local.
	HostAuto HostMode = iota
	HostStrict
	HostOff
)

// privateSuffixes are names that HostAuto accepts on open addresses.
var privateSuffixes = [...]string{".local", ".internal", ".lan", ".home.arpa", ".svc", ".cluster.local"}

// hostCheck checks the hosts of requests. It is immutable.
type hostCheck struct {
	mode     HostMode
	exact    []string
	suffixes []string // with the dot
}

func newHostCheck(mode HostMode, allowed []string) *hostCheck {
	h := &hostCheck{mode: mode}
	for _, name := range allowed {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if suffix, ok := strings.CutPrefix(name, "*"); ok {
			h.suffixes = append(h.suffixes, suffix)
		} else {
			h.exact = append(h.exact, name)
		}
	}
	return h
}

// listenerKind describes the listener that accepted a request.
type listenerKind struct {
	unix bool // a unix socket
	open bool // neither a unix socket nor a loopback address

	metrics bool // that of Config.MetricsAddress
}

// accepts reports whether hostport, a Host header or the authority of a request
// target, is accepted at p.
func (h *hostCheck) accepts(hostport string, p listenerKind) bool {
	if h.mode == HostOff {
		return true
	}
	if hostport == "" {
		return p.unix
	}
	name, _, ok := splitHostPort(hostport)
	if !ok {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if !validHostName(name) {
		return false
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if slices.Contains(h.exact, name) {
		return true
	}
	if hasSuffix(name, h.suffixes) {
		return true
	}
	if h.mode == HostStrict || !p.open {
		return false
	}
	return !strings.Contains(name, ".") || hasSuffix(name, privateSuffixes[:])
}

// hasSuffix reports whether name ends in a suffix and is longer than it.
func hasSuffix(name string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool {
		return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	})
}

// splitHostPort splits host[:port]. An IPv6 address is returned without its brackets;
// only addresses can have them.
func splitHostPort(hostport string) (host, port string, ok bool) {
	if rest, bracketed := strings.CutPrefix(hostport, "["); bracketed {
		host, port, ok = strings.Cut(rest, "]")
		host = strings.Replace(host, "%25", "%", 1)
		if addr, err := netip.ParseAddr(host); !ok || err != nil || !addr.Is6() || !validZone(addr.Zone()) {
			return "", "", false
		}
		if port == "" {
			return host, "", true
		}
		port, ok = strings.CutPrefix(port, ":")
		return host, port, ok && validPort(port)
	}
	host, port, ok = strings.Cut(hostport, ":")
	if !ok {
		return host, "", host != ""
	}
	return host, port, host != "" && validPort(port)
}

// validZone reports whether zone contains only characters that RFC 6874 allows
// without percent-encoding, as interface names do.
func validZone(zone string) bool {
	return strings.Trim(zone, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") == ""
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && port[0] != '+' && n <= 65535
}

// validHostName reports whether a lower-case name without a trailing dot looks like a
// DNS name. The last label is never a number, since that would be an unusual notation
// of an IP address.
func validHostName(name string) bool {
	if len(name) > 253 {
		return false
	}
	label := ""
	for label = range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return strings.Trim(label, "0123456789") != ""
}
