//go:build unix

package nofollow

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFlagRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDONLY|Flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.OpenFile(link, os.O_RDONLY|Flag, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("opening a link: %v", err)
	}
}
