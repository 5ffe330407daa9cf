package hotrestart

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestLateReader reads a message whose deadline passes before the read begins, as
// after a suspension.
func TestLateReader(t *testing.T) {
	w := newWorld(t)
	c := w.dial(Successor{})
	if err := c.link.send(askUsage, []byte{0}); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	raw, err := c.link.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool { // the answer has arrived
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return err == nil && n == 1
	}); err != nil {
		t.Fatal(err)
	}
	m, err := c.link.receive(1)
	if err != nil || m.kind != answerDone {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.link.receive(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing has arrived: %v", err)
	}
}

// TestStoppedLinkReadsNothing stops a link before a read sets its deadline.
func TestStoppedLinkReadsNothing(t *testing.T) {
	w := newWorld(t)
	l := w.dial(Successor{}).link
	l.stop()
	if _, err := l.receive(0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
