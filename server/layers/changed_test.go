package layers

import (
	"os"
	"path/filepath"
	"testing"
)

// TestChanged counts the notifications and checks the values visible in each.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	var l *Loader
	var seen []string
	l, err := New(Config{
		Layers:  []Layer{{Name: "disk", Kind: Disk, SymlinkRoot: dir}, {Name: "rtds", Kind: RTDS}, {Name: "admin", Kind: Admin}},
		Changed: func() { v, _ := l.Snapshot().Get("k"); seen = append(seen, v) },
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if len(seen) != len(want) || len(want) > 0 && seen[0] != want[0] {
			t.Errorf("%s: told %q, want %q", what, seen, want)
		}
		seen = nil
	}
	expect("first snapshot")
	if err := os.WriteFile(filepath.Join(dir, "k"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Reload()
	expect("disk", "1")
	if err := l.SetLayer("rtds", map[string]any{"k": "2"}); err != nil {
		t.Fatal(err)
	}
	expect("rtds", "2")
	if err := l.SetLayer("none", map[string]any{"k": "3"}); err == nil {
		t.Error("a layer that is not there is set")
	}
	expect("no such layer")
	if err := l.Modify(map[string]string{"k": "4"}); err != nil {
		t.Fatal(err)
	}
	expect("admin", "4")
}
