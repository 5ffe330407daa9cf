package profiler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readable checks a profile with the tool that users read it with.
func readable(t *testing.T, path string) {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-raw", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Samples:") {
		t.Errorf("go tool pprof: %v\n%.400s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o, want 600", info.Mode().Perm())
	}
}

func TestCPU(t *testing.T) {
	p := NewCPU(filepath.Join(t.TempDir(), "cpu.prof"))
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("Stop of an idle profiler: %v, %v", ok, err)
	}
	if ok, err := p.Start(); !ok || err != nil {
		t.Fatalf("Start: %v, %v", ok, err)
	}
	if ok, err := p.Start(); ok || err != nil {
		t.Errorf("second Start: %v, %v", ok, err)
	}
	if ok, err := p.Stop(); !ok || err != nil {
		t.Errorf("Stop: %v, %v", ok, err)
	}
	readable(t, p.Path())
}

func TestHeap(t *testing.T) {
	p := NewHeap(filepath.Join(t.TempDir(), "heap.prof"))
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("Stop of an idle profiler: %v, %v", ok, err)
	}
	if ok, err := p.Start(); !ok || err != nil {
		t.Fatalf("Start: %v, %v", ok, err)
	}
	if ok, err := p.Start(); ok || err != nil {
		t.Errorf("second Start: %v, %v", ok, err)
	}
	if ok, err := p.Stop(); !ok || err != nil {
		t.Errorf("Stop: %v, %v", ok, err)
	}
	readable(t, p.Path())
}

func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if ok, err := NewCPU(link).Start(); ok || err == nil {
		t.Errorf("CPU profile through a link: %v, %v", ok, err)
	}
	if ok, err := NewHeap(link).Start(); ok || err == nil {
		t.Errorf("heap profile through a link: %v, %v", ok, err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the file behind the link now holds %q", b)
	}
}

func TestUnwritablePath(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no", "such", "dir.prof")
	p := NewCPU(missing)
	if ok, err := p.Start(); ok || err == nil {
		t.Errorf("CPU: %v, %v", ok, err)
	}
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("a failed start left the profiler running: %v, %v", ok, err)
	}
	if ok, err := NewHeap(missing).Start(); ok || err == nil {
		t.Errorf("heap: %v, %v", ok, err)
	}
}
