package deltastream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
)

// TestClientLimits: the last client is accepted, one more is not.
func TestClientLimits(t *testing.T) {
	for _, tt := range []struct{ limit, clients int }{{1, 1}, {3, 3}, {0, 64}, {-1, 100}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, deltastream.Config{Clients: tt.limit})
			for range tt.clients {
				c, err := w.stream.Subscribe(deltastream.Request{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			c, err := w.stream.Subscribe(deltastream.Request{})
			if full := (*deltastream.FullError)(nil); tt.limit >= 0 && (!errors.As(err, &full) || full.Clients != tt.clients) || tt.limit < 0 && err != nil {
				t.Errorf("limit %d, one after %d: %v", tt.limit, tt.clients, err)
			}
			if c != nil {
				c.Close()
			}
		})
	}
}

// TestLinger: changes are collected for exactly the time after the last client left.
func TestLinger(t *testing.T) {
	for _, tt := range []struct{ set, want time.Duration }{{0, 30 * time.Second}, {5 * time.Second, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, deltastream.Config{Linger: tt.set})
			for range 2 { // another client begins the time again
				c, err := w.stream.Subscribe(deltastream.Request{})
				if err != nil {
					t.Fatal(err)
				}
				w.tick()
				c.Close()
				c.Close() // counts once
				if n := w.stream.Clients(); n != 0 {
					t.Errorf("%d clients", n)
				}
				for range tt.want/time.Second - 1 {
					w.tick()
				}
			}
			if !w.stream.Tick() {
				t.Errorf("the stream ended before %v", tt.want)
			}
			if w.stream.Tick() {
				t.Errorf("the stream goes on after %v", tt.want)
			}
		})
	}
}

// TestHeartbeat: a quiet stream sends a comment at each heartbeat, and an event
// begins the time again.
func TestHeartbeat(t *testing.T) {
	for _, tt := range []struct{ set, want time.Duration }{{0, 10 * time.Second}, {3 * time.Second, 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, deltastream.Config{Heartbeat: tt.set})
			a := w.store.Root().Counter("a")
			p := &page{}
			defer w.listen(p, deltastream.Request{})()
			check := func(when string, want bool) {
				t.Helper()
				synctest.Wait()
				if got := p.take(); (got != "") != want {
					t.Errorf("%s: %q", when, got)
				}
			}
			check("begin", true)
			for i := range 2 {
				time.Sleep(tt.want - 1)
				check(fmt.Sprint("before heartbeat ", i), false)
				time.Sleep(time.Nanosecond)
				check(fmt.Sprint("heartbeat ", i), true)
			}
			time.Sleep(tt.want / 2)
			a.Inc()
			w.stream.Tick()
			check("event", true)
			time.Sleep(tt.want - 1)
			check("before the heartbeat after an event", false)
			time.Sleep(time.Nanosecond)
			check("heartbeat after an event", true)
		})
	}
}

// TestRing: a client resumes from the oldest tick in the ring and from none before.
func TestRing(t *testing.T) {
	for _, tt := range []struct {
		name      string
		ringBytes int
		ticks     int // in the ring
	}{{"ticks", 0, 300}, {"bytes", 1, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, deltastream.Config{RingBytes: tt.ringBytes})
				a := w.store.Root().Counter("a")
				c, err := w.stream.Subscribe(deltastream.Request{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for range tt.ticks + 5 {
					a.Inc()
					w.stream.Tick()
				}
				last := uint64(1 + tt.ticks + 5) // Subscribe takes the first position
				for at, resumes := range map[uint64]bool{
					last + 1: false, last: true, last - uint64(tt.ticks): true, last - uint64(tt.ticks) - 1: false,
				} {
					p := &page{}
					end := w.listen(p, deltastream.Request{LastEventID: fmt.Sprintf("7.%d", at)})
					if got := !strings.Contains(p.take(), "event: reset"); got != resumes {
						t.Errorf("position %d of %d resumes: %v, want %v", at, last, got, resumes)
					}
					if err := end(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestRingStaysAsLong: a ring limited by bytes holds as many equal ticks after twice the time.
func TestRingStaysAsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{RingBytes: 4096})
		a := w.store.Root().Counter("a")
		c, err := w.stream.Subscribe(deltastream.Request{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last := 1 // Subscribe takes the first position
		held := func() (n int) {
			for range 100 {
				a.Inc()
				w.stream.Tick()
				last++
			}
			for ; ; n++ {
				p := &page{}
				end := w.listen(p, deltastream.Request{LastEventID: fmt.Sprintf("7.%d", last-n-1)})
				reset := strings.Contains(p.take(), "event: reset")
				if err := end(); err != nil {
					t.Error(err)
				}
				if reset {
					return n
				}
			}
		}
		if first, second := held(), held(); first < 2 || first > 99 || first != second {
			t.Errorf("%d ticks, then %d", first, second)
		}
	})
}

// TestLongestInterval: a request cannot ask for fewer events than one in 30 s, or
// more than the stream has.
func TestLongestInterval(t *testing.T) {
	for asked, want := range map[time.Duration]int{0: 1, time.Nanosecond: 1, 30 * time.Second: 30, time.Hour: 30} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, deltastream.Config{})
			if w.stream.Interval() != time.Second {
				t.Errorf("the default interval is %v", w.stream.Interval())
			}
			a := w.store.Root().Counter("a")
			p := &page{}
			defer w.listen(p, deltastream.Request{Interval: asked, ChangesOnly: true})()
			p.take()
			ticks := 0
			for got := ""; !strings.Contains(got, "event: delta") && ticks < 100; ticks++ {
				a.Inc()
				w.tick()
				got = p.take()
			}
			if ticks != want {
				t.Errorf("interval %v: an event after %d s, want %d", asked, ticks, want)
			}
		})
	}
}

// TestLargestExactNumber: numbers that JavaScript would round are strings.
func TestLargestExactNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		root := w.store.Root()
		const first = 1 << 53
		root.Counter("c.exact").Add(first - 1)
		root.Counter("c.rounded").Add(first)
		root.Gauge("g.exact").Set(first - 1)
		root.Gauge("g.rounded").Set(first)
		p := &page{}
		defer w.listen(p, deltastream.Request{})()
		text := p.take()
		for value, quoted := range map[string]bool{"9007199254740991": false, "9007199254740992": true} {
			if n, q := strings.Count(text, value), strings.Count(text, `"`+value+`"`); n != 2 || q == 2 != quoted || q == 1 {
				t.Errorf("%s is quoted %d times of %d", value, q, n)
			}
		}
	})
}
