package statsd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// live is a server with sockets.
type live struct {
	*Server
	t     *testing.T
	store *store.Store
	log   *logBuffer

	cancel context.CancelFunc
	done   chan error
}

// newLive returns a server that listens but does not read yet.
func newLive(t *testing.T, cfg Config) *live {
	t.Helper()
	l := &live{t: t, store: store.New(store.Options{}), log: new(logBuffer)}
	cfg.Store = l.store
	if cfg.Logger == nil {
		cfg.Logger = l.log.logger()
	}
	var err error
	if l.Server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := l.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	return l
}

// run starts reading.
func (l *live) run() *live {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.done = cancel, make(chan error, 1)
	go func() { l.done <- l.Run(ctx) }()
	return l
}

// stop ends the server and waits for it.
func (l *live) stop() {
	if l.cancel == nil {
		l.Close()
		return
	}
	l.cancel()
	if l.done != nil {
		if err := <-l.done; err != nil {
			l.t.Error(err)
		}
		l.done = nil
	}
}

// address returns where listener i listens, without the protocol.
func (l *live) address(i int) string {
	_, place, _ := strings.Cut(l.Listeners()[i].Address, "://")
	return place
}

// dial connects to listener i.
func (l *live) dial(i int) net.Conn {
	l.t.Helper()
	a, err := parseAddress(l.Listeners()[i].Address)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := net.Dial(strings.TrimRight(a.network, "46"), a.location)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *live) report(i int) report.Listener { return l.Report().Listeners[i] }

// counter returns the value of a received counter.
func (l *live) counter(name string) uint64 { return l.Scope().Counter(name).Total() }

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

func frame(s string) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func TestTransports(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, address string
		wrap          func(string) string
	}{
		{"udp", "udp://127.0.0.1:0", nil},
		{"udp4", "udp4://:0", nil},
		{"udp6", "udp6://[::1]:0", nil},
		{"udp-dual", "udp://:0", nil},
		{"tcp", "tcp://127.0.0.1:0", nil},
		{"tcp6", "tcp6://[::1]:0", nil},
		{"unixgram", "unixgram://" + dir + "/g", nil},
		{"unixlines", "unixlines://" + dir + "/l", nil},
		{"unixstream", "unixstream://" + dir + "/s", frame},
		{"abstract-gram", fmt.Sprintf("unixgram://@statsd-test-g-%d", os.Getpid()), nil},
		{"abstract-stream", fmt.Sprintf("unixstream://@statsd-test-s-%d", os.Getpid()), frame},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLive(t, Config{Listeners: []ListenerConfig{{Address: tt.address}}}).run()
			if in := l.Listeners()[0]; strings.HasSuffix(in.Address, ":0") || !strings.HasPrefix(tt.address, in.Protocol+"://") {
				t.Fatalf("listens at %+v", in)
			}
			c := l.dial(0)
			for i := range 50 {
				s := fmt.Sprintf("a:1|c\na:2|c|#x:%d\nbad\n", i%3)
				if tt.wrap != nil {
					s = tt.wrap(s)
				}
				write(t, c, s)
			}
			// The worker adds to one counter after the other.
			waittest.Until(t, "150 lines", func() bool { r := l.report(0); return r.Lines == 150 && r.Applied >= 100 })
			r := l.report(0)
			if r.Applied != 100 || r.Rejected["missing_colon"] != 50 || r.Samples != 100 {
				t.Errorf("report %+v", r)
			}
			if got := l.counter("a"); got != 50 {
				t.Errorf("a is %d, want 50", got)
			}
			if strings.Contains(tt.name, "udp") || strings.Contains(tt.name, "gram") || tt.wrap != nil {
				if r.Packets != 50 {
					t.Errorf("%d packets, want 50", r.Packets)
				}
			}
		})
	}
}

