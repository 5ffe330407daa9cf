package history_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestLengthsOfSteps: with flushes of half a minute there are 60 flushes, before them the rest
// of an hour in minutes, which begins where a step of ten minutes does, and 144 steps of ten
// minutes, of which six overlap with the minutes.
func TestLengthsOfSteps(t *testing.T) {
	w := newWorld(0)
	w.now = time.Unix(1_700_000_370, 0) // a flush before ten whole minutes
	w.h = history.New(history.Config{Store: w.store})
	c := w.store.Root().Counter("c")
	for range 2 * 60 * 26 {
		c.Inc()
		w.flush(30 * time.Second)
	}
	var got [][2]int // lengths in seconds and how many of them follow each other
	w.find(t, "c", func(cur *store.Cursor) {
		points, _ := w.h.Series(cur, time.Time{})
		for _, p := range points {
			length := int(p.End.Sub(p.Start).Seconds())
			if n := len(got); n > 0 && got[n-1][0] == length {
				got[n-1][1]++
			} else {
				got = append(got, [2]int{length, 1})
			}
		}
	})
	if want := [][2]int{{600, 138}, {60, 40}, {30, 60}}; !slices.Equal(got, want) {
		t.Errorf("steps of %v, want %v", got, want)
	}
}

// TestLastFlushesAreSteps: whenever a minute ends, the last 60 flushes are steps of their
// own.
func TestLastFlushesAreSteps(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 1300 * time.Millisecond, 5 * time.Second, 7 * time.Second, 45 * time.Second} {
		w := newWorld(0)
		c := w.store.Root().Counter("c")
		for i := range 400 {
			c.Inc()
			w.flush(interval)
			if i < 60 {
				continue
			}
			w.find(t, "c", func(cur *store.Cursor) {
				points, _ := w.h.Series(cur, w.now.Add(-60*interval))
				for _, p := range points {
					if d := p.End.Sub(p.Start); d != interval {
						t.Fatalf("flush %d of %v: a step of %v until %v ago", i, interval, d, w.now.Sub(p.End))
					}
				}
				if len(points) != 60 {
					t.Fatalf("flush %d of %v: %d steps", i, interval, len(points))
				}
			})
		}
	}
}

// TestEndedStatsGiveTheirShareBack: however many stats end one after the other, the
// history of the others stays complete, also if a block has ended and living histograms.
func TestEndedStatsGiveTheirShareBack(t *testing.T) {
	w := newWorld(400_000)
	w.store.Root().Counter("stays").Inc()
	for round := range 500 {
		if round%40 == 0 {
			w.store.Root().Histogram(fmt.Sprint("stays", round), store.Unspecified)
		}
		sc := w.store.Scope("x")
		for i := range 20 {
			sc.Histogram(fmt.Sprint("h", i), store.Unspecified).Record(1)
			sc.Counter(fmt.Sprint("c", i)).Inc()
			sc.Gauge(fmt.Sprint("g", i)).Set(1)
		}
		w.flush(20 * time.Second)
		sc.Close()
		w.flush(20 * time.Second)
		w.flush(40 * time.Second)
	}
	if d := w.now.Sub(w.h.Since()); d < 10*time.Minute {
		t.Errorf("complete for %v", d)
	}
	if used, most := w.h.Bytes(); used > most || used < 0 {
		t.Errorf("%d bytes of %d", used, most)
	}
}

// TestHistoryBeginsAnewAfterTooManyStats: while there are more stats than the memory has room
// for, the history is incomplete, and it is complete again from the flush on that has room. A
// gauge keeps the value that it got meanwhile.
func TestHistoryBeginsAnewAfterTooManyStats(t *testing.T) {
	w := newWorld(60_000)
	root := w.store.Root()
	root.Counter("c").Inc()
	w.flush(20 * time.Second)
	start := w.now
	burst := w.store.Scope("x")
	for i := range 5000 {
		burst.Counter(fmt.Sprint("c", i)).Inc()
	}
	w.flush(20 * time.Second)
	root.Gauge("g").Set(5)
	root.Histogram("h", store.Unspecified).Record(1)
	root.Counter("c").Inc()
	w.flush(20 * time.Second)
	if !w.h.Since().Equal(w.now) {
		t.Errorf("complete since %v in a burst at %v", w.h.Since(), w.now)
	}
	burst.Close()
	for range 20 {
		w.flush(20 * time.Second)
	}
	before, since := w.now, w.h.Since()
	if d := before.Sub(since); d < 4*time.Minute || d > 6*time.Minute {
		t.Errorf("complete for %v after the burst", d)
	}
	root.Gauge("g").Set(7)
	root.Counter("c").Add(10)
	root.Histogram("h", store.Unspecified).Record(1)
	w.flush(20 * time.Second)
	for _, at := range []time.Time{since, before, w.now} {
		want := "2 5 1"
		if at.Equal(w.now) {
			want = "12 7 2"
		}
		m, values := w.at(t, at), 0
		w.find(t, "h", func(c *store.Cursor) { values = int(m.Histogram(c).Cumulative.Count()) })
		if got := fmt.Sprint(w.value(t, m, "c"), " ", w.value(t, m, "g"), " ", values); got != want {
			t.Errorf("at %v: %s, want %s", at, got, want)
		}
	}
	for _, at := range []time.Time{start, since.Add(-time.Second)} {
		if _, err := w.h.At(at); !errors.Is(err, history.ErrTooOld) {
			t.Errorf("at %v, before %v: %v", at, since, err)
		}
	}
	if used, most := w.h.Bytes(); used > most || used < 0 {
		t.Errorf("%d bytes of %d", used, most)
	}
}

