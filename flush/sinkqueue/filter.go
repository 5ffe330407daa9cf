package sinkqueue

import (
	"slices"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// Filter selects the stats that a sink sends. The zero value selects all.
type Filter struct {
	Include match.List   // full names; empty means all
	Exclude match.List   // full names, takes precedence
	Kinds   []store.Kind // empty means all
	Origin  Origin
}

// Origin is the origin of the stats that a sink sends.
type Origin uint8

// The origins of stats.
const (
	AnyOrigin Origin = iota
	Received         // from network input: series of StatsD
	Own              // the stats of the program
)

// AllowsKind reports whether the sink sends stats of a kind at all.
func (f *Filter) AllowsKind(kind store.Kind) bool {
	return len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind)
}

// Allows reports whether the sink sends a stat of any allowed origin.
func (f *Filter) Allows(kind store.Kind, name string) bool {
	return f.AllowsKind(kind) && (len(f.Include) == 0 || f.Include.Match(name)) && !f.Exclude.Match(name)
}

// AllowsStat is Allows for the stat under c.
func (f *Filter) AllowsStat(kind store.Kind, c *store.Cursor) bool {
	if f.Origin != AnyOrigin && c.Network() != (f.Origin == Received) {
		return false
	}
	if len(f.Include)+len(f.Exclude) == 0 {
		return f.AllowsKind(kind)
	}
	return f.Allows(kind, c.Name())
}

// Counters calls yield with the counters that grew, and by how much.
func (f *Filter) Counters(snap *store.Snapshot, yield func(c *store.Cursor, delta uint64)) {
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		if f.AllowsStat(store.KindCounter, c) {
			yield(c, delta)
		}
		return true
	})
}

// ChangedGauges calls yield with the gauges that were written in the interval.
func (f *Filter) ChangedGauges(snap *store.Snapshot, yield func(c *store.Cursor)) {
	snap.GaugeChanges(func(c *store.Cursor) bool {
		if f.AllowsStat(store.KindGauge, c) {
			yield(c)
		}
		return true
	})
}

// Histograms calls yield with the histograms that got values.
func (f *Filter) Histograms(snap *store.Snapshot, yield func(c *store.Cursor, h *histogram.Snapshot)) {
	snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool {
		if f.AllowsStat(store.KindHistogram, c) {
			yield(c, h)
		}
		return true
	})
}

// Used calls yield with the stats of a kind in v that were ever used.
func (f *Filter) Used(v *store.View, kind store.Kind, yield func(c *store.Cursor)) {
	if !f.AllowsKind(kind) {
		return
	}
	c := v.ByFamily(kind)
	c.UsedOnly()
	for c.Next() {
		if !c.Hidden() && f.AllowsStat(kind, &c) {
			yield(&c)
		}
	}
}
