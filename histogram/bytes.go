package histogram

// Estimated sizes of a histogram's parts, in bytes.
const (
	headBytes  = 128 // Histogram, Snapshot and what Merge remembers
	shardBytes = 128
	statsBytes = 112

	pointerBytes = 8
)

// Bytes estimates the memory that h holds, summaries included. It is safe for
// concurrent use.
func (h *Histogram) Bytes() int {
	n := headBytes
	var room [8]*shard
	for _, s := range h.owned.appendTo(append(room[:0], h.shared.Load())) {
		if s != nil {
			n += s.bytes() + s.narrow.bytes(8*pageBins/4) + s.wide.bytes(8*pageBins)
		}
	}
	snap := h.Snapshot()
	for _, w := range snap.window {
		n += w.stats.Bytes()
	}
	return n + snap.Interval.Bytes() + snap.Cumulative.Bytes()
}

// bytes returns the memory of s without its pages.
func (s *shard) bytes() int { return shardBytes + 8*len(s.splits) }

// Made returns how many bytes the histograms of the layout have allocated so far to
// count values. It never falls. It is safe for concurrent use.
func (l *Layout) Made() int64 { return l.made.Load() }

// HasRoom reports whether h can count v with a weight without allocating bins;
// see [Histogram.RecordFloat]. A bin whose count outgrows its word still
// allocates. It is safe for concurrent use.
func (h *Histogram) HasRoom(v, weight float64) bool {
	s := h.shared.Load()
	switch {
	case v != v:
		return true
	case s == nil:
		return false
	}
	x, i := fixedPoint(v, h.layout), 0
	if x < 0 {
		i = -h.layout.bin(uint64(-x))
	} else if i = h.layout.bin(uint64(x)); h.layout.slot(i, uint64(x)) >= 0 {
		return true
	}
	if weight >= laneLimit {
		return s.wide.page(pageOf(i)) != nil
	}
	return s.narrow.page(pageOf(i)) != nil
}

// Bytes estimates the memory of s.
func (s *Stats) Bytes() int { return statsBytes + 8*cap(s.packed.words) }

// bytes returns the memory of the window and of its pages.
func (s *sparse[P]) bytes(page int) (n int) {
	w := s.window.Load()
	if w == nil {
		return 0
	}
	n = pointerBytes * len(w.pages)
	for i := range w.pages {
		if w.pages[i].Load() != nil {
			n += page
		}
	}
	return n
}
