//go:build schedule

package histogram

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

var preemptions = flag.Int("preemptions", 2, "explore schedules with up to so many preemptions")

// schedules lists the explored concurrent programs. The steps of a program are
// the functions below.
var schedules = []struct {
	name     string
	config   Config
	owned    int      // scheduler slots with a shard of their own
	shared   bool     // all programs run on one slot
	before   []sample // recorded and merged
	pending  []sample // recorded and not merged
	programs [][]step
}{
	{"record", Config{}, 0, false, nil, []sample{{10, 1}}, [][]step{{add(1013, 1)}, {merge}}},
	{"record-first", Config{}, 0, false, nil, nil, [][]step{{add(7, 1)}, {merge}}},
	{"record-used", Config{}, 0, false, []sample{{10, 1}, {1013, 1}}, nil, [][]step{{add(1009, 1)}, {merge, merge}}},
	{"record-two", Config{}, 0, false, []sample{{10, 1}}, nil, [][]step{{add(1013, 1), add(9, 1)}, {merge, merge}}},
	{"record-three-programs", Config{}, 0, false, []sample{{10, 1}}, nil, [][]step{{add(1013, 1)}, {add(1009, 1)}, {merge}}},
	{"record-reader", Config{}, 0, false, []sample{{10, 1}}, nil, [][]step{{add(1013, 1)}, {merge}, {read, read}}},
	{"bound", Config{}, 0, false, []sample{{1000, 1}}, nil, [][]step{{add(1000, 1), add(1001, 1)}, {merge}}},
	{"new-page", Config{}, 0, false, []sample{{10, 1}}, nil, [][]step{{add(1<<20, 1)}, {add(1<<20+9, 1)}, {merge}}},
	{"spill", Config{}, 0, false, []sample{{10, 1}}, []sample{{1013, laneLimit - 1}}, [][]step{{add(1013, 1)}, {merge, merge}}},
	{"spill-twice", Config{}, 0, false, nil, []sample{{1013, laneLimit - 1}}, [][]step{{add(1013, 1)}, {add(1013, 1)}, {merge}}},
	{"spill-merged", Config{}, 0, false, []sample{{10, 1}, {1013, laneLimit - 1}}, []sample{{10, 1}}, [][]step{{add(1013, 1)}, {merge, merge}}},
	{"weight", Config{}, 0, false, nil, []sample{{10, 1}}, [][]step{{add(1013, 100_000)}, {merge, merge}}},
	{"carry", Config{}, 0, false, nil, []sample{{math.MaxInt64, 2}}, [][]step{{add(1013, 1)}, {merge, merge}}},
	{"signed", Config{Signed: true}, 0, false, []sample{{-10, 1}}, nil, [][]step{{add(-1013, 1)}, {add(5, 1)}, {merge}}},

	{"owned", Config{}, 2, false, nil, []sample{{10, 1}, {1013, 1}}, [][]step{{add(1013, 1)}, {merge}}},
	{"owned-two", Config{}, 2, false, []sample{{10, 1}, {1008, 1}, {9, 1}}, nil, [][]step{{add(1013, 1), add(9, 1)}, {merge, merge}}},
	{"owned-three-programs", Config{}, 2, false, []sample{{10, 1}, {1008, 1}}, nil, [][]step{{add(1013, 1)}, {add(1009, 1)}, {merge}}},
	{"owned-three-merges", Config{}, 2, false, []sample{{1008, 1}}, nil, [][]step{{add(1013, 1), add(1009, 1)}, {merge, merge, merge}}},
	{"owned-new-page", Config{}, 2, false, nil, nil, [][]step{{add(1013, 1)}, {add(10, 1)}, {merge}}},
	{"owned-bound", Config{}, 2, false, []sample{{1000, 1}}, nil, [][]step{{add(1000, 1), add(1001, 1)}, {merge}}},
	{"owned-spill", Config{}, 2, false, []sample{{10, 1}}, []sample{{1013, laneLimit - 1}}, [][]step{{add(1013, 1)}, {merge, merge}}},
	{"owned-weight", Config{}, 2, false, []sample{{1013, 1}}, nil, [][]step{{add(1013, 40_000)}, {merge, merge}}},
	{"owned-carry", Config{}, 2, false, nil, []sample{{math.MaxInt64, 2}}, [][]step{{add(1013, 1)}, {merge, merge}}},
	{"owned-signed", Config{Signed: true}, 2, false, []sample{{-10, 1}}, nil, [][]step{{add(-1013, 1)}, {add(5, 1)}, {merge}}},
	{"owned-one-processor", Config{}, 1, true, []sample{{10, 1}}, nil, [][]step{{add(1013, 1)}, {add(10, 1), add(1013, 1)}, {merge}}},
	{"becoming-hot", Config{}, 0, false, nil, []sample{{10, 1}}, [][]step{{add(1013, 1), add(1013, 1)}, {own(0), own(0), merge}}},
}

