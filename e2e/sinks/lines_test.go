package sinks

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/nodestatsd"
)

// lineReceiver adds up the counters in lines that come over TCP, and can be dead, slow
// or half closed. Its loopback address is its own, also while it is dead.
type lineReceiver struct {
	t       *testing.T
	address string

	mu       sync.Mutex
	change   *sync.Cond // of slow
	listener net.Listener
	conns    map[*net.TCPConn]bool
	half     bool // connections are closed for writing
	slow     bool // nothing is read
	sum      uint64
	running  sync.WaitGroup
}

func receiveLines(t *testing.T) *lineReceiver {
	t.Helper()
	r := &lineReceiver{
		t: t, address: fmt.Sprintf("127.%d.%d.%d:2003", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)), conns: map[*net.TCPConn]bool{},
	}
	r.change = sync.NewCond(&r.mu)
	r.start()
	t.Cleanup(func() { r.set(false, false); r.die(); r.running.Wait() })
	return r
}

func (r *lineReceiver) start() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.listener = l
	r.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.running.Go(func() { r.read(c.(*net.TCPConn)) })
		}
	})
}

// die closes the port and all connections.
func (r *lineReceiver) die() {
	_ = r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

// set makes the receiver slow or half closed, or neither.
func (r *lineReceiver) set(slow, half bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow, r.half = slow, half
	for c := range r.conns {
		r.shape(c)
	}
	r.change.Broadcast()
}

// shape closes c for writing if connections are half closed. r.mu must be held.
func (r *lineReceiver) shape(c *net.TCPConn) {
	if r.half {
		_ = c.CloseWrite()
	}
}

var increment = regexp.MustCompile(`^shop\.\S+?(?::(\d+)\|c| (\d+) \d+)\n$`)

func (r *lineReceiver) read(c *net.TCPConn) {
	defer c.Close()
	_ = c.SetReadBuffer(256 << 10) // it fills soon
	lines := bufio.NewReader(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = true
	defer delete(r.conns, c)
	r.shape(c)
	for {
		for r.slow {
			r.change.Wait()
		}
		r.mu.Unlock()
		line, err := lines.ReadString('\n')
		r.mu.Lock()
		if err != nil { // a part of a line does not count
			return
		}
		m := increment.FindStringSubmatch(line)
		if m == nil {
			r.t.Errorf("received %q", line)
			continue
		}
		n, err := strconv.ParseUint(m[1]+m[2], 10, 64)
		if err != nil {
			r.t.Error(err)
		}
		r.sum += n
	}
}

func (r *lineReceiver) received() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum
}

// TestIncrementsOverStreams: a receiver of lines is dead, half closed and slow while
// counters grow. Every increment arrives once, or counts as doubtful after a timeout.
func TestIncrementsOverStreams(t *testing.T) {
	receivers := map[string]*lineReceiver{"statsd": receiveLines(t), "graphite": receiveLines(t)}
	const common = `filters: {include: [{prefix: shop.}], kinds: [counter]}, queue: {max_bytes: 1000000}`
	d := start(t, "0s", fmt.Sprintf(`
- {name: statsd, %[1]s, statsd: {protocol: tcp, address: "%[2]s"}}
- {name: graphite, %[1]s, graphite: {address: "%[3]s"}}
`, common, receivers["statsd"].address, receivers["graphite"].address))
	r := rand.New(rand.NewPCG(8, 9))
	sent := uint64(0)
	grow := func() {
		t.Helper()
		var lines []string
		for i := range 500 {
			n := r.Uint64N(1000)
			sent += n
			lines = append(lines, fmt.Sprintf("shop.%s%d:%d|c", strings.Repeat("long", 200), i, n))
		}
		send(t, d, lines...)
	}
	// doubt returns the increments of a sink that perhaps arrived, or did not.
	doubt := func(s daemon.Stats, sink string) uint64 {
		return uint64(s.Number("sink.ambiguous_increments.sink."+sink) + s.Number("sink.lost_increments.sink."+sink))
	}
	settle := func(what string) {
		t.Helper()
		for name, x := range receivers {
			s := d.Wait("all increments of "+name+" after "+what, func(s daemon.Stats) bool {
				return s.Number("sink.queue_bytes.sink."+name) == 0 && s.Number("sink.owed_series.sink."+name) == 0 && x.received()+doubt(s, name) >= sent
			})
			if got := x.received(); got > sent {
				t.Errorf("%s after %s: %d increments arrived, %d were sent", name, what, got, sent)
			}
			if n := doubt(s, name); n != 0 && what != "slow" {
				t.Errorf("%s after %s: %d increments are in doubt", name, what, n)
			}
		}
	}
	// through grows until each sink has seen an error.
	through := func(what string) {
		t.Helper()
		before := d.Stats()
		d.Until(what, func() bool {
			grow()
			s := d.Stats()
			for name := range receivers {
				if s.Number("sink.send_errors.sink."+name) == before.Number("sink.send_errors.sink."+name) {
					return false
				}
			}
			return true
		})
	}
	defer func() {
		for name, x := range receivers {
			t.Logf("%s: %d increments sent, %d received, %d in doubt", name, sent, x.received(), doubt(d.Stats(), name))
		}
	}()
	grow()
	settle("the start")
	for range 2 {
		for _, x := range receivers {
			x.die()
		}
		through("death")
		for _, x := range receivers {
			x.start()
		}
		settle("death")
	}
	for _, x := range receivers {
		x.set(false, true)
	}
	for range 3 {
		grow()
		settle("half closed")
	}
	for _, x := range receivers {
		x.set(true, false)
	}
	through("slow")
	for _, x := range receivers {
		x.set(false, false)
	}
	settle("slow")
	s := d.Stats()
	if s.Sum("sink.dropped_packets") == 0 {
		t.Error("no queue was full")
	}
}

// TestNodeBehindASink compares counters, gauges and the number of timings in StatsD for
// Node.js with the sent lines.
func TestNodeBehindASink(t *testing.T) {
	nodes := map[string]*nodestatsd.Server{}
	for _, transport := range []string{"udp", "tcp"} {
		nodes[transport] = nodestatsd.Start(t, nodestatsd.Config{Transport: transport})
	}
	const common = `filters: {include: [{prefix: shop.}]}, prefix: edge`
	d := start(t, "0s", fmt.Sprintf(`
- {name: udp, %[1]s, statsd: {protocol: udp, address: "%[2]s"}}
- {name: tcp, %[1]s, statsd: {protocol: tcp, address: "%[3]s"}}
`, common, nodes["udp"].Address, nodes["tcp"].Address))
	r := rand.New(rand.NewPCG(10, 11))
	counters, gauges, values := map[string]float64{}, map[string]float64{}, map[string]float64{}
	arrived := func() {
		t.Helper()
		for name, node := range nodes {
			d.Until("the counters over "+name, func() bool {
				got := node.Counters()
				for key, v := range counters {
					if got[key] != v {
						return false
					}
				}
				return true
			})
		}
	}
	for range 5 {
		var lines []string
		for range 300 {
			switch n := r.IntN(30); n % 3 {
			case 0:
				v := r.IntN(100) + 1
				lines = append(lines, fmt.Sprintf("shop.c%d:%d|c|#zone:b", n, v))
				counters[fmt.Sprintf("edge.shop.c%d.zone.b", n)] += float64(v)
			case 1:
				v := float64(r.IntN(2000)-1000)/4 + 0.125
				lines = append(lines, fmt.Sprintf("shop.g%d:0|g\nshop.g%d:%+v|g", n, n, v))
				gauges[fmt.Sprintf("edge.shop.g%d", n)] = v
			default:
				lines = append(lines, fmt.Sprintf("shop.t%d:%d|ms", n, r.IntN(50)))
				values[fmt.Sprintf("edge.shop.t%d", n)]++
			}
		}
		send(t, d, strings.Split(strings.Join(lines, "\n"), "\n")...)
		arrived()
	}
	// What a later flush has brought comes after all of this.
	before := d.Stats()
	d.Wait("two flushes", func(s daemon.Stats) bool {
		return min(s.Number("sink.flushes.sink.tcp")-before.Number("sink.flushes.sink.tcp"), s.Number("sink.flushes.sink.udp")-before.Number("sink.flushes.sink.udp")) >= 2
	})
	send(t, d, "shop.last:1|c")
	counters["edge.shop.last"] = 1
	arrived()
	for name, node := range nodes {
		all := node.End()
		if n := all.Counters["statsd.bad_lines_seen"]; n != 0 {
			t.Errorf("%s: %v bad lines", name, n)
		}
		for _, kind := range []struct{ got, want map[string]float64 }{{all.Counters, counters}, {all.Gauges, gauges}, {all.Samples, values}} {
			for key, v := range kind.want {
				if got := kind.got[key]; !near(got, v, 1e-9) {
					t.Errorf("%s: %s is %v, want %v", name, key, got, v)
				}
			}
		}
	}
}
