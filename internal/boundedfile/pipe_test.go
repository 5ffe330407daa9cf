//go:build unix

package boundedfile

import (
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
