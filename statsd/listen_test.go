package statsd

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBindErrorsNameTheCause: errors of a listener say what to do about it.
func TestBindErrorsNameTheCause(t *testing.T) {
	for _, tt := range []struct {
		address string
		err     error
		want    string
	}{
		{"udp://:8125", syscall.EADDRINUSE, `statsd: "udp://:8125": another process uses the port (ss -lnup 'sport = :8125' shows it): address already in use`},
		{"tcp://[::1]:80", syscall.EADDRINUSE, `statsd: "tcp://[::1]:80": another process uses the port (ss -lntp 'sport = :80' shows it): address already in use`},
		{"unixgram:///s", syscall.EADDRINUSE, `statsd: "unixgram:///s": address already in use`},
		{"udp://:80", fs.ErrPermission, `statsd: "udp://:80": no permission for this port or directory: permission denied`},
		{"unixgram:///s", syscall.EACCES, `statsd: "unixgram:///s": no permission for this port or directory: permission denied`},
		{"udp://:80", syscall.EBADF, `statsd: "udp://:80": bad file descriptor`},
	} {
		a, err := parseAddress(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := bindError(tt.address, a, tt.err).Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestShortQueuesOfUnixSockets: the log says how to let more datagrams wait, only for
// sockets that it is true of.
func TestShortQueuesOfUnixSockets(t *testing.T) {
	n := unixQueue()
	dir := t.TempDir()
	for i, scheme := range []string{"unixgram", "unixlines"} {
		var logs []message
		l, err := bind(ListenerConfig{Address: scheme + "://" + filepath.Join(dir, fmt.Sprint(i)), PacketBytes: 100, RcvBuf: 4096, Mode: 0o600}, &logs)
		if err != nil {
			t.Fatal(err)
		}
		l.close()
		told := len(logs) > 0 && strings.Contains(logs[0].text, "few datagrams may wait")
		if want := scheme == "unixgram" && n > 0 && n < 512; told != want {
			t.Errorf("%s: told %t although %d datagrams may wait", scheme, told, n)
		}
		if told && !strings.Contains(fmt.Sprint(logs[0].args...), "sysctl -w net.unix.max_dgram_qlen=512") {
			t.Errorf("%v", logs[0].args)
		}
	}
}

// TestInheritedFilesOfOtherKinds: a listener takes no file that is not its kind of socket.
func TestInheritedFilesOfOtherKinds(t *testing.T) {
	dir := t.TempDir()
	file := func(open func() (interface{ File() (*os.File, error) }, error)) *os.File {
		c, err := open()
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	plain := func() *os.File {
		f, err := os.Create(filepath.Join(dir, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	udp := func() *os.File {
		return file(func() (interface{ File() (*os.File, error) }, error) {
			return net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		})
	}
	tcp := func() *os.File {
		return file(func() (interface{ File() (*os.File, error) }, error) {
			return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		})
	}
	for address, files := range map[string][]func() *os.File{
		"udp://:0": {plain, tcp}, "tcp://:0": {plain, udp}, "unixgram://" + dir + "/g": {plain, udp}, "unixlines://" + dir + "/l": {plain, tcp},
	} {
		for i, open := range files {
			f := open()
			l, err := bind(ListenerConfig{Address: address, Sockets: []*os.File{f}, PacketBytes: 100, RcvBuf: 4096, Mode: 0o600}, new([]message))
			if err == nil {
				l.close()
				t.Errorf("%s takes file %d", address, i)
			}
			_ = f.Close()
		}
	}
}
