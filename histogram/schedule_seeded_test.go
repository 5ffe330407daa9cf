//go:build schedule && seeded && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package histogram

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// TestSeededBugs puts bugs into the package, one by one, and checks that
// TestSchedules fails.
func TestSeededBugs(t *testing.T) {
	schedule.CheckBugs(t, []schedule.Bug{
		{"touch-first", "histogram.go", "	s.sums[side].add(magnitude, n)\n	schedule.Point()\n	epoch := h.epoch.Load() & 1\n	schedule.Point()\n	s.ends[epoch].include(endKey(v))\n	schedule.Point()\n	s.touch()\n", "	s.touch()\n	schedule.Point()\n	s.sums[side].add(magnitude, n)\n	schedule.Point()\n	epoch := h.epoch.Load() & 1\n	schedule.Point()\n	s.ends[epoch].include(endKey(v))\n"},
		{"no-touch", "histogram.go", "	s.touch()\n", ""},
		{"no-extremes", "histogram.go", "	s.ends[epoch].include(endKey(v))\n", "	_ = epoch\n"},
		{"sum-not-atomic", "shard.go", "low != 0 && s.low.Add(low) < low", "func() bool { old := s.low.Load(); schedule.Point(); s.low.Store(old + low); return old+low < low }()"},
		{"lost-count", "shard.go", "if w.CompareAndSwap(old, old+n<<shift) {", "if w.Store(old + n<<shift); true {"},
		{"lost-extreme", "shard.go", "if w.CompareAndSwap(old, key) {", "if w.Store(key); true {"},
		{"spill-wide-first", "shard.go", "		if w.CompareAndSwap(old, old+n<<shift-laneLimit<<shift) {\n			schedule.Point()\n			high[i&(pageBins-1)].Add(laneLimit)", "		high[i&(pageBins-1)].Add(laneLimit)\n		schedule.Point()\n		if w.CompareAndSwap(old, old+n<<shift-laneLimit<<shift) {"},
		{"page-lost", "sparse.go", "at.Load() == nil", "at.Load() == nil || true"},
		{"page-without-lock", "histogram.go", "what need) {\n	h.mu.Lock()\n	defer h.mu.Unlock()", "what need) {"},
		{"window-without-pages", "sparse.go", "		g.pages[i+w.base-first].Store(w.pages[i].Load())", "		_ = i"},
		{"owned-touch-first", "record_fast.go", "	point()\n	e := &s.ends", "	*(*uint32)(unsafe.Pointer(&s.touched)) = 1\n	defer func() { *(*uint32)(unsafe.Pointer(&s.touched)) = 0 }()\n	point()\n	e := &s.ends"},
		{"owned-no-touch", "record_fast.go", "	*(*uint32)(unsafe.Pointer(&s.touched)) = 1\n", ""},
		{"owned-sum-first", "record_fast.go", "				*pg.lane(i)++\n			}\n			if counted {\n				point()\n				s.sums[0].ownAdd(0, uint64(v))\n", "				s.sums[0].ownAdd(0, uint64(v))\n				point()\n				*pg.lane(i)++\n			}\n			if counted {\n"},
		{"owned-split-lost", "record_fast.go", "				*plain(&s.splits[split])++\n", ""},
		{"slot-shard-replaced", "record_fast.go", "atomic.LoadPointer(at) == nil", "true"},
		{"mark-taken-late", "merge.go", "s.touched.Load() != 0 && s.touched.Swap(0) != 0 {", "s.touched.Load() != 0 {\n			defer s.touched.Store(0)"},
		{"quiet-merge-ignored", "merge.go", "		m.owed = wide128{}\n		*cumulative = *prev.Cumulative", "		return &Snapshot{Used: prev.Used, Interval: l.empty, Cumulative: prev.Cumulative}"},
		{"owed-kept", "merge.go", "		m.owed = wide128{}\n		*cumulative", "		*cumulative"},
		{"impossible-sum", "merge.go", "	case v.less(low):\n		v = low\n", "	case false:\n"},
		{"late-extremes-lost", "merge.go", "	take(e + 1) // from recorders that were late for the interval before\n", ""},
		{"bins-fall", "merge.go", "counts[i] = max(counts[i], was)", "_ = was"},
		{"wide-read-last", "shard.go", "	if high != nil {\n		for i := range high {\n			counts[i] += high[i].Load()\n		}\n	}\n	schedule.Point()\n", "	defer func() {\n		schedule.Point()\n		if high != nil {\n			for i := range high {\n				counts[i] += high[i].Load()\n			}\n		}\n	}()\n"},
	})
}
