package histogram

import (
	"math"
	"testing"
)

// TestSumsGrowByWhatWasRecorded reads the sums of two shards before a record, between
// its change of the lower half and its carry, and after it.
func TestSumsGrowByWhatWasRecorded(t *testing.T) {
	const most = math.MaxUint64
	for _, tt := range []struct {
		name   string
		before [2]uint64 // lower halves of the sums of values at and above 0, and below
		side   int
		add    uint64
		want   wide128
	}{
		{"nothing", [2]uint64{3, 5}, 0, 0, wide128{0, 0}},
		{"no-carry", [2]uint64{3, 5}, 0, 4, wide128{0, 4}},
		{"to-the-carry", [2]uint64{most - 4, 5}, 0, 4, wide128{0, 4}},
		{"carry", [2]uint64{most - 4, 5}, 0, 5, wide128{0, 5}},
		{"carry-below-zero", [2]uint64{3, most}, 1, 1, wide128{most, most}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shards := []*shard{{}, {}}
			for i, s := range shards {
				s.sums[0].low.Store(tt.before[0] * uint64(i))
				s.sums[1].low.Store(tt.before[1] * uint64(i))
			}
			var m merged
			m.readSums(shards)
			s := &shards[1].sums[tt.side]
			before := s.low.Load()
			got := []wide128{{}, {}}
			if after := s.low.Add(tt.add); after < before {
				got[0] = m.readSums(shards)
				s.high.Add(1)
				got[1] = m.readSums(shards)
			} else {
				got[0] = m.readSums(shards)
			}
			if got[0] != tt.want || got[1] != (wide128{}) {
				t.Errorf("the sums grew by %v, then by %v; want %v once", got[0], got[1], tt.want)
			}
		})
	}
}
