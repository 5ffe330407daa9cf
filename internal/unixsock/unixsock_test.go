package unixsock

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
	first.Keep(true)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a socket that is to be kept: %v", err)
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

// TestSocketsOfOtherKindsAreLeft: a socket of another type, which cannot be probed,
// is never considered stale.
func TestSocketsOfOtherKindsAreLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, 0o600, ""); err == nil {
		t.Error("a socket for datagrams is replaced")
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket is another one: %v", err)
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

// TestNeverWider: while sockets are bound, with any umask, another user tries to
// connect to every path in both directories. None of over a thousand attempts may
// succeed, and the path never has wider permissions.
func TestNeverWider(t *testing.T) {
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
	var denied error
	others := asAnother(func() { denied = connect(path) })
	if others && denied != nil {
		t.Errorf("another user cannot connect to a socket of mode 666: %v", denied)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0))
	for _, umask := range []int{0, 0o077} {
		syscall.Umask(umask)
		var stop atomic.Bool
		var refused, connected, wide atomic.Int64
		var attackers sync.WaitGroup
		defer attackers.Wait() // also if the test ends early
		defer stop.Store(true)
		attackers.Go(func() {
			for !stop.Load() {
				making, _ := filepath.Glob(filepath.Join(dir, ".bind-*"))
				for _, where := range append(making, path) {
					if info, err := os.Lstat(where); err == nil && info.Mode().Perm()&0o077 != 0 {
						wide.Add(1)
					}
				}
			}
		})
		for range 2 {
			attackers.Go(func() {
				asAnother(func() {
					for !stop.Load() {
						making, _ := filepath.Glob(filepath.Join(dir, ".bind-*"))
						for _, where := range append(making, dir) {
							switch err := connect(filepath.Join(where, "s")); {
							case err == nil:
								connected.Add(1)
							case errors.Is(err, fs.ErrPermission):
								refused.Add(1)
							}
						}
					}
				})
			})
		}
		deadline := time.Now().Add(time.Minute)
		for bound := 0; ; bound++ {
			l, err := Listen(path, 0o600, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if n := refused.Load() + connected.Load(); others && n >= 1000 || !others && bound >= 500 {
				break
			} else if time.Now().After(deadline) {
				t.Errorf("umask %o: only %d attempts found a socket", umask, n)
				break
			}
		}
		stop.Store(true)
		attackers.Wait()
		if connected.Load() > 0 || wide.Load() > 0 {
			t.Errorf("umask %o: %d attempts of another user succeeded, %d failed; %d times a wider mode was seen",
				umask, connected.Load(), refused.Load(), wide.Load())
		}
	}
}

// TestHighestGroup: chown takes the highest number for "no change", so it is no group.
func TestHighestGroup(t *testing.T) {
	if gid, err := GroupID("4294967294"); err != nil || gid != 4294967294 {
		t.Errorf("group %d, error %v", gid, err)
	}
	for _, name := range []string{"4294967295", "4294967296", "-1", ""} {
		if gid, err := GroupID(name); err == nil {
			t.Errorf("%q is the group %d", name, gid)
		}
	}
}
