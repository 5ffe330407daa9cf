package admin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram/hdr"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// tooExpensive is the answer to a regular expression that exceeded its budget, or err,
// a limit for one name.
func (s *Server) tooExpensive(parameter string, err error) error {
	text := parameter + " too expensive\n"
	var name *render.NameCostError
	if errors.As(err, &name) {
		text += fmt.Sprintf("a name took more than %v or %d backtracking slots; nested repetitions such as (a+)+ cost most\n", name.Match, name.Stack)
	} else if budget := s.limits.RegexBudget; budget > 0 {
		text += fmt.Sprintf("admin.limits.regex_budget allows %v of elapsed time; an expression that starts with ^ and a literal prefix costs less\n", budget)
	}
	return badRequest(text)
}

func (s *Server) stats(w *Response, r *Request) error { return s.showStats(w, r, false) }

func (s *Server) statsMetrics(w *Response, r *Request) error { return s.showStats(w, r, true) }

func (s *Server) showStats(w *Response, r *Request, metricsOnly bool) error {
	if r.query.Value("filter") != "" {
		if !s.regexes.enter(s.session()) {
			return s.noFilter(w)
		}
		defer s.regexes.leave()
	}
	q, err := s.parseStats(r.query, metricsOnly)
	if e, ok := err.(*Error); ok && !metricsOnly && r.query.Value("format") == "html" {
		return s.badStatsPage(w, r, e)
	}
	if err != nil {
		return err
	}
	if err := q.negotiate(strings.Join(r.headers("accept"), ",")); err != nil {
		return err
	}
	if s.cfg.Flusher != nil && r.method != "HEAD" {
		s.cfg.Flusher.FlushForAdmin()
	}
	if !metricsOnly {
		values, err := s.parsePast(w, r.query)
		if err != nil {
			return err
		}
		if values != nil {
			if q.format != formatText && q.format != formatJSON {
				return badRequest("at, since and rate need format=text or format=json\n")
			}
			q.options.Past = values
		}
	}
	q.options.Endpoints = s.endpoints
	if q.options.Buckets == render.HDR {
		q.options.HDR = new(hdr.Encoder).Append
	}
	err = s.render(w, r, q)
	if !errors.Is(err, render.ErrTooExpensive) {
		return err
	}
	return s.tooExpensive("filter", err)
}

// noFilter answers a request whose expression got no slot.
func (s *Server) noFilter(w *Response) error {
	s.metrics.busy.Inc()
	w.SetHeader("retry-after", "1")
	return w.text(503, "too many filters are at work\n")
}

// endpoints calls yield with the hosts of clusters that show per-host statistics.
func (s *Server) endpoints(yield func(*render.Endpoint) bool) {
	var e render.Endpoint
	s.src.Clusters.Tracked(func(c *status.Cluster) bool {
		if c.Hosts == nil {
			return true
		}
		more := true
		c.Hosts(func(h *status.Host) bool {
			e.Cluster, e.Address = oneline.Clean(c.ObservabilityName), oneline.Clean(h.Pipe)
			if h.Address.IsValid() {
				e.Address = h.Address.String()
			}
			e.Stats = e.Stats[:0]
			healthy := render.EndpointStat{Name: "healthy", Gauge: true}
			for _, st := range h.Stats {
				if st.Name != healthy.Name {
					e.Stats = append(e.Stats, render.EndpointStat(st))
				}
			}
			if h.Health.Health() == status.Healthy {
				healthy.Value = 1
			}
			e.Stats = append(e.Stats, healthy)
			more = yield(&e)
			return more
		})
		return more
	})
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
		w.SetType(q.exposition.ContentType() + q.options.Escaping.Parameter())
		switch q.exposition {
		case render.FormatOpenMetrics:
			return render.OpenMetrics(w, s.store, q.options)
		case render.FormatProtobuf:
			return render.Protobuf(w, s.store, q.options)
		}
		return render.Exposition(w, s.store, q.options)
	}
	return render.Text(w, s.store, q.options)
}
