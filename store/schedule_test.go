//go:build schedule

package store

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

var preemptions = flag.Int("preemptions", 2, "explore schedules with up to so many preemptions")

// schedules lists the explored concurrent programs. The actions of a program are the
// functions below.
var schedules = []struct {
	name     string
	owned    int // scheduler slots with a copy of the page
	shared   bool
	programs [][]action
}{
	{"inc", 0, false, [][]action{{inc, inc}, {flush, flush}}},
	{"inc-two-writers", 0, false, [][]action{{inc}, {inc}, {flush}}},
	{"inc-two-counters", 0, false, [][]action{{inc}, {incOther}, {flush}}},
	{"inc-reset", 0, false, [][]action{{inc, inc}, {reset, flush}}},
	{"inc-read", 0, false, [][]action{{inc, inc}, {reset}, {read, read}}},
	{"inc-close", 0, false, [][]action{{inc, inc}, {closeScope, flush}}},
	{"close-flush", 0, false, [][]action{{inc, closeScope}, {flush, flush}}},
	{"becoming-hot", 0, false, [][]action{{inc, inc}, {own(0), flush}}},
	{"becoming-hot-twice", 0, false, [][]action{{inc}, {own(0)}, {own(0), flush}}},

	{"owned", 2, false, [][]action{{inc, inc}, {flush, flush}}},
	{"owned-two-writers", 2, false, [][]action{{inc}, {inc}, {flush}}},
	{"owned-two-counters", 2, false, [][]action{{inc, incOther}, {flush, flush}}},
	{"owned-one-processor", 1, true, [][]action{{inc}, {inc}, {flush}}},
	{"owned-reset", 2, false, [][]action{{inc, inc}, {reset, flush}}},
	{"owned-read", 2, false, [][]action{{inc, inc}, {reset}, {read, read}}},
	{"owned-close", 2, false, [][]action{{inc, inc}, {closeScope, flush}}},

	{"ask-sweep", 0, false, [][]action{{ask, ask}, {flush, sweep}}},
	{"ask-first-sweep", 0, false, [][]action{{ask}, {sweep, flush}}},
	{"ask-two", 0, false, [][]action{{ask}, {ask}, {sweep}}},
	{"inc-sweep", 0, false, [][]action{{ask}, {flush, sweep}, {flush}}},

	{"gauge", 0, false, [][]action{{set(1), set(2)}, {flush, flush}}},
	{"gauge-two-writers", 0, false, [][]action{{set(1)}, {set(2)}, {flush}}},
}

// action is a call of an explored program.
type action func(*trial)

func inc(t *trial) {
	t.begun++
	t.c.Inc()
	t.done++
}

// incOther increments the neighbor of the counter, which shares words of marks with it.
func incOther(t *trial) {
	t.begun++
	t.other.Inc()
	t.done++
}

// ask looks the counter up by name, as callers do that keep no handle.
func ask(t *trial) {
	t.begun++
	t.sc.Counter("c").Inc()
	t.done++
}

func set(n uint64) action { return func(t *trial) { t.g.Set(n) } }

func own(slot int) action { return func(t *trial) { ownSlot(t.c, slot) } }

// flush keeps the snapshot open until the end, as a slow sink does.
func flush(t *trial) { t.snapshots = append(t.snapshots, t.st.Flush(FlushOptions{})) }

func reset(t *trial) {
	t.resetting, t.resetFrom = true, t.done
	t.st.ResetCounters()
	t.resetTo = t.begun
}

func sweep(t *trial) {
	t.now = t.now.Add(time.Hour)
	t.st.Sweep(false)
}

func closeScope(t *trial) {
	t.closed = t.done
	t.sc.Close()
}

func read(t *trial) {
	least, calm := t.done, !t.resetting
	v := t.c.Value()
	if v > t.begun || v < least && calm && !t.resetting {
		t.fail("a reader saw %d, with %d to %d increments", v, least, t.begun)
	}
}

// trial is the state of one schedule.
type trial struct {
	st       *Store
	sc       *Scope
	c, other *Counter
	g        *Gauge
	now      time.Time

	begun, done        uint64 // increments
	closed             uint64 // increments done before the scope was closed, if it was
	resetFrom, resetTo uint64 // increments done before, and begun until the end of, the reset
	resetting          bool   // a reset has begun
	snapshots          []*Snapshot
	err                error
}

func (t *trial) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// checkEnd checks what the snapshots have in the end: each increment once, except that
// one can be missing that raced with the end of the scope, and the last value of the gauge.
func (t *trial) checkEnd() error {
	flush(t)
	var sum, level uint64
	for _, s := range t.snapshots {
		for c, delta := range s.CounterChanges {
			if name := c.Name(); name == "s.c" || name == "s.d" {
				sum += delta
			}
		}
		for c := range s.GaugeChanges {
			if c.Name() == "s.g" {
				level = c.Uint()
			}
		}
	}
	if sum > t.begun || sum < min(t.done, t.closed) {
		t.fail("the snapshots have %d of %d increments", sum, t.done)
	}
	if want := t.g.Value(); level != want {
		t.fail("the snapshots have the gauge at %d, it is at %d", level, want)
	}
	if v := t.c.Value(); t.resetting && (v < t.done-t.resetTo || v > t.done-t.resetFrom) {
		t.fail("the counter shows %d after the reset, want %d to %d", v, t.done-t.resetTo, t.done-t.resetFrom)
	}
	for _, s := range t.snapshots {
		s.Close()
	}
	return t.err
}

// TestSchedules checks that no schedule loses an increment or reports one twice, and
// that none leaves sinks with an old value.
func TestSchedules(t *testing.T) {
	total := 0
	for _, tt := range schedules {
		total += schedule.Check(t, tt.name, *preemptions, func() schedule.Trial {
			tr := &trial{now: time.Unix(1e9, 0), closed: ^uint64(0)}
			tr.st = New(Options{Now: func() time.Time { return tr.now }})
			tr.st.KeepEnded()
			tr.sc = tr.st.Root().ScopeWith("s", ScopeOptions{TTL: TTL{Counter: time.Second}})
			tr.c, tr.other, tr.g = tr.sc.Counter("c"), tr.sc.Counter("d"), tr.st.Root().Gauge("s.g")
			for slot := range tt.owned {
				ownSlot(tr.c, slot)
			}
			tr.st.Sweep(false) // nobody is about to write after the lookup
			return schedule.Trial{Programs: schedule.Bind(tr, tt.programs), Shared: tt.shared, Check: tr.checkEnd}
		})
	}
	t.Logf("%d schedules with up to %d preemptions", total, *preemptions)
}
