package main

import (
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
