package statsd

import (
	"bytes"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestNothingIsLostUnderStorms sends lines from many clients while stats
// expire, are forgotten and are flushed. Every line is accounted for, and the
// counters, live and ended, add up to the samples sent.
func TestNothingIsLostUnderStorms(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	r := newRig(t, Config{
		Limits: Limits{Series: 150, SeriesPerName: 40, Sets: 5, CacheEntries: 64, NewPerSecond: -1},
		TTL:    TTL{Counter: time.Second, Gauge: time.Second, Histogram: time.Second, Set: time.Second},
		Now:    time.Now,
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sent [4]uint64 // steady counters, which nothing removes
	const senders = 4
	for i := range senders {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		w := r.streamWorkers[i%len(r.streamWorkers)]
		wg.Go(func() {
			var own [4]uint64
			for range rounds {
				var b bytes.Buffer
				for range 50 {
					switch n := rnd.IntN(400); rnd.IntN(8) {
					case 0, 1:
						k := rnd.IntN(4)
						own[k] += uint64(n)
						fmt.Fprintf(&b, "steady%d:%d|c\n", k, n)
					case 2:
						fmt.Fprintf(&b, "new%d:1|c|@0.3\n", n)
					case 3:
						fmt.Fprintf(&b, "tagged:1|ms|#n:%d\n", n)
					case 4:
						fmt.Fprintf(&b, "set%d:x%d|s\n", n%9, n)
					case 5:
						fmt.Fprintf(&b, "g%d:+%d|g:1|c\n", n%20, n)
					case 6:
						fmt.Fprintf(&b, "bad%d:x|c\n_sc|db|1\n\n", n%3)
					case 7:
						fmt.Fprintf(&b, "a,b=c:%d|c|#d:e\n", n)
					}
				}
				w.chunk(r.l, b.Bytes(), source{name: "storm"})
			}
			mu.Lock()
			for k := range own {
				sent[k] += own[k]
			}
			mu.Unlock()
		})
	}
	done := make(chan struct{})
	var storms sync.WaitGroup
	for _, storm := range []func(){
		func() { r.Flush(time.Now()); r.store.Flush(store.FlushOptions{}).Close() },
		func() { r.Sweep(true) },
		func() { r.Forget(func(name string) bool { return name[0] != 's' }) },
		func() { r.store.RemoveNetwork(func(name string) bool { return name[0] == 't' }) },
		func() { _ = r.Report(); r.Explain([]byte("g1:+1|g:1|c|#x")) },
	} {
		storms.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					storm()
				}
			}
		})
	}
	wg.Wait()
	close(done)
	storms.Wait()
	r.conserved()
	rep := r.Report()
	if n := uint64(senders * rounds * 50); rep.Listeners[0].Lines < n {
		t.Errorf("%d lines, at least %d were sent", rep.Listeners[0].Lines, n)
	}
	for k, want := range sent {
		name := fmt.Sprint("steady", k)
		got := r.Scope().Counter(name).Total()
		// With the limit reached a steady counter may have begun in overflow.
		if got > want || got+overflowed(r) < want {
			t.Errorf("%s is %d and overflow %d, sent were %d", name, got, overflowed(r), want)
		}
	}
	for _, k := range rep.Series {
		if got := k.Created - k.Expired; got != uint64(k.Series) {
			t.Errorf("%s: %d created, %d expired, but %d there", k.Kind, k.Created, k.Expired, k.Series)
		}
	}
	r.Forget(func(string) bool { return true })
	if n := len(r.registry.families.list) - len(r.registry.families.free); n != 0 {
		t.Errorf("%d series are left after all were forgotten", n)
	}
}

func overflowed(r *rig) uint64 { return r.Scope().Counter("overflow.counter").Total() }

// TestSweepLosesNoSample sends to a counter that expires again and again. Its
// values add up to the samples sent.
func TestSweepLosesNoSample(t *testing.T) {
	r := newRig(t, Config{})
	total := uint64(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var sent uint64
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.streamWorkers[0].chunk(r.l, []byte("a:1|c\na:1|c\na:1|c\n"), source{})
				sent += 3
			}
		}
	})
	for range 500 {
		r.holdAll(func() {
			total += r.Scope().Counter("a").Total()
			r.store.RemoveNetwork(func(string) bool { return true })
		})
	}
	close(stop)
	wg.Wait()
	if total += r.Scope().Counter("a").Total(); total != sent {
		t.Errorf("the lives of the counter held %d, sent were %d", total, sent)
	}
}

var samples = flag.Int("samples", 1_000_000, "counter samples to send in the test of exactness")

// TestSampledCountersAreExact sends samples of different rates over several
// connections at a time.
func TestSampledCountersAreExact(t *testing.T) {
	each := *samples / 20
	if testing.Short() {
		each = 2_000
	}
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	rates := []string{"1", "0.5", "0.1", "0.3", "0.000001"}
	const senders = 4
	var wg sync.WaitGroup
	for range senders {
		c := l.dial(0)
		wg.Go(func() {
			var b bytes.Buffer
			for range each / 100 {
				b.Reset()
				for range 100 {
					for i, rate := range rates {
						fmt.Fprintf(&b, "c%d:1|c|@%s\nt%d:2|ms|@%s\n", i, rate, i, rate)
					}
				}
				if _, err := c.Write(b.Bytes()); err != nil {
					t.Error(err)
					return
				}
			}
			_ = c.(*net.TCPConn).CloseWrite()
		})
	}
	wg.Wait()
	waittest.Until(t, "the end of the connections", func() bool { return l.report(0).Ended["closed eof"] == senders })
	l.stop()
	l.store.Flush(store.FlushOptions{}).Close()
	for i, rate := range rates {
		r, _ := new(big.Rat).SetString(rate)
		want := new(big.Rat).Quo(big.NewRat(int64(each/100*100*senders), 1), r)
		whole := new(big.Int).Quo(want.Num(), want.Denom()).Uint64()
		if got := l.counter(fmt.Sprint("c", i)); got != whole {
			t.Errorf("counter at rate %s: %d, want %d", rate, got, whole)
		}
		h := l.Scope().Histogram(fmt.Sprint("t", i), store.Milliseconds).Snapshot().Cumulative
		if h.Count() != whole || h.Sum() != 2*float64(whole) {
			t.Errorf("timer at rate %s: count %d, sum %v; want %d", rate, h.Count(), h.Sum(), whole)
		}
	}
}

