package statsd

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Listeners returns the bound listeners in the order of the configuration.
func (s *Server) Listeners() []report.ListenerInfo {
	var out []report.ListenerInfo
	for _, l := range s.snapshotListeners() {
		out = append(out, l.info())
	}
	return out
}

func (l *listener) info() report.ListenerInfo {
	return report.ListenerInfo{
		Name: l.name, Protocol: l.addr.scheme, Address: l.local, Readers: len(l.sockets), TLS: l.cfg.TLS != nil,
	}
}

const (
	topKept = 20
	topTies = 10_000 // names that are compared because their counts are equal
)

// flush updates the gauges about series and ends the interval of sets.
func (r *registry) flush(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.era.Add(1)
	elapsed := r.made.Add(now.Sub(r.made)) // whatever the clock is set to
	for _, s := range r.setCells.All() {
		n, shown := s.flush(elapsed)
		last := s.last.Swap(math.Float64bits(n))
		// A set without members is not written again, so that it can expire.
		if n != 0 || last != 0 || s.gauge.Value() != shown {
			_ = s.gauge.Set(shown) // finite
		}
	}
	made := r.memory.made()
	for x, charged := range r.histogramBytes.All() {
		n := max(r.cells.at(x).histogram().Bytes()-histogramMin, 0)
		r.memory.charge(n - charged)
		r.histogramBytes.Set(x, n)
	}
	r.memory.charged.Store(made)
	for g, n := range r.perGroup {
		r.metrics.series[g].Set(uint64(n))
	}
	r.metrics.memoryUsed.Set(uint64(r.memory.total()))
	r.metrics.memoryLimit.Set(uint64(max(r.memory.limit(), 0)))
	for lim, near := range r.metrics.near {
		if near == nil {
			continue
		}
		near.Set(0)
		if r.near(limit(lim)) {
			near.Set(1)
		}
	}
}

// interval returns the count of the last interval of the set in the cell with that
// mark.
func (r *registry) interval(mark uint32) (count float64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.setCells.Get(mark - 1)
	if !ok {
		return 0, false
	}
	return math.Float64frombits(s.last.Load()), true
}

// near reports whether a limit is nearly reached. r.mu must be held.
func (r *registry) near(lim limit) bool {
	switch lim {
	case limitFirstSegment, limitPerName: // too many to visit
		return r.crowded[lim] > 0
	}
	if lim == limitMemory {
		return r.memory.series() >= r.memory.max/5*4
	}
	most, use := r.use(lim)
	return most >= 0 && nearly(use, most)
}

// NearLimits returns the limits that a received stat's name and tags have nearly reached:
// Use of a limit per name, first segment or tag key is the stat's own, and that of other
// limits the whole input's. The name is that of the store, without tags.
func (s *Server) NearLimits(name string, tgs []tags.Tag) (near []report.Limit) {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.scope.Prefix(); p != "" {
		name = strings.TrimPrefix(name, p+".")
	}
	for lim := noLimit + 1; lim < limits; lim++ {
		if !r.near(lim) {
			continue
		}
		most, use := r.use(lim)
		switch lim {
		case limitFirstSegment:
			use = r.segments.series(name)
		case limitPerName:
			use = 0
			metric, _ := r.shown(name, nil)
			if x, ok := r.familyNamed(metric); ok {
				use = int(r.family(x).series)
			}
		case limitTagValues:
			use = 0
			for _, t := range tgs {
				use = max(use, r.values.of(t.Name))
			}
		}
		if lim == limitMemory || nearly(use, most) {
			near = append(near, report.Limit{Name: lim.String(), Max: most, Use: use, Limited: r.metrics.limited[lim].Total()})
		}
	}
	return near
}

// named converts counts of families to counts of names.
func (r *registry) named(counts map[uint32]uint64) map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]uint64, len(counts))
	for x, n := range counts {
		// It can have ended meanwhile.
		if name := r.nameOf(x); name != "" {
			out[name] += n
		}
	}
	return out
}

