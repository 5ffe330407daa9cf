package history

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// DefaultBytes is the default of Config.Bytes.
const DefaultBytes = 64 << 20

// Config are the settings of a [History].
type Config struct {
	// Store is the store. Required.
	Store *store.Store
	// Bytes limits the memory. 0 means 64 MiB.
	Bytes int
}

// Flushes is the number of flushes that are kept. Older changes are kept in
// coarser steps: an hour in steps of a minute, and a day in steps of ten
// minutes.
const Flushes = 60

// steps are the coarser steps.
var steps = [...]struct {
	length time.Duration
	keep   int
}{{0, Flushes}, {time.Minute, 60}, {10 * time.Minute, 144}}

const levels = len(steps)

// maxPending is how many frames are collected for a coarser step before they are
// joined, in case that flushes are very frequent.
const maxPending = 2 * Flushes

// History is the history of a store. Create it with [New]; its methods are safe for
// concurrent use.
type History struct {
	cfg   Config
	start time.Time

	mu     sync.RWMutex // guards the rest
	seq    uint64
	last   time.Time // of the last flush
	levels [levels][]*frame
	// pending has the frames to join into the next frame of the level.
	pending [levels][]*frame
	base    map[blockOf]*[1024]uint64   // values as of the last flush, of blocks with changes
	hists   map[uint64]*histogram.Stats // summaries as of the last flush
	bytes   int
	fixed   int // of bytes, for base and hists

	lost     uint64 // the last flush of which a value had no room, until there is room again; or 0
	complete uint64 // the flush from which on no value is missing

	writer writer
}

// frame is the changes of a step.
type frame struct {
	start, end time.Time
	from, to   uint64 // numbers of the flushes
	counters   section
	gauges     section
	hists      []interval // by reference
	holders    int        // lists that have the frame
	size       int
}

type interval struct {
	ref   uint64
	stats *histogram.Stats
}

// Estimated sizes in bytes, without the sections.
const (
	frameBytes    = 192
	intervalBytes = 16
	baseBytes     = 8*1024 + 64 // with its part of the map
	histBytes     = 64
)

// New returns an empty history.
func New(cfg Config) *History {
	if cfg.Bytes <= 0 {
		cfg.Bytes = DefaultBytes
	}
	last := cfg.Store.LastFlush()
	return &History{cfg: cfg, start: last, last: last, seq: cfg.Store.Flushes(), base: make(map[blockOf]*[1024]uint64), hists: make(map[uint64]*histogram.Stats)}
}

// Bytes returns the memory in use and the limit.
func (h *History) Bytes() (used, limit int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.bytes, h.cfg.Bytes
}

// Add adds the changes of a flush. Calls must be in the order of the flushes.
func (h *History) Add(snap *store.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &frame{start: h.last, end: snap.Time, from: h.seq, to: snap.Seq}
	h.seq, h.last = snap.Seq, snap.Time
	h.writer.reset(false)
	var room baseOf
	snap.CounterDeltas(func(ref, total, delta uint64) bool {
		if delta == 0 {
			if block, slot := split(ref); h.base[block] != nil {
				h.base[block][slot] = total
			}
			return true
		}
		if old := room.at(h, ref); old != nil {
			*old = total
			h.writer.add(ref, delta)
		}
		return true
	})
	f.counters = h.writer.section()
	h.writer.reset(true)
	room = baseOf{}
	snap.GaugeValues(func(ref, raw uint64) bool {
		if old := room.at(h, ref); old != nil && *old != raw {
			h.writer.add(ref, raw-*old)
			*old = raw
		}
		return true
	})
	f.gauges = h.writer.section()
	snap.HistogramIntervals(func(ref uint64, s *histogram.Snapshot) bool {
		if h.hists[ref] == nil && !h.reserve(histBytes) {
			h.lost = h.seq
			return true
		}
		h.hists[ref] = s.Cumulative
		f.hists = append(f.hists, interval{ref, s.Interval})
		return true
	})
	slices.SortFunc(f.hists, func(a, b interval) int { return cmp.Compare(a.ref, b.ref) })
	h.append(0, f)
	h.recover()
	h.fit(0)
}

// recover makes the history complete from now on if a value had no room, but all have now.
// The first changes of counters and histograms from then on suffice for that, but not those
// of gauges, which are kept as of now. History.mu must be held.
func (h *History) recover() {
	if h.lost == 0 || h.lost == h.seq || h.fixed+baseBytes > h.cfg.Bytes/2 {
		return
	}
	fits := true
	h.cfg.Store.GaugeBlocks(func(ref uint64, values *[1024]uint64) bool {
		if block, _ := split(ref); h.base[block] == nil {
			if fits = h.reserve(baseBytes); fits {
				base := *values
				h.base[block] = &base
			}
		}
		return fits
	})
	if fits {
		h.lost, h.complete = 0, h.seq
	}
}

// baseOf finds the values of references, many of one block after each other.
type baseOf struct {
	known  bool
	block  blockOf
	values *[1024]uint64
}

// at returns the value of a reference as of the last flush, nil if there is no room
// for it. History.mu must be held.
func (b *baseOf) at(h *History, ref uint64) *uint64 {
	block, slot := split(ref)
	if !b.known || block != b.block {
		b.known, b.block, b.values = true, block, h.base[block]
		if b.values == nil && h.reserve(baseBytes) {
			b.values = new([1024]uint64)
			h.base[block] = b.values
			h.cfg.Store.FlushedTotals(ref, b.values)
		}
	}
	if b.values == nil {
		h.lost = h.seq
		return nil
	}
	return &b.values[slot]
}

