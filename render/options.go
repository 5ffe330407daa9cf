package render

import "github.com/statsd-admin/statsd-admin/store"

// Type selects the kinds of stats that are shown.
type Type uint8

// The types a request can ask for.
const (
	All Type = iota
	Counters
	Gauges
	Histograms
	TextReadouts
)

// Hidden says what becomes of hidden gauges.
type Hidden uint8

// The ways to treat hidden gauges.
const (
	HiddenExclude Hidden = iota // leave them out
	HiddenInclude               // show them with all others
	HiddenOnly                  // show nothing else
)

// Buckets is the form in which histograms are shown.
type Buckets uint8

// The forms of histograms.
const (
	Default    Buckets = iota // quantiles; buckets in the exposition
	Cumulative                // per bound, all values at or below it
	Disjoint                  // per bound, the values above the bound before it
	Detailed                  // every bin
	Summary                   // quantiles, also in the exposition
	Native                    // native histograms alone in Protobuf; elsewhere as Default
)

// Options select what is shown and how. The zero value shows everything.
type Options struct {
	Type     Type
	UsedOnly bool
	Hidden   Hidden
	Buckets  Buckets
	// Filter shows only stats whose full name it matches. Nil matches all.
	Filter *Filter
	// TextReadouts adds the text readouts to the exposition formats.
	TextReadouts bool
}

// wants reports whether stats of a kind can be shown at all.
func (o *Options) wants(t Type) bool {
	if o.Hidden == HiddenOnly && t != Gauges {
		return false
	}
	return o.Type == All || o.Type == t
}

// selection decides stat by stat. It is made for one walk.
type selection struct {
	o      *Options
	filter *filterRun
}

func (o *Options) selection() selection { return selection{o, o.Filter.run()} }

// shows reports whether the stat under c is to be shown.
func (s *selection) shows(c *store.Cursor) (bool, error) {
	if s.o.UsedOnly && !c.Used() {
		return false, nil
	}
	switch s.o.Hidden {
	case HiddenExclude:
		if c.Hidden() {
			return false, nil
		}
	case HiddenOnly:
		if !c.Hidden() {
			return false, nil
		}
	}
	if s.filter != nil {
		return s.filter.matches(c)
	}
	return true, nil
}

// showsScalar is shows for a cursor over counters and gauges mixed.
func (s *selection) showsScalar(c *store.Cursor) (bool, error) {
	if c.Kind() == store.KindCounter {
		if !s.o.wants(Counters) {
			return false, nil
		}
	} else if !s.o.wants(Gauges) {
		return false, nil
	}
	return s.shows(c)
}
