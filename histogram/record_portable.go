//go:build !gc || !go1.26 || go1.27 || !amd64 || race || msan || asan || purego

package histogram

// This file is the twin of record_fast.go, with nothing but atomics: for the
// race detector and the sanitizers, for other processors and for builds with
// the tag purego.

func (h *Histogram) record(v int64) { h.recordShared(v, 1) }

func (h *Histogram) recordMany(v int64, n uint64) { h.recordShared(v, n) }

// owners would be the shards owned by scheduler slots; here there are none.
type owners struct{}

func (*owners) appendTo(dst []*shard) []*shard { return dst }

// cool would begin a new measurement of how hot the histogram is.
func (s *shard) cool() {}
