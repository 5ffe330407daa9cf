package hotrestart

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessesOfOthersAreRefused connects as another user, as root can, and as the own
// one.
func TestProcessesOfOthersAreRefused(t *testing.T) {
	const other = 65534
	for _, tt := range []struct {
		uid     uint32
		own     int
		allowed bool
	}{
		{1000, 1000, true}, {0, 1000, true}, {0, 0, true}, {1001, 1000, false}, {1000, 0, false},
	} {
		err := checkUser(&unix.Ucred{Pid: 7, Uid: tt.uid}, tt.own)
		if want := fmt.Sprintf("hotrestart: process 7 belongs to user %d, not to %d", tt.uid, tt.own); tt.allowed != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("user %d at %d: %v", tt.uid, tt.own, err)
		}
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + filepath.Join(t.TempDir(), "peer"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	check := func() error {
		c, err := ln.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return checkPeer(c)
	}
	dial := func() {
		c, err := net.DialUnix("unix", nil, ln.Addr().(*net.UnixAddr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	dial()
	if err := check(); err != nil {
		t.Errorf("a process of the same user: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	done := make(chan struct{})
	go func() { // on a thread of its own, which ends with the goroutine
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), other, ^uintptr(0)); errno != 0 {
			t.Errorf("cannot change the user: %v", errno)
		}
		dial()
	}()
	<-done
	if err := check(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534, not to 0") {
		t.Errorf("a process of another user: %v", err)
	}
}
