package sinkqueue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/streamend"
)

// Network is a transport for packets of lines.
type Network string

// The networks.
const (
	UDP        Network = "udp"
	TCP        Network = "tcp"
	Unixgram   Network = "unixgram"
	Unixstream Network = "unixstream" // packets with a length of 4 bytes before each
	Unixlines  Network = "unixlines"  // lines
)

// Networks returns all networks.
func Networks() []Network { return []Network{UDP, TCP, Unixgram, Unixstream, Unixlines} }

// Stream reports whether packets are parts of a stream.
func (n Network) Stream() bool { return n == TCP || n == Unixstream || n == Unixlines }

// Default sizes of packets.
const (
	DefaultUDPBytes  = 1432
	DefaultUnixBytes = 8192
	DefaultTCPBytes  = 64 << 10
)

// CheckAddress checks an address on the network: host:port, or the path of a unix
// socket, where a leading @ means an abstract one. It returns the default size of
// packets.
func (n Network) CheckAddress(address string) (packetBytes int, err error) {
	switch n {
	case UDP, TCP:
		if _, _, err := net.SplitHostPort(address); err != nil {
			return 0, fmt.Errorf("address %q is not host:port", address)
		}
		if n == TCP {
			return DefaultTCPBytes, nil
		}
		return DefaultUDPBytes, nil
	case Unixgram, Unixstream, Unixlines:
		if !strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "@") {
			return 0, fmt.Errorf("address %q is neither an absolute path nor an abstract socket", address)
		}
		return DefaultUnixBytes, nil
	}
	return 0, fmt.Errorf("network %q is not one of %v", n, Networks())
}

// ConnConfig are the settings of a [Conn].
type ConnConfig struct {
	Network Network
	Address string // see [Network.CheckAddress]
	// Timeout limits an attempt to connect or send. Required.
	Timeout time.Duration
	// PacketBytes is the size of the longest datagram. Larger packets are split
	// between lines. Required.
	PacketBytes int
	// Dial opens the connection. Default: [Network.Dial] with Address and Timeout. A
	// stream that is no socket can have a method Ended, which reports whether the other
	// end was closed.
	Dial func(ctx context.Context) (net.Conn, error)
	// Opened is called with a new connection. An error closes it and fails the
	// attempt. Optional.
	Opened func(net.Conn) error
	// Lost is called when an error shows that datagrams that were sent did not
	// arrive. Optional.
	Lost func(packets int)
	// Shortened is called when the system refuses datagrams because of their
	// size, with the new maximum size. Optional.
	Shortened func(bytes int)
}

// Conn is a connection over which a queue sends packets of lines. It reconnects
// after errors. Only one goroutine can use it.
type Conn struct {
	cfg   ConnConfig
	limit int // longest datagram, halved when the system refuses one
	open  net.Conn
	host  string    // a name whose address can change unnoticed, or empty
	known time.Time // when the address of host was looked up
	last  int       // datagrams that the last call sent; an error of the next one is about them
	whole bool      // the system does not cut data sent over open into datagrams

	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error) // replaced by tests

	joined, option []byte // of SendAll
}

// NewConn returns a connection. The first Send opens it.
func NewConn(cfg ConnConfig) *Conn {
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context) (net.Conn, error) { return cfg.Network.Dial(ctx, cfg.Address, cfg.Timeout) }
	}
	c := &Conn{cfg: cfg, limit: cfg.PacketBytes, lookup: net.DefaultResolver.LookupNetIP}
	if host, _, err := net.SplitHostPort(cfg.Address); err == nil && cfg.Network == UDP {
		if _, err := netip.ParseAddr(host); err != nil {
			c.host = host
		}
	}
	return c
}

// Close closes the connection.
func (c *Conn) Close() {
	if c.open != nil {
		_ = c.open.Close()
		c.open = nil
	}
}

// resolveInterval is how often the name of a receiver over UDP is looked up. No error
// shows that datagrams go to an old address.
const resolveInterval = time.Minute

// outdated reports whether the name should be looked up again.
func (c *Conn) outdated() bool { return c.host != "" && time.Since(c.known) >= resolveInterval }

// moved reports whether the open connection is to an address that its host name no
// longer has. If the name cannot be looked up, the address stays.
func (c *Conn) moved(ctx context.Context) bool {
	if !c.outdated() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	addrs, err := c.lookup(ctx, "ip", c.host)
	c.known = time.Now()
	to, ok := c.open.RemoteAddr().(*net.UDPAddr)
	return ok && err == nil && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == to.AddrPort().Addr().Unmap() })
}

// dial opens the connection unless it is open. It opens a stream again whose other
// end was closed, since the system would accept data for it.
func (c *Conn) dial(ctx context.Context) error {
	if c.open != nil && (c.cfg.Network.Stream() && ended(c.open) || c.moved(ctx)) {
		c.Close()
	}
	if c.open != nil {
		return nil
	}
	opened, err := c.cfg.Dial(ctx)
	if err != nil {
		return err
	}
	if c.cfg.Opened != nil {
		if err := c.cfg.Opened(opened); err != nil {
			_ = opened.Close()
			return err
		}
	}
	c.open, c.last, c.whole, c.known = opened, 1, false, time.Now()
	return nil
}

