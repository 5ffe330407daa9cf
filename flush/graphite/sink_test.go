package graphite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/streamend"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// carbon is a receiver of lines that can be down. Its port is held all the time.
type carbon struct {
	t *testing.T
	l net.Listener

	mu    sync.Mutex
	conns []net.Conn
	got   bytes.Buffer
	down  bool
	dials int      // refused
	ours  net.Conn // the last one that was dialed
}

func listen(t *testing.T) *carbon {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &carbon{t: t, l: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			all.Go(func() { r.read(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); r.kill(); all.Wait() })
	return r
}

func (r *carbon) read(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		r.mu.Lock()
		r.got.Write(buf[:n])
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// kill ends the connections, and dial fails from then on.
func (r *carbon) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

func (r *carbon) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

func (r *carbon) refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

func (r *carbon) dial(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	down := r.down
	if down {
		r.dials++
	}
	r.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.l.Addr().String())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ours = c
	return c, err
}

func (r *carbon) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// sum adds the values of a path.
func (r *carbon) sum(path string) (n uint64) {
	for line := range strings.Lines(r.text()) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == path {
			v, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				r.t.Errorf("%q: %v", line, err)
			}
			n += v
		}
	}
	return n
}

// output returns the lines of one flush, 10 s after the one before.
func output(t *testing.T, cfg Config, st *store.Store) []byte {
	t.Helper()
	cfg.Store, cfg.Address = st, "127.0.0.1:1"
	cfg.Filter.Exclude = sinktest.NoOwn().Exclude
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	s.use(sinkqueue.New(sinkqueue.Config{Options: s.cfg.Options, Send: func(_ context.Context, packet []byte) (int, error) {
		got = append(got, packet[1:]...)
		return len(packet), nil
	}}))
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	snap.Time, snap.Interval = time.Unix(1700000000, 999), 10*time.Second
	if err := s.Flush(snap); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Run(t.Context())
	return got
}

func fill(st *store.Store) {
	region := tags.Tag{Name: "region", Value: "eu/west 1"}
	root := st.Root()
	root.Counter("shop.orders", region).Add(30)
	root.Counter("a b/c;d=e\nf~g").Inc()
	root.Counter("plain", tags.Tag{Name: "name", Value: ""}).Add(2)
	root.Counter("idle")
	root.Gauge("shop.carts").Set(7)
	root.FloatGauge("shop.balance").Set(-1.5)
	root.FloatGauge("shop.infinite").Set(math.Inf(1))
	h := root.Histogram("shop.rt", store.Milliseconds)
	for i := range uint64(10) {
		h.Record(i + 1)
	}
	root.Histogram("shop.share", store.Percent).Record(500000)
	root.Histogram("shop.slow", store.Milliseconds).RecordN(123456, 100)
	root.Text("shop.text").Set("x")
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
	}{
		{"plain", Config{}},
		{"modern", Config{Layout: Modern, Percentiles: []float64{50, 99.9}}},
		{"legacy", Config{Layout: Legacy, Percentiles: []float64{}, Options: sinkqueue.Options{Prefix: "edge 1"}}},
		{"tagged", Config{Tagged: true, Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "d c", Value: "x;y"}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := store.New(store.Options{})
			fill(st)
			golden.Check(t, tt.name, output(t, tt.cfg, st))
		})
	}
}

// TestIdleCounters: with ZeroDeltas, counters that were used before the interval have
// lines, and no path has two.
func TestIdleCounters(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		want   string
	}{
		{Plain, "a_b 1 1700000000\ngone 0 1700000000\n"},
		{Modern, "stats.counters.a_b.count 1 1700000000\nstats.counters.gone.count 0 1700000000\n" +
			"stats.counters.a_b.rate 0.1 1700000000\nstats.counters.gone.rate 0 1700000000\n"},
		{Legacy, "stats_counts.a_b 1 1700000000\nstats_counts.gone 0 1700000000\nstats.a_b 0.1 1700000000\nstats.gone 0 1700000000\n"},
	} {
		st := store.New(store.Options{})
		root := st.Root()
		root.Counter("never")
		for _, name := range []string{"gone", "a b", "a_b"} {
			root.Counter(name).Inc()
		}
		st.Flush(store.FlushOptions{}).Close()
		root.Counter("a b").Inc()
		if got := string(output(t, Config{Layout: tt.layout, ZeroDeltas: true}, st)); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.layout, got, tt.want)
		}
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%s: %d views are open", tt.layout, n)
		}
	}
}

