package statsd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/cgroup"
)

// availableMemory returns the memory that the process can use, in bytes: the
// limit of its control group (version 2 or 1) or the memory of the machine,
// whichever is less. It returns 0 if neither is known.
func availableMemory() int64 { return memoryLimit("/") }

// memoryLimit is availableMemory for a file system below root.
func memoryLimit(root string) int64 {
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
	least := cgroup.Memory(read)
	info, _ := read("/proc/meminfo") // absent on other systems
	for l := range strings.Lines(string(info)) {
		text, _ := strings.CutPrefix(l, "MemTotal:")
		if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64); err == nil && (least == 0 || kib<<10 < least) {
			least = kib << 10
		}
	}
	return least
}
