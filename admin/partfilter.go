package admin

import (
	"time"

	"github.com/statsd-admin/statsd-admin/render"
)

// partFilter is the filter parameter of an endpoint other than the stats. The zero
// value matches all names.
type partFilter struct {
	filter *render.Filter
	until  time.Time // end of the budget; zero: none
	err    error     // once set, nothing matches
}

// withFilter calls f with the filter of a request, once a slot is free.
func (s *Server) withFilter(w *Response, r *Request, f func(*partFilter) error) error {
	n := new(partFilter)
	pattern := r.query.Value("filter")
	if pattern == "" {
		return f(n)
	}
	if !s.regexes.enter(s.closing) {
		return s.noFilter(w)
	}
	defer s.regexes.leave()
	var err error
	if n.filter, err = s.filter(pattern, false); err != nil {
		return err
	}
	if s.limits.RegexBudget > 0 {
		n.until = time.Now().Add(s.limits.RegexBudget)
	}
	err = f(n)
	if n.err != nil {
		return s.tooExpensive("filter", n.err)
	}
	return err
}

func (n *partFilter) match(name string) bool {
	if n.filter == nil {
		return true
	}
	if n.err != nil {
		return false
	}
	var ok bool
	if ok, n.err = n.filter.Match(name); n.err == nil && !n.until.IsZero() && time.Now().After(n.until) {
		n.err = render.ErrTooExpensive
	}
	return ok && n.err == nil
}