// TestPercentileOfFewValues: a share that rounds to no value has no fields, and a
// single value has all of them.
func TestPercentileOfFewValues(t *testing.T) {
	for n, want := range map[uint64]string{1: "h.count_10 1 1700000000\n", 2: ""} {
		st := store.New(store.Options{})
		st.Root().Histogram("h", store.Milliseconds).RecordN(5, n)
		got := string(output(t, Config{Percentiles: []float64{10}}, st))
		if _, rest, _ := strings.Cut(got, "h.sum_squares "); !strings.HasPrefix(strings.SplitN(rest, "\n", 2)[1], want) || want == "" && strings.Contains(got, "_10") {
			t.Errorf("%d values:\n%s", n, got)
		}
	}
}

// TestFlushesHaveTheirOwnSecond: Graphite keeps one point a second, so a flush soon after
// others, as at the end or for two scrapers, must not replace their points. After the clock was set back,
// lines have the new time.
func TestFlushesHaveTheirOwnSecond(t *testing.T) {
	st := store.New(store.Options{})
	s, err := New(Config{Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	s.use(sinkqueue.New(sinkqueue.Config{Options: s.cfg.Options, Send: func(_ context.Context, packet []byte) (int, error) {
		got = append(got, packet[1:]...)
		return len(packet), nil
	}}))
	for _, at := range []int64{100, 101, 101, 101, 102, 107, 107, 107, 97, 87} {
		st.Root().Counter("c").Inc()
		snap := st.Flush(store.FlushOptions{})
		snap.Time = time.Unix(at, 0)
		_ = s.Flush(snap)
		snap.Close()
	}
	s.Close()
	s.Run(t.Context())
	if want := "c 1 100\nc 1 101\nc 1 102\nc 1 103\nc 1 104\nc 1 107\nc 1 108\nc 1 109\nc 1 97\nc 1 87\n"; string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSuccessorsShareALine: Graphite keeps one value of a path for a time, so the increments
// and values of an ended stat and of its successor are in one line.
func TestSuccessorsShareALine(t *testing.T) {
	st := store.New(store.Options{})
	st.KeepEnded()
	for n := range uint64(2) {
		sc := st.Scope("s")
		sc.Counter("c").Add(n + 3)
		sc.Histogram("h", store.Bytes).Record(n + 3)
		if n == 0 {
			sc.Close()
		}
	}
	text := string(output(t, Config{Percentiles: []float64{}}, st))
	for _, line := range []string{"s.c 7 ", "s.h.count 2 ", "s.h.sum 7 "} {
		path, _, _ := strings.Cut(line, " ")
		if !strings.Contains(text, line) || strings.Count(text, path+" ") != 1 {
			t.Errorf("no single line %q in\n%s", line, text)
		}
	}
}

// TestLongFlushesAreSplit: no packet is too long, none has a part of a line.
func TestLongFlushesAreSplit(t *testing.T) {
	st := store.New(store.Options{})
	const series = 5000
	for i := range series {
		st.Root().Counter(fmt.Sprint("a.counter.with.a.long.name.", i)).Inc()
	}
	s, err := New(Config{Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var packets, lines int
	s.use(sinkqueue.New(sinkqueue.Config{Options: s.cfg.Options, Send: func(_ context.Context, packet []byte) (int, error) {
		packets++
		lines += bytes.Count(packet, []byte("\n"))
		if len(packet) > packetBytes || string(packet[:1]) != markCounts || packet[len(packet)-1] != '\n' {
			t.Errorf("a packet of %d bytes begins with %q", len(packet), packet[0])
		}
		return len(packet), nil
	}}))
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	_ = s.Flush(snap)
	s.Close()
	s.Run(t.Context())
	if lines != series || packets < 3 {
		t.Errorf("%d lines in %d packets", lines, packets)
	}
}

// TestNothingIsLostWhileTheReceiverIsDown ends the receiver twice while counters grow
// and flushes continue. The queue holds one flush, so that increments are owed as well.
func TestNothingIsLostWhileTheReceiverIsDown(t *testing.T) {
	for _, layout := range []Layout{Plain, Modern} {
		t.Run(string(layout), func(t *testing.T) {
			r := listen(t)
			st := store.New(store.Options{})
			s, err := New(Config{
				Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn(), QueueBytes: 400}, Address: r.l.Addr().String(), Layout: layout, dial: r.dial,
			})
			if err != nil {
				t.Fatal(err)
			}
			var done sync.WaitGroup
			done.Go(func() { s.Run(context.Background()) })
			tick := func() {
				snap := st.Flush(store.FlushOptions{})
				defer snap.Close()
				if err := s.Flush(snap); err != nil {
					t.Error(err)
				}
			}
			l := layouts[layout]
			var want uint64
			arrived := func() bool {
				tick() // sends the owed increments
				return r.sum(l.count+"a"+l.countEnd) == want && r.sum(l.count+"b"+l.countEnd) == 3*want
			}
			grow := func(times int) {
				for range times {
					st.Root().Counter("a").Inc()
					st.Root().Counter("b").Add(3)
					st.Root().Gauge("g").Set(want)
					want++
					tick()
				}
			}
			for range 2 {
				grow(5)
				sinktest.Await(t, "the increments before the outage", arrived)
				sinktest.Await(t, "an empty queue", func() bool { return s.Delivery().Bytes == 0 })
				failed := r.refused()
				r.kill()
				sinktest.Await(t, "the end of the connection", func() bool { return streamend.Closed(r.ours) })
				grow(20)
				sinktest.Await(t, "a failed attempt", func() bool { return r.refused() > failed })
				r.restart()
			}
			sinktest.Await(t, "the increments of the outages", arrived)
			s.Close()
			done.Wait()
			if !arrived() {
				t.Error("increments arrived twice")
			}
			if sinktest.Own(st, "graphite", "dropped_packets") == 0 || sinktest.Own(st, "graphite", "lost_increments") != 0 || sinktest.Own(st, "graphite", "ambiguous_packets") != 0 {
				t.Errorf("%+v", s.Delivery())
			}
		})
	}
}

func refuse(context.Context) (net.Conn, error) { return nil, io.ErrClosedPipe }

// TestLossIsCounted drops packets on shutdown.
func TestLossIsCounted(t *testing.T) {
	st := store.New(store.Options{})
	s, err := New(Config{Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, Address: "127.0.0.1:1", Tagged: true, dial: refuse})
	if err != nil {
		t.Fatal(err)
	}
	st.Root().Histogram("h.count", store.Milliseconds, tags.Tag{Name: "a", Value: "b"}).RecordN(4, 12)
	st.Root().Histogram("h", store.Milliseconds).RecordN(400, 30)
	st.Root().Counter("c.count").Add(5)
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	_ = s.Flush(snap)
	s.Close()
	s.Run(t.Context())
	if n := sinktest.Own(st, "graphite", "lost_values"); n != 42 {
		t.Errorf("%d values lost, want 42", n)
	}
	if n := sinktest.Own(st, "graphite", "lost_increments"); n != 5 {
		t.Errorf("%d increments lost, want 5", n)
	}
}

func TestSinkKeepsTheContract(t *testing.T) {
	for _, cfg := range []Config{{}, {Layout: Modern, Tagged: true}} {
		t.Run(string(cfg.Layout), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
				r := listen(t)
				cfg.Store, cfg.Address = store.New(store.Options{}), r.l.Addr().String()
				s, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if n := cfg.Store.OpenViews(); n != 0 {
						t.Errorf("%d views of the sink's own store are open", n)
					}
				})
				return sinktest.Receiver{Sink: s, Received: func(name string) uint64 {
					// The mark of a packet is not sent.
					sinktest.Await(t, "all bytes", func() bool {
						return uint64(len(r.text())) == sinktest.Own(cfg.Store, "graphite", "bytes")-sinktest.Own(cfg.Store, "graphite", "packets")
					})
					l := layouts[s.cfg.Layout]
					return r.sum(l.count + name + l.countEnd)
				}}
			})
		})
	}
}

