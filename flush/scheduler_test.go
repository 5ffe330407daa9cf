package flush_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a slow sink that records its snapshots.
type recorder struct {
	name string
	slow time.Duration
	fail func(seq uint64) error

	mu     sync.Mutex
	seqs   []uint64
	at     []time.Time
	deltas uint64
}

func (r *recorder) Name() string { return r.name }

func (r *recorder) Flush(s *store.Snapshot) error {
	time.Sleep(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs = append(r.seqs, s.Seq)
	r.at = append(r.at, s.Time)
	s.CounterChanges(func(c *store.Cursor, d uint64) bool {
		if c.Name() == "c" {
			r.deltas += d
		}
		return true
	})
	if r.fail != nil {
		return r.fail(s.Seq)
	}
	return nil
}

func value(st *store.Store, name string) uint64 {
	v := st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		return 0
	}
	return c.Uint()
}

func run(t *testing.T, cfg flush.Config) (s *flush.Scheduler, stop func() error) {
	t.Helper()
	s, err := flush.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, func() error { cancel(); return <-done }
}

func TestFixedRateWithFinalFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		r := &recorder{name: "r"}
		_, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{r}})
		start := time.Now()
		c := st.Root().Counter("c")
		for range 35 {
			c.Inc()
			time.Sleep(100 * time.Millisecond)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.seqs, []uint64{1, 2, 3, 4}) {
			t.Fatalf("flushes %v, want three by the timer and a last one", r.seqs)
		}
		for i, at := range r.at[:3] {
			if want := time.Duration(i+1) * time.Second; at.Sub(start) != want {
				t.Errorf("flush %d at %v, want %v", i+1, at.Sub(start), want)
			}
		}
		if r.deltas != 35 {
			t.Errorf("the sink got %d, want 35", r.deltas)
		}
	})
}

// TestOverrunsAreCounted makes one flush take three and a half intervals.
func TestOverrunsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		r := &recorder{name: "r"}
		n := 0
		s, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{r},
			Before: []func(time.Time){func(time.Time) {
				if n++; n == 2 {
					time.Sleep(3500 * time.Millisecond)
				}
			}}})
		start := time.Now()
		time.Sleep(5800 * time.Millisecond)
		if got := s.Took(); got != 3500*time.Millisecond {
			t.Errorf("the last flush took %v, want 3.5s", got)
		}
		time.Sleep(1700 * time.Millisecond)
		if got := s.Took(); got != 0 {
			t.Errorf("the last flush took %v, want no time", got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := value(st, "server.dropped_stat_flushes"); got != 3 {
			t.Errorf("server.dropped_stat_flushes = %d, want 3", got)
		}
		var got []time.Duration
		for _, at := range r.at {
			got = append(got, at.Sub(start))
		}
		want := []time.Duration{1000, 5500, 6000, 7000, 7500}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(got, want) {
			t.Errorf("snapshots at %v, want %v", got, want)
		}
	})
}

func TestSlowSinkDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		slow, quick := &recorder{name: "slow", slow: 10 * time.Second}, &recorder{name: "quick"}
		_, stop := run(t, flush.Config{Store: st, Interval: time.Second, Queue: 2, Sinks: []flush.Sink{slow, quick}, Linger: time.Minute})
		for range 20 {
			st.Root().Counter("c").Inc()
			time.Sleep(time.Second)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if n := len(quick.seqs); n != 20 {
			t.Errorf("the quick sink got %d snapshots, want 20", n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if quick.deltas != 20 || slow.deltas != 20 {
			t.Errorf("deltas quick %d, slow %d, want 20 each", quick.deltas, slow.deltas)
		}
		joined := value(st, "sink.joined.sink.slow")
		if got := uint64(len(slow.seqs)) + joined; got != 21 {
			t.Errorf("the slow sink took %d and %d were joined of 21", len(slow.seqs), joined)
		}
		if joined == 0 || !slices.IsSorted(slow.seqs) {
			t.Errorf("joined %d, order %v", joined, slow.seqs)
		}
	})
}

func TestLingerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &recorder{name: "stuck", slow: time.Hour}
		_, stop := run(t, flush.Config{Store: store.New(store.Options{}), Sinks: []flush.Sink{stuck}, Linger: 3 * time.Second})
		synctest.Wait()
		start := time.Now()
		if err := stop(); err == nil || !strings.Contains(err.Error(), "3s") {
			t.Errorf("error %v, want one that names the time", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("Run ended after %v, want 3s", d)
		}
		time.Sleep(2 * time.Hour) // lets the sink end before the bubble does
	})
}

