package sinkqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns a connection over TCP and the end of its receiver.
func pair(t *testing.T, timeout time.Duration) (*Conn, func() *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(ConnConfig{
		Timeout: timeout, Network: TCP, PacketBytes: DefaultTCPBytes,
		Dial: func(context.Context) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }, // however long it takes
	})
	t.Cleanup(func() { c.Close(); l.Close() })
	return c, func() *net.TCPConn {
		t.Helper()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close() })
		return in.(*net.TCPConn)
	}
}

// TestHalfClosedReceiver: a receiver that has closed its side reads all sent lines, and
// gets further ones over another connection.
func TestHalfClosedReceiver(t *testing.T) {
	c, accept := pair(t, time.Minute)
	var got []byte
	for i := range 3 {
		if n, err := c.Send(t.Context(), fmt.Appendf(nil, "a:%d|c\n", i)); err != nil || n != 6 {
			t.Fatal(n, err)
		}
		in := accept()
		if err := in.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.open.Read(make([]byte, 1)); err != io.EOF { // it has arrived
			t.Fatal(err)
		}
		if i == 2 {
			c.Close()
		} else if err := c.dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
	}
	if want := "a:0|c\na:1|c\na:2|c\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReceiverThatDoesNotRead: packets fail for sure until one is cut, which may have
// been delivered. Sent lines arrive once.
func TestReceiverThatDoesNotRead(t *testing.T) {
	c, accept := pair(t, 10*time.Millisecond)
	line := []byte("a:1|c|#some:tags,of:a,line:that,fills:buffers\n")
	packet := bytes.Repeat(line, DefaultTCPBytes/len(line))
	sent, doubt := 0, 0
	var in *net.TCPConn
	for failed := 0; failed < 3 && doubt == 0; {
		n, err := c.Send(t.Context(), packet)
		if in == nil {
			in = accept()
		}
		switch {
		case err == nil:
			sent += n
		case errors.Is(err, ErrAmbiguous):
			doubt += len(packet) - n
		default:
			failed++
		}
	}
	c.Close()
	got, err := io.ReadAll(in)
	if err != nil || len(got) < sent || len(got) > sent+doubt {
		t.Errorf("%d bytes arrived, %d were sent, %d perhaps: %v", len(got), sent, doubt, err)
	}
}

// TestSendEndsWithItsContext: a receiver that does not read delays the end of a queue by
// no timeout.
func TestSendEndsWithItsContext(t *testing.T) {
	c, accept := pair(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	packet := bytes.Repeat([]byte("a:1|c\n"), DefaultTCPBytes/6)
	for range 3 { // further ones fill the buffers
		if _, err := c.Send(ctx, packet); err != nil {
			t.Fatal(err)
		}
	}
	accept()
	ended := make(chan error)
	go func() {
		for {
			if _, err := c.Send(ctx, packet); err != nil {
				ended <- err
				return
			}
		}
	}()
	cancel()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// refusing is a connection that answers some writes with errors of the system.
type refusing struct {
	net.Conn
	largest int             // longest datagram it takes
	errs    []syscall.Errno // of the next writes; 0: none
	got     []string
}

func (r *refusing) SetWriteDeadline(time.Time) error { return nil }

func (r *refusing) Close() error { return nil }

func (r *refusing) Write(b []byte) (int, error) {
	if len(r.errs) > 0 {
		e := r.errs[0]
		if r.errs = r.errs[1:]; e != 0 {
			return 0, os.NewSyscallError("write", e)
		}
	}
	if len(b) > r.largest {
		return 0, os.NewSyscallError("write", syscall.EMSGSIZE)
	}
	r.got = append(r.got, string(b))
	return len(b), nil
}

// TestErrorsOfDatagrams: a datagram that the system finds too long is split between
// lines, and later ones are short from the start; one that it has no memory for is tried
// once more; what cannot be sent is left, and nothing is sent twice.
func TestErrorsOfDatagrams(t *testing.T) {
	const line = "a:1|c|#x:y"
	whole := strings.Repeat(line+"\n", 7) + line
	for _, tt := range []struct {
		name    string
		network Network
		r       refusing
		packets []string
		want    []string
		lost    int
		left    int // of the last packet
		err     error
	}{
		{"short", Unixgram, refusing{largest: 100}, []string{whole}, []string{whole}, 0, 0, nil},
		{"halved", UDP, refusing{largest: 50}, []string{whole}, []string{whole[:43], whole[44:]}, 0, 0, nil},
		{"halved twice", UDP, refusing{largest: 25}, []string{whole, whole}, slices.Repeat([]string{line + "\n" + line}, 8), 0, 0, nil},
		{"a long line", UDP, refusing{largest: 9}, []string{line + "\n" + line}, nil, 0, 21, ErrRefused},
		{"a long line later", UDP, refusing{largest: 11}, []string{"b:1|c\n" + line + "zz\n" + line}, []string{"b:1|c"}, 0, 24, ErrRefused},
		{"no memory once", UDP, refusing{largest: 100, errs: []syscall.Errno{syscall.ENOBUFS}}, []string{whole}, []string{whole}, 0, 0, nil},
		{"no memory", UDP, refusing{largest: 100, errs: []syscall.Errno{0, syscall.ENOBUFS, syscall.ENOBUFS}}, []string{whole, line}, []string{whole}, 0, 10, syscall.ENOBUFS},
		{"no memory for a unix socket", Unixgram, refusing{largest: 100, errs: []syscall.Errno{syscall.ENOBUFS}}, []string{whole}, []string{whole}, 0, 0, nil},
		{"refused before", UDP, refusing{largest: 100, errs: []syscall.Errno{syscall.ECONNREFUSED}}, []string{whole}, []string{whole}, 1, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, lost, limit := tt.r, 0, 100
			c := NewConn(ConnConfig{
				Network: tt.network, Timeout: time.Second, PacketBytes: 100, Lost: func(n int) { lost += n }, Shortened: func(n int) { limit = n },
				Dial: func(context.Context) (net.Conn, error) { return &r, nil },
			})
			var sent int
			var err error
			for _, p := range tt.packets {
				sent, err = c.Send(t.Context(), []byte(p))
			}
			if left := len(tt.packets[len(tt.packets)-1]) - sent; !errors.Is(err, tt.err) || left != tt.left || lost != tt.lost {
				t.Errorf("%d bytes are left, %d datagrams lost: %v; want %d, %d, %v", left, lost, err, tt.left, tt.lost, tt.err)
			}
			if split := len(tt.want) > len(tt.packets); tt.err == nil && split != (limit < 100) {
				t.Errorf("the longest datagram has %d bytes now", limit)
			}
			if !slices.Equal(r.got, tt.want) {
				t.Errorf("got %q, want %q", r.got, tt.want)
			}
		})
	}
}

// TestRefusedConnections: a connection that Opened refuses is closed, and nothing is sent.
func TestRefusedConnections(t *testing.T) {
	refused := errors.New("refused")
	var dialed []*closing
	c := NewConn(ConnConfig{
		Network: TCP, Timeout: time.Second, PacketBytes: 100,
		Dial: func(context.Context) (net.Conn, error) {
			dialed = append(dialed, &closing{})
			return dialed[len(dialed)-1], nil
		},
		Opened: func(net.Conn) error { return refused },
	})
	for range 2 {
		if n, err := c.Send(t.Context(), []byte("a:1|c\n")); n != 0 || !errors.Is(err, refused) {
			t.Errorf("%d bytes are sent: %v", n, err)
		}
	}
	if len(dialed) != 2 || dialed[0].closed != 1 || dialed[1].closed != 1 {
		t.Errorf("%d connections, not all closed once", len(dialed))
	}
}

// TestFailedDials: nothing is sent while there is no connection, and the next packet tries
// again.
func TestFailedDials(t *testing.T) {
	dials, fails := 0, true
	r := refusing{largest: 100}
	c := NewConn(ConnConfig{
		Network: UDP, Timeout: time.Second, PacketBytes: 100,
		Dial: func(context.Context) (net.Conn, error) {
			if dials++; fails {
				return nil, os.ErrDeadlineExceeded
			}
			return &r, nil
		},
	})
	for i := range 4 {
		fails = i < 2
		n, err := c.Send(t.Context(), []byte("a:1|c"))
		if fails && (n != 0 || !errors.Is(err, os.ErrDeadlineExceeded)) || !fails && (n != 5 || err != nil) {
			t.Errorf("packet %d: %d bytes are sent: %v", i, n, err)
		}
	}
	if want := []string{"a:1|c", "a:1|c"}; dials != 3 || !slices.Equal(r.got, want) {
		t.Errorf("%d dials, got %q, want %q", dials, r.got, want)
	}
}

// addressed is a connection to an address.
type addressed struct {
	refusing
	to   net.Addr
	sent func(b []byte)
}

func (a *addressed) RemoteAddr() net.Addr { return a.to }

func (a *addressed) Write(b []byte) (int, error) {
	a.sent(b)
	return len(b), nil
}

func (a *addressed) WriteMsgUDP(b, oob []byte, _ *net.UDPAddr) (int, int, error) {
	a.sent(b)
	return len(b), len(oob), nil
}

// TestMovedReceiver: datagrams follow a host name to its new address within a minute. A
// name that has more addresses, or that cannot be looked up, keeps the one in use, and an
// IP address is not looked up.
func TestMovedReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
		known, fault := []netip.Addr{first}, error(nil)
		var lookups []string
		got := make(map[netip.Addr]string)
		conn := func(address string) *Conn {
			c := NewConn(ConnConfig{
				Network: UDP, Address: address, Timeout: time.Second, PacketBytes: 100,
				Dial: func(context.Context) (net.Conn, error) {
					to := known[0]
					return &addressed{to: net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 8125)), sent: func(b []byte) { got[to] += string(b) }}, nil
				},
			})
			c.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
				lookups = append(lookups, host)
				return known, fault
			}
			return c
		}
		c := conn("agent.example:8125")
		send := func(text string) {
			t.Helper()
			if _, err := c.Send(t.Context(), []byte(text)); err != nil {
				t.Error(err)
			}
		}
		for i, step := range []struct {
			addrs []netip.Addr
			err   error
			sent  string
		}{
			{[]netip.Addr{first}, nil, "a"},
			{[]netip.Addr{second, netip.AddrFrom16(first.As16())}, nil, "b"},
			{[]netip.Addr{second}, errors.New("no answer"), "c"},
			{[]netip.Addr{second}, nil, "d"},
		} {
			known, fault = step.addrs, step.err
			if i > 0 {
				time.Sleep(resolveInterval - time.Nanosecond)
				send(".") // too early
				time.Sleep(time.Nanosecond)
				if c.SendAll([][]byte{[]byte("x")}) {
					t.Errorf("step %d: sent to an old address", i)
				}
			}
			send(step.sent)
		}
		if got[first] != "a.b.c." || got[second] != "d" || !slices.Equal(lookups, []string{"agent.example", "agent.example", "agent.example"}) {
			t.Errorf("sent %v, looked up %q", got, lookups)
		}
		c = conn("192.0.2.1:8125")
		send("e")
		time.Sleep(2 * resolveInterval)
		send("f")
		if len(lookups) != 3 {
			t.Errorf("looked up %q", lookups)
		}
	})
}

