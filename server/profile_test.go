package server_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
)

// TestProfileOutlivesTheServer checks that a CPU profile that is running at shutdown
// is written and stopped.
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

// isProfile checks with go tool pprof that a file is a profile with the given sample
// types.
func isProfile(t *testing.T, path, samples string) {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-raw", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), samples) {
		t.Errorf("go tool pprof: %v\n%.400s", err, out)
	}
}

// TestProfilesCanBeRead takes every profile that the admin port offers.
func TestProfilesCanBeRead(t *testing.T) {
	path, dump := filepath.Join(t.TempDir(), "p.prof"), filepath.Join(t.TempDir(), "dump")
	s := start(t, server.Config{Admin: anyPort(), ProfilePath: path})
	for _, step := range []struct{ request, answer, samples string }{
		{"/heapprofiler?enable=y", "Starting heap profiler", ""},
		{"/heapprofiler?enable=n", "Heap profiler stopped and data written to " + path + ".", "inuse_space"},
		{"/cpuprofiler?enable=y", "OK\n", "inuse_space"},
		{"/cpuprofiler?enable=y", "OK\nthe CPU profiler was already running\n", "inuse_space"},
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

// TestConcurrentEnable checks that of many concurrent starts of a profiler
// exactly one succeeds.
func TestConcurrentEnable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.prof")
	s := start(t, server.Config{Admin: anyPort(), ProfilePath: path})
	const many = 32
	all := func(target string) map[string]int {
		answers := make(chan string, many)
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				r := s.Admin().Request("POST", target, nil)
				answers <- fmt.Sprintf("%d %s", r.Status, r.Body)
			})
		}
		wg.Wait()
		close(answers)
		got := map[string]int{}
		for a := range answers {
			got[a]++
		}
		return got
	}
	for _, step := range []struct {
		target string
		want   map[string]int
	}{
		{"/heapprofiler?enable=y", map[string]int{"200 Starting heap profiler": 1, "400 Fail to start heap profiler: already started": many - 1}},
		{"/heapprofiler?enable=n", map[string]int{"200 Heap profiler stopped and data written to " + path + ".": 1,
			"400 Fail to stop heap profiler: not started": many - 1}},
		{"/cpuprofiler?enable=y", map[string]int{"200 OK\n": 1, "200 OK\nthe CPU profiler was already running\n": many - 1}},
		{"/cpuprofiler?enable=n", map[string]int{"200 OK\n": many}},
	} {
		if got := all(step.target); !maps.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.target, got, step.want)
		}
	}
}

// TestProfilesThatCannotBeWritten checks that the response reports the failure
// without details of the file system, and that no profiler is left running.
func TestProfilesThatCannotBeWritten(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "p.prof")
	for path, steps := range map[string][]string{
		missing: {
			"/cpuprofiler?enable=y", "500 failure to start the profiler", "/cpuprofiler?enable=n", "200 OK\n",
			"/heapprofiler?enable=y", "500 Fail to start the heap profiler", "/heapprofiler?enable=n", "400 Fail to stop heap profiler: not started",
		},
		"/dev/full": {
			"/cpuprofiler?enable=y", "200 OK\n", "/cpuprofiler?enable=n", "500 failure to write the profile\n", "/cpuprofiler?enable=n", "200 OK\n",
			"/heapprofiler?enable=y", "200 Starting heap profiler", "/heapprofiler?enable=n", "500 failure to write the profile\n",
			"/heapprofiler?enable=n", "400 Fail to stop heap profiler: not started",
		},
	} {
		if path == "/dev/full" {
			if _, err := os.Stat(path); err != nil {
				continue // this system has no device that is always full
			}
		}
		s := start(t, server.Config{Admin: anyPort(), ProfilePath: path})
		for i := 0; i < len(steps); i += 2 {
			r := s.post(t, steps[i])
			if got := fmt.Sprintf("%d %s", r.Status, r.Body); got != steps[i+1] || r.Get("content-type") != "text/plain; charset=UTF-8" {
				t.Errorf("%s with %s: %q, want %q", steps[i], path, got, steps[i+1])
			}
		}
	}
}
