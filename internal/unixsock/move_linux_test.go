package unixsock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestComesReady: the directory of a socket only ever contains a directory that no
// other user may enter, whose mode never changes, and the socket moved out of it,
// which already has its mode.
func TestComesReady(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_MOVE); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(dir, "s"), 0o600, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	buffer := make([]byte, 16<<10)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for events := buffer[:n]; len(events) > 0; {
		mask, length := binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		name, _, _ := bytes.Cut(events[16:16+length], []byte{0})
		text := string(name)
		if strings.HasPrefix(text, ".bind-") {
			text = ".bind-"
		}
		for bit, what := range map[uint32]string{unix.IN_CREATE: "created", unix.IN_ATTRIB: "changed", unix.IN_MOVED_TO: "moved to", unix.IN_MOVED_FROM: "moved from"} {
			if mask&bit != 0 {
				seen = append(seen, text+" "+what)
			}
		}
		events = events[16+length:]
	}
	if got, want := fmt.Sprint(seen), "[.bind- created s moved to]"; got != want {
		t.Errorf("the directory saw %s, want %s", got, want)
	}
}

// TestGroup changes the group of a socket, to a foreign one if it runs as root.
func TestGroup(t *testing.T) {
	group := os.Getgid()
	if os.Getuid() == 0 {
		group = 65534
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, 0o660, fmt.Sprint(group))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil || int(stat.Gid) != group || int(stat.Uid) != os.Getuid() || stat.Mode&0o777 != 0o660 {
		t.Errorf("%v, of group %d and user %d, mode %o", err, stat.Gid, stat.Uid, stat.Mode&0o777)
	}
}
