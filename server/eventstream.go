package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/eventstream"
)

// CircuitStream configures the event stream for circuit breaker dashboards,
// /circuit_event_stream.
type CircuitStream struct {
	// Buckets is the number of flushes in the rolling window. Default 10.
	Buckets int
	// Clients is the maximum number of clients. Default 16; negative means no limit.
	Clients int
	// AnyOrigin lets pages of all origins read the stream. By default only callers
	// without an Origin header and the read origins of the admin port can.
	AnyOrigin bool
	// MaxPending returns the limit on pending requests to a cluster at the
	// default priority. The default uses the limits of the server's clusters,
	// and 1024 for others.
	MaxPending func(cluster string) uint64
}

// makeCircuitStream adds the sink that feeds the stream.
func (s *Server) makeCircuitStream() error {
	c := s.cfg.CircuitStream
	if c == nil {
		return nil
	}
	of := s.circuitOf
	if c.MaxPending != nil {
		of = func(statName string) (string, uint64) {
			name, _ := s.circuitOf(statName)
			return name, c.MaxPending(name)
		}
	}
	s.circuit = eventstream.New(eventstream.Config{
		Interval: s.cfg.Flush.Interval, Buckets: c.Buckets, Clients: c.Clients, Cluster: of,
	})
	s.cfg.Flush.Sinks = append(slices.Clip(s.cfg.Flush.Sinks), s.circuit)
	return nil
}

// addCircuitStream adds the endpoint. Without a stream, the endpoint only explains
// how to enable it, and a program with its own stream can remove it.
func (s *Server) addCircuitStream() error {
	e := admin.Endpoint{
		Path: "/circuit_event_stream", Group: "Stats", Aliases: []string{"/hystrix_event_stream"},
		Help: "stream events for a circuit breaker dashboard", Fixed: true, Serve: s.serveCircuitStream,
	}
	if s.circuit == nil {
		e.Hidden, e.Fixed = true, false
		e.Serve = func(*admin.Response, *admin.Request) error { return &admin.Error{Status: 404, Msg: circuitStreamOff} }
	}
	return s.admin.Handle(e)
}

// circuitStreamOff is the response of a server without the stream.
const circuitStreamOff = "the circuit event stream is off; an entry {name: circuit_stream} in stats_sinks turns it on\n"

// lastEventIDBytes limits the length of Last-Event-ID. Events of the stream have no
// ID, so the header has no effect.
const lastEventIDBytes = 64

func (s *Server) serveCircuitStream(w *admin.Response, r *admin.Request) error {
	id := r.Header("last-event-id")
	if len(id) > lastEventIDBytes || strings.Trim(id, "0123456789") != "" {
		return &admin.Error{Status: 400, Msg: "Last-Event-ID is not a number\n"}
	}
	client, err := s.circuit.Subscribe()
	if full, ok := errors.AsType[*eventstream.FullError](err); ok {
		w.SetHeader("retry-after", "5")
		return &admin.Error{Status: 503, Msg: fmt.Sprintf("%d event streams are open, which is the limit\n", full.Clients)}
	}
	if err != nil {
		return err
	}
	defer client.Close()
	w.SetType("text/event-stream")
	w.SetHeader("cache-control", "no-cache")
	if s.readsCircuitStream(r.Header("origin")) {
		w.SetHeader("access-control-allow-origin", "*")
		w.SetHeader("access-control-allow-headers", "Accept, Cache-Control, X-Requested-With, Last-Event-ID")
	}
	return client.Serve(w, w.Endless())
}

// readsCircuitStream reports whether pages of an origin can read the stream. Clients
// other than browsers send no origin.
func (s *Server) readsCircuitStream(origin string) bool {
	return origin == "" || s.cfg.CircuitStream.AnyOrigin ||
		slices.ContainsFunc(s.cfg.Admin.ReadOrigins, func(o string) bool {
			return strings.EqualFold(strings.TrimSuffix(o, "/"), origin)
		})
}
