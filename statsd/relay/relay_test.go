package relay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = line.New(line.Config{})

// world is a relay with a writer.
type world struct {
	t testing.TB
	*Relay
	mu   sync.Mutex
	w    *Writer
	line line.Line
	sent int // lines
}

func newWorld(t testing.TB, routes ...Route) *world {
	t.Helper()
	return newWorldWith(t, Config{Routes: routes})
}

func newWorldWith(t testing.TB, cfg Config) *world {
	t.Helper()
	cfg.Store, cfg.Parser, cfg.Delay = store.New(store.Options{}), parser, 5*time.Millisecond
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, Relay: r}
	w.w = r.NewWriter(&w.mu)
	return w
}

// run runs the relay until the returned function is called, or the test ends.
func (w *world) run() (stop func()) {
	stop = sync.OnceFunc(w.Start())
	w.t.Cleanup(stop)
	return stop
}

// add relays a line as a reader does.
func (w *world) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	if parser.Parse(&w.line, []byte(text)) != line.OK {
		w.w.AddInvalid(w.line.Text)
		return
	}
	w.w.Add(&w.line)
}

// queued flushes the writer and returns the packets that wait for a target.
func (w *world) queued(target int) (all []string) {
	w.w.flush()
	w.targets[target].queue.Take(func(data []byte, _ int) { all = append(all, string(data)) })
	return all
}

// checkLaw checks the conservation law of every target.
func checkLaw(t testing.TB, all []report.RelayTarget) {
	t.Helper()
	for _, r := range all {
		if r.Accepted+r.MovedIn != r.Sent+r.Dropped+r.Ambiguous+r.Rejected+r.Long+r.MovedOut+uint64(r.Queued) {
			t.Errorf("the law does not hold: %+v", r)
		}
	}
}

// sink is a server that collects lines. It can die and come back at its path.
type sink struct {
	t    testing.TB
	path string
	next func(line string) // called with each line; may be nil

	mu    sync.Mutex
	lines map[string]int
	total int
	l     net.Listener
	conns []net.Conn
	done  sync.WaitGroup
}

func newSink(t testing.TB) *sink {
	dir, err := os.MkdirTemp("", "relay") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{t: t, path: dir + "/s", lines: map[string]int{}}
	s.start()
	t.Cleanup(func() {
		s.kill()
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *sink) start() {
	l, err := net.Listen("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.l = l
	s.mu.Unlock()
	s.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			if s.l == l {
				s.conns = append(s.conns, c)
				s.done.Go(func() { s.read(c) })
			} else {
				_ = c.Close() // killed meanwhile
			}
			s.mu.Unlock()
		}
	})
}

func (s *sink) read(c net.Conn) {
	var rest []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		rest = append(rest, buf[:n]...)
		i := bytes.LastIndexByte(rest, '\n')
		s.mu.Lock()
		eachLine(rest[:i+1], func(text []byte) {
			s.lines[string(text)]++
			s.total++
		})
		next := s.next
		s.mu.Unlock()
		if next != nil {
			eachLine(rest[:i+1], func(text []byte) { next(string(text)) })
		}
		rest = rest[i+1:]
		if err != nil {
			return
		}
	}
}