func TestTLS(t *testing.T) {
	cert := certtest.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	server := &tls.Config{Certificates: []tls.Certificate{cert.Certificate}}
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tls://127.0.0.1:0", TLS: server}}}).run()
	if in := l.Listeners()[0]; !in.TLS || in.Protocol != "tls" {
		t.Errorf("%+v", in)
	}
	c, err := tls.Dial("tcp", l.address(0), &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	write(t, c, "a:1|c\na:1|c")
	_ = c.Close()
	waittest.Until(t, "both lines", func() bool { return l.report(0).Applied == 2 })
	// A client that does not speak TLS is not taken for one with lines.
	write(t, l.dial(0), "a:1|c\n")
	waittest.Until(t, "the end of it", func() bool { return l.report(0).Ended["closed error"] == 1 })
	if r := l.report(0); r.Lines != 2 {
		t.Errorf("%+v", r)
	}
}

func TestSeveralReadersOfOnePort(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0", Readers: 3}}}).run()
	if n := l.Listeners()[0].Readers; n != 3 {
		t.Fatalf("%d readers, want 3", n)
	}
	const clients, each = 16, 200
	var wg sync.WaitGroup
	for range clients {
		c := l.dial(0)
		wg.Go(func() {
			for range each {
				write(t, c, "a:1|c\na:1|c")
			}
		})
	}
	wg.Wait()
	waittest.Until(t, "all packets", func() bool {
		r := l.report(0)
		return r.Packets+r.KernelDrops == clients*each
	})
	l.stop()
	if r := l.report(0); r.KernelDrops == 0 && l.counter("a") != 2*clients*each {
		t.Errorf("a is %d, want %d", l.counter("a"), 2*clients*each)
	}
	used := 0
	for _, so := range l.listeners[0].sockets {
		if so.worker.cache.used > 0 {
			used++
		}
	}
	if used < 2 {
		t.Errorf("%d of 3 readers got anything", used)
	}
}

// TestKernelDropsAreCounted fills a small receive buffer before the server reads.
func TestKernelDropsAreCounted(t *testing.T) {
	for _, address := range []string{"udp://127.0.0.1:0", "udp6://[::1]:0"} {
		l := newLive(t, Config{Listeners: []ListenerConfig{{Address: address, Readers: 1, RcvBuf: 4096}}})
		c := l.dial(0)
		const sent = 500
		for range sent {
			write(t, c, "a:1|c")
		}
		before := l.report(0).KernelDrops
		want, ok := procDrops(t, l.address(0))
		if !ok {
			t.Skip("the system does not tell")
		}
		if before == 0 || before != want {
			t.Errorf("%s: %d drops, the kernel says %d", address, before, want)
		}
		l.run()
		waittest.Until(t, "the rest to arrive", func() bool { return l.report(0).Packets+before == sent })
		for range 3 { // now a control message brings the count too
			write(t, c, "a:1|c")
		}
		waittest.Until(t, "3 more", func() bool { return l.report(0).Packets+before == sent+3 })
		l.stop()
		if r := l.report(0); r.KernelDrops != want || r.Applied+want != sent+3 {
			t.Errorf("%s: %d applied, %d drops; want %d together", address, r.Applied, r.KernelDrops, sent+3)
		}
	}
}

// procDrops returns the drops column of /proc/net/udp or udp6 for a port.
func procDrops(t *testing.T, address string) (drops uint64, ok bool) {
	t.Helper()
	ap := netip.MustParseAddrPort(address)
	file := "/proc/net/udp"
	if ap.Addr().Is6() {
		file += "6"
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	port := fmt.Sprintf(":%04X", ap.Port())
	for _, row := range strings.Split(string(b), "\n") {
		f := strings.Fields(row)
		if len(f) > 12 && strings.HasSuffix(f[1], port) {
			_, err := fmt.Sscan(f[len(f)-1], &drops)
			return drops, err == nil
		}
	}
	return 0, false
}

func TestStartLogsThatSeriesStay(t *testing.T) {
	rules, err := mapping.New(mapping.Config{TTL: time.Hour})
	endless, err2 := mapping.New(mapping.Config{})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, tt := range []struct {
		cfg  Config
		want bool
	}{
		{Config{}, true}, {Config{TTL: TTL{Gauge: time.Hour}}, false}, {Config{Rules: rules}, false}, {Config{Rules: endless}, true},
	} {
		l := newLive(t, tt.cfg)
		if got := strings.Contains(l.log.String(), "no time to live is set"); got != tt.want {
			t.Errorf("%+v: it is told: %t\n%s", tt.cfg, got, l.log)
		}
	}
}

func TestTruncatedDatagram(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"udp://127.0.0.1:0", "unixgram://" + dir + "/s"} {
		l := newLive(t, Config{Listeners: []ListenerConfig{{Address: address, PacketBytes: 64}}}).run()
		c := l.dial(0)
		line := "a:1|c|#1234567\n"                                    // 15 bytes
		write(t, c, strings.Repeat(line, 5))                          // cut in the fifth line
		write(t, c, line+line+line+strings.Repeat("x", 18)+"\n"+line) // cut after a line end
		write(t, c, "a:1|c|#1234567")
		waittest.Until(t, "3 packets", func() bool { return l.report(0).Packets == 3 })
		l.stop()
		r := l.report(0)
		if r.Truncated != 2 || r.Rejected["truncated"] != 2 || r.Applied != 8 || r.Rejected["missing_colon"] != 1 || r.Lines != 11 {
			t.Errorf("%s: %+v", address, r)
		}
		l.store.Flush(store.FlushOptions{}).Close()
		if s := l.listeners[0].metrics.linesPerPacket.Snapshot().Cumulative; s.Sum() != 11 {
			t.Errorf("%s: the packets have %v lines, want 11", address, s.Sum())
		}
	}
}

func TestEmptyDatagram(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0"}}}).run()
	c := l.dial(0)
	write(t, c, "a:1|c")
	if _, err := c.Write(nil); err != nil {
		t.Fatal(err)
	}
	write(t, c, "\n")
	write(t, c, "a:1|c")
	waittest.Until(t, "4 packets", func() bool { return l.report(0).Packets == 4 })
	if r := l.report(0); r.Lines != 2 || r.Applied != 2 {
		t.Errorf("%+v", r)
	}
}

func TestAllowedAddresses(t *testing.T) {
	for _, tt := range []struct {
		allowed string
		ok      bool
	}{{"127.0.0.0/8", true}, {"10.0.0.0/8", false}} {
		cfg := Config{}
		for _, a := range []string{"udp://127.0.0.1:0", "udp://:0", "tcp://127.0.0.1:0"} {
			cfg.Listeners = append(cfg.Listeners, ListenerConfig{Address: a, Allowed: []netip.Prefix{netip.MustParsePrefix(tt.allowed)}})
		}
		l := newLive(t, cfg).run()
		for i := range 2 {
			_, port, _ := net.SplitHostPort(l.address(i))
			c, err := net.Dial("udp4", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			write(t, c, "a:1|c")
			_ = c.Close()
			waittest.Until(t, "the packet", func() bool { return l.report(i).Packets == 1 })
			if r := l.report(i); (r.Applied == 1) != tt.ok || (r.PacketsRefused == 1) == tt.ok {
				t.Errorf("%s: %+v", tt.allowed, r)
			}
		}
		c := l.dial(2)
		_, _ = io.WriteString(c, "a:1|c\n") // may be refused
		if tt.ok {
			waittest.Until(t, "the line", func() bool { return l.report(2).Applied == 1 })
		} else {
			waittest.Until(t, "the refusal", func() bool { return l.report(2).Ended["refused address"] == 1 })
		}
	}
}

// TestStopReadsWhatSocketsHold sends before the server reads, and ends it at
// once.
func TestStopReadsWhatSocketsHold(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:0", Readers: 2},
		{Address: "unixgram://" + dir + "/g"},
		{Address: "tcp://127.0.0.1:0"},
		{Address: "unixstream://" + dir + "/s"},
	}}
	l := newLive(t, cfg).run()
	tcp, stream := l.dial(2), l.dial(3)
	write(t, tcp, "a:1|c\n")
	write(t, stream, frame("a:1|c\n"))
	waittest.Until(t, "connections", func() bool { return l.report(2).Applied == 1 && l.report(3).Applied == 1 })
	for range 100 {
		write(t, l.dial(0), "a:1|c\n")
		write(t, l.dial(1), "a:1|c\n")
		write(t, tcp, "a:1|c\n")
		write(t, stream, frame("a:1|c\n"))
	}
	write(t, tcp, "a:1|")
	l.stop() // does not wait for the clients
	for i, want := range []uint64{100, 100, 101, 101} {
		if r := l.report(i); r.Applied != want {
			t.Errorf("listener %d: %d lines applied, want %d", i, r.Applied, want)
		}
	}
	if r := l.report(2); r.Rejected["truncated"] != 1 {
		t.Errorf("the line that was cut by the end is not counted: %v", r.Rejected)
	}
	for _, f := range []string{"g", "s"} {
		if _, err := os.Lstat(filepath.Join(dir, f)); !os.IsNotExist(err) {
			t.Errorf("socket %s is still there: %v", f, err)
		}
	}
}

