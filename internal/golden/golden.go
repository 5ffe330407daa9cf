// Package golden compares the output of a test with a file next to the test.
//
//	func TestText(t *testing.T) {
//		golden.Check(t, "text-empty", render(nil)) // testdata/text-empty.golden
//	}
//
// Running the test with -update rewrites the files instead:
//
//	go test ./render -run TestText -update
//
// Only test files import this package.
package golden

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update is registered when a test binary starts, before flags are parsed.
var update = flag.Bool("update", false, "rewrite testdata/*.golden with what the tests made")

// Check fails t unless got equals testdata/<name>.golden in the directory of the
// running test. The name may contain slashes. The failure shows the
// differences. With the flag -update, Check writes the file and passes.
//
// Parallel tests may call Check with different names. It does not retain got.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	check(t, "testdata", name, got, *update)
}

func check(t testing.TB, dir, name string, got []byte, rewrite bool) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name)+".golden")
	want, err := os.ReadFile(path)
	if rewrite {
		if err == nil && bytes.Equal(want, got) {
			return
		}
		if err := write(path, got); err != nil {
			t.Fatalf("golden: %v", err)
		}
		t.Logf("golden: wrote %s, %d bytes", path, len(got))
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("golden: %s does not exist; run this test with -update to make it, then read it", path)
	}
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("golden: output differs from %s (after checking, run with -update to accept), -want +got:\n%s", path, cmp.Diff(string(want), string(got)))
	}
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
