package statsd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	cfg.Log = l.log.logger()
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
	c, err := net.Dial(strings.TrimRight(a.network, "46"), a.place)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *live) report(i int) ListenerReport { return l.Report().Listeners[i] }

// counter returns the value of a received counter.
func (l *live) counter(name string) uint64 { return l.Scope().Counter(name).Total() }

// until waits for a condition about things that happen elsewhere.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("it did not happen: %s", what)
		case <-tick.C:
		}
	}
}

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
			until(t, "150 lines", func() bool { return l.report(0).Lines == 150 })
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	server := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
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
	until(t, "both lines", func() bool { return l.report(0).Applied == 2 })
	// A client that does not speak TLS is not taken for one with lines.
	write(t, l.dial(0), "a:1|c\n")
	until(t, "the end of it", func() bool { return l.report(0).Ended["closed error"] == 1 })
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
	until(t, "all packets", func() bool {
		r := l.report(0)
		return r.Packets+r.KernelDrops == clients*each
	})
	l.stop()
	if r := l.report(0); r.KernelDrops == 0 && l.counter("a") != 2*clients*each {
		t.Errorf("a is %d, want %d", l.counter("a"), 2*clients*each)
	}
	used := 0
	for _, so := range l.listeners[0].sockets {
		if so.lane.table.used > 0 {
			used++
		}
	}
	if used < 2 {
		t.Errorf("%d of 3 readers got anything", used)
	}
}

// TestKernelDropsAreCounted fills a small receive buffer before anybody reads.
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
		until(t, "the rest to arrive", func() bool { return l.report(0).Packets+before == sent })
		for range 3 { // now a control message brings the count too
			write(t, c, "a:1|c")
		}
		until(t, "3 more", func() bool { return l.report(0).Packets+before == sent+3 })
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

func TestTruncatedDatagram(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"udp://127.0.0.1:0", "unixgram://" + dir + "/s"} {
		l := newLive(t, Config{Listeners: []ListenerConfig{{Address: address, PacketBytes: 64}}}).run()
		c := l.dial(0)
		line := "a:1|c|#1234567\n"                                    // 15 bytes
		write(t, c, strings.Repeat(line, 5))                          // cut in the fifth line
		write(t, c, line+line+line+strings.Repeat("x", 18)+"\n"+line) // cut after a line end
		write(t, c, "a:1|c|#1234567")
		until(t, "3 packets", func() bool { return l.report(0).Packets == 3 })
		l.stop()
		r := l.report(0)
		if r.Truncated != 2 || r.Rejected["truncated"] != 2 || r.Applied != 8 || r.Rejected["missing_colon"] != 1 || r.Lines != 11 {
			t.Errorf("%s: %+v", address, r)
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
	until(t, "4 packets", func() bool { return l.report(0).Packets == 4 })
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
			until(t, "the packet", func() bool { return l.report(i).Packets == 1 })
			if r := l.report(i); (r.Applied == 1) != tt.ok || (r.PacketsRefused == 1) == tt.ok {
				t.Errorf("%s: %+v", tt.allowed, r)
			}
		}
		c := l.dial(2)
		_, _ = io.WriteString(c, "a:1|c\n") // may be refused
		if tt.ok {
			until(t, "the line", func() bool { return l.report(2).Applied == 1 })
		} else {
			until(t, "the refusal", func() bool { return l.report(2).Ended["refused address"] == 1 })
		}
	}
}

func TestStreamLastLineWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"tcp://127.0.0.1:0", "unixlines://" + dir + "/s"} {
		l := newLive(t, Config{Listeners: []ListenerConfig{{Address: address}}}).run()
		c := l.dial(0)
		write(t, c, "a:1|c\na:1|c")
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: read %v, want EOF", address, err)
		}
		until(t, "the end", func() bool { return l.report(0).Ended["closed eof"] == 1 })
		if r := l.report(0); r.Applied != 2 || r.Connections != 0 || r.ConnectionsTotal != 1 {
			t.Errorf("%s: %+v", address, r)
		}
	}
}