func (s *sink) kill() {
	s.mu.Lock()
	if s.l != nil {
		_ = s.l.Close()
	}
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns, s.l = nil, nil
	s.mu.Unlock()
	s.done.Wait()
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// targets returns the targets of sinks.
func targets(sinks ...*sink) (all []Target) {
	for _, s := range sinks {
		all = append(all, Target{Address: "unixlines://" + s.path})
	}
	return all
}

func tcp(addrs ...string) (all []Target) {
	for _, a := range addrs {
		all = append(all, Target{Address: "tcp://" + a})
	}
	return all
}

// TestHashMovesOnlyTheShareOfATarget takes each of five targets away and brings it back.
func TestHashMovesOnlyTheShareOfATarget(t *testing.T) {
	const targets, keys = 5, 20_000
	w := newWorld(t, Route{Hash: Name, Targets: tcp("a:1", "b:1", "c:1", "d:1", "e:1")})
	rt := w.routes[0]
	place := func() (all [keys]*target) {
		for i := range all {
			_, all[i] = rt.pick(uint64(i) * 0x9e3779b97f4a7c15)
		}
		return all
	}
	before := place()
	for _, gone := range rt.targets {
		gone.up.Store(false)
		moved := map[*target]int{}
		for i, now := range place() {
			switch {
			case before[i] == gone:
				moved[now]++
			case before[i] != now:
				t.Fatalf("key %d moved from %s to %s when %s left", i, before[i].cfg.Name, now.cfg.Name, gone.cfg.Name)
			}
		}
		share := 0
		for to, n := range moved {
			share += n
			if n < keys/targets/(targets-1)*8/10 || n > keys/targets/(targets-1)*12/10 {
				t.Errorf("%d keys of %s went to %s", n, gone.cfg.Name, to.cfg.Name)
			}
		}
		if share < keys/targets*9/10 || share > keys/targets*11/10 || moved[gone] != 0 {
			t.Errorf("%s had %d of %d keys", gone.cfg.Name, share, keys)
		}
		gone.up.Store(true)
		if place() != before {
			t.Errorf("%s did not get its keys back", gone.cfg.Name)
		}
	}
	for _, x := range rt.targets {
		x.up.Store(false)
	}
	if place() != before {
		t.Error("with all targets down, lines do not wait for their owners")
	}
}

// TestHashDependsOnNames gives targets in another order, at another address.
func TestHashDependsOnNames(t *testing.T) {
	one := newWorld(t, Route{Hash: Name, Targets: []Target{{Name: "x", Address: "tcp://a:1"}, {Name: "y", Address: "tcp://b:1"}}}).routes[0]
	two := newWorld(t, Route{Hash: Name, Targets: []Target{{Name: "y", Address: "udp://z:9"}, {Name: "x", Address: "tcp://a:1"}}}).routes[0]
	for key := range uint64(1000) {
		a, _ := one.pick(mix(key))
		b, _ := two.pick(mix(key))
		if a.cfg.Name != b.cfg.Name {
			t.Fatalf("two relays disagree about key %d", key)
		}
	}
}

// TestLinesOfOneSeriesMeet writes one series in all dialects.
func TestLinesOfOneSeriesMeet(t *testing.T) {
	rt := &route{Route: Route{Hash: Series}}
	var scratch []byte
	key := func(text string) uint64 {
		var l line.Line
		if r := parser.Parse(&l, []byte(text)); r != line.OK {
			t.Fatal(text, r)
		}
		return rt.key(&l, &scratch)
	}
	want := key("rt:1|ms|#a:1,b:2")
	for _, text := range []string{"rt:7|c|@0.1|#b:2,a:1", "rt,b=2,a=1:1|c", "rt;a=1;b=2:1|g", "rt#b=2,a=1:1|c", "r[b=2,a=1]t:1|c", "rt.:1|c|#a:1|#b:2"} {
		if key(text) != want {
			t.Errorf("%s goes elsewhere", text)
		}
	}
	for _, text := range []string{"rt:1|ms|#a:1,b:3", "rt:1|ms|#a:1", "rt:1|ms|#a:1,b:2,c:", "rta:1|ms|#:1,b:2"} {
		if key(text) == want {
			t.Errorf("%s goes to the same target", text)
		}
	}
	// Relays of other versions must agree.
	if got := xxhash.Sum64String("rt\x00a\x001\x00b\x002"); got != want {
		t.Errorf("the key of a series is %#x, want %#x", want, got)
	}
	if got := [2]uint64{mix(1), mix(1<<63 + 12345)}; got != [2]uint64{0x5692161d100b05e5, 0x6271f2c2f6c525ba} {
		t.Errorf("scores are %#x", got)
	}
	rt.Hash = Name
	if key("rt:1|ms|#a:1") != key("rt:1|ms") || key("rt:1|c") == key("ru:1|c") {
		t.Error("the key of a name depends on tags, or not on the name")
	}
	if key("_sc|disk|0") != key("_sc|disk|2|m:full") || key("_sc|disk|0") == key("_sc|cpu|0") {
		t.Error("the states of a service check do not meet")
	}
}

// TestRoutes sends lines of all kinds on several routes, of which the first takes none and
// the second hashes.
func TestRoutes(t *testing.T) {
	w := newWorld(t,
		Route{Targets: []Target{{Name: "none", Address: "udp://127.0.0.1:1"}}, Prefixes: []string{"none."}},
		Route{Targets: []Target{{Name: "hashed", Address: "udp://127.0.0.1:1"}}, Hash: Name, Invalid: true},
		Route{Targets: []Target{{Name: "all", Address: "udp://127.0.0.1:1"}, {Name: "again", Address: "tcp://127.0.0.1:1", PacketBytes: 64}}},
		Route{Targets: []Target{{Name: "shop", Address: "udp://127.0.0.1:1"}}, Prefixes: []string{"shop.", "pay"}},
		Route{Targets: []Target{{Name: "bad", Address: "unixlines:///run/x"}}, Invalid: true, Prefixes: []string{"shop.", "nonsense"}},
	)
	if !w.NeedsName() || !w.TakesInvalid() {
		t.Error("prefixes need names")
	}
	for _, text := range []string{"shop.a:1|c", "  other:2|ms|@0.5|#x\r", "payments:3|g", "_e{1,1}:a|b", "_sc|disk|0", "nonsense", "also nonsense"} {
		w.add(text)
	}
	for i, want := range []string{
		"",
		"shop.a:1|c\nother:2|ms|@0.5|#x\npayments:3|g\n_e{1,1}:a|b\n_sc|disk|0\nnonsense\nalso nonsense",
		"shop.a:1|c\nother:2|ms|@0.5|#x\npayments:3|g\n_e{1,1}:a|b\n_sc|disk|0",
		"shop.a:1|c\nother:2|ms|@0.5|#x\npayments:3|g\n_e{1,1}:a|b\n" + "|_sc|disk|0\n",
		"shop.a:1|c\npayments:3|g",
		"shop.a:1|c\nnonsense\n",
	} {
		if got := strings.Join(w.queued(i), "|"); got != want {
			t.Errorf("%s got %q, want %q", w.targets[i].cfg.Name, got, want)
		}
	}
}

// FuzzPackets packs lines of any text and reads them back.
func FuzzPackets(f *testing.F) {
	f.Add([]byte("a:1|c\nb:2|ms\n\nccc:3|g|#x:y"), uint16(64), true)
	f.Add([]byte("a:1|c\nb:2|ms\n"), uint16(1400), false)
	f.Add([]byte(strings.Repeat("x", 200)+"\na\n"+strings.Repeat("y", 63)+"\n"+strings.Repeat("z", 64)), uint16(64), true)
	f.Fuzz(func(t *testing.T, data []byte, size uint16, stream bool) {
		address := "udp://127.0.0.1:1"
		if stream {
			address = "tcp://127.0.0.1:1"
		}
		limit := max(int(size), minPacketBytes)
		w := newWorld(t, Route{Invalid: true, Targets: []Target{{Address: address, PacketBytes: limit}}})
		var want []string
		eachLine(data, func(text []byte) {
			w.w.AddInvalid(text)
			want = append(want, string(text))
		})
		var got []string
		for _, p := range w.queued(0) {
			n := countLines([]byte(p))
			if len(p) > limit && n > 1 || n == 0 {
				t.Fatalf("a packet of %d bytes and %d lines, the limit is %d", len(p), n, limit)
			}
			if strings.HasSuffix(p, "\n") != stream || strings.HasPrefix(p, "\n") || strings.Contains(p, "\n\n") {
				t.Fatalf("packet %q", p)
			}
			got = append(got, strings.Split(strings.TrimSuffix(p, "\n"), "\n")...)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Fatalf("%q became %q", want, got)
		}
	})
}

func TestLongLines(t *testing.T) {
	w := newWorld(t, Route{Invalid: true, Targets: []Target{{Address: "udp://127.0.0.1:1"}, {Address: "tcp://127.0.0.1:1", PacketBytes: 1024}}})
	w.w.AddInvalid(bytes.Repeat([]byte("x"), maxDatagram+1))
	w.w.AddInvalid(bytes.Repeat([]byte("x"), maxDatagram))
	if n := w.queued(0); len(n) != 1 || w.targets[0].long.Total() != 1 {
		t.Errorf("%d datagrams, %d lines too long", len(n), w.targets[0].long.Total())
	}
	if n := w.queued(1); len(n) != 2 || w.targets[1].long.Total() != 0 {
		t.Errorf("%d packets in a stream", len(n))
	}
	if w.w.packers[1].buf != nil {
		t.Error("the memory of a long line is kept")
	}
}

// TestAddDoesNotAllocate relays a known line.
func TestAddDoesNotAllocate(t *testing.T) {
	w := newWorld(t, Route{Hash: Series, Targets: tcp("a:1", "b:1", "c:1")}, Route{Targets: tcp("d:1")})
	var l line.Line
	if r := parser.Parse(&l, []byte("shop.requests:1|c|#route:/a,code:200")); r != line.OK {
		t.Fatal(r)
	}
	per := testing.AllocsPerRun(20_000, func() { w.w.Add(&l) })
	if per != 0 { // AllocsPerRun rounds down: one packet of 64 KiB has 1,700 lines
		t.Errorf("%v allocations per line", per)
	}
}

// TestLinesOfADeadTargetMove kills a target of three under traffic, brings it back,
// and accounts for every line.
func TestLinesOfADeadTargetMove(t *testing.T) {
	sinks := []*sink{newSink(t), newSink(t), newSink(t)}
	w := newWorld(t, Route{Hash: Name, Targets: targets(sinks...)})
	stop := w.run()
	round := func() {
		for i := range 500 {
			w.add(fmt.Sprintf("n%d:1|c", i))
		}
	}
	total := func() int { return sinks[0].count() + sinks[1].count() + sinks[2].count() }
	arrived := func() { waittest.Until(t, "all lines", func() bool { return total() == w.sent }) }
	round()
	arrived()
	sinks[1].kill() // idle: nothing is on the way
	round()
	arrived()
	victim := w.targets[1]
	if victim.up.Load() || victim.movedOut.Total() == 0 {
		t.Errorf("the dead target: %+v", victim.report())
	}
	round()
	arrived()
	sinks[1].start()
	waittest.Until(t, "the target to return", victim.up.Load)
	before := sinks[1].count()
	round()
	arrived()
	if sinks[1].count() == before {
		t.Error("the target that returned gets nothing")
	}
	for i := range 500 {
		name := fmt.Sprintf("n%d:1|c", i)
		if n := sinks[0].lines[name] + sinks[1].lines[name] + sinks[2].lines[name]; n != 4 {
			t.Errorf("%s arrived %d times", name, n)
		}
	}
	stop()
	all := w.Report()
	checkLaw(t, all)
	if in, out := all[0].MovedIn+all[2].MovedIn, all[1].MovedOut; in != out || all[0].MovedOut+all[2].MovedOut != 0 {
		t.Errorf("%d lines moved out, %d in", out, in)
	}
}

// TestLawUnderFaults breaks connections at random and compares the counts of the relay
// with what arrived.
func TestLawUnderFaults(t *testing.T) {
	sinks := []*sink{newSink(t), newSink(t), newSink(t)}
	all := targets(sinks...)
	for i := range all {
		all[i].QueueBytes, all[i].PacketBytes = 4<<10, 256
	}
	w := newWorld(t, Route{Hash: Series, Targets: all}, Route{Targets: []Target{{Name: "dead", Address: "tcp://" + closedport.TCP(t).String(), QueueBytes: 1 << 10}}})
	stop := w.run()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		victim := sinks[r.IntN(3)]
		victim.kill()
		for i := range 300 {
			w.add(fmt.Sprintf("n%d:%d|c|#t:%d", i, i, i%7))
		}
		victim.start()
	}
	stop()
	reports := w.Report()
	checkLaw(t, reports)
	var accepted, sent uint64
	for _, x := range reports[:3] {
		accepted += x.Accepted
		sent += x.Sent
		if x.Queued != 0 || x.QueueBytes != 0 {
			t.Errorf("queued at the end: %+v", x)
		}
	}
	arrived := 0
	for _, s := range sinks {
		s.kill()
		arrived += s.count()
	}
	if accepted != uint64(w.sent) || arrived > int(sent) || reports[3].Accepted != uint64(w.sent) || reports[3].Sent != 0 || reports[3].Dropped != uint64(w.sent) {
		t.Errorf("%d lines, %d accepted, %d sent, %d arrived; the dead target %+v", w.sent, accepted, sent, arrived, reports[3])
	}
}