// TestStreamsThatAreNoSockets: a stream that reports the end of the other side is opened
// again before anything is written to it.
func TestStreamsThatAreNoSockets(t *testing.T) {
	var dialed []*ending
	c := NewConn(ConnConfig{
		Network: TCP, Timeout: time.Second, PacketBytes: 100,
		Dial: func(context.Context) (net.Conn, error) {
			dialed = append(dialed, &ending{refusing: refusing{largest: 100}})
			return dialed[len(dialed)-1], nil
		},
	})
	for i := range 3 {
		if i == 2 {
			dialed[0].ended = true
		}
		if _, err := c.Send(t.Context(), fmt.Appendf(nil, "a:%d|c\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(dialed) != 2 || len(dialed[0].got) != 2 || !slices.Equal(dialed[1].got, []string{"a:2|c\n"}) {
		t.Errorf("%d connections, the first got %q", len(dialed), dialed[0].got)
	}
}

// ending is a connection whose other end closes.
type ending struct {
	refusing
	ended bool
}

func (e *ending) Ended() bool { return e.ended }

// TestStreamErrors: a socket that takes nothing in time stays open, since another would only
// have other buffers. Any other error closes it, as any does that is no socket: nothing can
// be written over TLS after a timeout. A packet that was sent in part is in doubt.
func TestStreamErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		err    error
		doubt  bool
		closed int
	}{
		{"nothing in time", 0, os.ErrDeadlineExceeded, false, 0},
		{"a part in time", 3, os.ErrDeadlineExceeded, true, 1},
		{"nothing", 0, io.ErrClosedPipe, false, 1},
		{"a part", 3, io.ErrClosedPipe, true, 1},
		{"nothing in time over TLS", 0, os.ErrDeadlineExceeded, false, 1},
	} {
		stream := &failingStream{n: tt.n, err: tt.err}
		var conn net.Conn = stream
		if strings.HasSuffix(tt.name, "TLS") {
			conn = struct{ net.Conn }{stream}
		}
		c := NewConn(ConnConfig{
			Network: TCP, Timeout: time.Second, PacketBytes: 100,
			Dial: func(context.Context) (net.Conn, error) { return conn, nil },
		})
		n, err := c.Send(t.Context(), []byte("a:1|c\n"))
		if n != 0 || !errors.Is(err, tt.err) || errors.Is(err, ErrAmbiguous) != tt.doubt || stream.closed != tt.closed {
			t.Errorf("%s: %d bytes, closed %d times: %v", tt.name, n, stream.closed, err)
		}
	}
}

