package server_test

import (
	"os"
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
		isProfile(t, path, "cpu/nanoseconds")
	}
}

// isProfile checks with the tool that users have that a file is a profile with
// such samples.
func isProfile(t *testing.T, path, samples string) {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-raw", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), samples) {
		t.Errorf("go tool pprof: %v\n%.400s", err, out)
	}
}

// TestProfilesCanBeRead takes all profiles that the admin port offers.
func TestProfilesCanBeRead(t *testing.T) {
	path, dump := filepath.Join(t.TempDir(), "p.prof"), filepath.Join(t.TempDir(), "dump")
	s := start(t, server.Config{Admin: anyPort(), ProfilePath: path})
	for _, step := range []struct{ request, answer, samples string }{
		{"/heapprofiler?enable=y", "Starting heap profiler", ""},
		{"/heapprofiler?enable=n", "Heap profiler stopped and data written to " + path + ".", "inuse_space"},
		{"/cpuprofiler?enable=y", "OK\n", "inuse_space"},
		{"/cpuprofiler?enable=y", "OK\n", "inuse_space"},
		{"/cpuprofiler?enable=n", "OK\n", "cpu/nanoseconds"},
		{"/cpuprofiler?enable=n", "OK\n", "cpu/nanoseconds"},
	} {
		if r := s.post(t, step.request); r.Status != 200 || string(r.Body) != step.answer {
			t.Errorf("%s: %d %q, want %q", step.request, r.Status, r.Body, step.answer)
		}
		if step.samples != "" {
			isProfile(t, path, step.samples)
		}
	}
	if err := os.WriteFile(dump, []byte(s.get(t, "/heap_dump")), 0o600); err != nil {
		t.Fatal(err)
	}
	isProfile(t, dump, "inuse_space")
}
