package admin

import (
	"fmt"
	"strconv"

	"github.com/statsd-admin/statsd-admin/render"
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
	return w.all(typeText, fmt.Appendf(out, "\ntotal: %d\n", symbols.RecentTotal()))
}

func (s *Server) lookupsEnable(w *Response, r *Request) error {
	return s.switchLookups(w, r, "on", s.store.Symbols().EnableRecent)
}

func (s *Server) lookupsDisable(w *Response, r *Request) error {
	return s.switchLookups(w, r, "off", s.store.Symbols().DisableRecent)
}

// switchLookups switches the recording of lookups on or off.
func (s *Server) switchLookups(w *Response, r *Request, to string, set func()) error {
	symbols := s.store.Symbols()
	if symbols.Fake() {
		return w.text(200, "OK\n") // without effect
	}
	from := "off"
	if symbols.RecentEnabled() {
		from = "on"
	}
	r.Sets(lookupSwitch)
	r.Changed(lookupSwitch, from, to)
	if !r.DryRun() {
		set()
	}
	return w.text(200, "OK\n")
}

func (s *Server) lookupsClear(w *Response, r *Request) error {
	symbols := s.store.Symbols()
	if r.DryRun() {
		r.Changed("recorded lookups", strconv.FormatUint(symbols.RecentTotal(), 10), "0")
		return nil
	}
	symbols.ClearRecent()
	return w.text(200, "OK\n")
}

// resetCounters resets all counters, or the ones a filter selects: none, if it is too
// expensive.
func (s *Server) resetCounters(w *Response, r *Request) error {
	return s.withFilter(w, r, func(f *partFilter) error {
		if f.filter == nil && !r.DryRun() {
			s.store.ResetCounters()
			return w.text(200, "OK\n")
		}
		v := s.store.View()
		defer v.Close()
		selected := render.NewSelector(render.Options{Filter: f.filter})
		each := func(visit func(*store.Cursor)) {
			selected.Begin()
			c := selected.ByName(v, store.Scalars)
			for c.Next() {
				if c.Kind() == store.KindCounter {
					visit(&c)
				}
			}
			f.err = c.Err()
		}
		nonzero := 0
		each(func(c *store.Cursor) { // after this, the filter knows all names
			if c.Float() != 0 {
				nonzero++
			}
		})
		switch {
		case f.err != nil:
			return nil
		case r.DryRun():
			r.Changed("nonzero counters", strconv.Itoa(nonzero), "0")
		default:
			each((*store.Cursor).ResetCounter)
		}
		return w.text(200, "OK\n")
	})
}
