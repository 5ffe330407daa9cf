package server

import (
	"cmp"
	"io/fs"
	"os"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/server/healthlistener"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// HealthListener is a listener that answers health checks as /ready does, for clients
// without access to the admin port. While inbound traffic drains, it asks clients to
// close their connections; it stops together with the inbound listeners.
type HealthListener struct {
	Name string // listener name; default "health"
	// Address is ip:port, unix:path or unix:@name.
	Address string
	// Mode is the file mode of a unix socket. Default 0600.
	Mode fs.FileMode
	// HeaderPrefix is the prefix of the product's own header fields. Default
	// "x-proxy".
	HeaderPrefix string
	// Cluster is sent to clients in a header, unless empty.
	Cluster string
}

// makeHealth creates the health listeners.
func (s *Server) makeHealth() error {
	for _, h := range s.cfg.HealthListeners {
		h.Name = cmp.Or(h.Name, "health")
		name := oneline.Clean(h.Name)
		check, port := s.store.Own().Scope("http."+name+".health_check"), s.store.Own().Scope("listener."+name)
		check.Help(map[string]string{"request_total": "Health checks.", "ok": "Health checks that passed.", "failed": "Health checks that failed."})
		port.Help(map[string]string{
			"downstream_cx_total": "Accepted connections.", "downstream_cx_active": "Open connections.",
			"downstream_cx_overflow": "Connections refused because of the limit of the listener.",
		})
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

// HealthListeners returns the health listeners.
func (s *Server) HealthListeners() []*healthlistener.Listener { return s.health }

// listenHealth binds the health listeners.
func (s *Server) listenHealth() error {
	for _, l := range s.health {
		if err := l.Listen(); err != nil {
			return err
		}
		s.log.Info("health listener " + nameAt(l.Name(), l.Addr().String()))
		err := s.listeners.Add(listeners.Listener{
			Name: l.Name(), Direction: listeners.Inbound, Stop: l.Stop,
			Addresses: []config.Address{listeners.FromNet(l.Addr())},
		})
		if err != nil {
			s.log.Warn("listener cannot be listed", "name", l.Name(), "error", err)
		}
	}
	return nil
}

func (s *Server) stopHealth() {
	for _, l := range s.health {
		l.Stop()
	}
}

// healthSockets returns duplicates of the sockets for a successor.
func (s *Server) healthSockets() (all []hotrestart.Socket) {
	for _, l := range s.health {
		file, err := l.File()
		if err != nil {
			continue // stopped or not bound
		}
		all = append(all, hotrestart.Socket{Address: l.Key(), Files: []*os.File{file}})
	}
	return all
}

// inheritHealth takes the sockets of the health listeners and returns the others.
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
