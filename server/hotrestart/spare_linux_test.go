package hotrestart

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestAliveWithoutDescriptors: a process without free descriptors finds out that another
// one is dead, again and again. It would leave its duty to a dead successor otherwise.
func TestAliveWithoutDescriptors(t *testing.T) {
	c := Config{Path: filepath.Join(t.TempDir(), "hot")}.withDefaults()
	c.spare = newSpare()
	defer c.spare.free(true)
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
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	if fd, err := syscall.Dup(0); err != syscall.EMFILE {
		syscall.Close(fd)
		t.Fatalf("a descriptor is free: %v", err)
	}
	for range 2 {
		if c.alive(1, true) {
			t.Error("a process that does not run is alive")
		}
	}
}