func TestStreamLongLine(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	c := l.dial(0)
	for _, n := range []int{8193, 60_000, 8192 + lineSlack - 1} {
		write(t, c, "a:1|c\n"+strings.Repeat("x", n)+"\na:1|c\n")
	}
	until(t, "9 lines", func() bool { return l.report(0).Lines == 9 })
	if r := l.report(0); r.Rejected["line_too_long"] != 3 || r.Applied != 6 {
		t.Errorf("%+v", r)
	}
	write(t, c, strings.Repeat("x", 8192+lineSlack)) // no end in sight
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays open")
	}
	until(t, "the end", func() bool { return l.report(0).Ended["closed line_too_long"] == 1 })
	if r := l.report(0); r.Rejected["line_too_long"] != 4 || r.Lines != 10 {
		t.Errorf("%+v", r)
	}
}

func TestStreamLimits(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{
		{Address: "tcp://127.0.0.1:0", PerAddress: 2},
		{Address: "unixlines://" + t.TempDir() + "/s", Connections: 3},
	}}).run()
	refused := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err := c.Read(make([]byte, 1))
		return err != nil && !os.IsTimeout(err)
	}
	for i, most := range []int{2, 3} {
		var conns []net.Conn
		for range most {
			c := l.dial(i)
			write(t, c, "a:1|c\n")
			conns = append(conns, c)
		}
		until(t, "all connected", func() bool { return l.report(i).Connections == uint64(most) })
		if !refused(l.dial(i)) {
			t.Errorf("listener %d: one connection more than %d was accepted", i, most)
		}
		_ = conns[0].Close()
		until(t, "one left", func() bool { return l.report(i).Connections == uint64(most-1) })
		write(t, l.dial(i), "a:1|c\n")
		until(t, "the line of the one that came later", func() bool { return l.report(i).Applied == uint64(most+1) })
	}
	if e := l.report(0).Ended; e["refused per_address"] != 1 {
		t.Errorf("tcp: %v", e)
	}
	if e := l.report(1).Ended; e["refused connections"] != 1 {
		t.Errorf("unix: %v", e)
	}
}

func TestManyConnections(t *testing.T) {
	const n = 1024
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "unixlines://" + t.TempDir() + "/s"}}}).run()
	for range n {
		write(t, l.dial(0), "a:1|c\n")
	}
	until(t, "a line from each", func() bool { return l.report(0).Applied == n })
	if got := l.counter("a"); got != n || l.report(0).Connections != n {
		t.Errorf("a is %d, %d connections", got, l.report(0).Connections)
	}
}

func TestStreamIdle(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0", IdleTimeout: 20 * time.Millisecond}}}).run()
	c := l.dial(0)
	write(t, c, "a:1|c\na:1|c")
	until(t, "the end", func() bool { return l.report(0).Ended["closed idle"] == 1 })
	if r := l.report(0); r.Applied != 1 || r.Rejected["truncated"] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestFrames(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "unixstream://" + t.TempDir() + "/s", PacketBytes: 1000}}}).run()
	end := func(name string) {
		t.Helper()
		until(t, name, func() bool { return l.report(0).Connections == 0 && l.report(0).ConnectionsTotal > 0 })
	}
	c := l.dial(0)
	write(t, c, frame("")+frame("a:1|c")+frame("a:1|c\na:1|c\n")+frame(strings.Repeat("a:1|c\n", 166)))
	until(t, "169 lines", func() bool { return l.report(0).Applied == 169 })
	_ = c.Close()
	end("a clean end")
	if r := l.report(0); r.Packets != 3 || len(r.Rejected) != 0 {
		t.Errorf("%+v", r)
	}

	c = l.dial(0)
	write(t, c, frame("a:1|c")+frame(strings.Repeat("x", 1001)))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays open after a frame that is too long")
	}
	until(t, "the reject", func() bool { return l.report(0).Ended["closed bad_frame"] == 1 })

	c = l.dial(0)
	write(t, c, "a:1|c\nb:1|c\n")
	until(t, "the next reject", func() bool { return l.report(0).Ended["closed bad_frame"] == 2 })
	if !strings.Contains(l.log.String(), "plain lines") {
		t.Errorf("the log does not tell about plain lines:\n%s", l.log)
	}

	c = l.dial(0)
	write(t, c, frame("a:1|c\n")[:7])
	_ = c.Close()
	until(t, "the end of half a frame", func() bool { return l.report(0).Rejected["bad_frame"] == 3 })
	l.stop()
	if r := l.report(0); r.Applied != 170 || r.Lines != 173 {
		t.Errorf("%+v", r)
	}
}

