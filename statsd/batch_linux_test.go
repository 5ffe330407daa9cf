//go:build linux && !purego

package statsd

import (
	"net"
	"testing"
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
		if n, err := b.poll(); n != 0 || err != nil {
			t.Errorf("%s: polling an empty socket: %d, %v", network, n, err)
		}
	}
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
