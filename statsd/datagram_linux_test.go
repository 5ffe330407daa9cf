//go:build linux && !purego

package statsd

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// packetRig returns a rig with a datagram socket whose system calls call recv first.
func packetRig(t *testing.T, recv func(b *batch)) (*rig, *socket, net.Conn) {
	t.Helper()
	r := newRig(t, Config{})
	b, c, out := openBatch(t, "udp4", "127.0.0.1", 1<<20)
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	r.l.stop = make(chan struct{})
	b.tryNo = func(fd uintptr) { b.recv(fd); recv(b) }
	b.try = func(uintptr) bool { recv(b); return true }
	return r, &socket{conn: c, raw: raw, batch: b, worker: r.streamWorkers[0]}, out
}

// TestDrainEndsWithTheQueue: a listener that stops reads the queued datagrams, and asks once
// more.
func TestDrainEndsWithTheQueue(t *testing.T) {
	var got []int
	r, so, out := packetRig(t, func(b *batch) { got = append(got, b.n) })
	write(t, out, "a:1|c")
	close(r.l.stop)
	r.readPackets(r.l, so)
	r.want("a 1")
	if len(got) != 2 || got[0] != 1 || got[1] != 0 {
		t.Errorf("reads of %v datagrams, want one of 1 and one of 0", got)
	}
}

// TestReadErrorsAreCounted: a socket that fails is tried again.
func TestReadErrorsAreCounted(t *testing.T) {
	reads, polls := 0, 0
	var r *rig
	r, so, _ := packetRig(t, func(b *batch) {
		b.n, b.errno = 0, syscall.ECONNREFUSED
		select {
		case <-r.l.stop:
			polls++
			return
		default:
		}
		if reads++; reads == 3 {
			close(r.l.stop)
		}
	})
	r.readPackets(r.l, so)
	if n := r.Report().Listeners[0].ReadErrors; reads != 3 || n != 3 || polls != 1 {
		t.Errorf("%d read errors of %d are counted, %d more reads at the end, want 1", n, reads, polls)
	}
}

// TestClosedSocketsAreReadNoMore: the reader of a closed socket ends, and a batch reports
// that.
func TestClosedSocketsAreReadNoMore(t *testing.T) {
	r, so, out := packetRig(t, func(*batch) { t.Error("a closed socket is read") })
	write(t, out, "a:1|c")
	_ = so.conn.Close()
	r.readPackets(r.l, so)
	r.want()
	if n := r.Report().Listeners[0].ReadErrors; n != 0 {
		t.Errorf("%d read errors", n)
	}
	if n, err := so.batch.read(); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read: %d, %v", n, err)
	}
	so.batch.n = 1 // of an earlier read
	if n := so.batch.poll(); n != 0 {
		t.Errorf("a poll: %d", n)
	}
	if _, err := newBatch(&net.UDPConn{}, 100); err == nil {
		t.Error("a batch without a socket")
	}
	if _, err := tuneSocket(&net.UDPConn{}, 4096); err == nil {
		t.Error("the buffer of no socket was set")
	}
}

// TestOneAllowedPrefix: one prefix is enough to refuse datagrams.
func TestOneAllowedPrefix(t *testing.T) {
	for prefix, refused := range map[string]uint64{"127.0.0.0/8": 0, "10.0.0.0/8": 1} {
		r, so, out := packetRig(t, func(*batch) {})
		r.l.cfg.Allowed = []netip.Prefix{netip.MustParsePrefix(prefix)}
		write(t, out, "a:1|c")
		close(r.l.stop)
		r.readPackets(r.l, so)
		if l := r.Report().Listeners[0]; l.Packets != 1 || l.PacketsRefused != refused || l.Applied != 1-refused {
			t.Errorf("%s is allowed: %d packets, %d refused, %d lines applied", prefix, l.Packets, l.PacketsRefused, l.Applied)
		}
	}
}
