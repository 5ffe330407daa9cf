package discovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// udpSize is the size of answers over UDP, in bytes, that most networks pass without
// fragmentation.
const udpSize = 1232

// ClientConfig configures a [Client]. The zero value uses the settings of the system.
type ClientConfig struct {
	// ResolvConf is the path of the resolver configuration: servers, search list, and
	// the options ndots, timeout and attempts. If it cannot be read, servers on this
	// machine are used. Default "/etc/resolv.conf".
	ResolvConf string
	// Hosts is the path of the hosts file, which has precedence. Default "/etc/hosts".
	// Files of more than 16 MiB are not read.
	Hosts string
	// Lookups bounds the concurrent lookups; others wait. Default 128.
	Lookups int
	// Dial connects to a server; network is "udp" or "tcp". Nil uses a zero net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger takes warnings about files that are too large; nil discards them.
	Logger *slog.Logger
}

// Client is a [Resolver] that queries DNS servers. It rereads its files when
// they change.
//
// If a server does not answer in time, or refuses, the client tries the next one. When
// all have failed it tries them again, as often as configured. A truncated answer is
// repeated over TCP.
type Client struct {
	c      ClientConfig
	system *system
	slots  chan struct{}
}

// NewClient returns a client.
func NewClient(c ClientConfig) *Client {
	c.ResolvConf = cmp.Or(c.ResolvConf, "/etc/resolv.conf")
	c.Hosts = cmp.Or(c.Hosts, "/etc/hosts")
	if c.Lookups <= 0 {
		c.Lookups = 128
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Client{c: c, system: newSystem(c.ResolvConf, c.Hosts, c.Logger), slots: make(chan struct{}, c.Lookups)}
}

// request is one lookup with its settings.
type request struct {
	Query
	*settings
}

// Lookup implements [Resolver].
func (c *Client) Lookup(ctx context.Context, q Query) ([]Record, error) {
	s, hosts := c.system.current()
	r := request{q, s}
	first, second := types(q.Family)
	known := hosts[hostsKey(q.Name)]
	records := ofType(known, first)
	if len(records) == 0 || q.Family == config.FamilyAll {
		records = append(records, ofType(known, second)...)
	}
	if len(records) > 0 {
		return records, nil
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if len(q.Servers) > 0 {
		own := *s
		own.servers = q.Servers
		r.settings = &own
	}
	records, err := c.search(ctx, &r, first)
	if second == 0 || err == nil && q.Family != config.FamilyAll || ctx.Err() != nil {
		return records, err
	}
	more, err2 := c.search(ctx, &r, second)
	switch {
	case err == nil || err2 == nil:
		return append(records, more...), nil
	case errors.Is(err2, ErrNoAddress): // the other one says more
		return nil, err
	}
	return nil, err2
}

// types returns the record types to query. The second one is queried if the first
// yields nothing or if the family is FamilyAll; 0 is none.
func types(f config.LookupFamily) (first, second dnsmessage.Type) {
	switch f {
	case config.FamilyV4Only:
		return dnsmessage.TypeA, 0
	case config.FamilyV6Only:
		return dnsmessage.TypeAAAA, 0
	case config.FamilyV4Preferred:
		return dnsmessage.TypeA, dnsmessage.TypeAAAA
	}
	return dnsmessage.TypeAAAA, dnsmessage.TypeA
}

// ofType returns the addresses that fit records of that type.
func ofType(list []netip.Addr, rrtype dnsmessage.Type) []Record {
	var records []Record
	for _, a := range list {
		if rrtype == dnsmessage.TypeA && a.Is4() || rrtype == dnsmessage.TypeAAAA && a.Is6() {
			records = append(records, Record{Addr: a})
		}
	}
	return records
}

// search tries the name with the search list, until a name has addresses or a server
// answers definitely.
func (c *Client) search(ctx context.Context, r *request, rrtype dnsmessage.Type) ([]Record, error) {
	err := fmt.Errorf("%w: %q is not a valid DNS name", ErrNoAddress, r.Name)
	var refused error
	for _, name := range r.names(r.Name, r.NoSearch) {
		var records []Record
		if records, err = c.ask(ctx, r, name, rrtype); err == nil {
			return records, nil
		}
		if no := (*refusal)(nil); errors.As(err, &no) {
			refused = err
		} else if !errors.Is(err, ErrNoAddress) {
			return nil, err
		}
	}
	if refused != nil {
		return nil, refused
	}
	return nil, err
}

// ask queries the servers in turn until one gives a definite answer.
func (c *Client) ask(ctx context.Context, r *request, name string, rrtype dnsmessage.Type) ([]Record, error) {
	full, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	q := dnsmessage.Question{Name: full, Type: rrtype, Class: dnsmessage.ClassINET}
	for range r.attempts {
		for _, server := range r.servers {
			var records []Record
			records, err = c.exchange(ctx, r, server, q)
			if err == nil || errors.Is(err, ErrNoAddress) || ctx.Err() != nil {
				return records, err
			}
		}
	}
	return nil, err
}

func (c *Client) exchange(ctx context.Context, r *request, server netip.AddrPort, q dnsmessage.Question) ([]Record, error) {
	network := "udp"
	if r.TCP {
		network = "tcp"
	}
	var edns dnsmessage.ResourceHeader
	if err := edns.SetEDNS0(udpSize, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{RecursionDesired: true},
		Questions:   []dnsmessage.Question{q},
		Additionals: []dnsmessage.Resource{{Header: edns, Body: &dnsmessage.OPTResource{}}},
	}
	a, err := c.send(ctx, &m, network, server, r.timeout)
	if err == nil && (a.RCode == dnsmessage.RCodeFormatError || a.RCode == dnsmessage.RCodeNotImplemented) {
		m.Additionals = nil // an old server may not know what that is
		a, err = c.send(ctx, &m, network, server, r.timeout)
	}
	if a != nil && a.Truncated && !r.TCP { // even if it is cut off in the middle
		a, err = c.send(ctx, &m, "tcp", server, r.timeout)
	}
	if err != nil {
		return nil, fmt.Errorf("discovery: asking %s for %q: %w", server, q.Name, err)
	}
	if a.Truncated {
		return nil, fmt.Errorf("discovery: asking %s for %q: truncated answer", server, q.Name)
	}
	return a.addresses(q)
}

// send sends m over a new connection and returns the answer. The identifier and the
// port are new each time, so that answers are hard to forge.
func (c *Client) send(ctx context.Context, m *dnsmessage.Message, network string, server netip.AddrPort, timeout time.Duration) (*answer, error) {
	try, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.c.Dial(try, network, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(try, func() { conn.Close() })()
	a, err := converse(conn, m, network == "tcp")
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case try.Err() != nil:
		return nil, fmt.Errorf("no answer in %v: %w", timeout, context.DeadlineExceeded)
	}
	return a, err
}

// converse sends m with a new identifier and reads the answer. If the header of the
// answer is valid, it is returned even with an error.
func converse(conn net.Conn, m *dnsmessage.Message, stream bool) (*answer, error) {
	var id [2]byte
	rand.Read(id[:])
	m.ID = binary.BigEndian.Uint16(id[:])
	b, err := m.AppendPack(make([]byte, 2, 512)) // behind the length
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	if !stream {
		b = b[2:]
	}
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	for {
		b, err := receive(conn, stream)
		switch {
		case err != nil:
			return nil, err
		case len(b) >= len(id) && [2]byte(b) == id:
			if a, err := parse(b); stream || !a.toAnother(m) {
				return a, err
			}
		case stream:
			return nil, errors.New("the answer is too short or to another query")
		}
		// A late answer to an earlier query, or a forged one.
	}
}

// receive reads one message.
func receive(conn net.Conn, stream bool) ([]byte, error) {
	if !stream {
		b := make([]byte, udpSize)
		n, err := conn.Read(b)
		return b[:n], err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(conn, b)
	return b, err
}
