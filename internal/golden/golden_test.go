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
	if got := run(t, dir, "a/b", "two\n", false); !strings.Contains(got, "line 1") {
		t.Errorf("other output: failure = %q, want one that names line 1", got)
	}
}

func TestDifferenceShowsTheFirstDifferingLine(t *testing.T) {
	tests := []struct {
		name, want, got string
		contains        []string
	}{
		{"middle", "a\nb\nc\nd\ne\n", "a\nb\nc\nX\ne\n", []string{"line 4", `"b\n"`, `"c\n"`, `want: "d\n"`, `got:  "X\n"`}},
		{"got-shorter", "a\nb\n", "a\n", []string{"line 2", `want: "b\n"`, "got:  (end of text)"}},
		{"got-longer", "a\n", "a\nb\n", []string{"line 2", "want: (end of text)", `got:  "b\n"`}},
		{"no-final-newline", "a\n", "a", []string{"line 1", `want: "a\n"`, `got:  "a"`}},
		{"space-visible", "a \n", "a\n", []string{`want: "a \n"`, `got:  "a\n"`}},
		{"long-line", strings.Repeat("x", 5000), "y", []string{"… (5000 bytes)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := difference([]byte(tt.want), []byte(tt.got))
			for _, s := range tt.contains {
				if !strings.Contains(d, s) {
					t.Errorf("difference = %s\nwant %q in it", d, s)
				}
			}
			if len(d) > 2000 {
				t.Errorf("difference has %d bytes, want a short text", len(d))
			}
		})
	}
	if d := difference([]byte("a"), []byte("a")); d != "" {
		t.Errorf("difference of equal texts = %q, want none", d)
	}
}
