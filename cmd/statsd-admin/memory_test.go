package main

import (
	"io/fs"
	"math"
	"runtime/debug"
	"testing"
)

// TestEnvironmentMemory: only a limit of the environment counts, as the runtime read it.
func TestEnvironmentMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, tt := range []struct {
		variable    string
		limit, want int64
	}{{"", 1 << 30, 0}, {"1GiB", 1 << 30, 1 << 30}, {"off", math.MaxInt64, 0}} {
		debug.SetMemoryLimit(tt.limit)
		if got := environmentMemory(func(string) string { return tt.variable }); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.variable, got, tt.want)
		}
	}
}

func TestContainerMemory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing-known", nil, 0},
		{"no-limit", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"own", map[string]string{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "1000\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 1000},
		{"of-the-parent", map[string]string{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "5000\n", "/sys/fs/cgroup/a/memory.max": "2000\n"}, 2000},
		{"in-a-container", map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "3000\n"}, 3000},
		{"older", map[string]string{"/proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n", "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4000\n"}, 4000},
		{"older-no-limit", map[string]string{"/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"malformed-first", map[string]string{"/proc/self/cgroup": "x\n1:2\n0::/a\n", "/sys/fs/cgroup/a/memory.max": "1000\n"}, 1000},
		{"nonsense", map[string]string{"/proc/self/cgroup": "x\n0::../..\n", "/sys/fs/cgroup/memory.max": "-3"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := containerMemory(func(name string) ([]byte, error) {
				if s, ok := tt.files[name]; ok {
					return []byte(s), nil
				}
				return nil, fs.ErrNotExist
			})
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestMemoryIsLimited expects nine tenths of the container's memory, unless the
// environment sets a limit.
func TestMemoryIsLimited(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, tt := range []struct {
		environment, group string
		want               int64
	}{{"", "1099511627776", 989560464993}, {"2TiB", "1099511627776", 1 << 50}, {"", "max", 1 << 50}} {
		debug.SetMemoryLimit(1 << 50)
		getenv := func(name string) string {
			if name == "GOMEMLIMIT" {
				return tt.environment
			}
			return ""
		}
		limitMemory(getenv, func(name string) ([]byte, error) {
			if name == "/proc/self/cgroup" {
				return []byte("0::/\n"), nil
			}
			return []byte(tt.group + "\n"), nil
		})
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("GOMEMLIMIT=%s in a container of %s bytes: limit %d, want %d", tt.environment, tt.group, got, tt.want)
		}
	}
}
