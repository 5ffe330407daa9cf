package server_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// setClock is a clock of the system that tests set.
type setClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *setClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// set sets the time of day by a duration, after some time has passed.
func (c *setClock) set(passed, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = clocktest.Set(c.now.Add(passed), by)
}

// intervals is a sink that keeps the lengths of intervals.
type intervals struct {
	mu   sync.Mutex
	list []time.Duration
}

func (*intervals) Name() string { return "intervals" }
func (x *intervals) Flush(s *store.Snapshot) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(x.list, s.Interval)
	return nil
}

// TestClockIsSet sets the clock of a server with StatsD input by an hour, in both
// directions: rates, the history, times to live and the intervals of sinks go on.
func TestClockIsSet(t *testing.T) {
	const length = 10 * time.Second // between flushes
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			clock, sink := &setClock{now: time.Now()}, &intervals{}
			cfg := server.Config{
				Store: store.New(store.Options{Now: clock.Now}), Admin: anyPort(), StatsD: statsdOn("tcp://127.0.0.1:0"),
				Flush: flush.Config{Interval: 4 * time.Minute, Sinks: []flush.Sink{sink}},
			}
			cfg.Admin.Now, cfg.StatsD.Now, cfg.StatsD.TTL = clock.Now, clock.Now, statsd.TTL{Counter: 35 * time.Second}
			r := start(t, cfg)
			conn, err := net.Dial("tcp", strings.TrimPrefix(r.StatsD().Listeners()[0].Address, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sum := 0
			// flush counts n hits and flushes; the clock is set in between.
			flush := func(n int, by time.Duration) {
				sum += n
				if _, err := io.WriteString(conn, fmt.Sprintf("hits:%d|c\n", n)); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("hits: %d\n", sum)
				waittest.Until(t, "the line is counted", func() bool { return r.get(t, "/stats?filter=^hits$") == want })
				clock.set(length, by)
				r.Flusher().FlushNow()
			}
			look := func(path, want string) {
				t.Helper()
				if got := r.get(t, path); !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", path, got, want)
				}
			}
			if _, err := io.WriteString(conn, "once:1|c\n"); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the line is counted", func() bool { return r.get(t, "/stats?filter=^once$") == "once: 1\n" })
			flush(10, 0)
			flush(20, by)
			flush(40, 0)
			look("/stats?rate&filter=^hits$", "hits: 4\n")
			look("/stats?rate&at=-10s&filter=^hits$", "hits: 2\n")
			look("/stats?rate&since=-20s&filter=^hits$", "hits: 3\n")
			look("/stats?at=-10s&filter=^hits$", "hits: 30\n")
			look("/stats?at=-20s&filter=^hits$", "hits: 10\n")
			look("/stats/history?name=hits", ",10000,10,1],[")
			look("/stats/history?name=hits", ",10000,30,2],[")
			look("/stats/history?name=hits", fmt.Sprintf("[%d,10000,70,4]]", clock.Now().UnixMilli()))
			look("/stats/explain?name=hits", "per_second: 4\n")
			look("/stats?filter=^once$", "once: 1\n")
			look("/stats/explore?prefix=once", "  new: 1\n")
			flush(1, 0)
			flush(1, 0)
			if got := r.get(t, "/stats?filter=^once$|^hits$"); got != "hits: 72\n" {
				t.Errorf("after the time to live: %q", got)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if len(sink.list) < 5 || slices.ContainsFunc(sink.list[:5], func(d time.Duration) bool { return d != length }) {
				t.Errorf("intervals of %v", sink.list)
			}
		})
	}
}
