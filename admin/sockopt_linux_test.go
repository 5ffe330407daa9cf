package admin

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSocketOptions(t *testing.T) {
	options := []SocketOption{
		{Level: syscall.SOL_SOCKET, Name: syscall.SO_KEEPALIVE, Int: 1, Prebind: true},
		{Level: syscall.SOL_SOCKET, Name: syscall.SO_PRIORITY, Int: 3},
		{Level: syscall.SOL_SOCKET, Name: syscall.SO_RCVLOWAT, Bytes: []byte{7, 0, 0, 0}},
	}
	for _, address := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		s := start(t, Config{Address: address, SocketOptions: options})
		f, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		raw, err := f.SyscallConn() // Fd would make the socket a blocking one
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			for _, want := range [][2]int{{syscall.SO_KEEPALIVE, 1}, {syscall.SO_PRIORITY, 3}, {syscall.SO_RCVLOWAT, 7}} {
				if got, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, want[0]); err != nil || got != want[1] {
					t.Errorf("%s: option %d is %d, %v, want %d", address, want[0], got, err, want[1])
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSocketOptionsThatFail expects the first option that fails in the error, and the
// socket to be closed.
func TestSocketOptionsThatFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, prebind := range []bool{true, false} {
		for _, address := range []string{"127.0.0.1:0", "unix:" + path} {
			s := newServer(t, Config{Address: address, SocketOptions: []SocketOption{
				{Level: syscall.SOL_SOCKET, Name: 9999, Prebind: prebind}, {Level: syscall.SOL_SOCKET, Name: 9998, Prebind: prebind}}})
			if err := s.Listen(); err == nil || strings.Count(err.Error(), "socket option") != 1 || !strings.Contains(err.Error(), "socket option 9999 of level 1: ") {
				t.Errorf("%s: %v", address, err)
			}
		}
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			t.Error("the socket is open")
		}
	}
}