// TestFractionsReachWholeNumbers checks the collecting of fractions: n samples
// of 1 at rate r count floor(n/r), for all quotients that are whole.
func TestFractionsReachWholeNumbers(t *testing.T) {
	st := store.New(store.Options{})
	for milli := 1; milli <= 1000; milli++ {
		rate := float64(milli) / 1000
		ce := &cell{stat: unsafe.Pointer(st.Root().Counter(fmt.Sprint("c", milli)))}
		for n := 1; n <= 1000; n++ {
			ce.count(1 / rate)
			if exact := n * 1000; exact%milli == 0 {
				if got := ce.counter().Total(); got != uint64(exact/milli) {
					t.Fatalf("%d samples at rate %v: %d, want %d", n, rate, got, exact/milli)
				}
			}
		}
	}
	for i, tt := range []struct {
		times int
		x     float64
		want  uint64
	}{{1, 0.7 / 0.1, 7}, {3, 1 / 0.3, 10}, {5, 0.4, 2}} {
		ce := &cell{stat: unsafe.Pointer(st.Root().Counter(fmt.Sprint("x", i)))}
		for range tt.times {
			ce.count(tt.x)
		}
		if got := ce.counter().Total(); got != tt.want {
			t.Errorf("%d times %v counts %d, want %d", tt.times, tt.x, got, tt.want)
		}
	}
	wrap := &cell{stat: unsafe.Pointer(st.Root().Counter("wrap"))}
	wrap.carry.Store(1<<64 - 1) // the collected fractions wrap
	wrap.count(0.5)
	if got := wrap.counter().Total(); got != 1 {
		t.Errorf("over the wrap: %d, want 1", got)
	}
}

// TestRateDoesNotMultiplyWork reads sampled lines that would keep it busy for
// longer than tests may take if it repeated the sample 1/rate times.
func TestRateDoesNotMultiplyWork(t *testing.T) {
	r := newRig(t, Config{})
	for _, typ := range []string{"c", "ms", "h"} {
		p := bytes.Repeat([]byte("a"+typ+":1|"+typ+"|@0.000001\n"), 200_000)
		r.streamWorkers[0].chunk(r.l, p, source{})
	}
	if got := r.Report().Listeners[0].Applied; got != 600_000 {
		t.Errorf("%d samples were applied, want 600000", got)
	}
}

// deadlines is a connection that remembers its read deadline.
type deadlines struct {
	net.Conn
	until time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.until = t; return nil }

// TestQuietClientsGoWhenItIsCrowded: without an idle limit a client may be
// quiet for ever, but only while at most half of the places are taken.
func TestQuietClientsGoWhenItIsCrowded(t *testing.T) {
	l := &listener{}
	l.conns.init()
	l.conns.total, l.conns.perAddr = 4, 4
	var all []*stream
	add := func() *deadlines {
		d := &deadlines{}
		st := &stream{l: l, conn: d}
		l.conns.await(st, func(limit string) {
			if limit != "" {
				t.Error(limit)
			}
		})
		all = append(all, st)
		if l.conns.crowded() {
			l.conns.rearm()
		}
		st.arm()
		return d
	}
	first := add()
	second := add()
	if !first.until.IsZero() || !second.until.IsZero() || all[0].idled() != "" {
		t.Error("a deadline is set although it is not crowded")
	}
	third := add()
	for i, d := range []*deadlines{first, second, third} {
		if left := time.Until(d.until); left < 50*time.Second || left > 60*time.Second {
			t.Errorf("connection %d may be quiet for %v, want 60 s", i, left)
		}
	}
	if all[0].idled() != "idle" {
		t.Error("a quiet client stays although it is crowded")
	}
	l.conns.remove(all[2])
	all[0].arm()
	if !first.until.IsZero() || all[0].idled() != "" {
		t.Error("the deadline stays although it is not crowded any more")
	}
	l.conns.drain()
	if left := time.Until(first.until); left > drainIdle || all[0].idled() != "shutdown" {
		t.Errorf("while draining a read may wait %v", left)
	}
}

func TestDropCount(t *testing.T) {
	var d dropCount
	for i, step := range []struct {
		reading uint32
		want    uint64
	}{{0, 0}, {5, 5}, {5, 0}, {3, 0}, {9, 4}, {1<<31 + 5, 1<<31 - 4}, {1<<32 - 1, 1<<31 - 6}, {2, 3}, {1<<32 - 1, 0}} {
		if got := d.observe(step.reading); got != step.want {
			t.Errorf("reading %d, %d: %d new, want %d", i, step.reading, got, step.want)
		}
	}
}
