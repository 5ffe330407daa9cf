package admin

import (
	"errors"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/render"
)

// typePlain is the content type of /config_dump errors.
const typePlain = "text/plain"

// plain answers with a /config_dump error.
func (w *Response) plain(status int, body string) error {
	w.SetType(typePlain)
	return w.text(status, body)
}

// redactsUntyped reports whether a response hides data that only looks secret.
func (s *Server) redactsUntyped(r *Request) bool { return !s.cfg.ShowUntyped || r.bundled }

func (s *Server) configDump(w *Response, r *Request) error {
	q := dump.Query{
		Endpoints: r.query.Has("include_eds"), Resource: r.query.Value("resource"), Mask: r.query.Value("mask"),
		Untyped: s.redactsUntyped(r),
	}
	if expr := r.query.Value("name_regex"); expr != "" {
		if !s.regexes.enter(s.session()) {
			return s.noFilter(w)
		}
		defer s.regexes.leave()
		names, err := newNameFilter(expr, s.filters.limits)
		if err != nil {
			return w.plain(400, "INVALID_ARGUMENT: Error while parsing name_regex from "+expr+": "+err.Error())
		}
		q.Match = names.match
	}
	w.SetType(typeJSON)
	err := s.writeDump(w, q)
	var refused *dump.Error
	switch {
	case errors.As(err, &refused):
		return w.plain(refused.Status, refused.Text)
	case errors.Is(err, render.ErrTooExpensive):
		return s.tooExpensive("name_regex", err)
	}
	return err
}

func (s *Server) writeDump(w *Response, q dump.Query) error {
	switch {
	case s.src.ConfigDump != nil:
		return s.src.ConfigDump.Write(w, q)
	case q.Resource != "":
		return dump.NotFound(q.Resource)
	case strings.Trim(q.Mask, ",") != "":
		return dump.Unfit(q.Mask)
	}
	_, err := w.WriteString("{}\n")
	return err
}

// nameFilter selects names that an expression matches as a whole. It serves one
// request and enforces its budget.
type nameFilter struct {
	filter *render.Filter
	now    func() time.Time
	budget time.Duration // the rest of it
	bound  bool          // there is a budget
}

// newNameFilter compiles an expression. The error text is only the reason.
func newNameFilter(expr string, l render.FilterLimits) (*nameFilter, error) {
	reason := func(err error) error {
		text := strings.TrimPrefix(err.Error(), "render: ")
		return errors.New(strings.TrimPrefix(text, "invalid regular expression: "))
	}
	// Compile it alone first: an invalid expression could become valid in brackets.
	if _, err := render.NewFilter(render.RE2, expr, l); err != nil {
		return nil, reason(err)
	}
	whole := l
	whole.Length, whole.Program = len(expr)+16, l.Program+16
	f, err := render.NewFilter(render.RE2, `\A(?:`+expr+`)\z`, whole)
	if err != nil { // an open \Q quotes the bracket
		f, err = render.NewFilter(render.RE2, `\A(?:`+expr+`\E)\z`, whole)
	}
	if err != nil {
		return nil, reason(err)
	}
	now := l.Now
	if now == nil {
		now = time.Now
	}
	return &nameFilter{f, now, l.Budget, l.Budget > 0}, nil
}

// match reports whether a name is selected. The error is
// [render.ErrTooExpensive] once matching took longer than the budget.
func (f *nameFilter) match(name string) (bool, error) {
	begin := f.now()
	ok, err := f.filter.Match(name)
	f.budget -= f.now().Sub(begin)
	if err == nil && f.bound && f.budget < 0 {
		err = render.ErrTooExpensive
	}
	return ok, err
}