// TestSlowTargetDelaysNobody has a target that reads nothing.
func TestSlowTargetDelaysNobody(t *testing.T) {
	good, slow := newSink(t), t.TempDir()+"/s"
	l, err := net.Listen("unix", slow)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := newWorldWith(t, Config{
		Routes:  []Route{{Targets: append(targets(good), Target{Address: "unixlines://" + slow, QueueBytes: 64 << 10})}},
		Timeout: 50 * time.Millisecond,
	})
	stop := w.run()
	waittest.Until(t, "a write to time out, and the queue to be full", func() bool {
		for range 100 {
			w.add("slow:" + strings.Repeat("1", 1000) + "|s")
		}
		waittest.Until(t, "all lines", func() bool { return good.count() == w.sent })
		r := w.Report()[1]
		return r.Failed > 0 && r.Dropped > 0
	})
	stop()
	all := w.Report()
	checkLaw(t, all)
	if all[0].Sent != uint64(w.sent) || all[1].Connections != 1 {
		t.Errorf("%+v", all)
	}
}

// TestStopWaitsForSlowTargets: it waits 5 s for a target that takes a line a second, and
// drops the rest.
func TestStopWaitsForSlowTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, Config{Routes: []Route{{Targets: []Target{{Address: "tcp://127.0.0.1:1", PacketBytes: 64}}}}, LoopCheck: -1})
		conn, end := net.Pipe()
		w.targets[0].conn = sinkqueue.NewConn(sinkqueue.ConnConfig{
			Network: sinkqueue.TCP, Timeout: time.Minute, Dial: func(context.Context) (net.Conn, error) { return conn, nil },
		})
		var reader sync.WaitGroup
		reader.Go(func() {
			for lines := bufio.NewScanner(end); lines.Scan(); time.Sleep(time.Second) {
			}
		})
		defer reader.Wait()
		for range 20 {
			w.add("slow:" + strings.Repeat("1", 60) + "|s")
		}
		stop, began := w.run(), time.Now()
		stop()
		r := w.Report()
		checkLaw(t, r)
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second || r[0].Sent < 5 || r[0].Dropped != 20-r[0].Sent {
			t.Errorf("after %v: %+v", took, r[0])
		}
	})
}

