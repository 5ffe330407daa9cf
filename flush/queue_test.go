package flush_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestDefaults: an interval of 5 s, 16 snapshots that wait for a sink, 5 s for
// the sinks in the end.
func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		stuck := &recorder{name: "stuck", slow: time.Hour}
		s, stop := run(t, flush.Config{Store: st, Sinks: []flush.Sink{stuck}})
		if s.Interval() != 5*time.Second || s.OnAdmin() {
			t.Errorf("interval %v, on admin %t", s.Interval(), s.OnAdmin())
		}
		start := time.Now()
		// The first snapshot is with the sink, 16 wait, 3 joined the last.
		time.Sleep(20*5*time.Second + time.Millisecond)
		if queued, joined := value(st, "sink.queued.sink.stuck"), value(st, "sink.joined.sink.stuck"); queued != 16 || joined != 3 {
			t.Errorf("%d snapshots wait and %d were joined, want 16 and 3", queued, joined)
		}
		end := time.Now()
		if err := stop(); err == nil {
			t.Error("no error although the sink did not finish")
		}
		if d := time.Since(end); d != 5*time.Second {
			t.Errorf("Run ended %v after its context, want 5s", d)
		}
		time.Sleep(100 * time.Hour) // lets the sink end before the bubble does
		stuck.mu.Lock()
		defer stuck.mu.Unlock()
		if at := stuck.at[0].Sub(start); at != 5*time.Second {
			t.Errorf("the first flush was after %v, want 5s", at)
		}
	})
}

// TestFullQueueJoins blocks a sink and checks its stats, that it gets each increment,
// and that all snapshots are closed in the end.
func TestFullQueueJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		r := &recorder{name: "r", slow: 2500 * time.Millisecond}
		failing := false
		r.fail = func(uint64) error {
			if failing {
				return errors.New("no")
			}
			return nil
		}
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, Queue: 3, Sinks: []flush.Sink{r}})
		st.Root().Counter("c")
		symbols := st.Symbols().NumSymbols()
		begun := uint64(time.Now().Unix())
		for i := range 6 {
			sc := st.Scope(fmt.Sprint("gone", i))
			sc.Counter(fmt.Sprint("c", i)).Inc()
			st.Root().Counter("c").Inc()
			s.FlushForAdmin()
			sc.Close()
			synctest.Wait()
		}
		if queued, joined := value(st, "sink.queued.sink.r"), value(st, "sink.joined.sink.r"); queued != 3 || joined != 2 {
			t.Errorf("%d snapshots wait and %d were joined, want 3 and 2", queued, joined)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []uint64{1, 2, 3, 6}; !slices.Equal(r.seqs, want) || r.deltas != 6 {
			t.Errorf("the sink got %v with %d increments, want %v with 6", r.seqs, r.deltas, want)
		}
		if queued, last := value(st, "sink.queued.sink.r"), value(st, "sink.last_success_seconds.sink.r"); queued != 0 || last != begun+10 {
			t.Errorf("%d snapshots wait, the last success was after %d s, want 0 and 10", queued, last-begun)
		}
		failing = true
		s.FlushForAdmin()
		time.Sleep(time.Minute)
		if last := value(st, "sink.last_success_seconds.sink.r"); last != begun+10 {
			t.Errorf("a failure made the last success %d s after the begin, want 10", last-begun)
		}
		took := st.Scope("sink").Histogram("flush_ms", store.Milliseconds, tags.Tag{Name: "sink", Value: "r"})
		s.FlushForAdmin()
		if c := took.Snapshot().Cumulative; c.Count() != 5 || c.Sum() != 5*2500 {
			t.Errorf("%d flushes took %v ms, want 5 of 2500 each", c.Count(), c.Sum())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		st.View().Close() // takes out what ended
		if n := st.Symbols().NumSymbols(); n != symbols {
			t.Errorf("%d symbols, %d before: a snapshot was not closed", n, symbols)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLargeSnapshotsAreJoined: nothing is lost of snapshots that each exceed the limit, as long
// as they have the same stats.
func TestLargeSnapshotsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		slow := &recorder{name: "slow", slow: time.Hour}
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, QueueBytes: 1, Sinks: []flush.Sink{slow}})
		for range 20 {
			for i := range 100 {
				st.Root().Counter(fmt.Sprint("c", i)).Inc()
			}
			st.Root().Counter("c").Inc()
			s.FlushForAdmin()
			synctest.Wait()
		}
		if queued, joined, dropped := value(st, "sink.queued.sink.slow"), value(st, "sink.joined.sink.slow"), value(st, "sink.dropped.sink.slow"); queued != 1 || joined != 18 || dropped != 0 {
			t.Errorf("%d snapshots wait, %d were joined and %d dropped, want 1, 18 and none", queued, joined, dropped)
		}
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		if slow.deltas != 20 {
			t.Errorf("the sink got %d increments, want 20", slow.deltas)
		}
		_ = stop()
		time.Sleep(100 * time.Hour)
	})
}

