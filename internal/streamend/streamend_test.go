package streamend

import (
	"net"
	"testing"
	"time"
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
	for end := time.Now().Add(30 * time.Second); !Closed(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the end was not found")
		}
	}
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
