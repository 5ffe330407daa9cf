package hotrestart

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAliveWithoutDescriptors: a process without free descriptors finds out that another
// one is dead, again and again. It would leave its duty to a dead successor otherwise.
func TestAliveWithoutDescriptors(t *testing.T) {
	c := Config{Path: filepath.Join(t.TempDir(), "hot")}.withDefaults()
	c.spare = newSpare()
	defer c.spare.free(true)
	useUpDescriptors(t)
	for range 2 {
		if c.alive(1, true) {
			t.Error("a process that does not run is alive")
		}
	}
}

// TestConnectionWithoutDescriptor: a connection for which there is no descriptor is lost,
// and nothing else. Sockets without one are an error.
func TestConnectionWithoutDescriptor(t *testing.T) {
	for kind, want := range map[kind]error{answerConnection: nil, answerSocket: errMalformed} {
		a, b := newPair(t)
		payload := appendText(nil, "127.0.0.1:1")
		if err := a.send(kind, payload, nulls(t, 1)...); err != nil {
			t.Fatal(err)
		}
		var m message
		var err error
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			useUpDescriptors(t)
			m, err = b.receive(time.Minute)
		})
		if !errors.Is(err, want) {
			t.Errorf("kind %d: %v", kind, err)
		}
		if err != nil {
			continue
		}
		c := &Child{cfg: Config{}.withDefaults(), to: Successor{Connection: func(Connection) { t.Error("a connection without a file") }}}
		if done, err := c.take(&m, askUsage, nil); done || err != nil {
			t.Errorf("kind %d: done %t, %v", kind, done, err)
		}
	}
}

// useUpDescriptors leaves no free descriptor until the end of the test.
func useUpDescriptors(t *testing.T) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	free, err := syscall.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(free)
	none := syscall.Rlimit{Cur: uint64(free), Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }) // as it was
	if fd, err := syscall.Dup(0); err != syscall.EMFILE {
		syscall.Close(fd)
		t.Fatalf("a descriptor is free: %v", err)
	}
}
