package admin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
)

// liveRows returns the rows of live stats that have a source.
func (s *Server) liveRows() (rows []Endpoint) {
	if s.src.StatsStream != nil {
		rows = append(rows, s.streamRow())
	}
	if s.src.History != nil {
		rows = append(rows, s.historyRow())
	}
	return append(rows, s.explainRow(), s.exploreRow(), s.histogramRow())
}

func (s *Server) streamRow() Endpoint {
	params := []Param{}
	for _, p := range s.statsParams(true) {
		switch p.Name {
		case "usedonly", "filter", "invert_filter", "type", "hidden":
			params = append(params, p)
		}
	}
	return Endpoint{Path: "/stats/stream", Group: groupStats, Help: "stream the stats that change, as server-sent events", Serve: s.statsStream,
		Params: append(params,
			Param{Name: "ids", Help: "only stats with these ids of the stream: 17,2048, or 17.2031 with distances; can be repeated"},
			Param{Name: "interval_ms", Help: "least time between two events, 1000 to 30000"},
			Param{Name: "initial", Help: "0 leaves out the values at the beginning", Kind: ParamChoice, Choices: []string{"", "1", "0"}},
		)}
}

func (s *Server) statsStream(w *Response, r *Request) error {
	filtering := r.query.Value("filter") != ""
	if filtering {
		// The slot is for the names that are there already; later there are few.
		if !s.regexes.enter(s.session()) {
			return s.noFilter(w)
		}
	}
	leave := func() {
		if filtering {
			filtering = false
			s.regexes.leave()
		}
	}
	defer leave()
	req, err := s.parseStream(r)
	if err != nil {
		return err
	}
	req.Began = leave
	client, err := s.src.StatsStream.Subscribe(*req)
	var full *deltastream.FullError
	switch {
	case errors.As(err, &full):
		s.metrics.busy.Inc()
		w.SetHeader("retry-after", "5")
		return w.text(503, fmt.Sprintf("%d streams of stats are open, which is the limit\n", full.Clients))
	case errors.Is(err, deltastream.ErrLastEventID):
		return badRequest(strings.TrimPrefix(err.Error(), "deltastream: ") + "\n")
	case err != nil:
		return err
	}
	defer client.Close()
	w.SetType("text/event-stream")
	w.SetHeader("cache-control", "no-cache")
	closing := w.Endless()
	if r.method == "HEAD" {
		return w.Flush()
	}
	return client.Serve(w, closing)
}

// maxIDs limits the ids of a request.
const maxIDs = 2000

// parseIDs parses the parameters "ids": ids behind commas, and behind dots the distance
// to the one before.
func parseIDs(q Query) (refs []uint64, err error) {
	for _, pair := range q {
		if pair.Name != "ids" || pair.Value == "" {
			continue
		}
		for word := range strings.SplitSeq(pair.Value, ",") {
			last := uint64(0)
			for part := range strings.SplitSeq(word, ".") {
				n, err := strconv.ParseUint(part, 10, 53)
				if last += n; err != nil || last >= 1<<53 || len(refs) == maxIDs {
					return nil, badRequest(fmt.Sprintf("ids: %.40q is not an integer below 2^53, or there are more than %d\n", part, maxIDs))
				}
				refs = append(refs, last)
			}
		}
	}
	return refs, nil
}

// parseStream parses the parameters of /stats/stream.
func (s *Server) parseStream(r *Request) (*deltastream.Request, error) {
	q, err := s.parseStats(r.query, false)
	if err != nil {
		return nil, err
	}
	req := &deltastream.Request{Options: q.options, LastEventID: r.Header("last-event-id")}
	if req.Refs, err = parseIDs(r.query); err != nil {
		return nil, err
	}
	least, most := s.src.StatsStream.Interval(), deltastream.MaxRequestInterval
	if text := r.query.Value("interval_ms"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		req.Interval = time.Duration(n) * time.Millisecond
		if err != nil || req.Interval < least || req.Interval > most {
			return nil, badRequest(fmt.Sprintf("interval_ms: %.40q is not an integer from %d to %d\n", text, least.Milliseconds(), most.Milliseconds()))
		}
	}
	switch text := r.query.Value("initial"); text {
	case "", "1":
	case "0":
		req.ChangesOnly = true
	default:
		return nil, badRequest(fmt.Sprintf("initial: %.40q is neither 0 nor 1\n", text))
	}
	return req, nil
}