// TestPanicsOfSinks checks that panics of a sink and of OnError are errors of the
// sink and stop nothing else.
func TestPanicsOfSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		bad := &recorder{name: "bad", fail: func(seq uint64) error {
			if seq == 2 {
				panic(guardtest.Canary)
			}
			return errors.New("no route")
		}}
		var mu sync.Mutex
		var told []string
		panics := guardtest.New(t)
		_, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{bad}, OnError: func(sink string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if told = append(told, sink+": "+err.Error()); len(told) == 3 {
				panic(guardtest.Canary)
			}
		}, Logger: panics.Logger()})
		time.Sleep(3500 * time.Millisecond)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []string{"bad: no route", `bad: flush: sink "bad" panicked`, "bad: no route", "bad: no route"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		panics.Caught("sink")
		panics.Caught("report of a sink")
		if got := value(st, "sink.errors.sink.bad"); got != 4 {
			t.Errorf("sink.errors = %d, want 4", got)
		}
		if got := value(st, "sink.flushes.sink.bad"); got != 4 {
			t.Errorf("sink.flushes = %d, want 4", got)
		}
	})
}

// TestPanicsAroundAFlush checks that panics of functions before and after a flush
// do not stop it.
func TestPanicsAroundAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		var wild atomic.Bool
		wild.Store(true)
		calls := 0
		jump := func() {
			if calls++; wild.Load() {
				panic(guardtest.Canary)
			}
		}
		r := &recorder{name: "r"}
		_, stop := run(t, flush.Config{
			Store: store.New(store.Options{}), Interval: time.Second, Sinks: []flush.Sink{r}, Logger: panics.Logger(),
			Before: []func(time.Time){func(time.Time) { jump() }, func(time.Time) { calls++ }},
			Sweep:  func(bool) { jump() },
			After:  []func(*store.Snapshot){func(*store.Snapshot) { jump() }, func(*store.Snapshot) { calls++ }},
		})
		time.Sleep(1500 * time.Millisecond)
		panics.Caught("before a flush")
		panics.Caught("after a flush")
		panics.Caught("sweep")
		wild.Store(false)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if calls != 15 || !slices.Equal(r.seqs, []uint64{1, 2, 3}) {
			t.Errorf("%d calls; flushes %d", calls, r.seqs)
		}
	})
}

// TestPanicOfAFlush has a clock that panics twice: the next flush reports the increments of
// all before it, and a watchdog sees that none ended.
func TestPanicOfAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		var fuse guardtest.Fuse
		st := store.New(store.Options{Now: func() time.Time { fuse.Burn(); return time.Now() }})
		r := &recorder{name: "r"}
		s, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{r}, Logger: panics.Logger()})
		c := st.Root().Counter("c")
		fuse.Light(2)
		c.Inc()
		time.Sleep(2500 * time.Millisecond)
		panics.Caught("flush")
		panics.Caught("flush")
		if s.Ended() != 0 || r.deltas != 0 {
			t.Errorf("%d flushes ended and a sink got %d increments, want none", s.Ended(), r.deltas)
		}
		c.Inc()
		time.Sleep(time.Second)
		synctest.Wait()
		if s.Ended() != 1 || r.deltas != 2 {
			t.Errorf("%d flushes ended and a sink got %d increments, want 1 and 2", s.Ended(), r.deltas)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOnAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		r := &recorder{name: "r"}
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, Sinks: []flush.Sink{r}})
		h := st.Root().Histogram("h", store.Milliseconds)
		h.Record(4)
		time.Sleep(time.Hour)
		if h.Snapshot().Used {
			t.Error("a timer flushed")
		}
		if got := s.Sinks()[0].Interval; got != 0 {
			t.Errorf("the sink has an interval of %v", got)
		}
		s.FlushForAdmin()
		if h.Snapshot().Interval.Count() != 1 {
			t.Error("the flush is not visible when FlushForAdmin returns")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(r.seqs) != 2 {
			t.Errorf("%d flushes, want one and a last one", len(r.seqs))
		}
	})
}

func TestFlushUnderWayIsNotDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, Before: []func(time.Time){func(time.Time) { time.Sleep(time.Second) }}})
		go s.FlushForAdmin()
		synctest.Wait()
		s.FlushForAdmin()
		if got := value(st, "server.dropped_stat_flushes"); got != 1 {
			t.Errorf("server.dropped_stat_flushes = %d, want 1", got)
		}
		time.Sleep(2 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUninitializedServerMergesNoHistograms(t *testing.T) {
	st := store.New(store.Options{})
	ready := false
	s, err := flush.New(flush.Config{Store: st, OnAdmin: true, Initialized: func() bool { return ready }})
	if err != nil {
		t.Fatal(err)
	}
	h := st.Root().Histogram("h", store.Milliseconds)
	h.Record(1)
	s.FlushForAdmin()
	if h.Snapshot().Used {
		t.Error("merged before the server is initialized")
	}
	ready = true
	s.FlushForAdmin()
	if !h.Snapshot().Used {
		t.Error("not merged after")
	}
}

// TestUninitializedServerMergesWhenAsked: the samples of a server that ends before it is
// initialized reach its sinks, and the test of a program flushes a server that does not
// run and finds its histograms.
func TestUninitializedServerMergesWhenAsked(t *testing.T) {
	for name, ask := range map[string]func(*flush.Scheduler) error{
		"end": func(s *flush.Scheduler) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return s.Run(ctx)
		},
		"now": func(s *flush.Scheduler) error {
			s.FlushNow()
			return nil
		},
	} {
		st := store.New(store.Options{})
		s, err := flush.New(flush.Config{Store: st, Initialized: func() bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		h := st.Root().Histogram("h", store.Milliseconds)
		h.Record(1)
		if err := ask(s); err != nil || !h.Snapshot().Used {
			t.Errorf("%s: the samples are not merged: %v", name, err)
		}
	}
}

func TestEvictionInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		st.ScopeWith("e", store.ScopeOptions{Evict: true}).Counter("x").Inc()
		_, stop := run(t, flush.Config{Store: st, Interval: time.Second, EvictionInterval: 3 * time.Second})
		time.Sleep(5500 * time.Millisecond)
		if _, ok := st.View().Find("e.x"); !ok {
			t.Error("evicted at the first sweep")
		}
		time.Sleep(time.Second)
		if _, ok := st.View().Find("e.x"); ok {
			t.Error("not evicted at the second sweep")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	st := store.New(store.Options{})
	for _, tt := range []struct {
		cfg  flush.Config
		want string
	}{
		{flush.Config{}, "flush: no store"},
		{flush.Config{Store: st, OnAdmin: true, Interval: time.Second}, "Only one of stats_flush_interval or stats_flush_on_admin should be set!"},
		{flush.Config{Store: st, Interval: time.Microsecond}, "stats_flush_interval 1µs not in [1ms, 5m0s)"},
		{flush.Config{Store: st, Interval: 5 * time.Minute}, "stats_flush_interval 5m0s not in [1ms, 5m0s)"},
		{flush.Config{Store: st, Interval: 2 * time.Second, EvictionInterval: 5 * time.Second}, "stats_eviction_interval 5s is not a multiple of stats_flush_interval 2s"},
		{flush.Config{Store: st, Sinks: []flush.Sink{nil}}, "flush: sink 0 is nil"},
		{flush.Config{Store: st, Sinks: []flush.Sink{&recorder{name: "a"}, &recorder{}}}, "flush: sink 1 has no name"},
		{flush.Config{Store: st, Sinks: []flush.Sink{&recorder{name: "a"}, &recorder{name: "b"}, &recorder{name: "a"}}}, `flush: sinks 0 and 2 have the same name "a"`},
	} {
		if _, err := flush.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.cfg, err, tt.want)
		}
	}
}

// TestSinkKit runs the conformance kit on a sink that behaves.
func TestSinkKit(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		r := &recorder{name: "r"}
		return sinktest.Receiver{Sink: r, Received: func(name string) uint64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.deltas
		}, Counter: "c"}
	})
}

// TestEndedCountsFlushes: suspended flushes count, and one in progress does not.
func TestEndedCountsFlushes(t *testing.T) {
	st := store.New(store.Options{})
	var s *flush.Scheduler
	during := uint64(99)
	s, err := flush.New(flush.Config{Store: st, After: []func(*store.Snapshot){func(*store.Snapshot) { during = s.Ended() }}})
	if err != nil {
		t.Fatal(err)
	}
	s.FlushNow()
	if s.Ended() != 1 || during != 0 {
		t.Errorf("%d flushes have ended, %d during the first one", s.Ended(), during)
	}
	s.Suspend()
	s.FlushNow()
	if s.Ended() != 3 {
		t.Errorf("%d flushes have ended after that of Suspend and a suspended one, want 3", s.Ended())
	}
}

// TestSuspendedFlushesReportHistograms: a successor gets counters and gauges, and the
// sinks of the suspended server get the histograms, which are not handed over.
func TestSuspendedFlushesReportHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		c, h := st.Root().Counter("c"), st.Root().Histogram("h", store.Milliseconds)
		var counted, recorded, gauges uint64
		s, err := flush.New(flush.Config{Store: st, Interval: time.Second, After: []func(*store.Snapshot){func(snap *store.Snapshot) {
			snap.CounterChanges(func(cur *store.Cursor, d uint64) bool {
				if cur.Name() == "c" {
					counted += d
				}
				return true
			})
			snap.GaugeChanges(func(*store.Cursor) bool { gauges++; return true })
			snap.HistogramChanges(func(_ *store.Cursor, h *histogram.Snapshot) bool {
				recorded += h.Interval.Count()
				return true
			})
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		expect := func(count, records uint64) {
			t.Helper()
			if counted != count || recorded != records || gauges != 0 {
				t.Errorf("counted %d, want %d; recorded %d, want %d; %d gauges", counted, count, recorded, records, gauges)
			}
		}
		c.Inc()
		h.Record(1)
		s.Suspend()
		expect(1, 1)
		c.Inc()
		st.Root().Gauge("g").Set(1)
		h.Record(2)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		expect(1, 2)
		h.Record(3)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		expect(1, 3)
		s.Resume()
		s.FlushNow()
		if counted != 2 || gauges != 1 {
			t.Errorf("after the resumption: counted %d, %d gauges", counted, gauges)
		}
	})
}
