package logctl

import "testing"

func TestShortPath(t *testing.T) {
	for file, want := range map[string]string{"": "", "a.go": "a.go", "/a.go": "/a.go", "b/a.go": "b/a.go", "/b/a.go": "b/a.go", "c/b/a.go": "b/a.go", "b/": "b/"} {
		if got := shortPath(file); got != want {
			t.Errorf("shortPath(%q) = %q, want %q", file, got, want)
		}
	}
}
