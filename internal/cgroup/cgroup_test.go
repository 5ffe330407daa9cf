package cgroup

import (
	"io/fs"
	"testing"
)

func TestMemory(t *testing.T) {
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
			got := Memory(func(name string) ([]byte, error) {
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
