package statsd

import (
	"cmp"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// ListenerInfo says where a server listens.
type ListenerInfo struct {
	Name     string // in metrics
	Protocol string // the part of the address before "://"
	Address  string // the whole address, with the real port
	Readers  int    // sockets of a datagram listener
	TLS      bool
}

// Listeners returns the listeners that are bound, in the order of the
// configuration.
func (s *Server) Listeners() []ListenerInfo {
	var out []ListenerInfo
	for _, l := range s.snapshotListeners() {
		out = append(out, l.info())
	}
	return out
}

func (l *listener) info() ListenerInfo {
	return ListenerInfo{l.name, l.addr.scheme, l.local, len(l.sockets), l.cfg.TLS != nil}
}

// Report is all that a server can tell about itself.
type Report struct {
	Time      time.Time
	Listeners []ListenerReport
	Rejected  []RejectedReport // reasons that occurred, in the order of steps
	Limits    []LimitReport
	Series    []KindReport

	RawEntries, RawHits, RawMisses, RawEvicted uint64 // of the tables of spellings

	Collisions    uint64 // series whose name or exposition another one had first
	TypeConflicts uint64 // names whose later kinds got a suffix
	Clashes       []Clash

	TopSeries  []NameCount // names with the most series
	TopSamples []NameRate  // names with the most samples in the last minute of flush intervals
	Newest     []NewSeries // the last series made, oldest first
	TopTags    []NameCount // tag keys with the most different values, estimated from 16 on

	Events []ReceivedEvent // oldest first
	Checks []ReceivedCheck // least recently updated first

	// StreamBusySeconds is the time that all stream listeners together spent
	// on parsing and applying, estimated.
	StreamBusySeconds float64

	// UnixQueue is how many datagrams may wait in a unix socket before the
	// sender blocks; 0 if the system does not tell. 512 is a good value.
	UnixQueue int
}

// ListenerReport are the figures of one listener, since the start.
//
// Lines = Applied + Limited + the sum of Rejected. On loopback, what was sent
// is Packets + KernelDrops.
type ListenerReport struct {
	ListenerInfo
	Packets, Bytes, Lines, Samples uint64
	Applied                        uint64 // lines, events and checks among them
	Notices                        uint64 // events and checks
	Limited                        uint64 // lines kept out of a series of their own by a limit
	Rejected                       map[string]uint64
	TagErrors, UnknownFields       uint64
	ValuesOutOfRange               uint64 // observations beyond [store.NetworkMax], which counted as that
	Truncated, KernelDrops         uint64
	PacketsRefused, ReadErrors     uint64
	QueueBytes, QueueLimit         uint64 // memory that waiting datagrams take, and most that they may take
	RcvBufAsked, RcvBufBytes       uint64 // receive buffers of all readers: as configured, and as the system granted
	Connections                    uint64 // open now
	ConnectionsTotal               uint64
	Ended                          map[string]uint64 // connections by how and why: "closed eof", "refused per_address"
	LinesPerPacket                 *store.Histogram  // nil for streams of lines
	BusySeconds                    float64           // spent by a datagram listener on parsing and applying, estimated
}

// RejectedReport is about one reason.
type RejectedReport struct {
	Reason string
	Count  uint64
	Last   []RejectedLine // the last 20, oldest first
}

// LimitReport is about one limit.
type LimitReport struct {
	Name    string
	Max     int    // negative: none, or none that could be measured
	Use     int    // now; of limits per name or segment, of the one that uses most
	Limited uint64 // lines
}

// KindReport counts the received series of one kind.
type KindReport struct {
	Kind             string
	Series           int
	Created, Expired uint64
}

// NameCount is a name and a number.
type NameCount struct {
	Name  string
	Count uint64
}

// NameRate is a name and how many samples a second it had.
type NameRate struct {
	Name      string
	PerSecond float64
}

// NewSeries is a series that was made.
type NewSeries struct {
	Time             time.Time
	Name, Kind, Tags string
}

// Clash is a series that could not have its name, or shares a series of the
// exposition with another one.
type Clash struct {
	Time  time.Time
	Name  string
	Group string // kind of the later one
	Other string // name of the earlier one, if it differs
	What  string // what they have in common: kind, full name, exposition; "own stat": the name, with a stat of the program, which is another one
}

const topKept = 20

// flush refreshes the gauges about series and ends the interval of sets.
func (r *registry) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.era.Add(1)
	for _, s := range r.setCells {
		// A set without members that shows 0 already is not written: it ages.
		if n := s.flush(); n != 0 || s.gauge.Value() != 0 {
			_ = s.gauge.Set(n) // finite
		}
	}
	for g, n := range r.perGroup {
		r.figures.series[g].Set(uint64(n))
	}
	for lim, near := range r.figures.near {
		if near == nil {
			continue
		}
		near.Set(0)
		if r.near(limit(lim)) {
			near.Set(1)
		}
	}
}

