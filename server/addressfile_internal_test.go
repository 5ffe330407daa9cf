package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRemoveOther keeps a file that has the text, as one on a full disk can, and
// removes others.
func TestRemoveOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "address")
	for text, kept := range map[string]bool{"127.0.0.1:9901": true, "127.0.0.1:9902": false, "127.0.0.1:99011": false, "": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := removeOther(path, "127.0.0.1:9901"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%q: kept %t, want %t", text, !kept, kept)
		}
	}
	if err := removeOther(path, ""); err != nil {
		t.Errorf("no file: %v", err)
	}
}