// TestHealthChecks has a target that is checked as node's statsd is.
func TestHealthChecks(t *testing.T) {
	var mu sync.Mutex
	answer := "health: up\n"
	manager, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := manager.Accept()
			if err != nil {
				return
			}
			question := make([]byte, len(healthQuestion))
			if _, err := io.ReadFull(c, question); err == nil && string(question) == healthQuestion {
				mu.Lock()
				_, _ = io.WriteString(c, answer)
				mu.Unlock()
			}
			_ = c.Close()
		}
	})
	defer done.Wait()
	defer manager.Close()
	w := newWorld(t, Route{Hash: Name, Targets: []Target{
		{Address: "udp://127.0.0.1:1", Health: HealthCheck{Address: manager.Addr().String(), Expect: "up", Interval: time.Millisecond}},
		{Address: "udp://127.0.0.1:2"},
	}})
	stop := w.run()
	defer stop()
	x := w.targets[0]
	say := func(s string) { mu.Lock(); defer mu.Unlock(); answer = s }
	waittest.Until(t, "a check", func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.checks.n == 0 && x.checks.err == nil })
	if !x.up.Load() {
		t.Error("a healthy target is down")
	}
	say("health: down\n")
	waittest.Until(t, "the target to be down", func() bool { return !x.up.Load() })
	if got := x.report().LastError; !strings.Contains(got, "health check of "+manager.Addr().String()+": ") || !strings.HasSuffix(got, `the answer does not contain "up"`) {
		t.Errorf("the error is %q", got)
	}
	say("health: up\n")
	waittest.Until(t, "the target to be up", x.up.Load)
}

