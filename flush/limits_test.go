package flush_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestIntervalLimits: the interval is from 1 ms to less than 5 minutes, 5 s by
// default.
func TestIntervalLimits(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, time.Millisecond: time.Millisecond, 5*time.Minute - 1: 5*time.Minute - 1,
		time.Millisecond - 1: 0, 5 * time.Minute: 0, -1: 0,
	} {
		s, err := flush.New(flush.Config{Store: store.New(store.Options{}), Interval: interval})
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "not in [1ms, 5m0s)")) || want > 0 && (err != nil || s.Interval() != want) {
			t.Errorf("interval %v: %v, want %v", interval, err, want)
		}
	}
}

// TestDefaultQueueAndLinger: 16 snapshots wait for a slow sink, and a stop waits
// for it for 5 s.
func TestDefaultQueueAndLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		stuck := &recorder{name: "stuck", slow: time.Hour}
		s, stop := run(t, flush.Config{Store: st, OnAdmin: true, Sinks: []flush.Sink{stuck}})
		for i := range 18 {
			s.FlushForAdmin() // the first goes to the sink
			synctest.Wait()
			if queued, joined := value(st, "sink.queued.sink.stuck"), value(st, "sink.joined.sink.stuck"); queued != uint64(min(i, 16)) || joined != uint64(max(0, i-16)) {
				t.Errorf("after %d flushes %d wait and %d were joined", i+1, queued, joined)
			}
		}
		start := time.Now()
		if err := stop(); err == nil || time.Since(start) != 5*time.Second {
			t.Errorf("the end took %v: %v", time.Since(start), err)
		}
		time.Sleep(48 * time.Hour) // lets the sink end before the bubble does
	})
}
