package histogram

// Estimated sizes of a histogram's parts, in bytes.
const (
	headBytes  = 128 // Histogram, Snapshot and what Merge remembers
	shardBytes = 128
	statsBytes = 112
)

// Bytes estimates the memory that h holds, summaries included. It is safe for
// concurrent use.
func (h *Histogram) Bytes() int {
	n := headBytes
	var room [8]*shard
	for _, s := range h.owned.appendTo(append(room[:0], h.shared.Load())) {
		if s != nil {
			n += shardBytes + 8*len(s.splits) + s.narrow.bytes(8*pageBins/4) + s.wide.bytes(8*pageBins)
		}
	}
	snap := h.Snapshot()
	for _, w := range snap.window {
		n += w.stats.bytes()
	}
	return n + snap.Interval.bytes() + snap.Cumulative.bytes()
}

func (s *Stats) bytes() int { return statsBytes + 8*cap(s.packed.words) }

// bytes returns the memory of the window and of its pages.
func (s *sparse[P]) bytes(page int) (n int) {
	w := s.window.Load()
	if w == nil {
		return 0
	}
	n = 8 * len(w.pages)
	for i := range w.pages {
		if w.pages[i].Load() != nil {
			n += page
		}
	}
	return n
}
