//go:build !gc || !go1.26 || go1.27 || !amd64 || race || msan || asan || purego

package histogram

// This file is the portable alternative to record_fast.go and uses only
// atomics. It serves other processors and Go releases, the race detector, the
// sanitizers and builds with the tag purego.

func (h *Histogram) record(v int64) { h.recordShared(v, 1) }

func (h *Histogram) recordMany(v int64, n uint64) { h.recordShared(v, n) }

// owners is empty: no shard is owned by a scheduler slot.
type owners struct{}

func (*owners) appendTo(dst []*shard) []*shard { return dst }

// cool does nothing, because heat is not measured.
func (s *shard) cool() {}
