package statsdsink_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
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
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a StatsD server and its store.
type receiver struct {
	t     *testing.T
	st    *store.Store
	srv   *statsd.Server
	stop  context.CancelFunc
	ended chan error
}

func receive(t *testing.T, st *store.Store, address string) *receiver {
	t.Helper()
	srv, err := statsd.New(statsd.Config{Store: st, Listeners: []statsd.ListenerConfig{{Address: address}}, Limits: statsd.Limits{NewPerSecond: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &receiver{t, st, srv, stop, make(chan error, 1)}
	go func() { r.ended <- srv.Run(ctx) }()
	return r
}

// end stops the server, which applies the received lines.
func (r *receiver) end() {
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Error(err)
	}
}

func (r *receiver) address() string {
	_, address, _ := strings.Cut(r.srv.Listeners()[0].Address, "://")
	return address
}

// value returns a counter or gauge from the network, 0 if there is none.
func value(st *store.Store, name string) float64 {
	v := st.View()
	defer v.Close()
	if c, ok := v.Find(name); ok && c.Network() {
		return c.Float()
	}
	return 0
}

// flushing starts a scheduler with the sink. flush flushes now, stop ends both.
func flushing(t *testing.T, st *store.Store, cfg statsdsink.Config) (sink *statsdsink.Sink, flushNow, stop func()) {
	t.Helper()
	cfg.Store, cfg.Filter = st, sinktest.NoOwn()
	sink, err := statsdsink.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := flush.New(flush.Config{Store: st, OnAdmin: true, Sinks: []flush.Sink{sink}, Queue: 1024, Linger: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return sink, s.FlushNow, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestReceiverGetsExactValues(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		network statsdsink.Network
		listen  string
	}{
		{statsdsink.UDP, "udp://127.0.0.1:0"},
		{statsdsink.TCP, "tcp://127.0.0.1:0"},
		{statsdsink.Unixgram, "unixgram://" + filepath.Join(dir, "g")},
		{statsdsink.Unixstream, "unixstream://" + filepath.Join(dir, "s")},
		{statsdsink.Unixlines, "unixlines://" + filepath.Join(dir, "l")},
	} {
		for _, format := range []statsdsink.Format{statsdsink.Plain, statsdsink.DogStatsD, statsdsink.Graphite} {
			t.Run(string(tt.network)+" "+string(format), func(t *testing.T) {
				r := receive(t, store.New(store.Options{}), tt.listen)
				st := store.New(store.Options{})
				sink, _, stop := flushing(t, st, statsdsink.Config{Network: tt.network, Address: r.address(), Format: format, Options: sinkqueue.Options{Prefix: "p"}})
				const series = 300
				for i := range series {
					st.Root().Counter(fmt.Sprint("c", i)).Add(uint64(i) + 1)
					st.Root().FloatGauge(fmt.Sprint("g", i)).Set(float64(i)/4 - 10)
				}
				h := st.Root().Histogram("h", store.Milliseconds)
				for i := range uint64(1000) {
					h.Record(i % 100)
				}
				stop()
				if s := sink.Delivery(); s.LastError != nil || s.Packets != 0 {
					t.Errorf("%+v", s)
				}
				sinktest.Await(t, "the last lines", func() bool { return r.srv.Report().Listeners[0].Applied >= sinktest.Own(st, "statsd", "metrics") })
				r.end()
				for i := range series {
					if c, g := value(r.st, fmt.Sprint("p.c", i)), value(r.st, fmt.Sprint("p.g", i)); c != float64(i)+1 || g != float64(i)/4-10 {
						t.Errorf("c%d is %v, g%d is %v", i, c, i, g)
					}
				}
				r.st.Flush(store.FlushOptions{}).Close()
				v := r.st.View()
				defer v.Close()
				hc, ok := v.Find("p.h")
				if !ok {
					t.Fatal("no histogram")
				}
				if got := hc.Histogram().Snapshot().Cumulative; got.Count() != 1000 || got.Sum() != 49500 || got.Max() != 99 {
					t.Errorf("%d values, sum %v, max %v", got.Count(), got.Sum(), got.Max())
				}
			})
		}
	}
}

// TestTCPLosesNothingWhileTheReceiverIsDown restarts the receiver twice on the same
// port while counters grow and flushes continue.
func TestTCPLosesNothingWhileTheReceiverIsDown(t *testing.T) {
	got := store.New(store.Options{})
	r := receive(t, got, "tcp://127.0.0.1:0")
	address := r.address()
	st := store.New(store.Options{})
	// The queue is small, so that increments are owed as well.
	_, flushNow, stop := flushing(t, st, statsdsink.Config{Network: statsdsink.TCP, Address: address, Options: sinkqueue.Options{QueueBytes: 40}})
	var want float64
	grow := func(times int) {
		for range times {
			st.Root().Counter("a").Add(3)
			st.Root().Counter("b").Inc()
			want += 3
			flushNow()
		}
	}
	for range 2 {
		grow(5)
		sinktest.Await(t, "what was sent before the outage", func() bool {
			flushNow() // sends the owed increments
			r.srv.Flush(time.Now())
			return sinktest.Own(st, "statsd", "queue_bytes") == 0 && value(got, "a") == want
		})
		r.end()
		failed := sinktest.Own(st, "statsd", "send_errors")
		grow(20)
		sinktest.Await(t, "a failed attempt", func() bool { return sinktest.Own(st, "statsd", "send_errors") > failed })
		r = receive(t, got, "tcp://"+address)
		sinktest.Await(t, "the end of the outage", func() bool { return sinktest.Own(st, "statsd", "queue_bytes") == 0 })
	}
	stop()
	sinktest.Await(t, "the rest", func() bool {
		r.srv.Flush(time.Now())
		return value(got, "a") == want && value(got, "b") == want/3
	})
	r.end()
	if sinktest.Own(st, "statsd", "dropped_packets") == 0 || sinktest.Own(st, "statsd", "lost_increments") != 0 || sinktest.Own(st, "statsd", "ambiguous_packets") != 0 {
		t.Errorf("%d packets dropped, %d increments lost, %d packets ambiguous",
			sinktest.Own(st, "statsd", "dropped_packets"), sinktest.Own(st, "statsd", "lost_increments"), sinktest.Own(st, "statsd", "ambiguous_packets"))
	}
}

// listenUDP opens a socket at address.
func listenUDP(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	a, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUDP("udp", a)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestUDPCountsPacketsLostInAnOutage closes the port and opens it again.
func TestUDPCountsPacketsLostInAnOutage(t *testing.T) {
	l := listenUDP(t, "127.0.0.1:0")
	address := l.LocalAddr().String()
	st := store.New(store.Options{})
	_, flushNow, stop := flushing(t, st, statsdsink.Config{Address: address})
	sent := 0
	grow := func(times int) {
		for range times {
			st.Root().Counter("a").Inc()
			flushNow()
			sent++
			sinktest.Await(t, "a packet to leave", func() bool { return sinktest.Own(st, "statsd", "packets") == uint64(sent) })
		}
	}
	received := 0
	count := func(l *net.UDPConn, n int) {
		buf := make([]byte, 100)
		_ = l.SetReadDeadline(time.Now().Add(time.Minute))
		for range n {
			k, err := l.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if string(buf[:k]) != "a:1|c" {
				t.Errorf("received %q", buf[:k])
			}
			received++
		}
	}
	grow(3)
	count(l, 3)
	_ = l.Close()
	grow(10)
	l = listenUDP(t, address)
	grow(4)
	count(l, 4)
	stop()
	_ = l.Close()
	if lost := int(sinktest.Own(st, "statsd", "lost_packets")); received+lost != sent || lost != 10 {
		t.Errorf("%d packets sent, %d received, %d counted as lost", sent, received, lost)
	}
}

// TestUDPCountsManyPacketsLostInAnOutage is the same with flushes of many packets, which
// leave in few system calls. The end of an outage shows with the packet after it.
func TestUDPCountsManyPacketsLostInAnOutage(t *testing.T) {
	l := listenUDP(t, "127.0.0.1:0")
	st := store.New(store.Options{})
	_, flushNow, stop := flushing(t, st, statsdsink.Config{Address: l.LocalAddr().String(), PacketBytes: 1})
	const series = 20
	names := make([]string, series)
	for i := range names {
		names[i] = strings.Repeat("a", i/7+1) + string(rune('a'+i)) // of three sizes
	}
	sent := 0
	grow := func() {
		for _, n := range names {
			st.Root().Counter(n).Inc()
		}
		flushNow()
		sent += series
		sinktest.Await(t, "the packets to leave", func() bool { return sinktest.Own(st, "statsd", "packets") == uint64(sent) })
	}
	received := map[string]int{}
	count := func(l *net.UDPConn) {
		buf := make([]byte, 100)
		_ = l.SetReadDeadline(time.Now().Add(time.Minute))
		for range series {
			k, err := l.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			received[string(buf[:k])]++
		}
	}
	grow()
	count(l)
	_ = l.Close()
	for range 3 {
		grow()
	}
	l = listenUDP(t, l.LocalAddr().String())
	grow()
	count(l)
	stop()
	_ = l.Close()
	for _, n := range names {
		if received[n+":1|c"] != 2 {
			t.Errorf("%s was received %d times, want 2", n, received[n+":1|c"])
		}
	}
	if lost := sinktest.Own(st, "statsd", "lost_packets"); lost != 3*series || len(received) != series {
		t.Errorf("%d packets counted as lost, want %d; received %v", lost, 3*series, received)
	}
}

// TestLongPacketsAreSplit sends packets that exceed the longest datagram.
func TestLongPacketsAreSplit(t *testing.T) {
	const lines = 3000 // about 100 kB
	r := receive(t, store.New(store.Options{}), "udp://127.0.0.1:0")
	st := store.New(store.Options{})
	_, _, stop := flushing(t, st, statsdsink.Config{Address: r.address(), PacketBytes: 200 << 10})
	for i := range lines {
		st.Root().Counter(fmt.Sprint("counter.with.a.long.name.", i)).Inc()
	}
	stop()
	sinktest.Await(t, "all lines", func() bool { return r.srv.Report().Listeners[0].Applied == lines })
	r.end()
}

func TestSinkKeepsTheContract(t *testing.T) {
	for name, cfg := range map[string]statsdsink.Config{
		"tcp":        {Network: statsdsink.TCP, ChangedGauges: true},
		"unixstream": {Network: statsdsink.Unixstream, ChangedGauges: true},
		"all":        {Network: statsdsink.TCP, ZeroDeltas: true},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Receiver { return collect(t, cfg) })
		})
	}
}

// collect returns a sink whose lines are collected as they are.
func collect(t *testing.T, cfg statsdsink.Config) sinktest.Receiver {
	kind, at := "tcp", "127.0.0.1:0"
	if cfg.Network == statsdsink.Unixstream {
		kind, at = "unix", filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(kind, at)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var got bytes.Buffer
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(c)
			_ = c.Close()
			mu.Lock()
			for cfg.Network == statsdsink.Unixstream && b.Len() > 0 {
				got.Write(b.Next(int(binary.LittleEndian.Uint32(b.Next(4)))))
			}
			got.Write(b.Bytes())
			mu.Unlock()
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	st := store.New(store.Options{})
	cfg.Store, cfg.Address = st, l.Addr().String()
	s, err := statsdsink.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%d views of the sink's own store are open", n)
		}
	})
	return sinktest.Receiver{Sink: s, Received: func(name string) (sum uint64) {
		sinktest.Await(t, "all bytes", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return uint64(got.Len()) == sinktest.Own(st, "statsd", "bytes")
		})
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(got.String()) {
			if n, ok := strings.CutPrefix(strings.TrimSuffix(line, "|c\n"), name+":"); ok {
				v, _ := strconv.ParseUint(n, 10, 64)
				sum += v
			}
		}
		return sum
	}}
}

