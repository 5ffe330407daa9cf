package statsd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/line"
)

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
		waittest.Until(t, "the end", func() bool { return l.report(0).Ended["closed eof"] == 1 })
		if r := l.report(0); r.Applied != 2 || r.Connections != 0 || r.ConnectionsTotal != 1 {
			t.Errorf("%s: %+v", address, r)
		}
	}
}

func TestStreamLongLine(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	c := l.dial(0)
	const most = 8192 + 64<<10 // without a line end
	for _, n := range []int{8193, 60_000, most - 1} {
		write(t, c, "a:1|c\n"+strings.Repeat("x", n)+"\na:1|c\n")
	}
	waittest.Until(t, "9 lines", func() bool { return l.report(0).Lines == 9 })
	if r := l.report(0); r.Rejected["line_too_long"] != 3 || r.Applied != 6 {
		t.Errorf("%+v", r)
	}
	write(t, c, strings.Repeat("x", most)) // no end in sight
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Error("the connection stays open")
	}
	waittest.Until(t, "the end", func() bool { return l.report(0).Ended["closed line_too_long"] == 1 })
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
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
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
		waittest.Until(t, "all connected", func() bool { return l.report(i).Connections == uint64(most) })
		if !refused(l.dial(i)) {
			t.Errorf("listener %d: one connection more than %d was accepted", i, most)
		}
		_ = conns[0].Close()
		waittest.Until(t, "one left", func() bool { return l.report(i).Connections == uint64(most-1) })
		write(t, l.dial(i), "a:1|c\n")
		waittest.Until(t, "the line of the one that came later", func() bool { return l.report(i).Applied == uint64(most+1) })
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
	waittest.Until(t, "a line from each", func() bool { return l.report(0).Applied == n })
	if got := l.counter("a"); got != n || l.report(0).Connections != n {
		t.Errorf("a is %d, %d connections", got, l.report(0).Connections)
	}
}

func TestStreamIdle(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0", IdleTimeout: 250 * time.Millisecond}}})
	write(t, l.dial(0), "a:1|c\na:1|c") // is there when the time begins
	l.run()
	waittest.Until(t, "the end", func() bool { return l.report(0).Ended["closed idle"] == 1 })
	if r := l.report(0); r.Applied != 1 || r.Rejected["truncated"] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestFrames(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "unixstream://" + t.TempDir() + "/s", PacketBytes: 1000}}}).run()
	end := func(name string) {
		t.Helper()
		waittest.Until(t, name, func() bool { return l.report(0).Connections == 0 && l.report(0).ConnectionsTotal > 0 })
	}
	c := l.dial(0)
	write(t, c, frame("")+frame("a:1|c")+frame("a:1|c\na:1|c\n")+frame(strings.Repeat("a:1|c\n", 166)))
	waittest.Until(t, "169 lines", func() bool { return l.report(0).Applied == 169 })
	_ = c.Close()
	end("a clean end")
	if r := l.report(0); r.Packets != 3 || len(r.Rejected) != 0 {
		t.Errorf("%+v", r)
	}

	c = l.dial(0)
	write(t, c, frame("a:1|c")+frame(strings.Repeat("x", 1001)))
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Error("the connection stays open after a frame that is too long")
	}
	waittest.Until(t, "the reject", func() bool { return l.report(0).Ended["closed bad_frame"] == 1 })
	if strings.Contains(l.log.String(), "plain lines") {
		t.Errorf("the log takes a long frame for plain lines:\n%s", l.log)
	}

	c = l.dial(0)
	write(t, c, "a:1|c\nb:1|c\n")
	waittest.Until(t, "the next reject", func() bool { return l.report(0).Ended["closed bad_frame"] == 2 })
	if !strings.Contains(l.log.String(), "plain lines") {
		t.Errorf("the log does not tell about plain lines:\n%s", l.log)
	}

	c = l.dial(0)
	write(t, c, frame("a:1|c\n")[:7])
	_ = c.Close()
	waittest.Until(t, "the end of half a frame", func() bool { return l.report(0).Rejected["bad_frame"] == 3 })
	l.stop()
	if r := l.report(0); r.Applied != 170 || r.Lines != 173 {
		t.Errorf("%+v", r)
	}
}

// TestLongestFrames: frames of the longest length, which do not fit in the first buffer,
// before, between and behind short ones.
func TestLongestFrames(t *testing.T) {
	for _, most := range []int{defaultPacketBytes, 1 << 20} {
		l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "unixstream://" + t.TempDir() + "/s", PacketBytes: most}}}).run()
		long := frame("x:1|c\n" + strings.Repeat(" ", most-len("x:1|c\ny:1|c")) + "y:1|c")
		c := l.dial(0)
		write(t, c, long+frame("z:1|c")+long+long+frame("z:1|c"))
		_ = c.Close()
		waittest.Until(t, "the end", func() bool { return l.report(0).Ended["closed eof"] == 1 })
		if x, y, z := l.counter("x"), l.counter("y"), l.counter("z"); x != 3 || y != 3 || z != 2 {
			t.Errorf("frames of %d bytes: %d, %d and %d lines, want 3, 3 and 2; %+v", most, x, y, z, l.report(0))
		}
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
	st := &stream{server: r.Server, l: r.l, conn: &script{pieces: pieces}, worker: r.streamWorkers[0]}
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

