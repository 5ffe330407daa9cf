//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package histogram_test

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestOnlyHotHistogramsGetOwnedShards: memory is spent where it saves time.
func TestOnlyHotHistogramsGetOwnedShards(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{}))
	for range 5 {
		for range histogram.HotRecords / 2 {
			h.Record(12)
		}
		h.Merge()
	}
	if n := histogram.Owned(h); n != 0 {
		t.Errorf("%d owned shards at half the hot rate, want none", n)
	}
	for range histogram.HotRecords {
		h.Record(12)
	}
	if n := histogram.Owned(h); n == 0 {
		t.Error("no owned shard at the hot rate")
	}
	if got, want := h.Merge().Cumulative.Count(), uint64(histogram.HotRecords*7/2); got != want {
		t.Errorf("count = %d, want %d", got, want)
	}
}

// TestSlotsWithoutShard: values from a scheduler slot that has no shard while others have
// are counted in shared memory, by one and by many.
func TestSlotsWithoutShard(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Signed: true}))
	histogram.OwnNone(h)
	h.Record(12)
	h.RecordN(12, 5)
	h.RecordFloat(-3, 2)
	if s := h.Merge().Cumulative; s.Count() != 8 || s.Sum() != 6*12-6 {
		t.Errorf("count = %d, sum = %v, want 8 and 66", s.Count(), s.Sum())
	}
}
