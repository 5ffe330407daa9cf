package boundedfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most int
		want string
		err  string // its cause; empty: none
	}{
		{file, 5, "12345", ""},
		{link, 6, "12345", ""},
		{file, 4, "", "more than 4 bytes"},
		{dir, 5, "", "not a regular file"},
		{os.DevNull, 5, "", "not a regular file"},
	} {
		descriptors.Check(t, tt.name, func() { _, _ = Read(tt.name, tt.most) })
		got, err := Read(tt.name, tt.most)
		text := ""
		var p *fs.PathError
		if errors.As(err, &p) {
			text = p.Err.Error()
			if p.Path != tt.name {
				t.Errorf("%s: the error is about %q", tt.name, p.Path)
			}
		}
		if string(got) != tt.want || text != tt.err {
			t.Errorf("%s, at most %d bytes: %q, %v; want %q, %q", tt.name, tt.most, got, err, tt.want, tt.err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestCause takes the path off an error, and nothing off others.
func TestCause(t *testing.T) {
	other := errors.New("other")
	for _, err := range []error{&fs.PathError{Op: "read", Path: "p", Err: other}, fmt.Errorf("here: %w", &fs.PathError{Op: "read", Path: "p", Err: other}), other} {
		if got := Cause(err); got != other {
			t.Errorf("the cause of %v is %v", err, got)
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := Read(missing, 5); Cause(err) != error(syscall.ENOENT) {
		t.Errorf("the cause of a missing file is %v", err)
	}
}