// TestLoopsOverTheAddressesOfTheHost: a listener on all addresses receives datagrams
// to any of them.
func TestLoopsOverTheAddressesOfTheHost(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil || len(addrs) == 0 {
		t.Fatal(addrs, err)
	}
	for _, a := range addrs {
		ip := a.(*net.IPNet).IP
		if ip.IsLinkLocalUnicast() { // needs a zone
			continue
		}
		w := newWorld(t, Route{Targets: []Target{{Address: "udp://" + net.JoinHostPort(ip.String(), "8125")}}})
		if w.SetListeners([]string{"udp://[::]:8125"}) == nil {
			t.Errorf("a target at %s is not refused", ip)
		}
		if err := w.SetListeners([]string{"udp://[::]:8126"}); err != nil {
			t.Errorf("another port of %s: %v", ip, err)
		}
	}
}

func TestLoopsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		own, target string
		loop        bool
	}{
		{"udp://127.0.0.1:8125", "udp://127.0.0.1:8125", true},
		{"udp://127.0.0.1:8125", "tcp://127.0.0.1:8125", false},
		{"udp://127.0.0.1:8125", "udp://127.0.0.1:8126", false},
		{"udp://127.0.0.1:8125", "udp://0.0.0.0:8125", true},
		{"udp://0.0.0.0:8125", "udp://127.0.0.1:8125", true},
		{"udp4://0.0.0.0:8125", "udp://127.0.0.9:8125", true},
		{"udp4://0.0.0.0:8125", "udp://[::1]:8125", false},
		{"udp4://0.0.0.0:8125", "udp://[::]:8125", true},
		{"udp://0.0.0.0:8125", "udp://[::1]:8125", true}, // Go listens on both families
		{"tcp6://[::]:8125", "tcp://[::1]:8125", true},
		{"tcp6://[::]:8125", "tcp://127.0.0.1:8125", false},
		{"tcp6://[::]:8125", "tcp://[::ffff:127.0.0.1]:8125", false},
		{"tcp://[::]:8125", "tcp://[::1]:8125", true},
		{"tcp://[::]:8125", "tcp://[::ffff:127.0.0.1]:8125", true},
		{"tls://0.0.0.0:8125", "tcp://127.0.0.1:8125", true},
		{"tcp://0.0.0.0:8125", "tcp://192.0.2.1:8125", false},
		{"unixgram:///run/a", "unixgram:///run/a", true},
		{"unixlines:///run/a", "unixgram:///run/b", false},
		{"udp://0.0.0.0:8125", "udp://localhost:8125", true},
		{"udp://[::]:8125", "udp://nothing.invalid:8125", false},
	} {
		w := newWorld(t, Route{Targets: []Target{{Address: tt.target}}})
		if err := w.SetListeners([]string{tt.own}); err != nil != tt.loop {
			t.Errorf("%s with the target %s: %v", tt.own, tt.target, err)
		}
		// The same among other listeners and targets.
		const other = "tcp://192.0.2.7:99"
		w = newWorld(t, Route{Targets: []Target{{Address: other}, {Address: tt.target}}}, Route{Targets: []Target{{Name: "z", Address: other}}})
		for _, own := range [][]string{{tt.own, "udp://127.0.0.1:1"}, {"udp://127.0.0.1:1", tt.own}, {"unixgram:///run/z", tt.own}} {
			if err := w.SetListeners(own); err != nil != tt.loop || tt.loop && !strings.Contains(err.Error(), tt.own+" of this server") {
				t.Errorf("%q with the target %s: %v", own, tt.target, err)
			}
		}
	}
	// A name is checked when it is connected to.
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	_, port, _ := net.SplitHostPort(own.Addr().String())
	w := newWorld(t, Route{Targets: tcp("localhost:" + port)})
	l, err := parseListener("tcp://" + own.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.own = []listener{l} // as if the address of the name were not known at the start
	stop := w.run()
	w.add("a:1|c")
	waittest.Until(t, "the target to be down", func() bool { return !w.targets[0].up.Load() })
	stop()
	if r := w.Report()[0]; r.Sent != 0 || r.Connections != 0 || !strings.Contains(r.LastError, "would loop") {
		t.Errorf("%+v", r)
	}
}

