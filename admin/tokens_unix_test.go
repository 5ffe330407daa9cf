//go:build unix

package admin

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTokensInAPipeAreRefused would hang if a pipe were opened like a regular file.
func TestTokensInAPipeAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "tokens")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}