// TestBuffersFollowInput: the buffer of a connection grows with what arrives, not at once
// to the longest line allowed or to the length that a frame announces.
func TestBuffersFollowInput(t *testing.T) {
	long := strings.Repeat("x", 300_000) + ":1|c\n"
	for _, tt := range []struct {
		framing framing
		input   string
		rejects line.Reason
	}{
		{lines, "a:1|c\n" + long, line.NameTooLong},
		{frames, frame("a:1|c") + frame(long), line.NameTooLong},
		{frames, frame("a:1|c") + "\x00\x00\x00\x01abc", line.BadFrame}, // announces 16 MiB
	} {
		r := newRig(t, Config{Limits: Limits{LineBytes: -1}})
		r.l.addr.framing, r.l.cfg.PacketBytes = tt.framing, maxPacketBytes
		r.l.conns.init()
		st := &stream{server: r.Server, l: r.l, conn: &script{pieces: [][]byte{[]byte(tt.input)}}, worker: r.streamWorkers[0]}
		if why := st.serve(); why != "eof" || len(st.buf) > 1<<20 {
			t.Errorf("ended for %q with a buffer of %d bytes", why, len(st.buf))
		}
		r.want("a 1")
		if got := r.rejected(); got[tt.rejects.String()] != 1 {
			t.Errorf("rejected %v, want one for %s", got, tt.rejects)
		}
	}
}

// readDeadlines is a connection that records its read deadlines.
type readDeadlines struct {
	net.Conn
	set []time.Time
}

func (d *readDeadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestReadDeadlines checks how long a connection may be idle: as configured, a minute
// when more than half of the slots are taken, and little when the listener stops.
func TestReadDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const none = -1
		give := func(*stream) bool { return false }
		for _, tt := range []struct {
			name          string
			idle          time.Duration
			taken         int // slots of 4
			drains, hands bool
			armed, kept   bool
			drainedFor    time.Duration
			sets          bool
			want          time.Duration // from now on; none: no deadline
			stays         bool          // an idle connection is kept
		}{
			{name: "alone", taken: 1, want: none, stays: true},
			{name: "half", taken: 2, want: none, stays: true},
			{name: "alone-again", taken: 2, armed: true, sets: true, want: none, stays: true},
			{name: "crowded", taken: 3, sets: true, want: time.Minute},
			{name: "crowded-without-limit", idle: -1, taken: 3, want: none, stays: true},
			{name: "limit", idle: time.Second, taken: 1, sets: true, want: time.Second},
			{name: "limit-when-crowded", idle: 2 * time.Minute, taken: 4, sets: true, want: 2 * time.Minute},
			{name: "drains", idle: time.Second, taken: 1, drains: true, sets: true, want: drainIdle},
			{name: "drains-nearly-at-the-end", taken: 1, drains: true, drainedFor: drainTotal - time.Millisecond, sets: true, want: time.Millisecond},
			{name: "drains-too-long", taken: 1, drains: true, drainedFor: drainTotal + time.Millisecond, sets: true, want: -time.Millisecond},
			{name: "is-handed-over", idle: time.Second, taken: 1, drains: true, hands: true, sets: true, want: time.Until(time.Unix(1, 0)), stays: false},
			{name: "cannot-be-handed-over", taken: 1, hands: true, kept: true, armed: true, sets: true, want: none, stays: true},
		} {
			conn := &readDeadlines{}
			l := &listener{linger: drainTotal, cfg: ListenerConfig{IdleTimeout: tt.idle}}
			l.conns.init()
			l.conns.total = 4
			for range tt.taken {
				l.conns.take(&stream{})
			}
			l.conns.draining.Store(tt.drains)
			if tt.hands {
				l.conns.taker.Store(&give)
			}
			st := &stream{l: l, conn: conn, armed: tt.armed, kept: tt.kept}
			if tt.drainedFor > 0 {
				st.end = time.Now().Add(l.linger - tt.drainedFor)
			}
			var want []time.Time
			if tt.sets {
				want = []time.Time{{}}
				if tt.want != none {
					want[0] = time.Now().Add(tt.want)
				}
			}
			st.arm()
			if !slices.EqualFunc(conn.set, want, time.Time.Equal) || st.armed != (tt.sets && tt.want != none) {
				t.Errorf("%s: deadlines %v, armed %t, want %v", tt.name, conn.set, st.armed, want)
			}
			if tt.drains && !tt.hands && !st.end.Equal(time.Now().Add(drainTotal-tt.drainedFor)) {
				t.Errorf("%s: the end is %v", tt.name, st.end)
			}
			if why := st.idled(); (why == "") != tt.stays {
				t.Errorf("%s: idle ends it for %q", tt.name, why)
			}
		}
	})
}

