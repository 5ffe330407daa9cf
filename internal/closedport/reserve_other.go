//go:build !linux

package closedport

import (
	"net"
	"testing"
)

// Reserve returns an address on which a test can listen. While nothing listens, it
// refuses connections. Other processes can take the port on this system.
func Reserve(t testing.TB) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}
