package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOlderAddressFile expects an address file that cannot be written not to keep the
// address of another process. Reading it, this process holds a lease of the file.
func TestOlderAddressFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(path, []byte("127.0.0.1:1"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const setLease = 1024
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_RDLCK); errno != 0 {
		t.Skip("no leases: ", errno)
	}
	checkUnwritableAddressFile(t, path, syscall.EAGAIN)
	if text, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the address file has %q, %v", text, err)
	}
}
