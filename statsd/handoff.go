package statsd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// A successor process can replace a server without a gap. It gets duplicates of
// the sockets (Sockets), so that both processes read input, each datagram and
// each connection going to a single worker. Then the old server stops using them
// (HandOver). It keeps its open connections until it gives them away too
// (TakeConnections) or stops.

// ListenerSockets holds the sockets of one listener.
type ListenerSockets struct {
	Address string // as configured
	Files   []*os.File
}

// Sockets returns duplicates of the sockets of all listeners that were not
// stopped, in the order of the configuration. The caller closes them. From then
// on the server leaves the paths of its unix sockets to the successor.
func (s *Server) Sockets() (all []ListenerSockets, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != listening && s.state != running {
		return nil, errors.New("statsd: a server that does not listen has no sockets")
	}
	defer func() {
		if err != nil {
			for _, l := range all {
				for _, f := range l.Files {
					_ = f.Close() // a duplicate
				}
			}
			all = nil
		}
	}()
	for _, l := range s.listeners {
		if l.stopping() {
			continue
		}
		ls := ListenerSockets{Address: l.cfg.Address}
		var conns []syscall.Conn
		for _, so := range l.sockets {
			conns = append(conns, so.conn)
		}
		if c, ok := l.plain.(syscall.Conn); ok {
			conns = append(conns, c)
		}
		for _, c := range conns {
			f, err := duplicate(c, l.name)
			if err != nil {
				all = append(all, ls)
				return all, fmt.Errorf("statsd: %q: %w", l.cfg.Address, err)
			}
			ls.Files = append(ls.Files, f)
		}
		all = append(all, ls)
	}
	return all, nil
}

// duplicate returns another descriptor of a socket.
func duplicate(c syscall.Conn, name string) (*os.File, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(of uintptr) { fd, dupErr = duplicateFD(of) })
	if err = errors.Join(err, dupErr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Pause stops accepting connections and reading datagrams, but keeps the sockets
// open, so that Resume can take them up again. Connections continue.
func (s *Server) Pause() {
	for _, l := range s.snapshotListeners() {
		l.paused.CompareAndSwap(nil, &pause{make(chan struct{})})
		if l.gate != nil {
			l.gate.Shut()
		}
		for _, so := range l.sockets {
			_ = so.conn.SetReadDeadline(time.Unix(1, 0)) // wakes its reader
		}
	}
}

// Resume ends a Pause.
func (s *Server) Resume() {
	for _, l := range s.snapshotListeners() {
		l.resume()
	}
}

func (l *listener) resume() {
	l.adopting.Lock() // the deadlines of a listener that is closed stay
	defer l.adopting.Unlock()
	p := l.paused.Swap(nil)
	if p == nil || l.stopping() {
		return
	}
	for _, so := range l.sockets {
		_ = so.conn.SetReadDeadline(time.Time{}) // fails only if it is closed
	}
	close(p.resumed)
	if l.gate != nil {
		l.gate.Open()
	}
}

// pause is a pause of a listener.
type pause struct{ resumed chan struct{} }

// wait waits for the end of a pause or of l. It reports false if there is no
// pause.
func (l *listener) wait() bool {
	p := l.paused.Load()
	if p == nil {
		return false
	}
	select {
	case <-p.resumed:
	case <-l.stop:
	}
	return true
}

// Relay returns the relay, or nil if there is none.
func (s *Server) Relay() *relay.Relay { return s.relay }

// HandOver closes the listeners for a successor that has their sockets, and
// returns when nothing is accepted or read any more. The paths of unix sockets
// stay. Connections continue.
func (s *Server) HandOver() {
	all := s.snapshotListeners()
	for _, l := range all {
		l.path.Store(nil)
		l.halt(false)
	}
	for _, l := range all {
		l.accepter.Wait()
		l.readers.Wait()
	}
}

// Connection is an open connection of a stream listener.
type Connection struct {
	Address string   // of the listener, as configured
	File    *os.File // the connection
	Read    []byte   // input that was read but not applied: part of a line or frame
}

// TakeConnections hands over all open connections without TLS and returns when
// none is left. take is called concurrently; it owns its argument, and the
// server no longer reads from that connection. If take returns false, or the
// system refuses, the server keeps the connection.
func (s *Server) TakeConnections(take func(Connection) bool) {
	give := func(st *stream) bool {
		f, err := duplicate(st.conn.(syscall.Conn), st.l.name) // others are kept
		if err != nil {
			return false
		}
		return take(Connection{st.l.cfg.Address, f, slices.Clone(st.buf[:st.n])})
	}
	for _, l := range s.snapshotListeners() {
		if l.accept == nil {
			continue
		}
		l.conns.taker.Store(&give)
		l.conns.rearm()
	}
	for _, l := range s.snapshotListeners() {
		for l.conns.leaving() {
			s.pause(retryPause)
		}
	}
}

// leaving reports whether a connection was not offered yet.
func (c *connSet) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for st := range c.conns {
		st.mu.Lock()
		kept := st.kept
		st.mu.Unlock()
		if c.taker.Load() != nil && !kept {
			return true
		}
	}
	return false
}

