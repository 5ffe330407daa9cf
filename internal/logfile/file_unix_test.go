//go:build unix

package logfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
)

func TestModeAndAppend(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "a.log")
	for range 2 {
		f := open(t, path, Options{})
		fmt.Fprintln(f, "line")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); got != "line\nline\n" {
		t.Errorf("content %q", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRefusedPaths(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, fifo, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "fifo"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(victim, link), syscall.Mkfifo(fifo, 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for path, want := range map[string]string{
		link: "is a symbolic link", fifo: "not a regular file", pipe: "is not a regular file", dir: "is a directory", filepath.Join(dir, "none", "a.log"): "no such file",
	} {
		if f, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, %v; want %s", path, f, err, want)
		}
		descriptors.Check(t, path, func() { _, _ = Open(path, Options{}) })
	}
	if read(t, victim) != "x" {
		t.Error("wrote through a link")
	}
}
