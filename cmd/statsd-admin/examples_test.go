package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExampleConfigurations keeps the files of examples/bootstrap such that
// they are accepted without a warning once the files exist that they name. They
// may have fields that are called deprecated: these work, and are known best.
func TestExampleConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../examples/bootstrap/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, example := range files {
		t.Run(filepath.Base(example), func(t *testing.T) {
			text, err := os.ReadFile(example)
			if err != nil {
				t.Fatal(err)
			}
			etc := filepath.Dir(write(t, "tokens", "metrics:"+strings.Repeat("0f", 32)+":prometheus\n"))
			file := write(t, "example.yaml", strings.NewReplacer("/etc/statsd-admin", etc, "/var/log/statsd-admin", etc).Replace(string(text)))
			var stdout, stderr bytes.Buffer
			p := program{stdout: &stdout, stderr: &stderr, hardware: 2}
			status := p.run(context.Background(), []string{"--mode", "validate", "-c", file, "--skip-deprecated-logs"})
			if want := "configuration '" + file + "' OK\n"; status != 0 || stdout.String() != want || stderr.String() != "" {
				t.Errorf("status %d\n%s%s", status, stdout.String(), stderr.String())
			}
		})
	}
}
