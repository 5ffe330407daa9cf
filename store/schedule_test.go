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

	{"poll", 0, false, [][]action{{inc, inc}, {poll, flush}}},
	{"poll-close", 0, false, [][]action{{inc, closeScope, walk}, {poll, flush}}},
	{"poll-gauge", 0, false, [][]action{{set(1), set(2)}, {poll, flush}}},
	{"owned-poll", 2, false, [][]action{{inc, inc}, {poll, flush}}},
	{"text-poll", 0, false, [][]action{{say("a"), say("b")}, {poll}}},
	{"walk-create", 0, false, [][]action{{walk, walk}, {create}}},
	{"walk-close", 0, false, [][]action{{walk}, {closeScope, create}}},
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

// say looks a text readout up by name and sets it.
func say(text string) action {
	return func(t *trial) {
		t.sc.Text("t").Set(text)
		t.said = text
	}
}

// poll adds the changes to what the watch has reported.
func poll(t *trial) {
	for c, delta := range t.watch.Poll().Each {
		switch c.Locate(); c.Name() {
		case "s.c", "s.d":
			t.watched += delta
		case "s.g":
			t.watchedGauge = c.Uint()
		case "s.t":
			t.watchedText = c.Text()
		}
	}
}

// create makes a counter, which can get the memory of the names of ended stats.
func create(t *trial) { t.st.Root().Counter("new").Inc() }

// walk checks that a view is in order, and shows stats under their names, each once,
// while stats are created and end.
func walk(t *trial) {
	v := t.st.View()
	defer v.Close()
	last, found := "", 0
	for cur := v.ByName(Scalars); cur.Next(); {
		schedule.Point()
		name := cur.Name()
		if of, seen := t.names[cur.Ref()]; seen && of != name || name <= last {
			t.fail("a view shows %q after %q, for a stat called %q", name, last, of)
		}
		t.names[cur.Ref()] = name
		if last = name; name == "s.c" || name == "s.d" {
			found++
		}
	}
	if found != 2 && t.closed == ^uint64(0) {
		t.fail("a view has %d of 2 counters", found)
	}
}

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

	watch        *Watch
	watched      uint64 // increments that the watch reported
	watchedGauge uint64
	watchedText  string
	said         string            // the last text
	names        map[uint64]string // of stats, by reference
	err          error
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
	poll(t)
	if t.closed == ^uint64(0) && t.watched != sum || t.watchedGauge != level {
		t.fail("the watch has %d increments and the gauge at %d, the snapshots %d and %d", t.watched, t.watchedGauge, sum, level)
	}
	if t.watchedText != t.said {
		t.fail("the watch has the text %q, want %q", t.watchedText, t.said)
	}
	t.watch.Close()
	for _, s := range t.snapshots {
		s.Close()
	}
	t.st.View().Close()
	if n := t.st.OpenViews(); n != 0 || len(t.st.removed) != 0 {
		t.fail("%d views are open, and %d ended stats keep their memory", n, len(t.st.removed))
	}
	return t.err
}

// TestSchedules checks that no schedule loses an increment or reports one twice, and
// that none leaves sinks with an old value.
func TestSchedules(t *testing.T) {
	total := 0
	for _, tt := range schedules {
		total += schedule.Check(t, tt.name, *preemptions, func() schedule.Trial {
			tr := &trial{now: time.Unix(1e9, 0), closed: ^uint64(0), names: make(map[uint64]string)}
			tr.st = New(Options{Now: func() time.Time { return tr.now }})
			tr.st.KeepEnded()
			tr.sc = tr.st.Root().ScopeWith("s", ScopeOptions{TTL: TTL{Counter: time.Second}})
			tr.c, tr.other, tr.g = tr.sc.Counter("c"), tr.sc.Counter("d"), tr.st.Root().Gauge("s.g")
			for slot := range tt.owned {
				ownSlot(tr.c, slot)
			}
			tr.st.Sweep(false) // nobody is about to write after the lookup
			tr.watch = tr.st.Watch()
			return schedule.Trial{Programs: schedule.Bind(tr, tt.programs), Shared: tt.shared, Check: tr.checkEnd}
		})
	}
	t.Logf("%d schedules with up to %d preemptions", total, *preemptions)
}