// TestQueuesMove hands what waits for a dead target over to another relay, whose target
// of the same name is elsewhere.
func TestQueuesMove(t *testing.T) {
	dead := Target{Name: "x", Address: "unixlines:///nothing/here"}
	old := newWorld(t, Route{Targets: []Target{dead}})
	stop := old.run()
	for i := range 100 {
		old.add(fmt.Sprintf("n%d:1|c", i))
	}
	old.HandOver()
	stop()
	parcels := old.Hold()
	old.Release(true)
	if r := old.Report()[0]; len(parcels) == 0 || r.Dropped != 0 || r.Queued != 0 {
		t.Errorf("%d packets: %+v", len(parcels), r)
	}
	s := newSink(t)
	other := targets(s)
	other[0].Name = "x"
	next, strange := newWorld(t, Route{Hash: None, Targets: other}), newWorld(t, Route{Targets: targets(s)})
	for _, p := range parcels {
		if !next.Inherit(p) || strange.Inherit(p) {
			t.Errorf("%+v is refused, or taken for another target", p)
		}
	}
	stop = next.run()
	waittest.Until(t, "all lines", func() bool { return s.count() >= 100 })
	stop()
	s.kill()
	if s.count() != 100 || len(s.lines) != 100 {
		t.Errorf("%d lines arrived, %d different ones", s.count(), len(s.lines))
	}
}