// TestStopReadsWhatSocketsHold sends before anybody reads, and ends the server
// at once.
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
	until(t, "connections", func() bool { return l.report(2).Applied == 1 && l.report(3).Applied == 1 })
	for range 100 {
		write(t, l.dial(0), "a:1|c\n")
		write(t, l.dial(1), "a:1|c\n")
		write(t, tcp, "a:1|c\n")
		write(t, stream, frame("a:1|c\n"))
	}
	write(t, tcp, "a:1|")
	start := time.Now()
	l.stop()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("stopping took %v", d)
	}
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

func TestTakenPort(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "first")
	for _, cfg := range []ListenerConfig{
		{Address: "udp://" + udp.LocalAddr().String(), Readers: 1},
		{Address: "udp://" + udp.LocalAddr().String(), Readers: 2},
		{Address: "tcp://" + tcp.Addr().String()},
	} {
		s, err := New(Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: "unixgram://" + path}, cfg}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Listen()
		if err == nil || !strings.Contains(err.Error(), "another process holds the port") || !strings.Contains(err.Error(), cfg.Address) {
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

func TestUnixSocketPaths(t *testing.T) {
	for _, scheme := range []string{"unixgram", "unixstream", "unixlines"} {
		t.Run(scheme, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			cfg := Config{Listeners: []ListenerConfig{{Address: scheme + "://" + path, Mode: 0o620, Group: fmt.Sprint(os.Getgid())}}}
			listen := func() (*Server, error) {
				cfg.Store = store.New(store.Options{})
				s, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				return s, s.Listen()
			}
			// A file in the way stays.
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err := listen(); err == nil || !strings.Contains(err.Error(), "not a socket") {
				s.Close()
				t.Errorf("a file in the way: %v", err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
				t.Errorf("the file was touched: %q, %v", b, err)
			}
			_ = os.Remove(path)

			// A socket that nobody reads goes.
			stale(t, scheme, path)
			s, err := listen()
			if err != nil {
				t.Fatalf("a stale socket: %v", err)
			}
			fi, err := os.Lstat(path)
			if err != nil || fi.Mode().Perm() != 0o620 {
				t.Errorf("mode %v, %v; want 0620", fi.Mode(), err)
			}
			// One that somebody reads stays.
			if other, err := listen(); err == nil || !strings.Contains(err.Error(), "answers") {
				other.Close()
				t.Errorf("a socket in use: %v", err)
			}
			s.Close()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("the socket is still there after the end: %v", err)
			}

			// A socket that took the place is not removed.
			if s, err = listen(); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path)
			stale(t, scheme, path)
			s.Close()
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("somebody else's socket was removed: %v", err)
			}
		})
	}
}

