//go:build unix

package boundedfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipesAreRefused would block forever if a pipe was opened like a file.
func TestPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(pipe, 5); err == nil {
		t.Errorf("a pipe is read: %q", b)
	}
}

// TestReasonOfAFailedOpen reads a file while the process has no descriptor left.
func TestReasonOfAFailedOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := Read(file, 5)
	if back := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without descriptors: %v", err)
	}
}