// TestCircleIsBounded has two relays that send to each other, the second everything
// twice. Lines multiply until queues drop them, and queues stay within their limits.
func TestCircleIsBounded(t *testing.T) {
	const limit = 8 << 10
	a, b := newSink(t), newSink(t)
	to := func(s *sink, name string) Route {
		return Route{Targets: []Target{{Name: name, Address: "unixlines://" + s.path, PacketBytes: 1 << 10, QueueBytes: limit}}}
	}
	first, second := newWorld(t, to(b, "there")), newWorld(t, to(a, "back"), to(a, "again"))
	a.mu.Lock() // happens before a connection
	a.next = first.add
	a.mu.Unlock()
	b.mu.Lock()
	b.next = second.add
	b.mu.Unlock()
	stops := []func(){first.run(), second.run()}
	for i := range 10 {
		first.add(fmt.Sprintf("a:%d|c", i))
	}
	var all []report.RelayTarget
	waittest.Until(t, "a full queue", func() bool {
		all = append(first.Report(), second.Report()...)
		dropped := uint64(0)
		for _, r := range all {
			dropped += r.Dropped
			if r.QueueBytes > limit+1<<10 { // and a packet that is being sent
				t.Fatalf("%d bytes wait for %s", r.QueueBytes, r.Name)
			}
		}
		return dropped > 1000
	})
	a.kill()
	b.kill()
	for _, stop := range stops {
		stop()
	}
	checkLaw(t, append(first.Report(), second.Report()...))
}

