package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Logf(format string, args ...any)   {}
func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }

// run calls check as a test would, and returns the failure text.
func run(t *testing.T, dir, name, got string, rewrite bool) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r, dir, name, []byte(got), rewrite)
	}()
	<-done
	return r.failed
}

func TestCheckReadsTheFileBesideTheTest(t *testing.T) {
	Check(t, "hello", []byte("hello\nworld\n"))
}

func TestUpdateWritesAndThenEqualOutputPasses(t *testing.T) {
	dir := t.TempDir()
	if got := run(t, dir, "a/b", "one\n", false); !strings.Contains(got, "does not exist") || !strings.Contains(got, "-update") {
		t.Errorf("missing file: failure = %q, want one that names -update", got)
	}
	if got := run(t, dir, "a/b", "one\n", true); got != "" {
		t.Fatalf("update failed: %s", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a", "b.golden"))
	if err != nil || string(data) != "one\n" {
		t.Fatalf("file = %q, %v; want %q", data, err, "one\n")
	}
	if got := run(t, dir, "a/b", "one\n", false); got != "" {
		t.Errorf("equal output fails: %s", got)
	}
	if got := run(t, dir, "a/b", "two\n", false); !strings.Contains(got, "one") || !strings.Contains(got, "two") {
		t.Errorf("other output: failure = %q, want one that shows both", got)
	}
}