// TestStuckSinkIsBounded has stats that come and go while a sink is stuck. The changes that
// wait for it stay within the limit, and the dropped ones are counted.
func TestStuckSinkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		stuck := &recorder{name: "stuck", slow: time.Hour}
		totals := &totaler{recorder: recorder{name: "totals", slow: time.Hour}}
		var failed []string
		var fuse guardtest.Fuse
		fuse.Light(1)
		panics := guardtest.New(t)
		s, stop := run(t, flush.Config{
			Store: st, OnAdmin: true, Queue: 3, QueueBytes: 20_000, Sinks: []flush.Sink{stuck, totals}, Logger: panics.Logger(),
			OnError: func(sink string, err error) {
				failed = append(failed, sink+": "+err.Error())
				fuse.Burn()
			},
		})
		for i := range 100 {
			sc := st.Scope(fmt.Sprint("gone", i))
			for k := range 10 {
				sc.Counter(fmt.Sprint("c", k)).Inc()
			}
			sc.Histogram("h", store.Milliseconds).Record(1)
			st.Root().Counter("c").Inc()
			s.FlushForAdmin()
			sc.Close()
			synctest.Wait()
		}
		panics.Caught("report of a stuck sink")
		dropped, lost := value(st, "sink.dropped.sink.stuck"), value(st, "sink.lost_increments.sink.stuck")
		if dropped < 50 || dropped > 98 || len(failed) < 4 {
			t.Errorf("%d snapshots of 99 were dropped: %q", dropped, failed)
		}
		if values := value(st, "sink.lost_values.sink.stuck"); values < dropped {
			t.Errorf("%d values were lost with %d snapshots of at least one each", values, dropped)
		}
		if n := value(st, "sink.dropped.sink.totals"); n < 50 || value(st, "sink.lost_increments.sink.totals") != 0 {
			t.Errorf("%d snapshots of totals were dropped, want many, and no increments", n)
		}
		if want := `flush: sink "stuck" is stuck: dropped `; !strings.Contains(strings.Join(failed, "\n"), want) {
			t.Errorf("%q, want %q", failed, want)
		}
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		// The counters of the sinks grow meanwhile, and are among the lost increments.
		if got := stuck.deltas; got == 0 || got+lost < 100 {
			t.Errorf("the sink got %d increments of c and %d of all counters were lost", got, lost)
		}
		st.View().Close() // takes out what ended
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%d views are open: a snapshot was not closed", n)
		}
		_ = stop()                  // the sinks are slow
		time.Sleep(100 * time.Hour) // lets them end before the bubble does
	})
}

// TestNothingIsKeptAfterTheEnd: flushes after the end of Run keep no snapshots, and
// count one for each sink.
func TestNothingIsKeptAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		r := &recorder{name: "r"}
		s, stop := run(t, flush.Config{Store: st, Sinks: []flush.Sink{r}})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		symbols := st.Symbols().NumSymbols()
		for i := range 3 {
			sc := st.Scope(fmt.Sprint("gone", i))
			sc.Counter(fmt.Sprint("c", i)).Inc()
			s.FlushNow()
			sc.Close()
		}
		st.View().Close() // takes out what ended
		if n := st.Symbols().NumSymbols(); n != symbols {
			t.Errorf("%d symbols, %d before: a snapshot was not closed", n, symbols)
		}
		if queued, dropped := value(st, "sink.queued.sink.r"), value(st, "sink.dropped.sink.r"); queued != 0 || dropped != 3 {
			t.Errorf("%d snapshots wait and %d were dropped, want 0 and 3", queued, dropped)
		}
	})
}

// totaler is a sink that wants the values of all stats.
type totaler struct {
	recorder
	totals []uint64
}

func (*totaler) NeedsTotals() bool { return true }

func (r *totaler) Flush(s *store.Snapshot) error {
	v := s.View()
	c, _ := v.Find("c")
	n, _ := s.Total(&c)
	r.totals = append(r.totals, n)
	return r.recorder.Flush(s)
}

// TestTotalsAndAfter checks that a sink gets totals if it wants them, and that
// After runs before the sinks get a snapshot.
func TestTotalsAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		c := st.Root().Counter("c")
		sink := &totaler{recorder: recorder{name: "t"}}
		var after []string
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, Sinks: []flush.Sink{sink}, After: []func(*store.Snapshot){func(s *store.Snapshot) {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			after = append(after, fmt.Sprint(s.Seq, " after ", len(sink.seqs)))
		}}})
		for range 2 {
			c.Add(3)
			s.FlushForAdmin()
			synctest.Wait()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if want := []uint64{3, 6, 6}; !slices.Equal(sink.totals, want) {
			t.Errorf("totals %v, want %v", sink.totals, want)
		}
		if want := []string{"1 after 0", "2 after 1", "3 after 2"}; !slices.Equal(after, want) {
			t.Errorf("told %q, want %q", after, want)
		}
	})
}

// TestEveryFlushSweeps: stats whose time is over go with the flushes.
func TestEveryFlushSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		st.ScopeWith("s", store.ScopeOptions{TTL: store.TTL{Counter: 2 * time.Second}}).Counter("x").Inc()
		_, stop := run(t, flush.Config{Store: st, Interval: time.Second})
		time.Sleep(3500 * time.Millisecond)
		if st.Len(store.KindCounter) != 2 {
			t.Error("ended early")
		}
		time.Sleep(time.Second)
		if st.Len(store.KindCounter) != 1 {
			t.Error("did not end")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEvictionIntervalIsNotNegative(t *testing.T) {
	_, err := flush.New(flush.Config{Store: store.New(store.Options{}), Interval: 2 * time.Second, EvictionInterval: -4 * time.Second})
	if want := "stats_eviction_interval -4s is not a multiple of stats_flush_interval 2s"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
