package profiler

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoPartIsLeft checks that a profile that does not fit on the disk leaves nothing
// behind, and that the next one is written once there is space.
func TestNoPartIsLeft(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	cpu, heap := New(filepath.Join(t.TempDir(), "p.prof"))
	for name, p := range map[string]interface {
		Start() (bool, error)
		Stop() (bool, error)
	}{"cpu": cpu, "heap": heap} {
		if ok, err := p.Start(); !ok || err != nil {
			t.Fatalf("%s: Start: %v, %v", name, ok, err)
		}
		small := before
		small.Cur = 10
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
			t.Fatal(err)
		}
		ok, err := p.Stop()
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		if !ok || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%s: Stop: %v, %v", name, ok, err)
		}
		if info, err := os.Stat(cpu.Path()); err != nil || info.Size() != 0 {
			t.Errorf("%s: %d bytes are left, %v", name, info.Size(), err)
		}
		if ok, err := p.Start(); !ok || err != nil {
			t.Errorf("%s: the next one: %v, %v", name, ok, err)
		}
		if ok, err := p.Stop(); !ok || err != nil {
			t.Errorf("%s: its end: %v, %v", name, ok, err)
		}
		readable(t, cpu.Path())
	}
}

// TestPipesAreRefused would hang if a pipe were opened like a regular file.
func TestPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cpu, heap := New(pipe)
	if ok, err := cpu.Start(); ok || err == nil {
		t.Errorf("CPU: %v, %v", ok, err)
	}
	if ok, err := heap.Start(); ok || err == nil {
		t.Errorf("heap: %v, %v", ok, err)
	}
}
