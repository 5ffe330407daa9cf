package statsd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/unixsock"
)

// socket is a datagram socket with the state of its reader.
type socket struct {
	conn    packetConn
	raw     syscall.RawConn
	batch   *batch
	worker  *worker
	granted int // receive buffer in bytes

	drops dropCount
}

// listener is a bound address.
type listener struct {
	cfg     ListenerConfig
	addr    address
	name    string // in metrics
	local   string // the address with the real port
	sockets []*socket
	accept  net.Listener
	plain   net.Listener                  // accept without TLS
	gate    *accept.Gate                  // between the two
	path    atomic.Pointer[unixsock.Path] // removed when the listener closes
	metrics *listenerMetrics
	conns   connSet

	stop   chan struct{} // closed to stop the listener
	linger time.Duration // how long pending input is still read while stopping
	// acceptUntil is when a stopping listener accepts its last connections; set
	// before stop is closed.
	acceptUntil time.Time
	halting     sync.Once
	paused      atomic.Pointer[pause]
	adopting    sync.Mutex // held while stop is closed, and while a connection is adopted or a pause ends
	ending      sync.Once
	accepter    sync.WaitGroup
	readers     sync.WaitGroup
	streams     sync.WaitGroup
	closing     sync.Once
}

// goodUnixQueue is the recommended queue length of a unix socket, in datagrams.
const goodUnixQueue = 512

// bind opens the sockets of one listener. It appends messages to log to logs.
func bind(cfg ListenerConfig, logs *[]message) (l *listener, err error) {
	addr, err := parseAddress(cfg.Address)
	if err != nil {
		return nil, err
	}
	l = &listener{cfg: cfg, addr: addr, stop: make(chan struct{}), linger: drainTotal}
	defer func() {
		if err != nil {
			l.close()
			l, err = nil, bindError(cfg.Address, addr, err)
		}
	}()
	if addr.framing == datagrams {
		err = l.bindPackets()
	} else {
		err = l.bindStream()
	}
	if err != nil {
		return l, err
	}
	l.name = cfg.Name
	l.name = cmp.Or(l.name, l.local)
	if n := unixQueue(); addr.network == "unixgram" && n > 0 && n < goodUnixQueue {
		*logs = append(*logs, message{slog.LevelInfo, "statsd: few datagrams may wait in a unix socket before senders block", []any{
			"listener", l.name, "datagrams", n, "hint", fmt.Sprint("before the start: sysctl -w net.unix.max_dgram_qlen=", goodUnixQueue)}})
	}
	for _, so := range l.sockets {
		if so.granted, err = tuneSocket(so.conn, cfg.RcvBuf); err != nil {
			return l, err
		}
		if so.raw, err = so.conn.SyscallConn(); err != nil {
			return l, err
		}
		if q, ok := queue(so.raw); ok {
			so.drops.last = q.dropped // of an inherited socket: counted by its previous owner
		}
		if so.batch, err = newBatch(so.conn, cfg.PacketBytes); err != nil {
			return l, err
		}
		if so.granted < cfg.RcvBuf {
			*logs = append(*logs, message{slog.LevelWarn, "statsd: the receive buffer is smaller than asked for; bursts may be lost", []any{
				"listener", l.name, "asked", cfg.RcvBuf, "granted", so.granted, "hint", fmt.Sprint(rcvbufHint, cfg.RcvBuf)}})
			logs = new([]message) // once for all sockets of a listener
		}
	}
	return l, nil
}

// bindError explains why an address cannot be bound.
func bindError(text string, a address, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && !a.unix():
		_, port, _ := net.SplitHostPort(a.location)
		flags := "-lntp"
		if a.framing == datagrams {
			flags = "-lnup"
		}
		return fmt.Errorf("statsd: %q: another process uses the port (ss %s 'sport = :%s' shows it): %w", text, flags, port, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("statsd: %q: no permission for this port or directory: %w", text, err)
	}
	return fmt.Errorf("statsd: %q: %w", text, err)
}

// bindPackets opens the datagram sockets of l.
func (l *listener) bindPackets() error {
	for _, f := range l.cfg.Sockets {
		c, err := net.FilePacketConn(f)
		if err != nil {
			return err
		}
		pc, ok := c.(packetConn)
		if !ok || c.LocalAddr().Network() == "unixgram" != l.addr.unix() {
			return errors.Join(fmt.Errorf("the inherited socket %s is of another kind", f.Name()), c.Close())
		}
		l.addSocket(pc)
	}
	if len(l.sockets) > 0 {
		return nil
	}
	if l.addr.unix() {
		return l.bindUnixgram()
	}
	return l.bindUDP()
}

