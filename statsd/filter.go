package statsd

import (
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Filters select the received samples to keep, before mapping rules. Names are
// matched as received, without tags. The zero value keeps everything.
type Filters struct {
	// Allow reports whether samples with a name are kept, unless Deny drops them.
	// Nil keeps all.
	Allow func(name string) bool
	// Deny reports whether samples with a name are dropped. Nil drops none.
	Deny func(name string) bool
	// Tags remove tags. All that match a name apply.
	Tags []TagFilter
	// Values limit the different values of tags.
	Values []TagValues
}

// TagFilter removes tags.
type TagFilter struct {
	Names func(name string) bool // nil: all
	Drop  []string               // keys of removed tags
	Keep  []string               // keys of the only tags that stay; empty: all others stay
}

// TagValues limits the values of a tag.
type TagValues struct {
	Key   string
	Max   int    // number of values, the first ones received, that are kept
	Other string // replaces further values
}

// valueFilter is the state of the filters of values.
type valueFilter struct {
	memory *memory
	rules  []TagValues

	mu    sync.Mutex // guards known
	known []map[string]bool
}

func newValueFilter(rules []TagValues, m *memory) *valueFilter {
	f := &valueFilter{memory: m, rules: rules}
	for range rules {
		f.known = append(f.known, make(map[string]bool))
	}
	return f
}

// limit replaces the values in tgs that exceed a limit, and reports whether there
// were any. Unless learn is set it does not remember new values.
func (f *valueFilter) limit(tgs []tags.Tag, learn bool) (replaced bool) {
	for i := range f.rules {
		rule := &f.rules[i]
		at := slices.IndexFunc(tgs, func(t tags.Tag) bool { return t.Name == rule.Key })
		if at >= 0 && tgs[at].Value != rule.Other && !f.holds(i, tgs[at].Value, learn) {
			tgs[at].Value = rule.Other
			replaced = true
		}
	}
	return replaced
}

// holds reports whether a value is among the first values of rule i.
func (f *valueFilter) holds(i int, value string, learn bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.known[i]; known[value] || len(known) < f.rules[i].Max && !learn {
		return true
	} else if len(known) < f.rules[i].Max && f.memory.reserve(len(value)+tagValueCost) {
		known[value] = true
		return true
	}
	return false
}

// filter applies the filters to w. Unless learn is set it changes nothing else.
func (r *registry) filter(w *wanted, learn bool) {
	f := &r.cfg.Filters
	switch {
	case f.Deny != nil && f.Deny(w.name):
		w.rule, w.dropped = dropDenied, true
		return
	case f.Allow != nil && !f.Allow(w.name):
		w.rule, w.dropped = dropNotAllowed, true
		return
	}
	for _, tf := range f.Tags {
		if tf.Names == nil || tf.Names(w.name) {
			w.tags = slices.DeleteFunc(w.tags, func(t tags.Tag) bool {
				return slices.Contains(tf.Drop, t.Name) || len(tf.Keep) > 0 && !slices.Contains(tf.Keep, t.Name)
			})
		}
	}
	if r.tagLimits.limit(w.tags, learn) && learn {
		r.metrics.tagValuesReplaced.Inc()
	}
}