// taken returns sockets whose ports are in use until the end of the test.
func taken(t *testing.T) (udp net.PacketConn, tcp net.Listener) {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	if tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	return udp, tcp
}

func TestTakenPort(t *testing.T) {
	udp, tcp := taken(t)
	path := filepath.Join(t.TempDir(), "first")
	for _, cfg := range []ListenerConfig{ // the hint of the error depends on the protocol
		{Address: "udp://" + udp.LocalAddr().String(), Readers: 1},
		{Address: "udp://" + udp.LocalAddr().String(), Readers: 2},
		{Address: "tcp://" + tcp.Addr().String()},
	} {
		s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: "unixgram://" + path}, cfg}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Listen()
		if err == nil || !strings.Contains(err.Error(), "another process uses the port") || !strings.Contains(err.Error(), cfg.Address) ||
			strings.Contains(err.Error(), "ss -lnup ") != strings.HasPrefix(cfg.Address, "udp") || strings.Contains(err.Error(), "ss -lntp ") != strings.HasPrefix(cfg.Address, "tcp") {
			t.Errorf("%s: %v", cfg.Address, err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the listener before it is still bound", cfg.Address)
		}
		s.Close()
	}
	// Two servers that share the port on purpose.
	shared := ListenerConfig{Address: "udp://127.0.0.1:0", ShareUDP: true, Readers: 1}
	a := newLive(t, Config{Listeners: []ListenerConfig{shared}})
	shared.Address = "udp://" + a.address(0)
	newLive(t, Config{Listeners: []ListenerConfig{shared}})
	shared.ShareUDP, shared.Readers = false, 2
	s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{shared}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Listen(); err == nil {
		t.Error("a shared port was taken by one who does not want to share")
	}
}

