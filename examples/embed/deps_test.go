package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoMessagePackages keeps gRPC, YAML and protobuf messages out of programs
// that embed a server without control planes and without a bootstrap file.
func TestNoMessagePackages(t *testing.T) {
	const limit = 40
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	others := 0
	for _, dep := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(dep, "/")
		if !strings.Contains(first, ".") || strings.HasPrefix(dep, "github.com/statsd-admin/statsd-admin/") {
			continue
		}
		others++
		for _, prefix := range []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/envoyproxy/", "github.com/cncf/", "go.yaml.in/"} {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("depends on %s", dep)
			}
		}
	}
	if others > limit {
		t.Errorf("depends on %d packages of other modules, the limit is %d", others, limit)
	}
}