// handOver gives st away if that is requested, and reports whether it did.
func (st *stream) handOver() bool {
	give := st.l.conns.taker.Load()
	st.mu.Lock()
	asked := give != nil && !st.kept
	st.mu.Unlock()
	if !asked {
		return false
	}
	if (*give)(st) {
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.kept, st.armed = true, true // so that the deadline is cleared
	return false
}

// Adopt serves a connection that another server has handed over, and closes the
// file. If no stream listener has its address, Adopt closes the connection and
// returns an error.
func (s *Server) Adopt(c Connection) error {
	conn, err := net.FileConn(c.File)
	_ = c.File.Close() // conn is a duplicate of it
	if err != nil {
		return fmt.Errorf("statsd: connection of %q: %w", c.Address, err)
	}
	for _, l := range s.snapshotListeners() {
		if l.cfg.Address == c.Address && l.accept != nil && l.cfg.TLS == nil && s.adopt(l, conn, c.Read) {
			return nil
		}
	}
	_ = conn.Close() // unread
	return fmt.Errorf("statsd: connection of %q: no listener has its address", c.Address)
}

// adopt serves conn as a connection of l unless l is stopping. It was admitted
// before, so no limit applies.
func (s *Server) adopt(l *listener, conn net.Conn, read []byte) bool {
	l.adopting.Lock()
	defer l.adopting.Unlock()
	if l.stopping() {
		return false
	}
	st := s.newStream(l, conn, read)
	l.conns.take(st)
	st.start()
	return true
}

// Connections returns the number of open connections.
func (s *Server) Connections() (n int) {
	for _, l := range s.snapshotListeners() {
		l.conns.mu.Lock()
		n += len(l.conns.conns)
		l.conns.mu.Unlock()
	}
	return n
}

// imported returns the series of a stat that another server exports. It returns
// false if that is not a received stat.
func (s *Server) imported(h *store.ExportedStat) (w wanted, ok bool) {
	w = wanted{name: h.Name, tags: slices.Clone(h.Tags), kept: s.registry.unruled}
	if p := s.registry.scope.Prefix(); p != "" {
		if w.name, ok = strings.CutPrefix(w.name, p+"."); !ok {
			return w, false
		}
	}
	return w, h.Network && w.name != ""
}

// IsSet reports whether an exported gauge is the count of a set. The members
// are not exported, so the count should not be either.
func (s *Server) IsSet(h *store.ExportedStat) bool {
	w, ok := s.imported(h)
	if !ok {
		return false
	}
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	mark, _ := r.scope.Marked(w.name, w.tags...)
	return mark != 0 && r.cells.at(mark-1).group == sets
}

// Import returns the *store.Counter or *store.FloatGauge for a received stat
// that another server exports, creating it as a sample would. It returns nil if
// the stat cannot exist here.
func (s *Server) Import(h *store.ExportedStat) any {
	w, ok := s.imported(h)
	switch {
	case !ok:
		return nil
	case h.Kind == store.KindCounter:
		w.group, w.typ = counters, line.Counter
	case h.Kind == store.KindGauge && h.Fractional:
		w.group, w.typ = gauges, line.Gauge
	default:
		return nil
	}
	r, name := s.registry, w.name
	r.mu.Lock()
	defer r.mu.Unlock()
	x, known, reason := r.place(&w, func(*store.Counter, report.Conflict) {})
	if reason != line.OK || w.name != name {
		return nil // the name belongs to another kind here
	}
	if !known {
		if r.live >= r.cfg.Limits.Series {
			return nil
		}
		f, err := r.make(&w, ordinary)
		if err != nil {
			return nil
		}
		r.live++
		x = f.number
	}
	if c := r.cells.at(x); c.group == counters {
		return c.counter()
	} else {
		return c.gauge()
	}
}

// Inherit gives the server the sockets of a predecessor, before Listen. A
// listener without sockets uses the first entry with its address; unused
// sockets are closed. Inherit returns the number of listeners that got sockets.
func (s *Server) Inherit(all []ListenerSockets) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = slices.Clone(all)
	for i := range s.cfg.Listeners {
		l := &s.cfg.Listeners[i]
		at := slices.IndexFunc(all, func(o ListenerSockets) bool { return o.Address == l.Address && len(o.Files) > 0 })
		if s.state != made || len(l.Sockets) > 0 || at < 0 {
			continue
		}
		l.Sockets, l.TakePath = all[at].Files, true
		all = slices.Delete(all, at, at+1)
		n++
	}
	for _, o := range all {
		for _, f := range o.Files {
			_ = f.Close() // a duplicate
		}
	}
	return n
}
