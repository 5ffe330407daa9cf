package sinkqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

// sink is the smallest sink with a Sender.
type sink struct{ sinkqueue.Sender }

func (sink) Flush(*store.Snapshot) error { return nil }

var _ interface {
	flush.Movable
	flush.IntervalSink
	flush.Reporter
} = sink{}

// TestSender uses the methods of a queue that sinks have.
func TestSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: errDown}
		q, metric, stop := queue(t, r, func(c *sinkqueue.Config) { c.Interval = time.Minute })
		s := sink{q.Sender()}
		if s.Name() != "out" || s.Interval() != time.Minute {
			t.Errorf("sink %q with an interval of %v", s.Name(), s.Interval())
		}
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		if d := s.Delivery(); d.Packets != 1 {
			t.Errorf("%+v", d)
		}
		parcels := s.Hold(t.Context())
		if len(parcels) != 1 || s.Delivery().Packets != 0 {
			t.Fatalf("%d parcels, %d packets stay", len(parcels), s.Delivery().Packets)
		}
		r.fail(nil)
		s.Release(true)
		time.Sleep(time.Minute) // the shard is idle
		if !s.Inherit(parcels[0]) {
			t.Error("the parcel is refused")
		}
		if synctest.Wait(); r.text() != "|a:1\n" {
			t.Errorf("sent %q before the end", r.text())
		}
		s.Close()
		s.Close()
		stop()
		if r.text() != "|a:1\n" || metric("packets") != 1 {
			t.Errorf("sent %q", r.text())
		}
	})
}
