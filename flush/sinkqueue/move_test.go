package sinkqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
)

// hold calls Hold with a limit of a second.
func hold(t *testing.T, q *sinkqueue.Queue) []flush.Parcel {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return q.Hold(ctx)
}

// TestUndeliveredPacketsMove moves packets and owed increments to the queue of another
// process, or back if that fails. Each increment arrives once.
func TestUndeliveredPacketsMove(t *testing.T) {
	for _, moved := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			from, to := &target{err: errDown}, &target{}
			q, metric, stop := queue(t, from, func(c *sinkqueue.Config) { c.Shards, c.QueueBytes = 2, 12 })
			for _, p := range []string{"a:1\n", "b:2\n", "c:4\n", "d:8\n"} { // a becomes owed
				q.AddTo(1, []byte(p), 1)
				time.Sleep(time.Second)
			}
			next, received, end := queue(t, to, func(c *sinkqueue.Config) { c.Shards = 2 })
			parcels := hold(t, q)
			if len(parcels) != 4 || metric("queue_bytes") != 0 || metric("owed_series") != 0 {
				t.Errorf("%d parcels, %d bytes and %d series stay", len(parcels), metric("queue_bytes"), metric("owed_series"))
			}
			for _, p := range parcels {
				if owed := p.Increments > 0; owed != (p.Metrics == 0) {
					t.Errorf("%+v", p)
				}
			}
			attempts := len(from.at)
			q.AddTo(1, []byte("e:16\n"), 1) // belongs to this process
			time.Sleep(time.Minute)
			if len(from.at) != attempts {
				t.Error("something was sent meanwhile")
			}
			q.Release(moved)
			for _, p := range parcels {
				if moved && !next.Inherit(p) {
					t.Errorf("%+v is refused", p)
				}
			}
			from.fail(nil)
			for _, x := range []*sinkqueue.Queue{q, next, q, next} {
				for key, n := range x.Owed() {
					x.Add(fmt.Appendf(nil, "%s:%d\n", key, n), 1)
				}
				time.Sleep(time.Minute)
			}
			stop()
			end()
			if moved {
				if got := strings.Trim(from.text(), "|"); got != "e:16\n" {
					t.Errorf("the old one sent %q", got)
				}
				if got := to.text(); got != "b:2\n|c:4\n|d:8\n|a:1\n" && got != "a:1\n|b:2\n|c:4\n|d:8\n" {
					t.Errorf("the new one sent %q", got)
				}
			} else {
				var sum uint64
				increments([]byte(strings.ReplaceAll(from.text(), "|", "")), func(_ []byte, n uint64) { sum += n })
				if sum != 31 || to.text() != "" || received("packets") != 0 {
					t.Errorf("the old one sent %q, the new one %q", from.text(), to.text())
				}
			}
			if metric("lost_increments") != 0 || received("lost_increments") != 0 {
				t.Error("increments were lost")
			}
		})
	}
}

// TestSecondHold: packets that were handed over are not handed over again, and all return
// to their queue if the move fails.
func TestSecondHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &target{err: errDown}
		q, _, stop := queue(t, to, nil)
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		first := len(hold(t, q))
		q.Add([]byte("b:1\n"), 1)
		second := hold(t, q)
		if first != 1 || len(second) != 1 || string(second[0].Data) != "b:1\n" {
			t.Errorf("%d parcels, and then %+v, want one and one", first, second)
		}
		to.fail(nil)
		q.Release(false)
		stop()
		if got := strings.Trim(to.text(), "|"); got != "a:1\n|b:1\n" {
			t.Errorf("sent %q", got)
		}
	})
}