func (l *listener) addSocket(c packetConn) {
	if l.local == "" {
		l.local = l.addr.bound(c.LocalAddr())
	}
	l.sockets = append(l.sockets, &socket{conn: c})
}

// bindUDP opens one socket per reader on the same port.
func (l *listener) bindUDP() error {
	place := l.addr.location
	share := l.cfg.Readers > 1 || l.cfg.ShareUDP
	if share && !l.cfg.ShareUDP {
		// A socket that shares its port does not detect other processes that
		// share it too, so first bind a socket that does not share.
		c, err := net.ListenPacket(l.addr.network, place)
		if err != nil {
			return err
		}
		place = c.LocalAddr().String()
		if err := c.Close(); err != nil {
			return err
		}
	}
	var lc net.ListenConfig
	if share {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			if ctl := c.Control(func(fd uintptr) { err = sharePort(fd) }); ctl != nil {
				return ctl
			}
			return err
		}
	}
	for range l.cfg.Readers {
		c, err := lc.ListenPacket(context.Background(), l.addr.network, place)
		if err != nil {
			return err
		}
		place = c.LocalAddr().String()
		l.addSocket(c.(*net.UDPConn))
	}
	return nil
}

func (l *listener) bindUnixgram() error {
	if !l.addr.abstract() {
		if err := clearPath(l.addr); err != nil {
			return err
		}
	}
	c, err := privately(l.cfg.Mode).ListenPacket(context.Background(), "unixgram", l.addr.location)
	if err != nil {
		return err
	}
	l.addSocket(c.(*net.UnixConn))
	return l.claim()
}

// bindStream opens the accepting socket of l.
func (l *listener) bindStream() (err error) {
	switch {
	case len(l.cfg.Sockets) > 0:
		f := l.cfg.Sockets[0]
		if l.accept, err = net.FileListener(f); err != nil {
			return err
		}
		if l.accept.Addr().Network() == "unix" != l.addr.unix() {
			return fmt.Errorf("the inherited socket %s is of another kind", f.Name())
		}
	case l.addr.unix():
		if !l.addr.abstract() {
			if err := clearPath(l.addr); err != nil {
				return err
			}
		}
		if l.accept, err = privately(l.cfg.Mode).Listen(context.Background(), "unix", l.addr.location); err != nil {
			return err
		}
		l.accept.(*net.UnixListener).SetUnlinkOnClose(false) // see path
		if err := l.claim(); err != nil {
			return err
		}
	default:
		lc := net.ListenConfig{KeepAlive: time.Minute}
		if l.accept, err = lc.Listen(context.Background(), l.addr.network, l.addr.location); err != nil {
			return err
		}
	}
	l.local, l.plain, l.gate = l.addr.bound(l.accept.Addr()), l.accept, accept.NewGate(l.accept)
	l.accept = l.gate
	if l.cfg.TLS != nil {
		l.accept = tls.NewListener(l.accept, l.cfg.TLS)
	}
	return nil
}

// claim sets the permissions of the socket at l's path and records it.
func (l *listener) claim() error {
	if l.addr.abstract() {
		return nil
	}
	p, err := unixsock.Claim(l.addr.location)
	if err != nil {
		return err
	}
	l.path.Store(p)
	return setRights(l.addr.location, &l.cfg)
}

// takePath takes ownership of the path of an inherited socket. A server that
// does not reach Run leaves the path to its predecessor.
func (l *listener) takePath() {
	if !l.addr.unix() || l.addr.abstract() || !l.cfg.TakePath || len(l.cfg.Sockets) == 0 {
		return
	}
	if p, err := unixsock.Claim(l.addr.location); err == nil { // otherwise there is nothing to remove
		l.path.Store(p)
	}
}

// close closes the sockets of l and removes its path.
func (l *listener) close() { l.closing.Do(l.closeAll) }

func (l *listener) closeAll() {
	for _, so := range l.sockets {
		_ = so.conn.Close() // nothing was written
	}
	if l.accept != nil {
		_ = l.accept.Close()
	}
	for _, f := range l.cfg.Sockets {
		_ = f.Close()
	}
	l.path.Load().Remove()
}