// TestHasAtAMoment: a stat is there from the moment of its creation on.
func TestHasAtAMoment(t *testing.T) {
	w := newWorld(0)
	w.store.Root().Counter("first").Inc()
	w.flush(time.Second)
	before := w.now
	w.now = w.now.Add(time.Second)
	w.store.Root().Counter("c").Inc()
	w.flush(0)
	at := w.now
	w.flush(time.Second)
	for moment, want := range map[time.Time]bool{before: false, at: true, w.now: true} {
		m := w.at(t, moment)
		w.find(t, "c", func(c *store.Cursor) {
			if got := m.Has(c); got != want || !m.Time().Equal(moment) {
				t.Errorf("the moment %v for %v has it: %t, want %t", m.Time(), moment, got, want)
			}
		})
	}
}

// TestHasWhenTheClockIsSet sets the clock by an hour, in both directions: a stat still is
// there from the moment of its creation on, also to a clock without a monotonic reading.
func TestHasWhenTheClockIsSet(t *testing.T) {
	for _, start := range []time.Time{time.Now(), time.Unix(1_700_000_000, 0)} {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			w := newWorld(0)
			w.now = start
			w.flush(0)
			early := w.store.Root().Counter("early")
			early.Inc()
			w.flush(10 * time.Second)
			before := w.now.Round(0)
			w.store.Root().Counter("late").Inc()
			if start == start.Round(0) {
				w.now = w.now.Add(by)
			} else {
				w.now = clocktest.Set(w.now, by)
			}
			early.Inc()
			w.flush(10 * time.Second)
			set := w.now.Round(0)
			early.Inc()
			w.flush(10 * time.Second)
			if by > 0 || start != start.Round(0) {
				m := w.at(t, before)
				w.find(t, "late", func(c *store.Cursor) {
					if m.Has(c) {
						t.Errorf("clock set by %v: it is there before its creation", by)
					}
					if points, _ := w.h.Series(c, before); len(points) != 2 {
						t.Errorf("clock set by %v: %d steps since before, want 2", by, len(points))
					}
				})
			}
			m := w.at(t, set)
			if got := w.value(t, m, "early"); got != "2" || !m.Time().Equal(set) {
				t.Errorf("clock set by %v: %s at %v, want 2 at %v", by, got, m.Time(), set)
			}
			w.find(t, "early", func(c *store.Cursor) {
				if !m.Has(c) {
					t.Errorf("clock set by %v: an older stat is not there", by)
				}
				if points, _ := w.h.Series(c, set); len(points) != 1 {
					t.Errorf("clock set by %v: %d steps since then, want 1", by, len(points))
				}
				var exists []bool
				points, _ := w.h.Series(c, time.Time{})
				for _, p := range points {
					exists = append(exists, p.Exists)
				}
				for _, p := range points {
					if r := p.PerSecond(c); r < 0 || r > 0.1 {
						t.Errorf("clock set by %v: %v per second in a step of %v", by, r, p.End.Sub(p.Start))
					}
				}
				w.h.LastRates(func(_ uint64, r float64) bool {
					if r != 0.1 {
						t.Errorf("clock set by %v: %v per second in the last step", by, r)
					}
					return true
				})
				if want := []bool{false, true, true, true}; !slices.Equal(exists, want) {
					t.Errorf("clock set by %v: it exists in %v, want %v", by, exists, want)
				}
			})
		}
	}
}

// TestReadersLetFlushesIn: a flush gets in after each reader, also if the reader stops early
// or asks for too much.
func TestReadersLetFlushesIn(t *testing.T) {
	w := newWorld(0)
	c, h := w.store.Root().Counter("c"), w.store.Root().Histogram("h", store.Unspecified)
	change := func() {
		c.Inc()
		h.Record(1)
		w.flush(time.Second)
	}
	change()
	w.find(t, "c", func(cur *store.Cursor) {
		m := w.at(t, w.now)
		for _, read := range []func(){
			func() { w.h.Since() },
			func() { w.h.Bytes() },
			func() { w.h.Latest() },
			func() { w.h.Changes(time.Time{}) },
			func() { w.h.Series(cur, time.Time{}) },
			func() { _, _ = w.h.At(time.Time{}) },
			func() { _, _ = w.h.At(w.now) },
			func() { m.Raw(cur) },
			func() { w.at(t, w.now).Raw(cur) },
		} {
			read()
			change()
		}
		for stop := range 3 {
			n := 0
			w.h.LastRates(func(uint64, float64) bool { n++; return n <= stop })
			if want := min(2, stop+1); n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
			change()
		}
	})
}
