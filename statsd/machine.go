package statsd

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory returns the memory that the process can use, in bytes: the
// limit of its control group (version 2 or 1) or the memory of the machine,
// whichever is less. It returns 0 if neither is known.
func availableMemory() int64 { return memoryLimit("/") }

// memoryLimit is availableMemory for a file system below root.
func memoryLimit(root string) int64 {
	least := int64(math.MaxInt64)
	consider := func(text string, unit int64) {
		// "max" and the huge number that version 1 has for no limit are no limits.
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 && n < math.MaxInt64/unit {
			least = min(least, n*unit)
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return ""
		}
		return string(b)
	}
	for l := range strings.Lines(read("proc/meminfo")) {
		if kib, ok := strings.CutPrefix(l, "MemTotal:"); ok {
			consider(strings.TrimSuffix(strings.TrimSpace(kib), " kB"), 1024)
		}
	}
	// Each line is id:controllers:path. A group is also bound by its parents.
	for l := range strings.Lines(read("proc/self/cgroup")) {
		_, l, _ = strings.Cut(strings.TrimSpace(l), ":")
		controllers, group, _ := strings.Cut(l, ":")
		dir, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			if controllers != "memory" {
				continue
			}
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group = filepath.Clean("/" + group); ; group = filepath.Dir(group) {
			consider(read(filepath.Join(dir, group, file)), 1)
			if group == "/" {
				break
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}