func TestInheritedSockets(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	uf, err := udp.File()
	if err != nil {
		t.Fatal(err)
	}
	tf, err := tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	l := newLive(t, Config{Listeners: []ListenerConfig{
		{Address: "udp://:8125", Sockets: []*os.File{uf}},
		{Address: "tcp://:8125", Sockets: []*os.File{tf}},
	}}).run()
	if got, want := l.address(0), udp.LocalAddr().String(); got != want {
		t.Errorf("listens at %s, want %s", got, want)
	}
	write(t, l.dial(0), "a:1|c")
	write(t, l.dial(1), "a:1|c\n")
	waittest.Until(t, "both lines", func() bool { return l.counter("a") == 2 })
}

// TestFailedListenLeavesNothingOpen: the last listener but one cannot be bound, or has the
// address of a relay target. All sockets are closed, also inherited sockets.
func TestFailedListenLeavesNothingOpen(t *testing.T) {
	udp, tcp := taken(t)
	inherited := func(address string, of interface{ File() (*os.File, error) }) ListenerConfig {
		f, err := of.File()
		if err != nil {
			t.Fatal(err)
		}
		return ListenerConfig{Address: address, Sockets: []*os.File{f}}
	}
	path := filepath.Join(t.TempDir(), "s")
	for name, tt := range map[string]struct {
		bad  func() ListenerConfig
		want string
	}{
		"taken":        {func() ListenerConfig { return ListenerConfig{Address: "tcp://" + tcp.Addr().String()} }, "another process uses the port"},
		"taken-shared": {func() ListenerConfig { return ListenerConfig{Address: "udp://" + udp.LocalAddr().String(), Readers: 2} }, "another process uses the port"},
		"no-directory": {func() ListenerConfig { return ListenerConfig{Address: "unixgram:///nothing/here"} }, "no such file"},
		"no-owner": {func() ListenerConfig {
			return ListenerConfig{Address: "unixlines://" + path + "o", Owner: "no such name"}
		}, "no such name"},
		"tcp-for-udp":  {func() ListenerConfig { return inherited("udp://:8125", tcp.(*net.TCPListener)) }, `"udp://:8125"`},
		"udp-for-tcp":  {func() ListenerConfig { return inherited("tcp://:8125", udp.(*net.UDPConn)) }, `"tcp://:8125"`},
		"udp-for-unix": {func() ListenerConfig { return inherited("unixgram:///x/y", udp.(*net.UDPConn)) }, "of another kind"},
		"tcp-for-unix": {func() ListenerConfig { return inherited("unixlines:///x/y", tcp.(*net.TCPListener)) }, "of another kind"},
		"relay":        {func() ListenerConfig { return ListenerConfig{Address: "unixlines://" + path + "r"} }, "loop"},
	} {
		t.Run(name, func(t *testing.T) {
			descriptors.Check(t, "listen", func() {
				cfg := Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{
					{Address: "udp://127.0.0.1:0", Readers: 2}, {Address: "tcp://127.0.0.1:0"}, {Address: "unixgram://" + path}, {Address: "unixlines://" + path + "l"},
					inherited("udp://:8125", udp.(*net.UDPConn)), inherited("tcp://:8125", tcp.(*net.TCPListener)),
					tt.bad(), inherited("tcp://:8125", tcp.(*net.TCPListener)),
				}}
				if name == "relay" {
					cfg.Relay = []relay.Route{{Targets: []relay.Target{{Address: "unixlines://" + path + "r"}}}}
				}
				s, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Listen(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				s.Close()
			})
		})
	}
}

