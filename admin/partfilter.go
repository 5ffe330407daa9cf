package admin

import "github.com/statsd-admin/statsd-admin/render"

// partFilter is the filter parameter of an endpoint other than the stats. The zero
// value matches all names.
type partFilter struct {
	filter *render.Filter
	limits render.FilterLimits // Budget: what is left of it, for matching
	err    error               // once set, nothing matches
}

// withFilter calls f with the filter of a request, once a slot is free.
func (s *Server) withFilter(w *Response, r *Request, f func(*partFilter) error) error {
	n := &partFilter{limits: s.filters.limits}
	pattern := r.query.Value("filter")
	if pattern == "" {
		return f(n)
	}
	if !s.regexes.enter(s.session()) {
		return s.noFilter(w)
	}
	defer s.regexes.leave()
	var err error
	if n.filter, err = s.filter(pattern, false); err != nil {
		return err
	}
	err = f(n)
	if n.err != nil {
		return s.tooExpensive("filter", n.err)
	}
	return err
}

func (n *partFilter) match(name string) bool {
	if n.filter == nil || n.err != nil {
		return n.err == nil
	}
	var ok bool
	began := n.limits.Now()
	ok, n.err = n.filter.Match(name)
	if n.limits.Budget -= n.limits.Now().Sub(began); n.err == nil && n.limits.Budget < 0 {
		n.err = render.ErrTooExpensive
	}
	return ok && n.err == nil
}
