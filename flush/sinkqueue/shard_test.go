package sinkqueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
)

// TestShardsKeepTheirOrder sends on four shards, of which one is slow and one fails for a
// while.
func TestShardsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string][]string{}
		began := time.Now()
		q, metric, stop := queue(t, &target{}, func(c *sinkqueue.Config) {
			c.Shards = 4
			c.Send = func(_ context.Context, data []byte) (int, error) {
				shard, n, _ := strings.Cut(string(data), "-")
				if shard == "1" {
					time.Sleep(time.Second)
				}
				if shard == "2" && time.Since(began) < 5*time.Second {
					return 0, errDown
				}
				mu.Lock()
				defer mu.Unlock()
				got[shard] = append(got[shard], n)
				return len(data), nil
			}
		})
		for i := range 10 {
			for shard := range 4 {
				q.AddTo(shard, fmt.Appendf(nil, "%d-%d", shard, i), 1)
			}
		}
		synctest.Wait()
		mu.Lock()
		if len(got["0"]) != 10 || len(got["3"]) != 10 || len(got["2"]) != 0 {
			t.Errorf("shards wait for each other: %v", got)
		}
		mu.Unlock()
		if d := q.Delivery(); d.Packets != 19 || d.Bytes != 60 {
			t.Errorf("%d packets and %d bytes wait, want 19 besides the one being sent, and 60", d.Packets, d.Bytes)
		}
		time.Sleep(time.Minute)
		stop()
		for shard, list := range got {
			if len(list) != 10 || !slices.IsSorted(list) {
				t.Errorf("shard %s sent %v", shard, list)
			}
		}
		if metric("packets") != 40 || metric("queue_bytes") != 0 {
			t.Error("metrics are wrong")
		}
	})
}

func TestQueueWaitsAsTheReceiverAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: fmt.Errorf("status 429: %w", &sinkqueue.Wait{After: 17 * time.Second, Err: errDown})}
		q, _, stop := queue(t, r, nil)
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		r.fail(nil)
		time.Sleep(20 * time.Second)
		stop()
		if len(r.at) != 2 || r.at[1].Sub(r.at[0]) != 17*time.Second {
			t.Errorf("attempts at %v, want two with 17 s between them", r.at)
		}
	})
}

// TestUnknownDeliveriesPause: a receiver that fails for a while, so that it is not known
// what arrives, costs a packet for each attempt, not all packets.
func TestUnknownDeliveriesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: fmt.Errorf("status 502: %w", sinkqueue.ErrAmbiguous)}
		q, metric, stop := queue(t, r, nil)
		for range 100 {
			q.Add([]byte("a:1\n"), 1)
		}
		time.Sleep(time.Second)
		if n := metric("ambiguous_packets"); n != 4 {
			t.Errorf("%d packets in a second, want 4", n)
		}
		r.fail(&sinkqueue.Wait{After: 17 * time.Second, Err: r.err})
		time.Sleep(10 * time.Second)
		asked := metric("ambiguous_packets")
		r.fail(nil)
		time.Sleep(17 * time.Second)
		if n := metric("ambiguous_packets"); asked != 5 || n != 5 || metric("packets") != 95 || metric("ambiguous_increments") != 5 {
			t.Errorf("%d packets before and %d after the receiver asked for a pause, want 5; %d sent, want 95", asked, n, metric("packets"))
		}
		stop()
	})
}

// TestValuesAreCounted drops, refuses and doubts packets that report values of
// histograms.
func TestValuesAreCounted(t *testing.T) {
	for _, tt := range []struct {
		err             error
		ambiguous, lost uint64
	}{{sinkqueue.ErrAmbiguous, 3, 0}, {sinkqueue.ErrRefused, 0, 3}, {errDown, 0, 3}} {
		synctest.Test(t, func(t *testing.T) {
			q, metric, stop := queue(t, &target{err: tt.err}, func(c *sinkqueue.Config) {
				c.Observations = func(data []byte) uint64 { return uint64(len(data)) }
			})
			q.Add([]byte("xyz"), 1)
			stop()
			if a, l := metric("ambiguous_values"), metric("lost_values"); a != tt.ambiguous || l != tt.lost {
				t.Errorf("%v: %d ambiguous, %d lost", tt.err, a, l)
			}
		})
	}
}

// TestPanicInAShard: increments of one packet cannot be read.
func TestPanicInAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		q, _, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) {
			c.Shards, c.QueueAge, c.Logger = 2, time.Second, panics.Logger()
			c.Increments = func([]byte, func([]byte, uint64)) { panic(guardtest.Canary) }
		})
		q.AddTo(1, []byte("a"), 1)
		time.Sleep(time.Minute)
		panics.Caught("shard of a sink")
		stop()
	})
}
