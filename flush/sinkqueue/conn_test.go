package sinkqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
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
	} {
		if got := cut([]byte(tt.data), tt.limit); got != tt.want {
			t.Errorf("%q cut at %d, want %d", tt.data, got, tt.want)
		}
	}
}
