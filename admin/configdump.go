package admin

import (
	"errors"
	"strings"

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
		filter, err := wholeName(expr, s.filters.limits)
		if err != nil {
			return w.plain(400, "INVALID_ARGUMENT: Error while parsing name_regex from "+expr+": "+err.Error())
		}
		names := partFilter{filter: filter, limits: s.filters.limits}
		q.Match = func(name string) (bool, error) { return names.match(name), names.err }
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

// wholeName compiles an expression that names have to match as a whole. The error text is
// only the reason.
func wholeName(expr string, l render.FilterLimits) (*render.Filter, error) {
	reason := func(err error) error {
		text := strings.TrimPrefix(err.Error(), "render: ")
		return errors.New(strings.TrimPrefix(text, "invalid regular expression: "))
	}
	// Compile it alone first: an invalid expression could become valid in brackets.
	if _, err := render.NewFilter(render.RE2, expr, l); err != nil {
		return nil, reason(err)
	}
	l.Length, l.Program = len(expr)+16, l.Program+16
	f, err := render.NewFilter(render.RE2, `\A(?:`+expr+`)\z`, l)
	if err != nil { // an open \Q quotes the bracket
		f, err = render.NewFilter(render.RE2, `\A(?:`+expr+`\E)\z`, l)
	}
	if err != nil {
		return nil, reason(err)
	}
	return f, nil
}
