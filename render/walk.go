package render

import (
	"bytes"

	"github.com/statsd-admin/statsd-admin/store"
)

// Walk visits the selected stats of all kinds in byte order of their full names.
// Options that concern the form of the output have no effect.
//
//	w := render.NewWalk(v, render.Options{UsedOnly: true})
//	for w.Next() {
//		buf = w.Stat().AppendName(buf)
//	}
//
// Only one goroutine can use a walk, and only while its view is open.
type Walk struct {
	o       Options
	streams [3]walkStream // text readouts, counters and gauges, histograms
	at      int           // the stream of the current stat, or -1
	err     error
}

// walkStream is the walk over one set of names.
type walkStream struct {
	sel  selection
	c    store.Cursor
	set  store.NameSet
	name []byte // of the stat under c
	held bool   // c is at a stat that was not visited yet
	done bool
}

// NewWalk starts a walk before the first stat.
func NewWalk(v *store.View, o Options) *Walk {
	w := &Walk{o: o, at: -1}
	sets := [...]store.NameSet{store.Texts, store.Scalars, store.Histograms}
	wanted := [...]bool{w.o.wants(TextReadouts), w.o.wants(Counters) || w.o.wants(Gauges), w.o.wants(Histograms)}
	for i := range w.streams {
		s := &w.streams[i]
		s.done = !wanted[i]
		s.set, s.sel = sets[i], w.o.selection()
		if wanted[i] {
			s.c = s.sel.byName(v, sets[i])
		}
	}
	return w
}

// step goes to the next selected stat of the stream.
func (s *walkStream) step() (bool, error) {
	if s.done {
		return false, nil
	}
	for s.c.Next() {
		if s.set == store.Scalars && s.sel.showsScalar(&s.c) || s.set != store.Scalars && s.sel.shows(&s.c) {
			return true, nil
		}
	}
	s.done = true
	return false, s.c.Err()
}

// Next goes to the next stat and reports whether there is one.
func (w *Walk) Next() bool {
	w.at = -1
	for i := range w.streams {
		s := &w.streams[i]
		if !s.held && w.err == nil {
			if s.held, w.err = s.step(); s.held {
				s.name = s.c.AppendName(s.name[:0])
			}
		}
		if s.held && (w.at < 0 || bytes.Compare(s.name, w.streams[w.at].name) < 0) {
			w.at = i
		}
	}
	if w.err != nil || w.at < 0 {
		w.at = -1
		return false
	}
	w.streams[w.at].held = false
	return true
}

// Stat returns a cursor at the current stat. It is valid until the next step.
func (w *Walk) Stat() *store.Cursor { return &w.streams[w.at].c }

// Rest ends the walk and returns how many stats it had not visited yet. It is faster
// than visiting them.
func (w *Walk) Rest() int {
	n := 0
	for i := range w.streams {
		s := &w.streams[i]
		if s.held {
			n++
		}
		s.held = false
		if w.o.Past == nil {
			s.c.Counting()
		}
		for w.err == nil {
			var more bool
			if more, w.err = s.step(); !more {
				break
			}
			n++
		}
	}
	w.at = -1
	return n
}

// Err returns the error that ended the walk early: [ErrTooExpensive], or nil.
func (w *Walk) Err() error { return w.err }
