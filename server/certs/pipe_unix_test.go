//go:build unix

package certs

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCertificatesInAPipeAreRefused would hang if a pipe were opened like a regular
// file.
func TestCertificatesInAPipeAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "cert.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}