// Report describes the input so far. It takes some time when there are many
// names.
func (s *Server) Report() report.Report {
	r := report.Report{
		Time:   s.cfg.Now(),
		Expiry: s.cfg.TTL.String(),
		Cache: report.Cache{
			Entries: s.metrics.cacheEntries.Value(),
			Hits:    s.metrics.hits.Total(),
			Misses:  s.metrics.misses.Total(),
			Evicted: s.metrics.evicted.Total(),
		},
		Collisions:    s.metrics.collisions.Total(),
		TypeConflicts: s.metrics.conflicts.Total(),
		Events:        s.events.listEvents(),
		Checks:        s.events.listChecks(),
		UnixQueue:     unixQueue(),
	}
	if s.relay != nil {
		r.Relay = s.relay.Report()
	}
	var rejected [line.Reasons]uint64
	for _, l := range s.snapshotListeners() {
		lr := s.reportListener(l)
		for reason := range rejected {
			rejected[reason] += lr.Rejected[line.Reason(reason).String()]
		}
		r.Listeners = append(r.Listeners, lr)
	}
	for reason, n := range rejected {
		if n > 0 {
			r.Rejected = append(r.Rejected, report.Rejected{Reason: line.Reason(reason).String(), Count: n, Last: s.rejects.list(line.Reason(reason))})
		}
	}
	for _, w := range s.streamWorkers {
		r.StreamBusySeconds += w.busy.value()
	}
	s.flushMu.Lock()
	r.TopSamples = s.recent.rates(topKept)
	s.flushMu.Unlock()
	s.registry.report(&r)
	return r
}

// Recent returns the part of a [Server.Report] that needs no walk over the
// names.
func (s *Server) Recent() (out report.Recent) {
	s.flushMu.Lock()
	out.Samples = s.recent.rates(topKept)
	s.flushMu.Unlock()
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out.Samples {
		out.Samples[i].Name = r.full(out.Samples[i].Name)
	}
	for lim := noLimit + 1; lim < limits; lim++ {
		if r.near(lim) {
			most, use := r.use(lim)
			out.Limits = append(out.Limits, report.Limit{Name: lim.String(), Max: most, Use: use, Limited: r.metrics.limited[lim].Total()})
		}
	}
	out.Newest = r.newest.list()
	for i := range out.Newest {
		out.Newest[i].Name = r.full(out.Newest[i].Name)
	}
	for _, name := range r.overflowed {
		out.Overflowed = append(out.Overflowed, r.full(name))
	}
	slices.Sort(out.Overflowed)
	return out
}

func (s *Server) reportListener(l *listener) report.Listener {
	f := l.metrics
	r := report.Listener{
		ListenerInfo:  l.info(),
		Packets:       f.packets.Total(),
		Bytes:         f.bytes.Total(),
		Lines:         f.lines.Total(),
		Samples:       f.samples.Total(),
		Applied:       f.applied.Load(),
		Events:        f.events.Load(),
		Limited:       f.limited.Load(),
		Dropped:       f.dropped.Total(),
		RelayOnly:     f.relayOnly.Total(),
		Rejected:      make(map[string]uint64),
		TagErrors:     f.tagErrors.Total(),
		UnknownFields: f.unknown.Total(),

		ValuesOutOfRange: f.beyond.Total(),
		FutureTimestamps: f.ahead.Total(),

		ReadErrors: f.readErrors.Total(),
		Ended:      make(map[string]uint64),
	}
	if f.linesPerPacket != nil {
		r.LinesPerPacket = quantiles(f.linesPerPacket)
	}
	for reason := range f.rejected {
		if c := f.rejected[reason].Load(); c != nil {
			r.Rejected[line.Reason(reason).String()] = c.Total()
		}
	}
	f.mu.Lock()
	for why, c := range f.ended {
		r.Ended[why] = c.Total()
	}
	f.mu.Unlock()
	if l.accept != nil {
		r.ConnectionsTotal, r.Connections = f.connections.Total(), f.active.Value()
		return r
	}
	for _, so := range l.sockets {
		used, size := s.watchQueue(l, so)
		r.QueueBytes += uint64(used)
		r.QueueLimit += uint64(size)
		r.RcvBufAsked += uint64(l.cfg.RcvBuf)
		r.RcvBufBytes += uint64(so.granted)
		r.BusySeconds += so.worker.busy.value()
	}
	r.Truncated, r.KernelDrops, r.PacketsRefused = f.truncated.Total(), f.drops.Total(), f.refused.Total()
	return r
}

