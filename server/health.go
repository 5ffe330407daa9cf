package server

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/server/healthlistener"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// HealthListener is an address at which health checks are answered: as /ready
// does, for callers that have no business at the admin port. While inbound
// traffic drains, clients are asked to close connections; when inbound listeners are
// stopped, so is this one.
type HealthListener struct {
	Name string // among the listeners of the server; default "health"
	// Address is ip:port, unix:path or unix:@name.
	Address string
	// Mode is that of a unix socket. Default 0600.
	Mode fs.FileMode
	// HeaderPrefix is what the names of own header fields begin with. Default
	// "x-proxy".
	HeaderPrefix string
	// Cluster is sent to clients in a header. Empty omits it.
	Cluster string
}

// makeHealth prepares the listeners for health checks.
func (s *Server) makeHealth() error {
	for _, h := range s.cfg.HealthListeners {
		if h.Name == "" {
			h.Name = "health"
		}
		name := oneline.Clean(h.Name)
		check, port := s.store.Scope("http."+name+".health_check"), s.store.Scope("listener."+name)
		l, err := healthlistener.New(healthlistener.Config{
			Name: h.Name, Address: h.Address, Mode: h.Mode, HeaderPrefix: h.HeaderPrefix, Cluster: h.Cluster,
			State: func() (string, bool) {
				state := s.life.State()
				return state.String(), state == lifecycle.Live
			},
			Closing: func() bool { return s.life.ShouldClose(true) },
			Stats: healthlistener.Stats{
				Requests: check.Counter("request_total"), Passed: check.Counter("ok"), Failed: check.Counter("failed"),
				Connections: port.Counter("downstream_cx_total"), Overflow: port.Counter("downstream_cx_overflow"),
				Active: port.Gauge("downstream_cx_active"),
			},
			Logger: s.logger("health"),
		})
		if err != nil {
			return err
		}
		s.health = append(s.health, l)
	}
	return nil
}

// HealthListeners returns the listeners for health checks.
func (s *Server) HealthListeners() []*healthlistener.Listener { return s.health }

// listenHealth binds the listeners for health checks.
func (s *Server) listenHealth() error {
	for _, l := range s.health {
		if err := l.Listen(); err != nil {
			return err
		}
		s.log.Info(fmt.Sprintf("health listener %s on %s", l.Name(), l.Addr()))
		err := s.listeners.Add(listeners.Listener{
			Name: l.Name(), Direction: listeners.Inbound, Stop: l.Stop,
			Addresses: []config.Address{listeners.FromNet(l.Addr())},
		})
		if err != nil {
			s.log.Warn("listener is not shown", "name", l.Name(), "error", err)
		}
	}
	return nil
}

// stopHealth stops the listeners for health checks.
func (s *Server) stopHealth() {
	for _, l := range s.health {
		l.Stop()
	}
}

// runHealth answers health checks until the group ends. While a server takes
// over, the one before answers.
func (s *Server) runHealth(g *group, failed func()) {
	for _, l := range s.health {
		g.run("health listener", failed, s.whenServing(l.Run, l.Stop))
	}
}

// healthSockets returns duplicates of the sockets for a successor.
func (s *Server) healthSockets() (all []hotrestart.Socket) {
	for _, l := range s.health {
		file, err := l.File()
		if err != nil {
			continue // it was stopped, or is not bound
		}
		all = append(all, hotrestart.Socket{Address: l.Key(), Files: []*os.File{file}})
	}
	return all
}

// inheritHealth takes the sockets that belong to listeners for health checks,
// and returns the others.
func (s *Server) inheritHealth(sockets []hotrestart.Socket) (rest []hotrestart.Socket) {
next:
	for _, socket := range sockets {
		for _, l := range s.health {
			if socket.Address == l.Key() && len(socket.Files) == 1 {
				l.Inherit(socket.Files[0])
				continue next
			}
		}
		rest = append(rest, socket)
	}
	return rest
}
