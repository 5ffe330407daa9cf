package main

import (
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryVariable is the variable with the memory limit of Go programs.
const memoryVariable = "GOMEMLIMIT"

// environmentMemory returns the memory limit that the environment sets, 0 if it sets
// none.
func environmentMemory(getenv func(string) string) int64 {
	if n := debug.SetMemoryLimit(-1); getenv(memoryVariable) != "" && n < math.MaxInt64 {
		return n // as the runtime has read it
	}
	return 0
}

// limitMemory sets the memory limit of the garbage collector to 90 % of the memory
// of the process, unless the environment sets one.
func limitMemory(getenv func(string) string, read func(string) ([]byte, error)) {
	if getenv(memoryVariable) != "" {
		return
	}
	if n := containerMemory(read); n > 0 {
		debug.SetMemoryLimit(n / 10 * 9)
	}
}

// containerMemory returns the memory limit of the control groups of this process in
// bytes, or 0 if it is unlimited or unknown.
func containerMemory(read func(string) ([]byte, error)) (least int64) {
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	least = math.MaxInt64
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if part[0] != "0" { // the older form has a tree for each kind of limit
			if part[1] != "memory" {
				continue
			}
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + part[2]); ; dir = path.Dir(dir) {
			if b, err := read(path.Join(root, dir, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 { // or it is "max"
					least = min(least, n)
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	if least > 1<<50 { // no limit, in the older form
		return 0
	}
	return least
}