type sample struct {
	v int64
	n uint64
}

// step is a call of an explored program.
type step func(*trial)

func add(v int64, n uint64) step {
	return func(t *trial) {
		t.h.RecordFloat(float64(v), float64(n))
		t.recorded = append(t.recorded, sample{v, n})
	}
}

func merge(t *trial) {
	s := t.h.Merge()
	t.merged += s.Interval.Count()
	t.check("interval", s.Interval)
	t.check("cumulative", s.Cumulative)
	switch c := s.Cumulative; {
	case t.merged != c.Count():
		t.fail("intervals have %d values, cumulative has %d", t.merged, c.Count())
	case c.Count() < t.last.Count(), !t.h.layout.signed && c.Sum() < t.last.Sum():
		t.fail("cumulative fell from %d values, sum %v, to %d, sum %v", t.last.Count(), t.last.Sum(), c.Count(), c.Sum())
	}
	t.last = s.Cumulative
}

func read(t *trial) {
	s := t.h.Snapshot()
	if t.check("read", s.Cumulative); s.Cumulative.Count() < t.read.Count() {
		t.fail("a reader saw %d values after %d", s.Cumulative.Count(), t.read.Count())
	}
	t.read = s.Cumulative
}

// own gives a slot a shard of its own, as heat does.
func own(slot int) step { return func(t *trial) { ownSlot(t.h, slot) } }

// trial is the state of one schedule.
type trial struct {
	h          *Histogram
	recorded   []sample
	merged     uint64
	last, read *Stats
	err        error
}

func (t *trial) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// check checks that some values have the summary s.
func (t *trial) check(what string, s *Stats) {
	if err := possible(s); err != nil {
		t.fail("%s: %w", what, err)
	}
}

// checkExact checks that s summarizes the samples.
func (t *trial) checkExact(what string, s *Stats, samples []sample) {
	h := New(t.h.layout)
	for _, x := range samples {
		h.recordShared(x.v, x.n)
	}
	want := h.Merge().Cumulative
	if got, want := summary(s), summary(want); got != want {
		t.fail("%s:\n got %s\nwant %s", what, got, want)
	}
}

func summary(s *Stats) string {
	text := fmt.Sprintf("count %d, sum %v, %v to %v, bounds %v, bins", s.count, s.sum, s.least, s.greatest, s.AppendCumulative(nil))
	s.Bins(func(lower, _ float64, n uint64) bool {
		text += fmt.Sprintf(" %v:%d", lower, n)
		return true
	})
	return text
}

// TestSchedules checks every merge of every schedule for a possible result, and
// after the last record and one merge for the exact one.
func TestSchedules(t *testing.T) {
	total := 0
	for _, tt := range schedules {
		tt.config.Bounds = []float64{10, 1000}
		layout, err := NewLayout(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		total += schedule.Check(t, tt.name, *preemptions, func() schedule.Trial {
			tr := &trial{h: New(layout), last: layout.empty, read: layout.empty}
			tr.h.makeShared()
			for slot := range tt.owned {
				ownSlot(tr.h, slot)
			}
			for _, x := range tt.before {
				add(x.v, x.n)(tr)
			}
			merge(tr)
			for _, x := range tt.pending {
				add(x.v, x.n)(tr)
			}
			return schedule.Trial{Programs: schedule.Bind(tr, tt.programs), Shared: tt.shared, Check: tr.checkEnd}
		})
	}
	t.Logf("%d schedules with up to %d preemptions", total, *preemptions)
}

// checkEnd checks the end of a schedule.
func (t *trial) checkEnd() error {
	merge(t)
	t.checkExact("cumulative after the last record", t.last, t.recorded)
	if t.h.Snapshot().Interval.Count() != 0 {
		if merge(t); t.h.Snapshot().Interval.Count() != 0 {
			t.fail("values appeared after the last record")
		}
		t.checkExact("cumulative after a quiet interval", t.last, t.recorded)
	}
	next := []sample{{2001, 1}, {2003, 1}, {2005, 1}} // of one bin
	for _, x := range next {
		add(x.v, x.n)(t)
	}
	merge(t)
	t.checkExact("the next interval", t.h.Snapshot().Interval, next)
	t.checkExact("cumulative in the end", t.last, t.recorded)
	return t.err
}
