// Package cgroup reads the limits of the control groups of this process, versions 1
// and 2.
package cgroup

import (
	"math"
	"path"
	"strconv"
	"strings"
)

// Memory returns the memory limit of the groups and of their parents in bytes, 0 if
// there is none or it is unknown. read returns the contents of a file.
func Memory(read func(name string) ([]byte, error)) (least int64) {
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	least = math.MaxInt64
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // id:controllers:path
		if len(part) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if part[0] != "0" { // version 1 has a tree for each kind of limit
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
	if least > 1<<50 { // no limit, in version 1
		return 0
	}
	return least
}
