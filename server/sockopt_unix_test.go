//go:build unix

package server_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestSocketOptionsAreSet reads them back from the listening socket.
func TestSocketOptionsAreSet(t *testing.T) {
	cfg := fromYAML(t, t.TempDir(), fmt.Sprintf(`
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  socket_options:
  - {description: keep alive, level: %d, name: %d, int_value: 1}
  - {level: %d, name: %d, buf_value: AgAAAA==, state: STATE_LISTENING}
`, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT))
	got := map[string]int{}
	cfg.Admin.Address = "127.0.0.1:0"
	r := start(t, cfg)
	port := r.Admin().Addr().(*net.TCPAddr).Port
	for fd := range 1024 { // the listening socket is one of ours
		addr, err := unix.Getsockname(fd)
		in4, ok := addr.(*unix.SockaddrInet4)
		if accepts, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || !ok || in4.Port != port || accepts != 1 {
			continue
		}
		got["keepalive"], _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		got["keepcnt"], _ = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	}
	if got["keepalive"] != 1 || got["keepcnt"] != 2 {
		t.Errorf("the socket has %v", got)
	}
	for _, bad := range []admin.SocketOption{{Level: 1, Name: 99999, Prebind: true}, {Level: 1, Name: 99999}} {
		for _, address := range []string{"127.0.0.1:0", "unix:" + t.TempDir() + "/s"} {
			s, err := server.New(server.Config{Loggers: quiet(t), Admin: admin.Config{Address: address, SocketOptions: []admin.SocketOption{bad}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "socket option 99999 of level 1") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}
