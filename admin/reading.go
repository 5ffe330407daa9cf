package admin

import (
	"time"

	"github.com/statsd-admin/statsd-admin/admin/ui"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Sources returns the data behind the endpoints. Make changes through the
// endpoints, which check and record them.
func (s *Server) Sources() Sources { return s.src }

// Store returns the stats that the server shows.
func (s *Server) Store() *store.Store { return s.store }

// Product returns the product name.
func (s *Server) Product() string { return s.product }

// Mode returns the available part of the interface.
func (s *Server) Mode() Mode { return s.cfg.Mode }

// State returns the state that /ready shows.
func (s *Server) State() string { return s.src.State() }

// Now returns the time of the server's clock.
func (s *Server) Now() time.Time { return s.now() }

// Assets returns the assets of the pages.
func (s *Server) Assets() *ui.Assets { return s.assets }

// Permits reports whether path is an endpoint that the client of r may use in the
// server's mode.
func (s *Server) Permits(r *Request, path string) bool {
	e := s.table.Load().byPath[path]
	return e != nil && e.in(s.modeOf(r)) && s.permits(r, e)
}

func (s *Server) permits(r *Request, e *Endpoint) bool {
	return r.principal.Role >= e.needs() && (!e.Mutates || s.cfg.Mode != ModeReadOnly)
}

// Filtered calls f with the filter compiled from a pattern as /stats does, or
// with nil if the pattern is empty, once a slot of Limits.RegexParallel is
// free. The error is an [*Error]: status 400 for an invalid pattern, which
// wraps the error of [render.NewFilter], 503 without a slot. f must return
// [render.ErrTooExpensive] if the filter exceeds its budget.
func (s *Server) Filtered(pattern string, f func(*render.Filter) error) error {
	return s.FilteredBy(s.FilterEngine(), pattern, f)
}

// FilteredBy is Filtered with another engine.
func (s *Server) FilteredBy(engine render.Engine, pattern string, f func(*render.Filter) error) error {
	if pattern == "" {
		return f(nil)
	}
	if !s.regexes.enter(s.session()) {
		s.metrics.busy.Inc()
		return &Error{Status: 503, Msg: "too many filters are at work"}
	}
	defer s.regexes.leave()
	filter, err := s.filters.get(filterKey{engine, pattern, false})
	if err != nil {
		e := filterError(engine, err)
		e.Err = err
		return e
	}
	return f(filter)
}
