package streamend

import (
	"net"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// TestClosed asks while the other end is open, has sent data, and is closed.
func TestClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if Closed(c) {
		t.Error("closed at once")
	}
	_ = other.Close()
	waittest.Until(t, "the end is found", func() bool { return Closed(c) })
	_ = c.Close()
	if !Closed(c) {
		t.Error("a connection that was closed here counts as open")
	}
	one, two := net.Pipe()
	defer one.Close()
	defer two.Close()
	if Closed(one) {
		t.Error("a pipe counts as closed")
	}
}