func TestWrongSettings(t *testing.T) {
	st := store.New(store.Options{})
	o := sinkqueue.Options{Store: st}
	for _, cfg := range []Config{
		{Address: "a:1"},
		{Options: o},
		{Options: o, Address: "a"},
		{Options: o, Address: "a:1", Layout: "x"},
		{Options: o, Address: "a:1", Percentiles: []float64{0}},
		{Options: o, Address: "a:1", Percentiles: []float64{100}},
		{Options: o, Address: "a:1", Percentiles: []float64{math.NaN()}},
		{Options: o, Address: "a:1", Percentiles: make([]float64, MaxPercentiles+1)},
		{Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "a"}}}, Address: "a:1"},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "graphite: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestSettingsAtTheirLimits: defaults, the most percentiles, the least and the
// greatest one.
func TestSettingsAtTheirLimits(t *testing.T) {
	o := sinkqueue.Options{Store: store.New(store.Options{})}
	many := make([]float64, 32)
	for i := range many {
		many[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		percentiles []float64
		timeout     time.Duration
		ok          bool
		number      int
		want        time.Duration
	}{
		{nil, 0, true, 1, 2 * time.Second}, {[]float64{}, -1, true, 0, 2 * time.Second}, {many, 1, true, 32, 1},
		{append(many, 50), 0, false, 0, 0}, {[]float64{math.SmallestNonzeroFloat64, math.Nextafter(100, 0)}, 0, true, 2, 2 * time.Second},
	} {
		s, err := New(Config{Options: o, Address: "a:1", Percentiles: tt.percentiles, Timeout: tt.timeout})
		if (err == nil) != tt.ok {
			t.Errorf("%d percentiles: %v", len(tt.percentiles), err)
		}
		if err == nil && (len(s.percentiles) != tt.number || s.cfg.Timeout != tt.want) {
			t.Errorf("%d percentiles, timeout %v, want %d and %v", len(s.percentiles), s.cfg.Timeout, tt.number, tt.want)
		}
	}
}

// TestPathsWithTheSamePattern: counters of a family differ in the values of tags only.
func TestPathsWithTheSamePattern(t *testing.T) {
	st := store.New(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	var want []string
	for i := range 40 {
		network.Counter("a b", tags.Tag{Name: "name", Value: fmt.Sprintf("x%d/,", i)}, tags.Tag{Name: "code", Value: "y"}).Add(uint64(i + 1))
		want = append(want, fmt.Sprintf("edge.a_b;instance=a;_name=x%d-_;code=y %d ", i, i+1))
	}
	lines := strings.Split(string(output(t, Config{
		Options: sinkqueue.Options{Prefix: "edge", Tags: []tags.Tag{{Name: "instance", Value: "a"}}}, Tagged: true,
	}, st)), "\n")
	for i, line := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], line) {
			t.Fatalf("no %q in %q", line, lines)
		}
	}
}

