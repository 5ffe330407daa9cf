package unixsock

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestListenReplacesWhatNobodyServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen(path, 0o640, "")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o640 || first.Addr().String() != path {
		t.Errorf("%v, %v, %s", info.Mode(), err, first.Addr())
	}
	if _, err := Listen(path, 0o600, ""); !errors.Is(err, ErrInUse) {
		t.Errorf("a path that is served: %v", err)
	}
	first.Keep()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(path, 0o600, "")
	if err != nil {
		t.Fatalf("a socket that nobody serves: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, 0o600, ""); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file: %v", err)
	}
	for _, group := range []string{"no-such-group-here", "4294967296", "4294967295", "-1"} {
		if _, err := Listen(path+"2", 0o600, group); err == nil {
			t.Errorf("group %q is accepted", group)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCloseLeavesForeignSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ours, err := Listen(path, 0o600, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	theirs, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a socket of another program was removed: %v", err)
	}
}

// TestSec_20_NeverWider tries to connect as another user all the while sockets
// are bound with any umask: none of the attempts may succeed, and what can be
// seen at the path never has a wider mode.
func TestSec_20_NeverWider(t *testing.T) {
	dir := t.TempDir()
	for _, parent := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "s")
	open, err := Listen(path, 0o666, "")
	if err != nil {
		t.Fatal(err)
	}
	others := connectsAsAnother(path) // only root can be another user
	if os.Getuid() == 0 && !others {
		t.Error("another user cannot connect to a socket of mode 666")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	looked := make(chan int)
	go func() {
		wide := 0
		for !stop.Load() {
			if info, err := os.Lstat(path); err == nil && info.Mode().Perm() != 0o600 {
				wide++
			}
		}
		looked <- wide
	}()
	defer syscall.Umask(syscall.Umask(0))
	for i := range 500 {
		syscall.Umask(i % 2 * 0o077)
		l, err := Listen(path, 0o600, "")
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 && others && connectsAsAnother(path) {
			t.Error("another user could connect")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	if wide := <-looked; wide > 0 {
		t.Errorf("the socket was seen %d times with a wider mode", wide)
	}
}
