//go:build linux && !purego

package statsd

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
)

// openBatch returns a reader of a UDP socket and a connection to it.
func openBatch(t *testing.T, network, host string, rcvbuf int) (*batch, *net.UDPConn, net.Conn) {
	t.Helper()
	pc, err := net.ListenPacket(network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	c := pc.(*net.UDPConn)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := tuneSocket(c, rcvbuf); err != nil {
		t.Fatal(err)
	}
	b, err := newBatch(c, 100)
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial(network, c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return b, c, out
}

// TestReportAddsUpSockets: the report of a listener has the sums of its sockets, in which
// datagrams wait, also behind a listener without sockets.
func TestReportAddsUpSockets(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}, {Address: "udp://127.0.0.1:0", Readers: 3, RcvBuf: 100_000}}})
	for range 30 { // each from another port, so that all sockets get some
		write(t, l.dial(1), "a:1|c")
	}
	var granted uint64
	for _, so := range l.listeners[1].sockets {
		granted += uint64(so.granted)
	}
	r := l.report(1)
	if r.RcvBufAsked != 300_000 || r.RcvBufBytes != granted || granted < 300_000 {
		t.Errorf("asked for %d bytes and got %d, want 300000 and %d", r.RcvBufAsked, r.RcvBufBytes, granted)
	}
	if r.QueueBytes == 0 || r.QueueBytes > r.QueueLimit || r.QueueLimit < 300_000 || r.QueueLimit > 1<<30 {
		t.Errorf("%d bytes of %d wait", r.QueueBytes, r.QueueLimit)
	}
	l.Flush(time.Now())
	if got := l.listeners[1].metrics.queueBytes.Value(); got != r.QueueBytes {
		t.Errorf("after a flush the gauge says that %d bytes wait, the report %d", got, r.QueueBytes)
	}
}

// TestBatchReportsDrops compares the drop count of a datagram with that of the
// socket.
func TestBatchReportsDrops(t *testing.T) {
	for _, network := range []string{"udp4", "udp6"} {
		host := map[string]string{"udp4": "127.0.0.1", "udp6": "::1"}[network]
		b, c, out := openBatch(t, network, host, 4096)
		for range 300 {
			write(t, out, "a:1|c")
		}
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		q, ok := queue(raw)
		if !ok || q.dropped == 0 || q.used == 0 || q.size < 4096 {
			t.Fatalf("%s: queue %+v, %v", network, q, ok)
		}
		got := 0
		for got < 300-int(q.dropped) {
			n, err := b.read()
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				p, cut := b.packet(i)
				if string(p) != "a:1|c" || cut || b.sender(i).String() != out.LocalAddr().String() {
					t.Fatalf("%s: packet %q, cut %v, from %v; want from %v", network, p, cut, b.sender(i), out.LocalAddr())
				}
			}
			got += n
		}
		write(t, out, "a:1|c") // brings the final count
		if n, err := b.read(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if v, ok := b.dropped(); !ok || v != q.dropped {
			t.Errorf("%s: a datagram reports %d drops, %v; the socket %d", network, v, ok, q.dropped)
		}
		write(t, out, "a:1|c")
		for _, want := range []int{1, 0} {
			if n := b.poll(); n != want {
				t.Errorf("%s: a poll returns %d, want %d", network, n, want)
			}
		}
	}
}

// TestDropsAmongControlMessages: the count is found behind other messages, and
// malformed ones end the search.
func TestDropsAmongControlMessages(t *testing.T) {
	type message struct{ level, kind, length, data int }
	header := unix.SizeofCmsghdr
	count := message{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, header + 4, 7}
	for _, tt := range []struct {
		name string
		list []message
		want bool
	}{
		{"none", nil, false},
		{"alone", []message{count}, true},
		{"second", []message{{unix.SOL_SOCKET, unix.SO_TIMESTAMP, header + 4, 1}, count}, true},
		{"behind-an-empty-one", []message{{unix.SOL_SOCKET, unix.SO_TIMESTAMP, header, 1}, count}, true},
		{"other-level", []message{{unix.SOL_IP, unix.SO_RXQ_OVFL, header + 4, 1}}, false},
		{"empty", []message{{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, header, 1}}, false},
		{"last-is-short", []message{{unix.SOL_SOCKET, unix.SO_TIMESTAMP, header + 3, 1}}, false},
		{"no-header", []message{{unix.SOL_SOCKET, unix.SO_TIMESTAMP, header - 1, 1}, count}, false},
		{"too-long", []message{{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, controlBytes + 1, 1}}, false},
	} {
		b := &batch{n: 2}
		at, end := 0, 0
		for _, m := range tt.list {
			c := b.controls[1][at:]
			cm := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
			cm.SetLen(m.length)
			cm.Level, cm.Type = int32(m.level), int32(m.kind)
			binary.NativeEndian.PutUint32(c[unix.CmsgLen(0):], uint32(m.data))
			at, end = at+unix.CmsgSpace(max(0, m.length-header)), at+m.length // without padding behind the last
		}
		b.hdrs[1].hdr.SetControllen(end)
		if n, ok := b.dropped(); ok != tt.want || ok && n != 7 {
			t.Errorf("%s: %d, %t", tt.name, n, ok)
		}
	}
}

// TestFilesOfSendersStayClosed: a sender to a unix socket cannot open files here.
func TestFilesOfSendersStayClosed(t *testing.T) {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: t.TempDir() + "/s", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := tuneSocket(c, 1<<20); err != nil {
		t.Fatal(err)
	}
	b, err := newBatch(c, 100)
	if err != nil {
		t.Fatal(err)
	}
	to := c.LocalAddr().(*net.UnixAddr)
	out, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: to.Name + "2", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	descriptors.Check(t, "datagram with files", func() {
		if _, _, err := out.WriteMsgUnix([]byte("a:1|c"), unix.UnixRights(0, 1, 2), to); err != nil {
			t.Fatal(err)
		}
		n, err := b.read()
		if p, cut := b.packet(0); err != nil || n != 1 || string(p) != "a:1|c" || cut {
			t.Errorf("%d packets, %q, cut %t, %v", n, p, cut, err)
		}
	})
}

func TestBatchReadsSeveralWithoutAllocation(t *testing.T) {
	b, _, out := openBatch(t, "udp4", "127.0.0.1", 1<<20)
	most, line := 0, []byte("a:1|c")
	allocs := testing.AllocsPerRun(100, func() {
		for range 10 {
			if _, err := out.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		for left := 10; left > 0; {
			n, err := b.read()
			if err != nil {
				t.Fatal(err)
			}
			left -= n
			most = max(most, n)
		}
	})
	if most < 2 {
		t.Error("never more than one datagram was read at a time")
	}
	if allocs != 0 {
		t.Errorf("%v allocations for 10 datagrams", allocs)
	}
}

// TestBatchReportsWaits checks that a read knows whether a datagram was queued.
func TestBatchReportsWaits(t *testing.T) {
	b, _, out := openBatch(t, "udp4", "127.0.0.1", 4096)
	if err := b.conn.Control(func(fd uintptr) { b.try(fd) }); err != nil || !b.waited {
		t.Errorf("nothing is queued: waited %t, %v", b.waited, err)
	}
	write(t, out, "a:1|c")
	if n, err := b.read(); n != 1 || err != nil || b.waited {
		t.Errorf("a datagram is queued: read %d, %v, waited %t", n, err, b.waited)
	}
}