// stale leaves a socket that nobody answers on.
func stale(t *testing.T, scheme, path string) {
	t.Helper()
	if scheme == "unixgram" {
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		return
	}
	c, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	c.SetUnlinkOnClose(false)
	_ = c.Close()
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
	until(t, "both lines", func() bool { return l.counter("a") == 2 })
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

// TestPanicIsContained lets the clock panic when a line is rejected.
func TestPanicIsContained(t *testing.T) {
	var bad sync.Map
	cfg := Config{
		Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0", Readers: 1}, {Address: "tcp://127.0.0.1:0"}},
		Now: func() time.Time {
			if _, ok := bad.Load("now"); ok {
				panic("clock broke")
			}
			return time.Now()
		},
	}
	l := newLive(t, cfg).run()
	for i := range 2 {
		c := l.dial(i)
		write(t, c, "a:1|c\n")
		until(t, "a line", func() bool { return l.listeners[i].figures.applied.Load() == 1 })
		bad.Store("now", true)
		write(t, c, "bad\n")
		until(t, "the panic", func() bool { return l.figures.panics.Total() == uint64(i+1) })
		bad.Delete("now")
		write(t, c, "a:1|c\n")
		until(t, "another line", func() bool { return l.listeners[i].figures.applied.Load() == 2 })
	}
	if !strings.Contains(l.log.String(), "clock broke") {
		t.Error("the log does not tell")
	}
}

// script is a connection that delivers given pieces, then ends.
type script struct {
	net.Conn
	pieces [][]byte
}

func (s *script) Read(b []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

func (s *script) SetReadDeadline(time.Time) error { return nil }

// play feeds a stream in pieces and returns what became of it.
func play(t *testing.T, f framing, pieces ...[]byte) string {
	r := newRig(t, Config{})
	r.l.addr.framing = f
	r.l.conns.init()
	r.l.conns.total = 10
	st := &stream{server: r.Server, l: r.l, conn: &script{pieces: pieces}, lane: r.streamLanes[0]}
	why := st.serve()
	r.conserved()
	rep := r.Report().Listeners[0]
	return fmt.Sprint(why, r.stats(), rep.Lines, rep.Rejected, rep.Packets, rep.Samples)
}

// TestChunking cuts streams at every byte into two reads: CR LF between the
// two, and the length of a frame in all its places, among them.
func TestChunking(t *testing.T) {
	text := "a:1|c\r\nb:2|g|#x:1\n\nbad\r\nrt:1:2|ms|@0.5\n_e{1,1}:a|b\nlast:3|c"
	framed := frame("a:1|c\nb:2|g\n") + frame("") + frame("bad") + frame("rt:1|ms\r\nlast:3|c")
	for _, tt := range []struct {
		f      framing
		stream string
	}{{lines, text}, {frames, framed}, {frames, framed + "\x05\x00\x00"}, {frames, framed + "abcd" + framed}} {
		want := play(t, tt.f, []byte(tt.stream))
		for cut := range len(tt.stream) + 1 {
			if got := play(t, tt.f, []byte(tt.stream[:cut]), []byte(tt.stream[cut:])); got != want {
				t.Errorf("cut at %d of %q\n got %s\nwant %s", cut, tt.stream, got, want)
			}
		}
		var single [][]byte
		for i := range len(tt.stream) {
			single = append(single, []byte{tt.stream[i]})
		}
		if got := play(t, tt.f, single...); got != want {
			t.Errorf("byte by byte\n got %s\nwant %s", got, want)
		}
	}
}

// TestChunkingOfLongLines cuts around what the buffer holds.
func TestChunkingOfLongLines(t *testing.T) {
	for _, n := range []int{8192, 8193, streamBuffer - 1, streamBuffer, streamBuffer + 1, 8192 + lineSlack - 1, 8192 + lineSlack, 8192 + lineSlack + 1} {
		s := []byte("a:1|c\n" + strings.Repeat("x", n) + "\na:1|c\n")
		want := play(t, lines, bytes.Clone(s))
		for _, cut := range []int{1, 6, 7, 8000, 8198, streamBuffer - 1, streamBuffer, streamBuffer + 1, streamBuffer + 6, n + 5, n + 6, n + 7} {
			if cut > len(s) {
				continue
			}
			if got := play(t, lines, bytes.Clone(s[:cut]), bytes.Clone(s[cut:])); got != want {
				t.Errorf("line of %d cut at %d\n got %s\nwant %s", n, cut, got, want)
			}
		}
	}
}
