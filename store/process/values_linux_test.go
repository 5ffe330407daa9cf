package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/process"
)

var began = time.Now()

// status returns a field of /proc/self/status, which is in kilobytes, in bytes.
func status(t *testing.T, field string) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var n float64
		if _, err := fmt.Sscanf(string(line), field+": %f kB", &n); err == nil {
			return n * 1024
		}
	}
	t.Fatalf("no %s", field)
	return 0
}

// TestValuesAreThoseOfTheSystem compares values with other sources.
func TestValuesAreThoseOfTheSystem(t *testing.T) {
	st, remove := registered(t)
	defer remove()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		want, relative float64
	}{
		{"process.max_fds", float64(limit.Cur), 0},
		{"process.virtual_memory_bytes", status(t, "VmSize"), 0.2},
		{"process.resident_memory_bytes", status(t, "VmRSS"), 0.5},
	} {
		if got := value(t, st, tt.name); got < tt.want*(1-tt.relative) || got > tt.want*(1+tt.relative) {
			t.Errorf("%s is %v, want about %v", tt.name, got, tt.want)
		}
	}
	// The clock of the kernel's start has whole seconds.
	if early := began.Sub(time.UnixMilli(int64(value(t, st, "process.start_time_seconds") * 1000))); early < -2*time.Second || early > 10*time.Minute {
		t.Errorf("started %v before its first code ran", early)
	}
}

// TestMemoryAddsUp: the parts of the memory, of one read, add up to the wholes.
func TestMemoryAddsUp(t *testing.T) {
	st, remove := registered(t)
	defer remove()
	v := st.View()
	defer v.Close()
	of := func(name string) float64 {
		c, ok := v.Find("go.memstats." + name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return c.Float()
	}
	inUse, idle, released, all := of("heap_inuse_bytes"), of("heap_idle_bytes"), of("heap_released_bytes"), of("heap_sys_bytes")
	alloc, sys, stacks := of("heap_alloc_bytes"), of("sys_bytes"), of("stack_inuse_bytes")
	if inUse+idle != all || alloc != of("alloc_bytes") || alloc <= 0 || alloc > inUse || released > idle || all+stacks > sys {
		t.Errorf("in use %v, idle %v, released %v, all %v; allocated %v, stacks %v, with all else %v", inUse, idle, released, all, alloc, stacks, sys)
	}
	allocs, frees, objects := of("mallocs_total"), of("frees_total"), of("heap_objects")
	if allocs-frees != objects || objects <= 0 || of("alloc_bytes_total") < alloc || of("next_gc_bytes") <= 0 {
		t.Errorf("%v allocations, %v frees, %v objects, %v bytes so far", allocs, frees, objects, of("alloc_bytes_total"))
	}
}

// TestRefusedMetrics: metrics that the stats matcher rejects are left out, first or between
// others, and any other refusal leaves nothing behind.
func TestRefusedMetrics(t *testing.T) {
	st := store.New(store.Options{})
	st.SetReject(func(name string) bool {
		return name == "process.cpu_seconds_total" || strings.HasPrefix(name, "go.memstats.heap_")
	})
	remove, err := process.Register(st)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"process.cpu_seconds_total": false, "process.resident_memory_bytes": true, "go.memstats.heap_inuse_bytes": false,
		"go.memstats.sys_bytes": true,
	} {
		if got := st.Has(false, name); got != want {
			t.Errorf("%s is there: %t", name, got)
		}
	}
	if v := value(t, st, "go.memstats.sys_bytes"); v <= 0 {
		t.Errorf("a metric behind rejected ones is %v", v)
	}
	remove()
	if st.Has(false, "go.memstats.sys_bytes") {
		t.Error("metrics stay")
	}

	full := store.New(store.Options{MaxStats: 3})
	if _, err := process.Register(full); !errors.Is(err, store.ErrLimit) || !strings.HasPrefix(err.Error(), "process: ") {
		t.Errorf("in a store without room: %v", err)
	}
	for _, name := range []string{"process.cpu_seconds_total", "process.resident_memory_bytes"} {
		if full.Has(false, name) {
			t.Errorf("%s is left in a store without room", name)
		}
	}
}
