package sinkqueue_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestLimits fills queues exactly, and then a bit more.
func TestLimits(t *testing.T) {
	type counts struct {
		packets, owed int // owed: series so far
		lost          uint64
	}
	for _, tt := range []struct {
		name    string
		options sinkqueue.Options
		series  int
		sizes   []int // of packets, each with a series of its own
		age     time.Duration
		full    counts
		size    int // of another packet
		wait    time.Duration
		over    counts
	}{
		{"bytes", sinkqueue.Options{QueueBytes: 100}, 0, []int{40, 60}, 0, counts{2, 0, 0}, 1, 0, counts{2, 1, 0}},
		{"one_packet", sinkqueue.Options{QueueBytes: 100}, 0, []int{100}, 0, counts{1, 0, 0}, 101, 0, counts{0, 2, 0}},
		{"default_bytes", sinkqueue.Options{}, 0, []int{16<<20 - 10, 10}, 0, counts{2, 0, 0}, 1, 0, counts{2, 1, 0}},
		{"age", sinkqueue.Options{QueueAge: time.Minute}, 0, []int{1, 1}, time.Minute, counts{2, 0, 0}, 1, 1, counts{1, 2, 0}},
		{"default_age", sinkqueue.Options{}, 0, []int{1, 1}, 10 * time.Minute, counts{2, 0, 0}, 1, 1, counts{1, 2, 0}},
		{"series", sinkqueue.Options{QueueBytes: 1}, 2, []int{2, 2, 2}, 0, counts{0, 2, 1}, 2, 0, counts{0, 3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.Name, tt.options.Store = "out", store.New(store.Options{})
				series, owed := 0, 0
				q := sinkqueue.New(sinkqueue.Config{Options: tt.options, Series: tt.series, Send: (&target{}).send,
					Increments: func(_ []byte, yield func([]byte, uint64)) {
						series++
						yield(fmt.Append(nil, series), 1)
					}})
				check := func(when string, want counts) {
					t.Helper()
					owed += len(q.Owed())
					d := q.Delivery()
					if got := (counts{d.Packets, owed, d.LostCounts}); got != want {
						t.Errorf("%s: %+v, want %+v", when, got, want)
					}
				}
				for _, size := range tt.sizes {
					q.Add(bytes.Repeat([]byte("x"), size), 1)
				}
				time.Sleep(tt.age)
				check("full", tt.full)
				q.Add(bytes.Repeat([]byte("x"), tt.size), 1)
				time.Sleep(tt.wait)
				check("over", tt.over)
			})
		})
	}
}

// TestLongestWait: a receiver cannot ask for more than the age of packets.
func TestLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: &sinkqueue.Wait{After: time.Hour, Err: errDown}}
		q, _, stop := queue(t, r, func(c *sinkqueue.Config) { c.QueueAge = time.Minute })
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		if d := q.Delivery(); d.NextRetry.Sub(r.at[0]) != time.Minute {
			t.Errorf("the next attempt is after %v", d.NextRetry.Sub(r.at[0]))
		}
		stop()
	})
}

// TestIntervalIsNotNegative: 0 means every flush.
func TestIntervalIsNotNegative(t *testing.T) {
	for interval, ok := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		o := sinkqueue.Options{Store: store.New(store.Options{}), Interval: interval}
		if err := o.Check("out", "kind"); (err == nil) != ok {
			t.Errorf("%v: %v", interval, err)
		}
	}
}