// TestNewConnectionsKeepNoIdleOnes: connections that come and go while most slots are
// taken do not extend the time of idle ones.
func TestNewConnectionsKeepNoIdleOnes(t *testing.T) {
	for idle, lives := range map[time.Duration]time.Duration{0: crowdedIdle, 2 * time.Minute: 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			r.l.addr.framing, r.l.cfg.IdleTimeout = lines, idle
			r.l.conns.init()
			r.l.conns.total, r.l.conns.perAddr = 10, 10
			var ended atomic.Int32
			connect := func() net.Conn {
				client, server := net.Pipe()
				r.admit(r.l, server)
				return client
			}
			for range 9 {
				client := connect()
				go func() { _, _ = client.Read(make([]byte, 1)); ended.Add(1) }()
			}
			for range 20 {
				time.Sleep(lives / 20)
				_ = connect().Close()
			}
			time.Sleep(time.Second)
			if n := ended.Load(); n < 4 { // then half of the slots are free
				t.Errorf("after %v, %d of 9 idle connections have ended, want 4", lives, n)
			}
			r.l.conns.drain()
			r.l.streams.Wait()
		})
	}
}

// connected returns both ends of a unix connection.
func connected(t *testing.T) (conn, client net.Conn) {
	t.Helper()
	at, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if client, err = net.Dial("unix", at.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if conn, err = at.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, client
}

// TestInputAtTheDeadline: input that has arrived before the deadline of a reader passes
// is read first, unless draining has taken too long.
func TestInputAtTheDeadline(t *testing.T) {
	conn, client := connected(t)
	l := &listener{cfg: ListenerConfig{IdleTimeout: time.Minute}}
	l.conns.init()
	st := &stream{l: l, conn: conn}
	ends := func(want string) {
		t.Helper()
		if why := st.idled(); why != want {
			t.Errorf("ended for %q, want %q", why, want)
		}
	}
	ends("idle")
	write(t, client, "a:1|c\n")
	ends("")
	l.conns.draining.Store(true)
	ends("")
	st.end = time.Now()
	ends("shutdown")
}

// TestHandshakeAtTheDeadline: a handshake that ran into a deadline ends the connection,
// whatever has arrived since, as no later read can succeed.
func TestHandshakeAtTheDeadline(t *testing.T) {
	plain, client := connected(t)
	conn := tls.Server(plain, &tls.Config{})
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	write(t, client, "hello")
	l := &listener{}
	l.conns.init()
	l.conns.total = 4
	st := &stream{l: l, conn: conn}
	if why := st.idled(); why != "idle" {
		t.Errorf("ended for %q, want idle", why)
	}
	l.conns.draining.Store(true)
	if why := st.idled(); why != "shutdown" {
		t.Errorf("ended for %q, want shutdown", why)
	}
}

// TestFrameLengths checks the length of the next frame, prefix included.
func TestFrameLengths(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "\x01\x00\x00": 0, "\x00\x00\x00\x00": 4, "\x05\x00\x00\x00abc": 9, "\x00\x01\x00\x00": 260,
		"\x00\x00\x00\x01": 16<<20 + 4, "\x01\x00\x00\x01": 16<<20 + 5, "\xff\xff\xff\xff": 16<<20 + 5,
	} {
		if got := nextFrame([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// TestPlainLinesAreTold: a client that sends text instead of a length is logged.
func TestPlainLinesAreTold(t *testing.T) {
	for in, want := range map[string]bool{"a:1|c\n": true, "~~~ ": true, "a:1\x1f": false, "\x7faaa": false, "aaa\xff": false} {
		if got := printable([]byte(in)[:lengthPrefix]); got != want {
			t.Errorf("%q is text: %t, want %t", in, got, want)
		}
	}
}

// TestErrorsOfAccept expects them to be counted, and the next connection to be accepted.
func TestErrorsOfAccept(t *testing.T) {
	r := newRig(t, Config{})
	r.l.accept = &refusing{left: 2}
	r.acceptStreams(r.l)
	if got := r.l.metrics.readErrors.Total(); got != 2 {
		t.Errorf("%d read errors are counted, want 2", got)
	}
}

// refusing is a listener that fails for a while, and then is closed.
type refusing struct {
	net.Listener
	left int
}

func (l *refusing) Accept() (net.Conn, error) {
	if l.left--; l.left >= 0 {
		return nil, io.ErrNoProgress
	}
	return nil, net.ErrClosed
}

func (*refusing) Close() error { return nil }
