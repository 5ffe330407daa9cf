package admin

import (
	"errors"
	"strings"

	"github.com/statsd-admin/statsd-admin/render"
)

// Content types of the exposition formats.
const (
	typeExposition  = "text/plain; version=0.0.4; charset=utf-8"
	typeOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

func (s *Server) stats(w *Response, r *Request) error { return s.showStats(w, r, false) }

func (s *Server) statsMetrics(w *Response, r *Request) error { return s.showStats(w, r, true) }

func (s *Server) showStats(w *Response, r *Request, metricsOnly bool) error {
	q, err := s.parseStats(r.query, metricsOnly)
	if err != nil {
		return err
	}
	if q.options.Filter != nil {
		if !s.regexes.enter(s.closing) {
			s.figures.busy.Inc()
			w.SetHeader("retry-after", "1")
			return w.text(503, "too many filters are at work\n")
		}
		defer s.regexes.leave()
	}
	if s.cfg.Flusher != nil {
		s.cfg.Flusher.FlushForAdmin()
	}
	if err := s.render(w, r, q); !errors.Is(err, render.ErrTooExpensive) {
		return err
	}
	return badRequest("filter too expensive\n")
}

func (s *Server) render(w *Response, r *Request, q *statsQuery) error {
	switch q.format {
	case formatJSON:
		w.SetType(typeJSON)
		return render.JSON(w, s.store, q.options)
	case formatHTML:
		w.SetType(typeHTML)
		return s.statsPage(w, r, q)
	case formatMetrics:
		if prefersOpenMetrics(r.headers("accept")) {
			w.SetType(typeOpenMetrics)
			return render.OpenMetrics(w, s.store, q.options)
		}
		w.SetType(typeExposition)
		return render.Exposition(w, s.store, q.options)
	}
	return render.Text(w, s.store, q.options)
}

// prefersOpenMetrics reports whether the values of Accept give OpenMetrics more
// weight than the text format, or the same and name it first.
func prefersOpenMetrics(accept []string) bool {
	open, text := 0.0, 0.0
	for _, value := range accept {
		for item := range strings.SplitSeq(value, ",") {
			name, parameters, _ := strings.Cut(item, ";")
			weight := mediaWeight(parameters)
			switch strings.ToLower(strings.Trim(name, " \t")) {
			case "application/openmetrics-text":
				if weight > text {
					open = max(open, weight)
				}
			case "text/plain", "text/*", "*/*":
				if weight > open {
					text = max(text, weight)
				}
			}
		}
	}
	return open > text
}

// mediaWeight returns the q of the parameters of a media type.
func mediaWeight(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		if name, _, _ := strings.Cut(p, "="); strings.EqualFold(strings.Trim(name, " \t"), "q") {
			if q, ok := parseWeight(p); ok {
				return q
			}
			return 0
		}
	}
	return 1
}
