package profiler

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readable checks a profile with go tool pprof.
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
	p, _ := New(filepath.Join(t.TempDir(), "cpu.prof"))
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
	_, p := New(filepath.Join(t.TempDir(), "heap.prof"))
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
	cpu, heap := New(link)
	if ok, err := cpu.Start(); ok || err == nil {
		t.Errorf("CPU profile through a link: %v, %v", ok, err)
	}
	if ok, err := heap.Start(); ok || err == nil {
		t.Errorf("heap profile through a link: %v, %v", ok, err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the file behind the link now holds %q", b)
	}
}

func TestUnwritablePath(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no", "such", "dir.prof")
	p, heap := New(missing)
	if ok, err := p.Start(); ok || err == nil {
		t.Errorf("CPU: %v, %v", ok, err)
	}
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("a failed start left the profiler running: %v, %v", ok, err)
	}
	if ok, err := heap.Start(); ok || err == nil {
		t.Errorf("heap: %v, %v", ok, err)
	}
}

// TestDiskFull writes to a device that is always full. Stop returns the error, and
// the next profile can be started.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	cpu, heap := New("/dev/full")
	for name, p := range map[string]interface {
		Start() (bool, error)
		Stop() (bool, error)
	}{"cpu": cpu, "heap": heap} {
		for range 2 {
			if ok, err := p.Start(); !ok || err != nil {
				t.Fatalf("%s: Start: %v, %v", name, ok, err)
			}
			if _, err := p.Stop(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: Stop: %v", name, err)
			}
			if ok, err := p.Stop(); ok || err != nil {
				t.Errorf("%s: second Stop: %v, %v", name, ok, err)
			}
		}
	}
}

// TestTooLarge checks that a profile over the limit is discarded, and that the file
// keeps its contents.
func TestTooLarge(t *testing.T) {
	l := &profile{limit: 10}
	for _, size := range []int{6, 4} { // exactly the limit
		if n, err := l.Write(make([]byte, size)); n != size || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	for range 2 {
		if n, err := l.Write(make([]byte, 5)); n != 0 || !errors.Is(err, errTooLarge) {
			t.Errorf("%d, %v", n, err)
		}
	}
	p, _ := New(filepath.Join(t.TempDir(), "cpu.prof"))
	if p.out.limit != 256<<20 {
		t.Errorf("a profile may have %d bytes", p.out.limit)
	}
	for _, limit := range []int{maxBytes, 10, maxBytes} {
		p.out.limit = limit
		if ok, err := p.Start(); !ok || err != nil {
			t.Fatalf("Start: %v, %v", ok, err)
		}
		if ok, err := p.Stop(); !ok || (limit == 10) != errors.Is(err, errTooLarge) {
			t.Errorf("Stop at %d bytes: %v, %v", limit, ok, err)
		}
		readable(t, p.Path())
	}
}

// TestOneProfilerAtATime checks that the second profiler of a file is refused until
// the first has written its profile.
func TestOneProfilerAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "both.prof")
	cpu, heap := New(path)
	kind := func(want string) {
		t.Helper()
		readable(t, path)
		out, err := exec.Command("go", "tool", "pprof", "-raw", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("not a profile of %s: %v\n%.400s", want, err, out)
		}
	}
	run := func(f func() (bool, error)) {
		t.Helper()
		if ok, err := f(); !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
	}
	busy := func(f func() (bool, error)) {
		t.Helper()
		if ok, err := f(); ok || !errors.Is(err, ErrBusy) {
			t.Errorf("%v, %v, want ErrBusy", ok, err)
		}
	}
	run(cpu.Start)
	busy(heap.Start)
	run(cpu.Stop)
	kind("cpu/nanoseconds")
	run(heap.Start)
	busy(cpu.Start)
	kind("cpu/nanoseconds")
	run(heap.Stop)
	kind("inuse_space")
	run(cpu.Start)
	run(cpu.Stop)
	kind("cpu/nanoseconds")
}