// failingStream is a socket that takes n bytes of a write.
type failingStream struct {
	closing
	n   int
	err error
}

func (*failingStream) SetWriteDeadline(time.Time) error { return nil }
func (f *failingStream) Write([]byte) (int, error)      { return f.n, f.err }
func (*failingStream) SyscallConn() (syscall.RawConn, error) {
	return nil, errors.ErrUnsupported
}

// closing counts how often it is closed. Other methods panic.
type closing struct {
	net.Conn
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestCutKeepsLinesAndPairsWhole(t *testing.T) {
	for _, tt := range []struct {
		data  string
		limit int
		want  int
	}{
		{"a:1|c\nb:1|c\nc:1|c", 11, 11},
		{"a:1|c\nb:1|c\nc:1|c", 5, 5},
		{"a:1|c\nb:1|c\nc:1|c", 3, 5},
		{"\na:1|c\nb:1|c", 6, 6},
		{"a:0|g\na:-3|g\nb:1|c", 6, 12},
		{"a:1|c", 3, 5},
		{"a:1|c\nb:1|c", 11, 11},
		{"a:1|c\nb:1|c", 10, 5},
		{"a:1|c\nb:1|c\n", 11, 5},
		{"a:1|c\n", 3, 6},
	} {
		if got := cut([]byte(tt.data), tt.limit); got != tt.want {
			t.Errorf("%q cut at %d, want %d", tt.data, got, tt.want)
		}
	}
}