// quantiles summarizes all values of h.
func quantiles(h *store.Histogram) *report.Quantiles {
	st := h.Snapshot().Cumulative
	if st == nil || st.Count() == 0 {
		return new(report.Quantiles)
	}
	return &report.Quantiles{Count: st.Count(), P50: st.Quantile(0.5), P99: st.Quantile(0.99), Max: st.Quantile(1)}
}

func (r *registry) report(out *report.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.metrics
	ties := topTies
	r.eachFamily(func(x uint32, fam family) {
		n := uint64(fam.series)
		if len(out.TopSeries) == topKept {
			last := out.TopSeries[topKept-1].Count
			if n < last || n == last && ties == 0 {
				return
			}
			if n == last {
				ties--
			}
		}
		out.TopSeries = insertTop(out.TopSeries, report.NameCount{Name: r.nameOf(x), Count: n})
	})
	for key, k := range r.tagKeys {
		out.TopTags = insertTop(out.TopTags, report.NameCount{Name: key, Count: k.count()})
	}
	for lim := noLimit + 1; lim < limits; lim++ {
		most, use := r.use(lim)
		out.Limits = append(out.Limits, report.Limit{Name: lim.String(), Max: most, Use: use, Limited: f.limited[lim].Total()})
	}
	for g, n := range r.perGroup {
		out.Series = append(out.Series, report.Kind{
			Kind: group(g).String(), Series: n, Created: f.created[g].Total(), Expired: f.expired[g].Total(),
		})
	}
	out.Conflicts, out.Newest = r.conflicts.list(), r.newest.list()
}

// use returns the value of a limit, or -1, and its use. r.mu must be held.
func (r *registry) use(lim limit) (most, use int) {
	l := &r.cfg.Limits
	switch lim {
	case limitSeries:
		most, use = l.Series, r.live
	case limitFirstSegment:
		most = l.FirstSegment
		for _, s := range r.segments.list {
			use = max(use, int(s.series))
		}
	case limitPerName:
		most = l.SeriesPerName
		use = min(r.families.owners.Len(), 1)
		for _, f := range r.families.list {
			use = max(use, int(f.series))
		}
	case limitRate:
		most, use = l.NewPerSecond, r.rate.done
	case limitSets:
		most, use = l.Sets, r.perGroup[sets]
	case limitMemory:
		if r.memory.limit() < 0 {
			return -1, int(r.memory.total())
		}
		return int(r.memory.limit()), int(r.memory.total())
	case limitTagValues:
		most, use = l.ValuesPerTagKey, r.values.most()
	default:
		most = unlimited
	}
	if most == unlimited {
		most = -1
	}
	return most, use
}

// insertTop inserts c into list, which holds the largest counts in descending
// order. It is cheap for small counts, since the list of names can be long and
// the registry is locked.
func insertTop(list []report.NameCount, c report.NameCount) []report.NameCount {
	less := func(a, b report.NameCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	}
	if len(list) == topKept {
		if less(list[topKept-1], c) < 0 {
			return list
		}
		list = list[:topKept-1]
	}
	at, _ := slices.BinarySearchFunc(list, c, less)
	return slices.Insert(list, at, c)
}