// ended reports whether the other end of a stream was closed.
func ended(c net.Conn) bool {
	if e, ok := c.(interface{ Ended() bool }); ok {
		return e.Ended()
	}
	return streamend.Closed(c)
}

// silence is how long a receiver over TCP may confirm nothing that was sent. Then the
// connection fails; without a limit, Linux gives up after a quarter of an hour, and data
// sent until then is lost without a sign.
const silence = 2 * time.Minute

// Dial connects to an address.
func (n Network) Dial(ctx context.Context, address string, timeout time.Duration) (net.Conn, error) {
	network := string(n)
	if n == Unixstream || n == Unixlines {
		network = "unix"
	}
	d := net.Dialer{Timeout: timeout}
	if n == TCP {
		d.Control = limitSilence
	}
	return d.DialContext(ctx, network, address)
}

// Send makes one attempt to send a packet, as [Config.Send] requires.
func (c *Conn) Send(ctx context.Context, data []byte) (sent int, err error) {
	if err := c.dial(ctx); err != nil {
		return 0, err
	}
	open := c.open
	_ = open.SetWriteDeadline(time.Now().Add(c.cfg.Timeout)) // a closed one shows it in Write
	if c.cfg.Network.Stream() {
		defer context.AfterFunc(ctx, func() { _ = open.SetWriteDeadline(time.Unix(1, 0)) })()
		return c.sendStream(data)
	}
	for sent < len(data) {
		limit := c.limit
		if data[sent] == '\n' { // it is not sent
			limit++
		}
		n := len(data) - sent
		if n > limit {
			n = cut(data[sent:], limit)
		}
		err := c.sendDatagram(data[sent : sent+n])
		switch {
		case err == nil:
			sent += n
		case errors.Is(err, syscall.EMSGSIZE) && n > 1 && cut(data[sent:], n/2) < n:
			c.limit = max(n/2, 1)
			if c.cfg.Shortened != nil {
				c.cfg.Shortened(c.limit)
			}
		case errors.Is(err, syscall.EMSGSIZE):
			return sent, fmt.Errorf("a line of %d bytes: %w: %w", n, err, ErrRefused)
		default:
			return sent, err
		}
	}
	return sent, nil
}

func (c *Conn) sendStream(data []byte) (int, error) {
	whole := data
	if !bytes.HasSuffix(data, []byte("\n")) { // queued for datagrams by the previous process
		whole = append(slices.Clip(data), '\n')
	}
	if c.cfg.Network == Unixstream {
		whole = append(binary.LittleEndian.AppendUint32(make([]byte, 0, len(whole)+4), uint32(len(whole))), whole...)
	}
	n, err := c.open.Write(whole)
	if err == nil {
		return len(data), nil
	}
	// TLS sends nothing more after a timeout.
	if _, socket := c.open.(syscall.Conn); socket && n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err // keep the connection: the receiver may still read the buffered data
	}
	c.Close()
	if n > 0 {
		return 0, fmt.Errorf("%w: %w", err, ErrAmbiguous)
	}
	return 0, err
}

// fullPause is the pause before a datagram is sent again for which the system had no
// memory.
const fullPause = time.Millisecond

// sendDatagram sends one datagram. ECONNREFUSED reports that an earlier datagram was
// lost; this one has not been sent. ENOBUFS is retried once after a pause.
func (c *Conn) sendDatagram(b []byte) error {
	b = bytes.TrimPrefix(b, []byte("\n"))
	_, err := c.open.Write(b)
	switch {
	case c.cfg.Network == UDP && errors.Is(err, syscall.ECONNREFUSED):
		c.lost()
		_, err = c.open.Write(b)
	case errors.Is(err, syscall.ENOBUFS):
		time.Sleep(fullPause)
		_, err = c.open.Write(b)
	}
	if err == nil || errors.Is(err, syscall.EMSGSIZE) {
		c.last = 1
		return err
	}
	c.Close() // so that the name is looked up again
	if errors.Is(err, io.ErrShortWrite) {
		return fmt.Errorf("%w: %w", err, ErrAmbiguous)
	}
	return err
}

// lost reports the datagrams of the last call as lost.
func (c *Conn) lost() {
	if c.cfg.Lost != nil {
		c.cfg.Lost(c.last)
	}
	c.last = 1
}

// cut returns the length of the longest run of whole lines in data that fits into
// limit bytes, or of the first line. It does not separate a negative gauge from the
// line before it. The line feed at a cut belongs to the lines after it.
func cut(data []byte, limit int) int {
	best := 0
	for at := 1; at < len(data); {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		end := at + i
		next, _, _ := bytes.Cut(data[end+1:], []byte("\n"))
		if len(next) > 0 && !bytes.Contains(next, []byte(":-")) {
			if best > 0 && end > limit {
				return best
			}
			best = end
		}
		at = end + 1
	}
	if best == 0 || len(data) <= limit {
		return len(data)
	}
	return best
}