// TestHoldWaitsForAttempts holds a queue while a packet is under way: in the end it has
// arrived, or waits, or stays with the attempt, which goes on.
func TestHoldWaitsForAttempts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		takes   time.Duration
		err     error
		parcels int
	}{{"arrives", time.Millisecond, nil, 0}, {"fails", time.Millisecond, errDown, 1}, {"hangs", time.Minute, nil, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &target{err: tt.err}
				q, metric, stop := queue(t, r, func(c *sinkqueue.Config) {
					c.Send = func(ctx context.Context, data []byte) (int, error) {
						time.Sleep(tt.takes)
						return r.send(ctx, data)
					}
				})
				q.Add([]byte("a:1\n"), 1)
				synctest.Wait()
				began := time.Now()
				if got := len(hold(t, q)); got != tt.parcels {
					t.Errorf("%d parcels, want %d", got, tt.parcels)
				}
				if took, most := time.Since(began), min(tt.takes, time.Second); took > most {
					t.Errorf("waited for %v, at most %v", took, most)
				}
				q.Release(true)
				stop()
				if sent := metric("packets"); sent != uint64(1-tt.parcels) || metric("lost_increments") != 0 {
					t.Errorf("%d packets sent, %d increments lost", sent, metric("lost_increments"))
				}
			})
		})
	}
}

// TestKeptPackets: packets that are left in the end move, too, or are lost.
func TestKeptPackets(t *testing.T) {
	for _, moved := range []bool{true, false} {
		q, metric, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) { c.Keeps = func() bool { return true } })
		q.Add([]byte("a:3\n"), 1)
		stop()
		if parcels := hold(t, q); len(parcels) != 1 || metric("dropped_packets") != 0 {
			t.Errorf("%d parcels, %d packets dropped", len(parcels), metric("dropped_packets"))
		}
		want := uint64(3)
		if moved {
			want = 0
		}
		if q.Release(moved); metric("lost_increments") != want {
			t.Errorf("moved %t: %d increments lost", moved, metric("lost_increments"))
		}
	}
}

// TestParcelsAfterTheEnd: a parcel that arrives when nothing is sent any more is counted as
// lost and takes no memory.
func TestParcelsAfterTheEnd(t *testing.T) {
	from, _, end := queue(t, &target{err: errDown}, nil)
	from.Hold(t.Context())
	from.Add([]byte("a:3\n"), 1)
	parcels := hold(t, from)
	end()
	q, metric, stop := queue(t, &target{}, nil)
	stop()
	owed := parcels[0]
	owed.Data, owed.Metrics, owed.Increments = []byte("b"), 0, 4
	for _, p := range append(parcels, owed) {
		if !q.Inherit(p) {
			t.Errorf("%+v is refused", p)
		}
	}
	if n := metric("lost_increments"); n != 7 || metric("dropped_packets") != 1 || metric("queue_bytes") != 0 || metric("owed_series") != 0 {
		t.Errorf("%d increments lost, %d packets dropped, %d bytes and %d series left", n, metric("dropped_packets"), metric("queue_bytes"), metric("owed_series"))
	}
}

// TestInheritedParcelsHaveALimit: parcels of another process count in the limit of the
// queue, like its own packets, and the oldest go first.
func TestInheritedParcelsHaveALimit(t *testing.T) {
	q, metric, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) { c.QueueBytes = 12 })
	defer stop()
	q.Hold(t.Context()) // so that nothing is under way
	for i := range 5 {
		p := flush.Parcel{Sink: "out", Form: " increments", Data: fmt.Appendf(nil, "a:%d\n", i), Metrics: 1, Age: time.Duration(i) * time.Second}
		if !q.Inherit(p) {
			t.Errorf("%+v is refused", p)
		}
	}
	if bytes, dropped := metric("queue_bytes"), metric("dropped_packets"); bytes != 12 || dropped != 2 {
		t.Errorf("%d bytes are queued and %d packets dropped, want 12 and 2", bytes, dropped)
	}
	q.Release(true)
}