// reserve charges n bytes for values as of the last flush, and makes room for them.
// They get at most half of the memory. History.mu must be held.
func (h *History) reserve(n int) bool {
	if h.fixed+n > h.cfg.Bytes/2 {
		return false
	}
	h.fit(n)
	h.fixed += n
	h.bytes += n
	return true
}

// append adds a frame to a level and, joined with others, to the next. History.mu
// must be held.
func (h *History) append(level int, f *frame) {
	f.measure()
	h.hold(f)
	h.levels[level] = append(h.levels[level], f)
	for range h.surplus(level) {
		h.drop(level)
	}
	next := level + 1
	if next == levels {
		return
	}
	length := steps[next].length
	waiting := h.pending[next]
	if len(waiting) > 0 && !waiting[0].end.Truncate(length).Equal(f.end.Truncate(length)) {
		h.pending[next] = nil
		h.append(next, h.join(waiting))
		h.forget()
	} else if len(waiting) >= maxPending {
		older := len(waiting) - Flushes // the first level may have the others
		joined := h.join(waiting[:older])
		joined.measure()
		h.hold(joined)
		h.pending[next] = append([]*frame{joined}, waiting[older:]...)
	}
	h.hold(f)
	h.pending[next] = append(h.pending[next], f)
}

// surplus returns how many of the oldest frames of a level can be dropped. A step of the
// next level replaces its frames together, so all stay while any is needed, up to twice
// as many. History.mu must be held.
func (h *History) surplus(level int) int {
	list, keep := h.levels[level], steps[level].keep
	n := max(len(list)-keep, 0)
	if level+1 == levels {
		return n
	}
	length := steps[level+1].length
	for n > 0 && list[n-1].end.Truncate(length).Equal(list[n].end.Truncate(length)) {
		n--
	}
	return max(n, len(list)-2*keep)
}

// measure sets the size of f.
func (f *frame) measure() {
	f.size = frameBytes + f.counters.size() + f.gauges.size() + intervalBytes*cap(f.hists)
	for _, x := range f.hists {
		f.size += x.stats.Bytes()
	}
}

// hold and release charge a frame once, however many lists have it. History.mu must
// be held.
func (h *History) hold(f *frame) {
	if f.holders++; f.holders == 1 {
		h.bytes += f.size
	}
}

func (h *History) release(f *frame) {
	if f.holders--; f.holders == 0 {
		h.bytes -= f.size
	}
}

// drop drops the oldest frame of a level. History.mu must be held.
func (h *History) drop(level int) {
	h.release(h.levels[level][0])
	h.levels[level][0] = nil
	h.levels[level] = h.levels[level][1:]
}

// join releases consecutive frames and returns their sum. History.mu must be held.
func (h *History) join(list []*frame) *frame {
	last := list[len(list)-1]
	out := &frame{start: list[0].start, end: last.end, from: list[0].from, to: last.to}
	var counters, gauges []section
	merged := make(map[uint64]*histogram.Stats)
	for _, f := range list {
		counters, gauges = append(counters, f.counters), append(gauges, f.gauges)
		for _, x := range f.hists {
			merged[x.ref] = histogram.MergeStats(merged[x.ref], x.stats)
		}
		h.release(f)
	}
	out.counters, out.gauges = merge(&h.writer, counters), merge(&h.writer, gauges)
	out.hists = make([]interval, 0, len(merged))
	for ref, s := range merged {
		out.hists = append(out.hists, interval{ref, s})
	}
	slices.SortFunc(out.hists, func(a, b interval) int { return cmp.Compare(a.ref, b.ref) })
	return out
}

// fit drops frames until there is room for more bytes, the oldest of the coarsest
// level first. History.mu must be held.
func (h *History) fit(more int) {
	for level := levels - 1; level >= 0; level-- {
		for len(h.levels[level]) > 0 && h.bytes+more > h.cfg.Bytes {
			h.drop(level)
		}
		if h.bytes+more > h.cfg.Bytes {
			for _, f := range h.pending[level] {
				h.release(f)
			}
			h.pending[level] = nil
		}
	}
}

// forget drops the values of stats that have ended. History.mu must be held.
func (h *History) forget() {
	for b := range h.base {
		if !h.cfg.Store.HasRefs(b.ref(0)) {
			delete(h.base, b)
			h.bytes -= baseBytes
			h.fixed -= baseBytes
		}
	}
	for ref := range h.hists {
		if !h.cfg.Store.HasRef(ref) {
			delete(h.hists, ref)
			h.bytes -= histBytes
			h.fixed -= histBytes
		}
	}
}

// ErrTooOld is wrapped by the error of [History.At] for a time before the
// history begins.
var ErrTooOld = errors.New("history: the history does not reach back that far")

// timeline returns frames without gaps, oldest first: the finest there are for each
// time. A coarse frame begins and ends where finer ones do. History.mu must be held.
func (h *History) timeline() (list []*frame) {
	from := h.seq // of list
	for level := range levels {
		coarser := slices.Concat(h.levels[level], h.pending[level])
		n := 0
		for n < len(coarser) && coarser[n].from < from {
			n++
		}
		if coarser = coarser[:n]; n == 0 {
			return list // a coarser level reaches no further back
		}
		to := coarser[n-1].to
		if to < from {
			return list // changes between the two are missing
		}
		for len(list) > 0 && list[0].from < to {
			list = list[1:]
		}
		list = slices.Concat(coarser, list)
		from = list[0].from
	}
	return list
}

// Since returns the time from which on the history is complete.
func (h *History) Since() time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.sinceLocked(h.timeline())
}

func (h *History) sinceLocked(list []*frame) time.Time {
	n := slices.IndexFunc(list, func(f *frame) bool { return f.from >= h.complete })
	if h.lost != 0 || n < 0 {
		return h.last
	}
	return list[n].start
}
