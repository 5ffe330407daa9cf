package statsd

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSocketsAreNeverOpen: a socket has its mode from the first moment, so that no one else
// can connect before it is set.
func TestSocketsAreNeverOpen(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path, lc := filepath.Join(t.TempDir(), "s"), privately(0o600)
	ln, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := lc.ListenPacket(t.Context(), "unixgram", path+"g")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range []string{path, path + "g"} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}

// TestOwnersOfSockets: sockets get the owner and the group of the configuration, by name
// or number; without them they belong to the process. Only root can give files away.
func TestOwnersOfSockets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	own := [2]int{os.Getuid(), os.Getgid()}
	for _, tt := range []struct {
		owner, group string
		want         [2]int
	}{
		{"", "", own},
		{"12345", "", [2]int{12345, own[1]}},
		{"", "23456", [2]int{own[0], 23456}},
		{"12345", "23456", [2]int{12345, 23456}},
		{"root", "root", [2]int{0, 0}},
		{"0", "0", [2]int{0, 0}},
	} {
		for _, scheme := range []string{"unixgram://", "unixlines://"} {
			path := filepath.Join(t.TempDir(), "s")
			newLive(t, Config{Listeners: []ListenerConfig{{Address: scheme + path, Owner: tt.owner, Group: tt.group}}})
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			stat := info.Sys().(*syscall.Stat_t)
			if got := [2]int{int(stat.Uid), int(stat.Gid)}; got != tt.want || info.Mode().Perm() != 0o666 {
				t.Errorf("%s, owner %q, group %q: belongs to %d with mode %v, want %d", scheme, tt.owner, tt.group, got, info.Mode(), tt.want)
			}
		}
	}
}
