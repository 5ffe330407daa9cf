package main

import (
	"slices"
	"strings"
	"testing"
)

func TestPatternsSelectByLevel(t *testing.T) {
	got := patterns([]string{
		"BenchmarkCounter/case=one/impl=ours", "BenchmarkCounter/case=one/impl=atomic",
		"BenchmarkCounter", "BenchmarkFlush/changed=1%/impl=ours", "BenchmarkX/a+b",
	})
	want := []string{
		`^(BenchmarkCounter)$/^(case=one)$/^(impl=ours|impl=atomic)$`,
		`^(BenchmarkCounter)$`,
		`^(BenchmarkFlush)$/^(changed=1%)$/^(impl=ours)$`,
		`^(BenchmarkX)$/^(a\+b)$`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("patterns: %q, want %q", got, want)
	}
}

// TestCheckMeasuresAPackage runs the whole command on the benchmarks of
// testdata/module, which report fixed figures.
func TestCheckMeasuresAPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a package")
	}
	for _, tt := range []struct {
		file   string
		failed bool
		want   string
	}{
		{"held.txt", false, "all 3 bounds hold"},
		{"broken.txt", true, "BenchmarkReported/case=b: x/op is 25% over its bound"},
	} {
		var s strings.Builder
		failed, err := check(&s, "testdata/"+tt.file, "./testdata/measured", "1x", "", 3)
		if err != nil {
			t.Fatal(err)
		}
		if failed != tt.failed || !strings.Contains(s.String(), tt.want) {
			t.Errorf("%s: failed %t, want %t and %q in:\n%s", tt.file, failed, tt.failed, tt.want, s.String())
		}
	}
}

func TestCheckReportsWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ file, pkg, want string }{
		{"testdata/absent.txt", ".", "no such file"},
		{"testdata/held.txt", "./testdata/absent", "absent"},
	} {
		var s strings.Builder
		if _, err := check(&s, tt.file, tt.pkg, "1x", "", 1); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %s: error %v, want one with %q", tt.file, tt.pkg, err, tt.want)
		}
	}
}