// TestEndsByItself checks that a CPU profile stops after 10 minutes.
func TestEndsByItself(t *testing.T) {
	p, _ := New(filepath.Join(t.TempDir(), "cpu.prof"))
	var over func()
	p.after = func(d time.Duration, f func()) *time.Timer {
		if d != 10*time.Minute {
			t.Errorf("a profile ends after %v", d)
		}
		over = f
		return time.NewTimer(d)
	}
	if ok, err := p.Start(); !ok || err != nil {
		t.Fatalf("Start: %v, %v", ok, err)
	}
	over()
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("it still runs: %v, %v", ok, err)
	}
	readable(t, p.Path())
	if ok, err := p.Start(); !ok || err != nil {
		t.Errorf("the next one: %v, %v", ok, err)
	}
	late := over
	if ok, err := p.Stop(); !ok || err != nil {
		t.Errorf("Stop: %v, %v", ok, err)
	}
	late() // a late timer has no effect
	if ok, err := p.Start(); !ok || err != nil {
		t.Errorf("one more: %v, %v", ok, err)
	}
	late() // not even on a profile started since
	if ok, err := p.Stop(); !ok || err != nil {
		t.Errorf("it was ended by the timer of another one: %v, %v", ok, err)
	}
}

// TestEndsByItselfOnAFullDisk: who stops a profile that could not be written is told so.
func TestEndsByItselfOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	p, _ := New("/dev/full")
	var over func()
	p.after = func(d time.Duration, f func()) *time.Timer {
		over = f
		return time.NewTimer(d)
	}
	for range 2 { // the error of the first does not outlive the start of the second
		if ok, err := p.Start(); !ok || err != nil {
			t.Fatalf("Start: %v, %v", ok, err)
		}
		over()
	}
	if ok, err := p.Stop(); ok || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Stop: %v, %v", ok, err)
	}
	if ok, err := p.Stop(); ok || err != nil {
		t.Errorf("second Stop: %v, %v", ok, err)
	}
}

// TestPath: both profilers name their file.
func TestPath(t *testing.T) {
	if cpu, heap := New("/a/b"); cpu.Path() != "/a/b" || heap.Path() != "/a/b" {
		t.Errorf("%s, %s", cpu.Path(), heap.Path())
	}
}

// TestProcessIsProfiledAlready: a CPU profile that something else has started is an
// error, and leaves the file to the heap profiler.
func TestProcessIsProfiledAlready(t *testing.T) {
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Skip(err)
	}
	cpu, heap := New(filepath.Join(t.TempDir(), "p.prof"))
	ok, err := cpu.Start()
	pprof.StopCPUProfile()
	if ok || err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("CPU: %t, %v", ok, err)
	}
	if ok, err := heap.Start(); !ok || err != nil {
		t.Errorf("heap: %t, %v", ok, err)
	}
	if ok, err := heap.Stop(); !ok || err != nil {
		t.Errorf("heap: %t, %v", ok, err)
	}
}

// TestStoppedProfilerStops: when Stop has returned, the process can be profiled again.
func TestStoppedProfilerStops(t *testing.T) {
	cpu, _ := New(filepath.Join(t.TempDir(), "p.prof"))
	if ok, err := cpu.Start(); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	if ok, err := cpu.Stop(); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	pprof.StopCPUProfile()
}

// TestOldTimerEndsNoNewProfile: the time limit of a profile that was stopped does not
// end the next one.
func TestOldTimerEndsNoNewProfile(t *testing.T) {
	cpu, _ := New(filepath.Join(t.TempDir(), "p.prof"))
	var ends []func()
	cpu.after = func(_ time.Duration, f func()) *time.Timer {
		ends = append(ends, f)
		return time.NewTimer(time.Hour)
	}
	for range 2 {
		if ok, err := cpu.Start(); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		if len(ends) == 1 {
			if ok, err := cpu.Stop(); !ok || err != nil {
				t.Fatalf("%t, %v", ok, err)
			}
		}
	}
	ends[0]()
	if ok, err := cpu.Start(); ok || err != nil {
		t.Errorf("the second profile has ended: %t, %v", ok, err)
	}
	ends[1]()
	if ok, err := cpu.Stop(); ok || err != nil {
		t.Errorf("the second profile goes on: %t, %v", ok, err)
	}
}
