package server

import (
	"strconv"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/tap"
	"github.com/statsd-admin/statsd-admin/statsd"
)

// The ids by which requests to /tap name what they want to see.
const (
	tapStatsD = "statsd" // accepted lines
	tapAdmin  = "admin"  // requests to the admin port
)

// makeTap prepares what /tap shows.
func (s *Server) makeTap() error {
	if !s.cfg.Tap {
		return nil
	}
	s.tap = tap.New(tap.Config{Dropped: s.store.Root().Counter("tap.traces_dropped")})
	return nil
}

// Tap returns the tap, to which a proxy adds its own sources. It is nil unless
// the configuration has one.
func (s *Server) Tap() *tap.Tap { return s.tap }

// tapLines lets the StatsD input be tapped.
func (s *Server) tapLines(cfg *statsd.Config) {
	if s.tap == nil {
		return
	}
	source := s.tap.Register(tapStatsD)
	cfg.Tap = func() func(statsd.Tapped) {
		session := source.Session()
		if session == nil {
			return nil
		}
		return func(l statsd.Tapped) {
			session.Socket(tap.Read{Local: l.Local, Remote: l.Sender, Data: l.Line})
		}
	}
}

// tapRequests lets the requests to the admin port be tapped. It returns what
// takes them besides next, which may be nil.
func (s *Server) tapRequests(next func(admin.Access)) func(admin.Access) {
	if s.tap == nil {
		return next
	}
	source := s.tap.Register(tapAdmin)
	return func(a admin.Access) {
		if session := source.Session(); session != nil {
			session.HTTP(exchangeOf(&a))
		}
		if next != nil {
			next(a)
		}
	}
}

// exchangeOf returns what a tap shows of a request. Fields that may hold
// secrets are left out.
func exchangeOf(a *admin.Access) tap.Exchange {
	x := tap.Exchange{
		Time: a.Time, Remote: a.Peer,
		Request:  []tap.Field{{Name: ":method", Value: a.Method}, {Name: ":path", Value: a.Target}, {Name: ":authority", Value: a.Host}},
		Response: []tap.Field{{Name: ":status", Value: strconv.Itoa(a.Status)}},
	}
	add := func(to *[]tap.Field, name string, get func(string) string) {
		if get == nil {
			return
		}
		if v := get(name); v != "" {
			*to = append(*to, tap.Field{Name: name, Value: v})
		}
	}
	for _, name := range []string{"user-agent", "accept", "content-type", "content-length"} {
		add(&x.Request, name, a.RequestHeader)
	}
	for _, name := range []string{"content-type", "content-encoding"} {
		add(&x.Response, name, a.ResponseHeader)
	}
	return x
}

// addTap adds the endpoint.
func (s *Server) addTap() error {
	if s.tap == nil {
		return nil
	}
	return s.admin.Handle(admin.Endpoint{
		Path: "/tap", Help: "show what the server takes in, as the body of the request asks for", Mutates: true, Fixed: true, Serve: s.serveTap,
	})
}

func (s *Server) serveTap(w *admin.Response, r *admin.Request) error {
	session, err := s.tap.Attach(r.Body())
	if err != nil {
		return &admin.Error{Status: 400, Msg: err.Error()}
	}
	defer session.Close()
	return session.Serve(w, w.Endless())
}
