package flush_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// intervalSink is a sink with an interval, which also wants to know what ended.
type intervalSink struct {
	recorder
	every time.Duration
	spans []time.Duration
	last  []bool
	ended []string
}

func (p *intervalSink) Interval() time.Duration      { return p.every }
func (p *intervalSink) NeedsTotals() bool            { return true }
func (p *intervalSink) Delivery() flush.SinkDelivery { return flush.SinkDelivery{Kind: "test"} }

func (p *intervalSink) Flush(s *store.Snapshot) error {
	p.spans, p.last = append(p.spans, s.Interval), append(p.last, s.Last)
	s.Ended(func(c *store.Cursor) bool {
		p.ended = append(p.ended, c.Name())
		return true
	})
	return p.recorder.Flush(s)
}

// TestSinkWithAnInterval: increments of all flushes arrive, once per interval of the
// sink and at the end, whatever is flushed out of schedule.
func TestSinkWithAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		c := st.Root().Counter("c")
		p := &intervalSink{recorder: recorder{name: "p"}, every: 3 * time.Second}
		s, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{p}})
		for i := range 7 {
			c.Inc()
			sc := st.Scope("gone")
			sc.Counter(string(rune('a' + i))).Inc()
			time.Sleep(500 * time.Millisecond)
			sc.Close()
			s.FlushNow()
			time.Sleep(500*time.Millisecond + time.Nanosecond)
		}
		c.Add(100)
		if got := s.Sinks(); len(got) != 1 || got[0].Name != "p" || got[0].Interval != 3*time.Second || got[0].Flushes != 2 || got[0].Delivery == nil {
			t.Errorf("%+v", got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if want := []bool{false, false, true}; !slices.Equal(p.last, want) {
			t.Errorf("last snapshots %v, want %v", p.last, want)
		}
		if p.spans[0].Round(time.Millisecond) != 3*time.Second || p.spans[1].Round(time.Millisecond) != 3*time.Second {
			t.Errorf("snapshots cover %v", p.spans)
		}
		if p.deltas != 107 {
			t.Errorf("%d increments arrived, want 107", p.deltas)
		}
		if got := strings.Join(p.ended, " "); got != "gone.a gone.b gone.c gone.d gone.e gone.f gone.g" {
			t.Errorf("ended %q", got)
		}
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%d views are open", n)
		}
	})
}

// TestSuspendedSinkGetsTheRest: a handoff suspends flushes in the middle of an
// interval.
func TestSuspendedSinkGetsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		c := st.Root().Counter("c")
		p := &intervalSink{recorder: recorder{name: "p"}, every: time.Minute}
		s, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{p}})
		c.Inc()
		time.Sleep(1500 * time.Millisecond)
		c.Inc()
		s.Suspend()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if p.deltas != 2 || !slices.Equal(p.last, []bool{false}) {
			t.Errorf("%d increments arrived in %d snapshots", p.deltas, len(p.last))
		}
	})
}

func TestIntervalsOfSinksAreMultiples(t *testing.T) {
	for _, tt := range []struct {
		every   time.Duration
		onAdmin bool
		want    string
	}{
		{7 * time.Second, false, `flush: sink "p": interval 7s is not a multiple of stats_flush_interval 5s`},
		{time.Second, false, `flush: sink "p": interval 1s is not a multiple of stats_flush_interval 5s`},
		{10 * time.Second, true, `flush: sink "p": an interval of 10s cannot be used with stats_flush_on_admin`},
	} {
		p := &intervalSink{recorder: recorder{name: "p"}, every: tt.every}
		_, err := flush.New(flush.Config{Store: store.New(store.Options{}), OnAdmin: tt.onAdmin, Sinks: []flush.Sink{p}})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%v: %v, want %s", tt.every, err, tt.want)
		}
	}
}
