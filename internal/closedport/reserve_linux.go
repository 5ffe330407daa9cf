package closedport

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Reserve returns an address on which a test can listen, any number of times. Until t
// ends no other socket gets the port by chance; while nothing listens, it refuses
// connections.
func Reserve(t testing.TB) *net.TCPAddr {
	t.Helper()
	// The system gives no socket a port that is bound, and lets a listener have it that
	// asks for it if both have SO_REUSEADDR, as listeners of package net do.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*unix.SockaddrInet4).Port}
}
