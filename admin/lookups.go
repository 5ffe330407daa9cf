package admin

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/store"
)

// lookups lists the names of stats that were looked up by name.
func (s *Server) lookups(w *Response, _ *Request) error {
	symbols := s.store.Symbols()
	var out []byte
	if symbols.RecentEnabled() {
		out = append(out, "   Count Lookup\n"...)
		for _, l := range symbols.Recent() {
			out = fmt.Appendf(out, "%8d %s\n", l.Count, l.Name)
		}
	} else {
		out = append(out, "Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n"...)
	}
	_, err := w.Write(fmt.Appendf(out, "\ntotal: %d\n", symbols.RecentTotal()))
	return err
}

func (s *Server) lookupsEnable(w *Response, _ *Request) error {
	s.store.Symbols().EnableRecent()
	return w.text(200, "OK\n")
}

func (s *Server) lookupsDisable(w *Response, _ *Request) error {
	s.store.Symbols().DisableRecent()
	return w.text(200, "OK\n")
}

func (s *Server) lookupsClear(w *Response, _ *Request) error {
	s.store.Symbols().ClearRecent()
	return w.text(200, "OK\n")
}

// resetCounters resets all counters, or those that a filter selects.
func (s *Server) resetCounters(w *Response, r *Request) error {
	return s.withFilter(w, r, func(f *partFilter) error {
		if f.filter == nil {
			s.store.ResetCounters()
			return w.text(200, "OK\n")
		}
		v := s.store.View()
		defer v.Close()
		for c := v.ByName(store.Scalars); f.err == nil && c.Next(); {
			if c.Kind() == store.KindCounter && f.match(c.Name()) {
				c.ResetCounter()
			}
		}
		return w.text(200, "OK\n")
	})
}
