package eventlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func open(t *testing.T, l *Logs, path string) *File {
	t.Helper()
	f, err := l.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLinesReachTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log")
		l := New()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		a, b := open(t, l, path), open(t, l, path)
		a.Write([]byte("a\n"))
		b.Write([]byte("b\n"))
		synctest.Wait()
		if got := content(t, path); got != "" {
			t.Errorf("at once: %q, want nothing", got)
		}
		time.Sleep(interval)
		synctest.Wait()
		if got := content(t, path); got != "a\nb\n" {
			t.Errorf("after a second: %q, want both lines in order", got)
		}
		a.Write([]byte("c\n"))
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v, want nil", err)
		}
		if got := content(t, path); got != "a\nb\nc\n" {
			t.Errorf("at the end: %q, want all lines", got)
		}
	})
}

func TestDiscardOpensNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := Discard()
	f := open(t, l, path)
	if n, err := f.Write([]byte("a\n")); n != 2 || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if err := errors.Join(l.Reopen(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestFileIsSharedUntilTheLastCloses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := New()
	a, b := open(t, l, path), open(t, l, path)
	a.Close()
	a.Close() // once more changes nothing
	b.Write([]byte("b\n"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "b\n" {
		t.Errorf("after the last close: %q, want the line", got)
	}
	c := open(t, l, path) // made anew
	c.Write([]byte("c\n"))
	c.Close()
	if got := content(t, path); got != "b\nc\n" {
		t.Errorf("after another one: %q, want both lines", got)
	}
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := New()
	f, other := open(t, l, path), open(t, l, path)
	defer f.Close()
	other.Close() // f is still reopened
	f.Write([]byte("before\n"))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("between\n"))
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("after\n"))
	f.Close()
	if old, now := content(t, path+".1"), content(t, path); old != "before\nbetween\n" || now != "after\n" {
		t.Errorf("old file %q, new file %q", old, now)
	}
}

func TestNothingToWriteTo(t *testing.T) {
	if _, err := New().Open(filepath.Join(t.TempDir(), "none", "log")); err == nil {
		t.Error("a file in a directory that is not there was opened")
	}
	var f *File
	if n, err := f.Write([]byte("x\n")); n != 2 || err != nil {
		t.Errorf("write to none: %d, %v; want 2, nil", n, err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("close of none: %v", err)
	}
}

// TestReopenFails reopens two files, of which the first has lost its directory. The
// error is returned, and both take lines.
func TestReopenFails(t *testing.T) {
	dir := t.TempDir()
	gone, kept := filepath.Join(dir, "gone", "log"), filepath.Join(dir, "log")
	if err := os.Mkdir(filepath.Dir(gone), 0o700); err != nil {
		t.Fatal(err)
	}
	l := New()
	a, b := open(t, l, gone), open(t, l, kept)
	if err := os.Rename(filepath.Dir(gone), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reopen: %v", err)
	}
	a.Write([]byte("a\n"))
	b.Write([]byte("b\n"))
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if x, y := content(t, filepath.Join(dir, "moved", "log")), content(t, kept); x != "a\n" || y != "b\n" {
		t.Errorf("the files have %q and %q", x, y)
	}
	if err := l.Reopen(); err != nil {
		t.Errorf("without files: %v", err)
	}
}

// TestReopenWhileAFileCloses: a file whose last user is just going away is no error.
func TestReopenWhileAFileCloses(t *testing.T) {
	l := New()
	f := open(t, l, filepath.Join(t.TempDir(), "log"))
	if err := l.each(func(file *logfile.File) error {
		f.Close()
		return file.Reopen()
	}); err != nil {
		t.Error(err)
	}
}

// TestCloseReportsWhatWasNotWritten: the last user learns that lines are missing.
func TestCloseReportsWhatWasNotWritten(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	l := New()
	a, b := open(t, l, "/dev/full"), open(t, l, "/dev/full")
	a.Write([]byte("a\n"))
	if err := a.Close(); err != nil {
		t.Errorf("not the last user: %v", err)
	}
	if err := b.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the last user: %v", err)
	}
}

// TestLinesBeyondTheBufferAreDropped writes one line more than fits until the next
// write to the disk.
func TestLinesBeyondTheBufferAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, New(), path)
	line := bytes.Repeat([]byte("x"), bufferBytes/4)
	line[len(line)-1] = '\n'
	for range 5 {
		if n, err := f.Write(line); n != len(line) || err != nil {
			t.Errorf("write: %d, %v; want %d, nil", n, err, len(line))
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(content(t, path)); got != 1<<20 {
		t.Errorf("the file has %d bytes, want %d", got, 1<<20)
	}
}