func ExampleNew() {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	st := store.New(store.Options{})
	sink, err := statsdsink.New(statsdsink.Config{
		Options: sinkqueue.Options{
			Store: st, Prefix: "shop", Filter: sinkqueue.Filter{Include: match.List{match.Exact("orders")}},
		},
		Address: l.LocalAddr().String(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := flush.New(flush.Config{Store: st, Sinks: []flush.Sink{sink}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st.Root().Counter("orders").Add(3)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Run flushes a last time
	if err := s.Run(ctx); err != nil {
		fmt.Println(err)
	}
	buf := make([]byte, 100)
	n, _, err := l.ReadFrom(buf)
	fmt.Println(string(buf[:n]), err)
	// Output: shop.orders:3|c <nil>
}

// TestLinesWithTheSamePattern: counters of a family differ in the values of tags only.
func TestLinesWithTheSamePattern(t *testing.T) {
	for format, line := range map[statsdsink.Format]string{
		statsdsink.DogStatsD: "edge.a_b:%d|c|#instance:a,k_:x%d/_,code:y",
		statsdsink.Graphite:  "edge.a_b;instance=a;k_=x%[2]d-_;code=y:%[1]d|c",
	} {
		for _, own := range []bool{true, false} {
			st := store.New(store.Options{})
			o := sinkqueue.Options{Store: st, Prefix: "edge", Filter: sinktest.NoOwn()}
			if own {
				o.Tags = []tags.Tag{{Name: "instance", Value: "a"}}
			} else {
				line = strings.NewReplacer("instance:a,", "", ";instance=a", "").Replace(line)
			}
			s, err := statsdsink.New(statsdsink.Config{Options: o, Address: "127.0.0.1:9", Format: format})
			if err != nil {
				t.Fatal(err)
			}
			network := st.ScopeWith("", store.ScopeOptions{Network: true})
			var want []string
			for i := range 40 {
				network.Counter("a|b", tags.Tag{Name: "k#", Value: fmt.Sprintf("x%d/,", i)}, tags.Tag{Name: "code", Value: "y"}).Add(uint64(i + 1))
				want = append(want, fmt.Sprintf(line, i+1, i))
			}
			snap := st.Flush(store.FlushOptions{})
			if err := s.Flush(snap); err != nil {
				t.Fatal(err)
			}
			snap.Close()
			var got []string
			for _, p := range s.Hold(t.Context()) {
				got = append(got, strings.Split(string(p.Data), "\n")...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", format, got, want)
			}
			s.Close()
		}
	}
}

// TestShortPacketsHoldLittleMemory queues short packets that nothing sends.
func TestShortPacketsHoldLittleMemory(t *testing.T) {
	for _, network := range []statsdsink.Network{statsdsink.UDP, statsdsink.TCP} {
		st := store.New(store.Options{})
		sink, err := statsdsink.New(statsdsink.Config{Options: sinkqueue.Options{Store: st}, Network: network, Address: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		c := st.Root().Counter("c")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const flushes = 500
		for range flushes {
			c.Inc()
			snap := st.Flush(store.FlushOptions{})
			if err := sink.Flush(snap); err != nil {
				t.Fatal(err)
			}
			snap.Close()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 1<<20 { // a buffer each would be 31 MiB
			t.Errorf("%s: %d packets hold %d bytes", network, flushes, held)
		}
		runtime.KeepAlive(sink)
	}
}
