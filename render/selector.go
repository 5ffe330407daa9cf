package render

import "github.com/statsd-admin/statsd-admin/store"

// Selector applies the options that select stats, for callers that write their
// own output. Only one goroutine can use a selector.
type Selector struct{ sel selection }

// NewSelector returns a selector for the stats that o selects.
func NewSelector(o Options) *Selector {
	o.run = nil
	s := &Selector{selection{o: &o}}
	s.Begin()
	return s
}

// Begin starts a new walk: the time budget of the filter starts over.
func (s *Selector) Begin() {
	s.sel.o.run = nil
	s.sel = s.sel.o.selection()
}

// ByName is v.ByName for stats that can be selected. The caller calls Shows for
// each, and checks the cursor's Err at the end, which can be [ErrTooExpensive].
func (s *Selector) ByName(v *store.View, set store.NameSet) store.Cursor {
	for _, k := range []store.Kind{store.KindCounter, store.KindGauge, store.KindText, store.KindHistogram} {
		if s.sel.o.wants(typeOf(k)) && store.SetOf(k) == set {
			return s.sel.byName(v, set)
		}
	}
	return store.Cursor{}
}

// Matches reports whether the options select the stat under c by kind and name,
// which never change. The error can be [ErrTooExpensive].
func (s *Selector) Matches(c *store.Cursor) (bool, error) {
	if !s.sel.o.wants(typeOf(c.Kind())) {
		return false, nil
	}
	if s.sel.filter == nil {
		return true, nil
	}
	return s.sel.filter.judge(c)
}

// Shows reports whether the options select a stat that Matches selects, or that
// comes from ByName, as it is now.
func (s *Selector) Shows(c *store.Cursor) bool {
	return s.sel.o.wants(typeOf(c.Kind())) && s.sel.shows(c) && (!s.sel.o.UsedOnly || c.Used())
}
