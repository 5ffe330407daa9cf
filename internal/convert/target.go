package convert

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// Limits of the resulting configuration.
const (
	maxFlushInterval = 5*time.Minute - time.Nanosecond
	maxSocketPath    = 107
	maxHostBytes     = 253
	maxPercentiles   = 32
)

// The sections of the result, in the order in which they appear.

// adminSection returns the section of the administration interface, which is on the
// loopback address unless listen says where metrics are scraped.
func (c *conversion) adminSection(listen string) *section {
	admin := c.out.child("admin")
	host, port := "127.0.0.1", 9901
	if listen != "" {
		h, p, _ := net.SplitHostPort(listen)
		host, port = h, atoi(p)
		admin.set("mode", "read_only")
	}
	address := admin.child("address").child("socket_address")
	address.set("address", host)
	address.set("port_value", port)
	return admin
}

func (c *conversion) flushInterval(v *value, d time.Duration) time.Duration {
	if d < time.Millisecond || d > maxFlushInterval {
		limited := min(max(d, time.Millisecond), maxFlushInterval).Truncate(time.Millisecond)
		v.note(c.out, "%v is not from 1ms to 4m59.999s, the limits of stats_flush_interval", d)
		d = limited
	}
	d = d.Truncate(time.Millisecond)
	c.out.set("stats_flush_interval", strconv.FormatFloat(d.Seconds(), 'f', -1, 64)+"s")
	return d
}

// ttl sets how long series of a kind stay. Without a time, they stay forever.
func (c *conversion) ttl(kind string, d time.Duration) {
	c.out.child("statsd").child("ttl").set(kind, max(0, d).String())
}

// listener adds a listener for an IP address.
func (c *conversion) listener(network, host string, port int) *section {
	l := c.out.child("statsd").add("listeners")
	l.set("address", network+"://"+net.JoinHostPort(host, strconv.Itoa(port)))
	return l
}

// sink adds a sink of a kind with a name of its own, and returns both sections.
func (c *conversion) sink(kind string) (sink, own *section) {
	c.sinks[kind]++
	name := kind
	if n := c.sinks[kind]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	sink = c.out.add("sinks")
	sink.set("name", name)
	sink.child("filters").set("origin", "received")
	return sink, sink.child(kind)
}

// stdout adds a sink that writes to the standard output.
func (c *conversion) stdout() {
	_, own := c.sink("json_lines")
	own.set("path", "/dev/stdout")
}

// relay adds a route of the relay. The caller adds targets.
func (c *conversion) relay() *section { return c.out.child("statsd").add("relay") }

// target is a target of a route.
type target struct {
	route   *section
	address string
}

// relayTarget adds a target to a route, unless the route has it.
func relayTarget(route *section, v *value, network, host string, port int) *section {
	address := network + "://" + net.JoinHostPort(host, strconv.Itoa(port))
	at := target{route, address}
	if v.c.targets[at] {
		v.note(route, "%s is a target already", address)
		return new(section)
	}
	v.c.targets[at] = true
	t := route.add("targets")
	t.set("address", address)
	return t
}

// listenHost returns the IP address of a host to listen on, or otherwise if it is empty.
func (v *value) listenHost(otherwise string) string {
	host := strings.TrimSpace(v.text(""))
	ip, ok := listenIP(host, otherwise)
	if !ok {
		v.wrong("an IP address to listen on")
	}
	return ip
}

// listenIP returns the IP address of a host to listen on, or otherwise if it is empty.
func listenIP(host, otherwise string) (ip string, ok bool) {
	switch host {
	case "":
		return otherwise, true
	case "localhost":
		return "127.0.0.1", true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return addr.String(), err == nil && addr.Zone() == ""
}

// host returns the name or address of another server, the loopback address without one.
func (v *value) host() string {
	host := strings.TrimSpace(v.text(""))
	if host == "" {
		return "127.0.0.1"
	}
	if !validHost(host) {
		v.wrong("a host name or IP address")
	}
	return strings.Trim(host, "[]")
}

func validHost(host string) bool {
	return host != "" && len(host) <= maxHostBytes && !strings.ContainsFunc(host, func(r rune) bool {
		return r > unicode.MaxASCII || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._:[]%", r))
	})
}

// hostPort returns the host and port of another server.
func (v *value) hostPort(port int) (host string, n int, ok bool) {
	text := strings.TrimSpace(v.text(""))
	if text == "" {
		return
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		host, number = text, strconv.Itoa(port)
	}
	n = atoi(number)
	if ok = validHost(host) && n > 0; !ok {
		v.wrong("host:port")
	}
	return strings.Trim(host, "[]"), n, ok
}

// listenAddress returns the IP address and port to listen on of host:port.
func (v *value) listenAddress(text string) (host string, port int) {
	host, number, err := net.SplitHostPort(strings.TrimSpace(text))
	if err != nil {
		v.wrong("host:port")
		return "", 0
	}
	host, ok := listenIP(host, "0.0.0.0")
	if port = atoi(number); !ok || port == 0 {
		v.wrong("an IP address and a port to listen on")
		return "", 0
	}
	return host, port
}

// atoi returns the number of a port, 0 if there is none.
func atoi(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// socketPath returns the path of a unix socket.
func (v *value) socketPath() (string, bool) {
	text := v.text("")
	if !path.IsAbs(text) || len(text) > maxSocketPath || strings.ContainsFunc(text, unicode.IsControl) {
		v.wrong(fmt.Sprintf("an absolute path of at most %d bytes", maxSocketPath))
		return "", false
	}
	return text, true
}

// url returns a URL of HTTP as text.
func (v *value) url() (string, bool) {
	if v == nil {
		return "", false
	}
	text := v.text("")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !validHost(u.Host) {
		v.c.errorf(v.node, v.path, "not http://host or https://host without user information%s", v.unset())
		return "", false
	}
	return text, true
}

// percentiles returns the percentages of a list that a sink can send.
func (v *value) percentiles(elements []*value, at *section) (all []float64) {
	for _, e := range elements {
		p, ok := e.number()
		switch {
		case !ok:
		case p < 0.01 || p > 99.99:
			e.note(at, "%v is not in [0.01, 99.99]: lower and upper are always sent", p)
		case len(all) == maxPercentiles:
			e.note(at, "more than %d percentiles", maxPercentiles)
		case !slices.Contains(all, p):
			all = append(all, p)
		}
	}
	return all
}

// name returns a text that can be a prefix of names: without dots at its ends.
func (v *value) name() string { return strings.Trim(v.text(""), ".") }

// layoutNames takes the settings of the parts of paths in Graphite, in the order of the
// parts. Unless the layout has no parts, it notes settings that differ from it.
func (o *object) layoutNames(at *section, parts bool, settings ...string) {
	for i, fixed := range [...]string{"stats", "counters", "timers", "gauges", "sets", ""} {
		if v := o.take(settings[i]); v != nil && v.name() != fixed && parts {
			v.note(at, "has no equivalent: the layout has fixed names")
		}
	}
}

// timeout sets the limit of an attempt.
func (v *value) timeout(at *section, unit time.Duration) {
	if v == nil {
		return
	}
	if d := v.duration(0, unit); d >= time.Millisecond && d <= time.Hour {
		at.set("timeout", d.String())
	} else if d != 0 {
		v.note(at, "%v is not from 1ms to 1h", d)
	}
}

func joined(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// oneWord returns a text from the file for a note.
func oneWord(text string) string { return conftree.Key(text, false) }
