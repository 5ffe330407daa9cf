package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// Files returns the files of a directory of inputs by name.
func Files(t testing.TB, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("golden: no files in %s: %v", dir, err)
	}
	texts := make(map[string]string)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(path)] = string(b)
	}
	return texts
}