// TestFieldsWithoutValuesOrTime: an empty histogram has no fields, and a flush without an
// interval no rates.
func TestFieldsWithoutValuesOrTime(t *testing.T) {
	st := store.New(store.Options{Now: func() time.Time { return time.Unix(1, 0) }})
	h := st.Root().Histogram("h", store.Unspecified)
	list := func(seconds float64) (names []string) {
		(&Sink{}).fields(h.Snapshot().Cumulative, seconds, func(field string, x float64) {
			names = append(names, field)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s is %v", field, x)
			}
		})
		return names
	}
	st.Flush(store.FlushOptions{}).Close()
	if got := list(10); got != nil {
		t.Errorf("without values: %q", got)
	}
	h.Record(5)
	st.Flush(store.FlushOptions{}).Close()
	with, without := list(10), list(0)
	if slices.Contains(without, ".count_ps") || !slices.Contains(with, ".count_ps") || len(with) != len(without)+1 {
		t.Errorf("with an interval %q, without %q", with, without)
	}
}

func TestNamelessStats(t *testing.T) {
	sinktest.Nameless(t, func(st *store.Store) (flush.Movable, error) {
		return New(Config{Options: sinkqueue.Options{Store: st}, Address: "127.0.0.1:1"})
	}, increments)
}

func TestUndeliveredIncrementsReturn(t *testing.T) {
	st := store.New(store.Options{})
	s, err := New(Config{Options: sinkqueue.Options{Store: st}, Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Owed(t, st, s, increments)
}
