package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/term"
)

// terminal returns both ends of a pseudo terminal of 20 lines of 100 columns.
func terminal(t *testing.T) (far, tty *os.File) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	var unlocked, number int32
	size := [4]uint16{20, 100}
	for request, value := range map[uintptr]unsafe.Pointer{syscall.TIOCSPTLCK: unsafe.Pointer(&unlocked), syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSWINSZ: unsafe.Pointer(&size)} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, far.Fd(), request, uintptr(value)); errno != 0 {
			t.Skip(errno)
		}
	}
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return far, tty
}

// TestTopRestoresTheTerminal ends the view with a key and with a signal: the terminal is
// as before.
func TestTopRestoresTheTerminal(t *testing.T) {
	address := "http://" + running(t, "admin: {"+onLoopback+"}").Admin().Addr().String()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	t.Setenv("LC_ALL", "C.UTF-8")
	for name, end := range map[string]func(far *os.File){
		"key":    func(far *os.File) { _, _ = far.Write([]byte("q")) },
		"signal": func(*os.File) { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			far, tty := terminal(t)
			before, err := term.GetState(int(tty.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			go func() { // the terminal
				b := make([]byte, 4096)
				for once := false; ; {
					n, err := far.Read(b)
					if err != nil {
						return
					}
					if !once && bytes.Contains(b[:n], []byte("\x1b[")) {
						once = true
						end(far)
					}
				}
			}()
			var stderr strings.Builder
			p := program{stdin: tty, stdout: tty, stderr: &stderr, hardware: 2}
			if status := p.run(context.Background(), []string{"top", "--address", address}); status != 0 {
				t.Errorf("status %d, %q", status, stderr.String())
			}
			after, err := term.GetState(int(tty.Fd()))
			if err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the terminal is %+v, was %+v, %v", after, before, err)
			}
		})
	}
}
