package sinkqueue

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReceiverThatVanishes: a connection whose packets are not confirmed has a limit, of
// the packets that wait for it too.
func TestReceiverThatVanishes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := TCP.Dial(t.Context(), l.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ms int
	if failed := raw.Control(func(fd uintptr) {
		ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); failed != nil || err != nil || ms != 120_000 {
		t.Errorf("%d ms, %v, %v; want 2 minutes", ms, failed, err)
	}
}