// TestParcelsAgeByElapsedTime moves a packet to a process whose clock differs by an hour, as
// when it was set in between: there it waits for the rest of its time.
func TestParcelsAgeByElapsedTime(t *testing.T) {
	for _, begin := range [][2]time.Duration{{0, time.Hour}, {time.Hour, 0}} { // of the clocks
		var parcels []flush.Parcel
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(begin[0])
			q, _, stop := queue(t, &target{err: errDown}, nil)
			q.Add([]byte("a:1\n"), 1)
			time.Sleep(sinkqueue.DefaultAge - time.Minute)
			parcels = hold(t, q)
			q.Release(true)
			stop()
		})
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(begin[1])
			q, metric, stop := queue(t, &target{err: errDown}, nil)
			for _, p := range parcels {
				q.Inherit(p)
			}
			if d := q.Delivery(); d.Packets+int(metric("dropped_packets")) != 1 || d.Age != sinkqueue.DefaultAge-time.Minute {
				t.Errorf("clocks after %v: %d packets wait since %v", begin, d.Packets, d.Age)
			}
			time.Sleep(time.Minute)
			q.Owed() // drops old packets
			if n := metric("dropped_packets"); n != 0 {
				t.Errorf("clocks after %v: dropped before its time", begin)
			}
			time.Sleep(time.Minute)
			q.Owed()
			if n := metric("dropped_packets"); n != 1 {
				t.Errorf("clocks after %v: waits longer than its time", begin)
			}
			stop()
		})
	}
}

// TestOtherParcels: a queue takes neither packets of another kind of sink, nor totals
// for increments.
func TestOtherParcels(t *testing.T) {
	q, _, stop := queue(t, &target{}, nil)
	defer stop()
	q.Add([]byte("a:1\n"), 1)
	for _, p := range []flush.Parcel{{Sink: "out", Form: "otlp"}, {Sink: "out"}, {Sink: "in", Form: " increments"}} {
		if q.Inherit(p) {
			t.Errorf("takes %+v", p)
		}
	}
}

// TestEndIsLogged: what a queue could not send is in the log.
func TestEndIsLogged(t *testing.T) {
	var log bytes.Buffer
	q, _, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	q.Add([]byte("a:3\nb:4\n"), 2)
	stop()
	if text := log.String(); !strings.Contains(text, "stopped with unsent data\" sink=out metrics=2 increments=7 values=0") {
		t.Errorf("logged %q", text)
	}
}

// TestFailuresAreLoggedOnce: shards that fail together, as when the receiver is down, are
// one failure in the log, which ends when all of them send again.
func TestFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		to := &target{err: errDown}
		q, _, stop := queue(t, to, func(c *sinkqueue.Config) {
			c.Shards, c.Logger = 3, slog.New(slog.NewTextHandler(&log, nil))
		})
		for shard := range 3 {
			q.AddTo(shard, []byte("a:1\n"), 1)
		}
		synctest.Wait()
		to.fail(nil)
		time.Sleep(time.Minute)
		stop()
		if text := log.String(); strings.Count(text, "sink: cannot send, retrying") != 1 || strings.Count(text, "sink: sending again") != 1 {
			t.Errorf("logged %s", text)
		}
	})
}

// TestLossesAreLogged: a receiver that refuses everything, because of a wrong path for
// example, is in the log, once a minute, in the words of the queue. The queue pauses only
// if the next packet will hardly fare better.
func TestLossesAreLogged(t *testing.T) {
	for _, tt := range []struct {
		reason error
		words  sinkqueue.Words
		want   string
		then   string // packets of the second warning
	}{
		{sinkqueue.ErrRefused, sinkqueue.Words{}, `msg="sink: packets are not retried" sink=out packets=1 `, `60`},
		{sinkqueue.ErrAmbiguous, sinkqueue.Words{Scope: "relay", Tag: "target", Unit: "lines"}, `msg="relay: packets are not retried" target=out packets=1 `, `(9|10)`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			q, _, stop := queue(t, &target{err: fmt.Errorf("status 404: %w", tt.reason)}, func(c *sinkqueue.Config) {
				c.Words, c.Logger = tt.words, slog.New(slog.NewTextHandler(&log, nil))
			})
			for range 100 {
				q.Add([]byte("a:1\n"), 1)
				time.Sleep(time.Second)
			}
			stop()
			text := log.String()
			second := regexp.MustCompile("not retried.* packets=" + tt.then + " ")
			if strings.Count(text, "not retried") != 2 || !strings.Contains(text, tt.want+`error="status 404: `) || !second.MatchString(text) {
				t.Errorf("logged %s", text)
			}
		})
	}
}
