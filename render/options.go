package render

import (
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

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

// Hidden selects the treatment of hidden gauges.
type Hidden uint8

// The ways to treat hidden gauges.
const (
	HiddenExclude Hidden = iota // leave them out
	HiddenInclude               // show them with all others
	HiddenOnly                  // show nothing else
)

// Buckets is the form of histograms in the output.
type Buckets uint8

// The forms of histograms.
const (
	Default    Buckets = iota // quantiles; buckets in the exposition
	Cumulative                // per bound, all values at or below it
	Disjoint                  // per bound, the values above the bound before it
	Detailed                  // every bin
	Summary                   // quantiles, also in the exposition
	HDR                       // in the compressed form of Options.HDR; as Default in the exposition
	Native                    // native histograms alone in Protobuf; elsewhere as Default
)

// Options select stats and their form. The zero value shows everything.
type Options struct {
	Type     Type
	UsedOnly bool
	Hidden   Hidden
	Buckets  Buckets
	// HDR appends a histogram in the V2 compressed form of HdrHistogram, in base64;
	// see [github.com/statsd-admin/statsd-admin/histogram/hdr.Encoder]. The form
	// [HDR] requires it.
	HDR func(dst []byte, s *histogram.Stats) ([]byte, error)
	// Past replaces the values in plain text and JSON. Text readouts and hosts, which
	// have no past, are then left out. Nil means present values.
	Past Past
	// Filter shows only stats whose full name it matches. Nil matches all.
	Filter *Filter
	// Endpoints calls yield with each cluster host that has statistics, until
	// yield returns false. The argument is valid until yield returns. Hosts follow
	// the counters and gauges of the store, in the expositions all of its stats.
	// Nil means no hosts.
	Endpoints func(yield func(*Endpoint) bool)
	// Escaping is the form of names in the exposition formats.
	Escaping Escaping
	// PreferOpenMetrics makes Negotiate prefer OpenMetrics to the text format.
	PreferOpenMetrics bool
	// OmitCreated omits the samples _created in OpenMetrics.
	OmitCreated bool
	// TextReadouts adds the text readouts to the exposition formats.
	TextReadouts bool

	run *filterRun // of the call, made by selection
}

// Past supplies values of an earlier moment in place of the current values.
type Past interface {
	// Has reports whether the stat is shown.
	Has(c *store.Cursor) bool
	// AppendValue appends the value of a counter or gauge.
	AppendValue(dst []byte, c *store.Cursor) []byte
	// Histogram returns the summaries of a histogram.
	Histogram(c *store.Cursor) *histogram.Snapshot
}

// appendValue appends the value of the counter or gauge under c.
func (o *Options) appendValue(dst []byte, c *store.Cursor) []byte {
	if o.Past != nil {
		return o.Past.AppendValue(dst, c)
	}
	return c.AppendValue(dst)
}

// snapshot returns the summaries of the histogram under c.
func (o *Options) snapshot(c *store.Cursor) *histogram.Snapshot {
	if o.Past != nil {
		return o.Past.Histogram(c)
	}
	return c.Histogram().Snapshot()
}

// wants reports whether stats of a kind can be shown at all.
func (o *Options) wants(t Type) bool {
	if o.Hidden == HiddenOnly && t != Gauges || o.Past != nil && t == TextReadouts {
		return false
	}
	return o.Type == All || o.Type == t
}

// selection decides stat by stat.
type selection struct {
	o      *Options
	filter *filterRun
}

// selection is called for each walk; the walks of one call share the budget
// of the filter. o must not be the caller's own.
func (o *Options) selection() selection {
	if o.run == nil {
		o.run = o.Filter.run()
	}
	return selection{o, o.run}
}

// byName is v.ByName for the stats that the filter selects.
func (s *selection) byName(v *store.View, set store.NameSet) store.Cursor {
	c := v.ByName(set)
	if s.filter != nil {
		c = v.ByNameIn(set, &s.filter.f.found, s.filter.judge)
	}
	if s.o.UsedOnly {
		c.UsedOnly()
	}
	return c
}

// byFamily is v.ByFamily for the stats that the filter selects.
func (s *selection) byFamily(v *store.View, k store.Kind) store.Cursor {
	c := v.ByFamily(k)
	if s.filter != nil {
		c = v.ByFamilyIn(k, &s.filter.f.found, s.filter.judge)
	}
	if s.o.UsedOnly {
		c.UsedOnly()
	}
	return c
}

// shows reports whether the stat under c is selected. c comes from byName or
// byFamily.
func (s *selection) shows(c *store.Cursor) bool {
	if s.o.Past != nil && !s.o.Past.Has(c) {
		return false
	}
	switch s.o.Hidden {
	case HiddenExclude:
		return !c.Hidden()
	case HiddenOnly:
		return c.Hidden()
	}
	return true
}

// showsScalar is shows for a cursor over counters and gauges mixed.
func (s *selection) showsScalar(c *store.Cursor) bool {
	t := Gauges
	if c.Kind() == store.KindCounter {
		t = Counters
	}
	return s.o.wants(t) && s.shows(c)
}
