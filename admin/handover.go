package admin

import (
	"errors"
	"maps"
	"net"
	"os"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
)

// Inherit makes Listen use the socket of a predecessor with the same address.
// The server takes ownership of the file.
func (s *Server) Inherit(socket *os.File) {
	s.inherit(&s.port, socket)
}

// InheritMetrics is Inherit for the socket of Config.MetricsAddress.
func (s *Server) InheritMetrics(socket *os.File) { s.inherit(&s.metricsPort, socket) }

func (s *Server) inherit(p *socket, file *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.inherited != nil {
		_ = p.inherited.Close()
	}
	p.inherited = file
}

// inheritedListener returns the listener of the socket that p inherited, or nil.
func (s *Server) inheritedListener(p *socket, address string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.inherited == nil {
		return nil, nil
	}
	file := p.inherited
	p.inherited = nil
	addr, _ := parseAddress(address) // has no path if it is wrong
	return inherited(file, addr.unix)
}

// File returns a duplicate of the socket bound by Listen, for the successor.
func (s *Server) File() (*os.File, error) { return s.file(&s.port) }

// MetricsFile is File for the socket of Config.MetricsAddress.
func (s *Server) MetricsFile() (*os.File, error) { return s.file(&s.metricsPort) }

func (s *Server) file(p *socket) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.gate == nil || s.closed {
		return nil, errors.New("admin: not listening")
	}
	return p.gate.File()
}

// KeepPath sets whether Close leaves the path of a unix socket to a successor.
func (s *Server) KeepPath(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.port.gate == nil {
		return
	}
	if u, ok := s.port.gate.Listener.(*unixsock.Listener); ok {
		u.Keep(keep)
	}
}

// Pause stops accepting connections, closes idle ones and lets the others
// finish their request, as Close does. The socket stays open until Resume.
// Pause does not wait.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range []*socket{&s.port, &s.metricsPort} {
		if p.gate != nil {
			p.gate.Shut()
		}
	}
	s.endSessionLocked()
	s.connections.hurry(s.limits.ShutdownTime)
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !isClosed(s.session()) {
		return
	}
	s.connections.endHurry()
	s.newSession()
	for _, p := range []*socket{&s.port, &s.metricsPort} {
		if p.gate != nil {
			p.gate.Open()
		}
	}
}

// session returns a channel that is closed when requests that start now should end.
func (s *Server) session() <-chan struct{} { return *s.sessions.Load() }

func (s *Server) newSession() {
	session := make(chan struct{})
	s.sessions.Store(&session)
}

// endSessionLocked makes running requests end. s.mu must be held.
func (s *Server) endSessionLocked() {
	if session := *s.sessions.Load(); !isClosed(session) {
		close(session)
	}
}

// hurry closes idle connections at once and the others after their current request,
// but no later than after grace. It does not wait.
func (s *connections) hurry(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endIdleLocked()
	late := maps.Clone(s.all)
	if grace > 0 && len(late) > 0 {
		s.hurried = append(s.hurried, late)
		time.AfterFunc(grace, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cutLocked(late)
		})
	}
}

// endHurry ends a hurry: requests that have not ended are not cut any more.
func (s *connections) endHurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, late := range s.hurried {
		clear(late)
	}
	s.hurried = nil
}