// TestNamesOfListeners: listeners of one name are numbered, so that each has its metrics.
func TestNamesOfListeners(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:0", Name: "in"}, {Address: "tcp://127.0.0.1:0", Name: "in"},
		{Address: "tcp://127.0.0.1:0", Name: "other"}, {Address: "tcp://127.0.0.1:0", Name: "in"},
	}})
	var got []string
	for _, x := range l.Report().Listeners {
		got = append(got, x.Name)
	}
	if want := []string{"in", "in#2", "other", "in#3"}; !slices.Equal(got, want) {
		t.Errorf("listeners %q, want %q", got, want)
	}
}

// TestCallsOutOfOrder: a server listens and runs once, in this order.
func TestCallsOutOfOrder(t *testing.T) {
	s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0"}}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error, want bool) {
		t.Helper()
		if (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = s.Sockets()
	check("Sockets before Listen", err, false)
	check("Run before Listen", s.Run(t.Context()), false)
	check("Listen", s.Listen(), true)
	if s.Relay() != nil {
		t.Error("a server without targets has a relay")
	}
	check("Listen again", s.Listen(), false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check("Run", s.Run(ctx), true)
	check("Run again", s.Run(ctx), false)
	check("Listen after Run", s.Listen(), false)
}

// TestInherit has a listener without a predecessor before one with it, and sockets that
// nothing uses.
func TestInherit(t *testing.T) {
	file := func() *os.File {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:1"}, {Address: "tcp://127.0.0.1:2"}, {Address: "tcp://127.0.0.1:3"}, {Address: "tcp://127.0.0.1:3"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	second, third, unused, extra := file(), file(), file(), file()
	n := s.Inherit([]ListenerSockets{
		{Address: "tcp://127.0.0.1:2"}, {Address: "tcp://127.0.0.1:2", Files: []*os.File{second}}, {Address: "udp://127.0.0.1:9", Files: []*os.File{unused}},
		{Address: "tcp://127.0.0.1:3", Files: []*os.File{third}}, {Address: "tcp://127.0.0.1:2", Files: []*os.File{extra}},
	})
	var got []*os.File
	for _, l := range s.cfg.Listeners {
		got = append(got, append([]*os.File{nil}, l.Sockets...)[len(l.Sockets)])
	}
	if want := []*os.File{nil, second, third, nil}; n != 2 || !slices.Equal(got, want) {
		t.Errorf("%d listeners got %v, want %v", n, got, want)
	}
	for f, open := range map[*os.File]bool{second: true, third: true, unused: false, extra: false} {
		if _, err := f.Stat(); (err == nil) != open {
			t.Errorf("stat of a socket: %v, want it open: %v", err, open)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8125":                           "has no protocol",
		"http://127.0.0.1:8125":                    "not one of udp, udp4",
		"tls://127.0.0.1:0":                        "needs TLS settings",
		"udp://127.0.0.1":                          "not host:port",
		"udp://127.0.0.1:65536":                    "not in [0,65535]",
		"tcp://127.0.0.1:x":                        "not in [0,65535]",
		"unixgram://relative":                      "not absolute",
		"unixgram:///a\x00b":                       "NUL in the path",
		"unixgram://":                              "2 to 107 bytes",
		"unixlines:///" + strings.Repeat("x", 200): "2 to 107 bytes",
	} {
		_, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: address}}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "statsd: ") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

func TestBadSettings(t *testing.T) {
	st := store.New(store.Options{})
	for name, cfg := range map[string]Config{
		"no store": {},
		"ttl":      {Store: st, TTL: TTL{Set: -1}},
		"readers":  {Store: st, Listeners: []ListenerConfig{{Address: "udp://:0", Readers: 1000}}},
		"rcvbuf":   {Store: st, Listeners: []ListenerConfig{{Address: "udp://:0", RcvBuf: -1}}},
		"packet":   {Store: st, Listeners: []ListenerConfig{{Address: "udp://:0", PacketBytes: 10}}},
		"mode":     {Store: st, Listeners: []ListenerConfig{{Address: "unixgram:///x/y", Mode: 0o4777}}},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "statsd: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedDatagramBeforeOthers: datagrams that are read together are judged one by one.
func TestRefusedDatagramBeforeOthers(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0", Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}})
	for _, from := range []string{"127.0.0.2", "127.0.0.1", "127.0.0.2", "127.0.0.1"} {
		d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("udp4", l.address(0))
		if err != nil {
			t.Skipf("the system has no address %s: %v", from, err)
		}
		write(t, c, "a:1|c")
		_ = c.Close()
	}
	l.run()
	waittest.Until(t, "4 packets", func() bool { return l.report(0).Packets == 4 })
	if r := l.report(0); r.Applied != 2 || r.PacketsRefused != 2 {
		t.Errorf("%+v", r)
	}
}
