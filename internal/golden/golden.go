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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// update is registered when a test binary starts, before flags are parsed.
var update = flag.Bool("update", false, "rewrite testdata/*.golden with what the tests made")

// Check fails t unless got equals testdata/<name>.golden in the directory of the
// running test. The name may contain slashes. The failure shows the first differing
// line. With the flag -update, Check writes the file and passes.
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
	if d := difference(want, got); d != "" {
		t.Errorf("golden: output differs from %s (after checking, run with -update to accept)\n%s", path, d)
	}
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// contextLines is the number of equal lines shown before the first difference.
const contextLines = 2

// difference describes the first line in which want and got differ, with the lines
// before it. It returns "" for equal inputs.
func difference(want, got []byte) string {
	if bytes.Equal(want, got) {
		return ""
	}
	wantLines := bytes.SplitAfter(want, []byte("\n"))
	gotLines := bytes.SplitAfter(got, []byte("\n"))
	n := 0
	for n < len(wantLines) && n < len(gotLines) && bytes.Equal(wantLines[n], gotLines[n]) {
		n++
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "first difference in line %d (want %d bytes, got %d)\n", n+1, len(want), len(got))
	for _, line := range wantLines[max(0, n-contextLines):n] {
		fmt.Fprintf(&b, "        %s\n", shorten(line))
	}
	fmt.Fprintf(&b, "  want: %s\n", lineOrEnd(wantLines, n))
	fmt.Fprintf(&b, "  got:  %s", lineOrEnd(gotLines, n))
	return b.String()
}

// lineOrEnd quotes line n, or reports the end of the text. SplitAfter leaves an empty
// last element after a final newline, which is the end too.
func lineOrEnd(lines [][]byte, n int) string {
	if n >= len(lines) || len(lines[n]) == 0 {
		return "(end of text)"
	}
	return shorten(lines[n])
}

// maxShown is the maximum length of a shown line in bytes.
const maxShown = 300

func shorten(line []byte) string {
	if len(line) <= maxShown {
		return fmt.Sprintf("%q", line)
	}
	return fmt.Sprintf("%q… (%d bytes)", line[:maxShown], len(line))
}