// near reports whether a limit is nearly reached. r.mu must be held.
func (r *registry) near(lim limit) bool {
	switch lim {
	case limitFirstSegment, limitPerName: // there may be very many of them
		return r.crowded[lim] > 0
	}
	most, use := r.use(lim)
	return most >= 0 && nearly(use, most)
}

// named returns counts of families by their names.
func (r *registry) named(counts map[uint32]uint64) map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]uint64, len(counts))
	for x, n := range counts {
		if f := r.families[x]; f.metric != "" { // else it ended meanwhile
			out[f.name] += n
		}
	}
	return out
}

// Report returns what there is to tell now. It is made for a page: it takes
// some time when there are many names.
func (s *Server) Report() Report {
	r := Report{
		Time:          s.cfg.Now(),
		RawEntries:    s.figures.rawEntries.Value(),
		RawHits:       s.figures.hits.Total(),
		RawMisses:     s.figures.misses.Total(),
		RawEvicted:    s.figures.evicted.Total(),
		Collisions:    s.figures.collisions.Total(),
		TypeConflicts: s.figures.conflicts.Total(),
		Events:        s.notices.listEvents(),
		Checks:        s.notices.listChecks(),
		UnixQueue:     unixQueue(),
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
			r.Rejected = append(r.Rejected, RejectedReport{line.Reason(reason).String(), n, s.rejects.list(line.Reason(reason))})
		}
	}
	for _, ln := range s.streamLanes {
		r.StreamBusySeconds += ln.busy.value()
	}
	s.flushMu.Lock()
	r.TopSamples = s.recent.rates(topKept)
	s.flushMu.Unlock()
	s.registry.report(&r)
	return r
}

func (s *Server) reportListener(l *listener) ListenerReport {
	f := l.figures
	r := ListenerReport{
		ListenerInfo:  l.info(),
		Packets:       f.packets.Total(),
		Bytes:         f.bytes.Total(),
		Lines:         f.lines.Total(),
		Samples:       f.samples.Total(),
		Applied:       f.applied.Load(),
		Notices:       f.notices.Load(),
		Limited:       f.limited.Load(),
		Rejected:      make(map[string]uint64),
		TagErrors:     f.tagErrors.Total(),
		UnknownFields: f.unknown.Total(),

		ValuesOutOfRange: f.beyond.Total(),

		ReadErrors:     f.readErrors.Total(),
		Ended:          make(map[string]uint64),
		LinesPerPacket: f.linesPerPacket,
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
		r.BusySeconds += so.lane.busy.value()
	}
	r.Truncated, r.KernelDrops, r.PacketsRefused = f.truncated.Total(), f.drops.Total(), f.refused.Total()
	return r
}

func (r *registry) report(out *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.figures
	for _, fam := range r.families {
		if fam.metric == "" {
			continue
		}
		out.TopSeries = insertTop(out.TopSeries, NameCount{fam.name, uint64(fam.series)})
	}
	for key, k := range r.tagKeys {
		out.TopTags = insertTop(out.TopTags, NameCount{key, k.count()})
	}
	for lim := noLimit + 1; lim < limits; lim++ {
		most, use := r.use(lim)
		out.Limits = append(out.Limits, LimitReport{Name: lim.String(), Max: most, Use: use, Limited: f.limited[lim].Total()})
	}
	for g, n := range r.perGroup {
		out.Series = append(out.Series, KindReport{group(g).String(), n, f.created[g].Total(), f.expired[g].Total()})
	}
	out.Clashes, out.Newest = r.clashes.list(), r.newest.list()
}

// use returns what a limit is, -1 if there is none, and how much of it is used.
// r.mu must be held.
func (r *registry) use(lim limit) (most, use int) {
	l := &r.cfg.Limits
	switch lim {
	case limitSeries:
		most, use = l.Series, r.live
	case limitFirstSegment:
		most = l.FirstSegment
		for _, s := range r.firsts {
			use = max(use, s.series)
		}
	case limitPerName:
		most = l.SeriesPerName
		for _, f := range r.families {
			use = max(use, f.series)
		}
	case limitRate:
		most, use = l.NewPerSecond, r.rate.done
	case limitSets:
		most, use = l.Sets, r.perGroup[sets]
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

// insertTop puts c into list, which holds the largest counts, largest first.
// It is cheap for the many that are too small: the list of names may be long
// and the registry is locked.
func insertTop(list []NameCount, c NameCount) []NameCount {
	less := func(a, b NameCount) int {
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