// panicking is a lock that panics when its fuse is lit.
type panicking struct {
	sync.Mutex
	guardtest.Fuse
}

func (p *panicking) Lock() {
	p.Burn()
	p.Mutex.Lock()
}

// TestRelayGoesOnAfterPanics breaks the goroutine that sends unfilled packets.
func TestRelayGoesOnAfterPanics(t *testing.T) {
	panics := guardtest.New(t)
	s := newSink(t)
	w := newWorldWith(t, Config{Routes: []Route{{Targets: targets(s)}}, Logger: panics.Logger()})
	var lock panicking
	lock.Light(1)
	w.NewWriter(&lock)
	stop := w.run()
	panics.Caught("relay")
	w.add("a:1|c")
	waittest.Until(t, "the line", func() bool { return s.count() == 1 })
	stop()
}

// TestPanicsArePaced: a goroutine that panics again and again leaves the processor to others.
func TestPanicsArePaced(t *testing.T) {
	panics := guardtest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r := &Relay{cfg: Config{Delay: time.Second}, guard: guard.New(panics.Logger())}
		began, calls := time.Now(), 0
		r.keep("relay", func() {
			if calls++; calls < 4 {
				panic(guardtest.Canary)
			}
		})
		if took := time.Since(began); calls != 4 || took != 3*time.Second {
			t.Errorf("%d calls in %v, want 4 in 3s", calls, took)
		}
	})
	for range 3 {
		panics.Caught("relay")
	}
}

func TestConfigErrors(t *testing.T) {
	st := store.New(store.Options{})
	one := tcp("a:1")
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Parser: parser}, "no store"},
		{Config{Store: st}, "no parser"},
		{Config{Store: st, Parser: parser, Routes: []Route{{}}}, "0 targets, not in [1,256]"},
		{Config{Store: st, Parser: parser, Routes: []Route{{Targets: []Target{{Address: "a:1"}}}}}, `route 0, target 0: address "a:1": want udp://`},
		{Config{Store: st, Parser: parser, Routes: []Route{{Targets: []Target{{Address: "sctp://a:1"}}}}}, `address "sctp://a:1"`},
		{Config{Store: st, Parser: parser, Routes: []Route{{Targets: []Target{{Address: "unixgram://run"}}}}}, "unixgram:///path"},
		{Config{Store: st, Parser: parser, Routes: []Route{{Targets: one}, {Targets: one}}}, `route 1, target 0: second target named "tcp://a:1"`},
		{Config{Store: st, Parser: parser, Routes: []Route{{Targets: []Target{{Address: "udp://a:1", PacketBytes: 9}}}}}, "packets of 9 bytes"},
	} {
		if _, err := New(tt.cfg); err == nil || !strings.HasPrefix(err.Error(), "relay: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// BenchmarkAdd relays parsed lines: the cost per line besides parsing.
func BenchmarkAdd(b *testing.B) {
	for _, bm := range []struct {
		name, text string
		hash       Key
		targets    int
	}{
		{"copy/1", "shop.requests:1|c", None, 1},
		{"name/3", "shop.requests:1|c", Name, 3},
		{"name/20", "shop.requests:1|c", Name, 20},
		{"series/3", "shop.requests:1|c|#route:/a,code:200,zone:b", Series, 3},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var addrs []string
			for i := range bm.targets {
				addrs = append(addrs, fmt.Sprint("h", i, ":1"))
			}
			w := newWorld(b, Route{Hash: bm.hash, Targets: tcp(addrs...)})
			var l line.Line
			if r := parser.Parse(&l, []byte(bm.text)); r != line.OK {
				b.Fatal(r)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.w.Add(&l)
			}
		})
	}
}
