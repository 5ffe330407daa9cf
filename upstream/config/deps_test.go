package config_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoMessagePackages keeps protobuf, YAML and gRPC out of programs that
// balance, check and eject hosts without decoding messages.
func TestNoMessagePackages(t *testing.T) {
	const module = "github.com/statsd-admin/statsd-admin/"
	stats := []string{"github.com/cespare/xxhash/", "github.com/grafana/regexp", "golang.org/x/sys/"} // of package store
	tests := map[string][]string{                                                                     // package to the only modules that it needs
		"upstream/config":    nil,
		"upstream/host":      nil,
		"upstream/outlier":   stats,
		"upstream/lb":        stats,
		"upstream/health":    append(stats, "github.com/dlclark/regexp2/", "golang.org/x/"),
		"upstream/discovery": append(stats, "github.com/dlclark/regexp2/", "github.com/fsnotify/", "golang.org/x/"),
		"upstream":           append(stats, "github.com/dlclark/regexp2/", "github.com/fsnotify/", "golang.org/x/"),
	}
	for pkg, may := range tests {
		t.Run(pkg, func(t *testing.T) {
			out, err := exec.Command("go", "list", "-deps", module+pkg).Output()
			if err != nil {
				t.Fatal(err)
			}
			for dep := range strings.Lines(string(out)) {
				dep = strings.TrimSpace(dep)
				first, _, _ := strings.Cut(dep, "/")
				if !strings.Contains(first, ".") || strings.HasPrefix(dep, module) {
					continue
				}
				known := false
				for _, prefix := range may {
					known = known || strings.HasPrefix(dep, prefix)
				}
				if !known {
					t.Errorf("%s depends on %s", pkg, dep)
				}
			}
		})
	}
}
