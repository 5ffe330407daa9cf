package server_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
)

// TestProfileOutlivesTheServer: a CPU profile that is under way when the server
// ends is written, and does not go on in the program around the server.
func TestProfileOutlivesTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.prof")
	for range 2 {
		s := start(t, server.Config{Admin: anyPort(), ProfilePath: path})
		if r := s.post(t, "/cpuprofiler?enable=y"); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "tool", "pprof", "-raw", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "cpu/nanoseconds") {
			t.Errorf("go tool pprof: %v\n%.400s", err, out)
		}
	}
}
