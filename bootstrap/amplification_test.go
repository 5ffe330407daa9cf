//go:build !race

package bootstrap

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

// costly is a configuration file that costs much for its size.
type costly struct {
	name      string
	text      string
	kept      int // most bytes kept per byte of the file
	allocated int // most bytes allocated per byte of the file
}

// costlyFiles returns the files. Comments, which cost least, come first.
func costlyFiles() []costly {
	list := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(item(i))
		}
		return b.String()
	}
	clusters := "static_resources:\n  clusters:\n"
	return []costly{
		{"comments", strings.Repeat("# comment\n", 100_000), 8, 40},
		{"clusters", clusters + list(1000, func(i int) string {
			return fmt.Sprintf("  - {name: c%d}\n", i)
		}), 300, 3000},
		{"hosts", clusters + "  - name: c\n    load_assignment:\n      cluster_name: c\n      endpoints:\n      - lb_endpoints:\n" + list(2000, func(i int) string {
			return fmt.Sprintf("        - {endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 1}}}}\n", i/250, i%250)
		}), 60, 600},
		{"runtime-values", "layered_runtime:\n  layers:\n  - name: l\n    static_layer:\n" + list(5000, func(i int) string {
			return fmt.Sprintf("      k%d: 1\n", i)
		}), 100, 1000},
		{"nested-values", "node: {metadata: " + strings.Repeat("{a: ", 60) + "1" + strings.Repeat("}", 60) + "}\n", 200, 4000},
		{"long-value", "node: {id: " + strings.Repeat("x", 1<<20) + "}\n", 8, 40},
		{"aliases", "node:\n  metadata:\n    a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n" + list(12, func(i int) string {
			return fmt.Sprintf("    a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8))
		}), 200, 4000},
		{"unknown-fields", list(1000, func(i int) string { return fmt.Sprintf("aB%d: 1\n", i) }), 600, 4000},
		{"long-key", strings.Repeat("k", 1<<16) + ": 1\n", 8, 200},
		{"merge-keys", "node:\n  metadata:\n    a: &a {" + list(500, func(i int) string { return fmt.Sprintf("k%d: 1, ", i) }) + "}\n" +
			list(500, func(i int) string { return fmt.Sprintf("    m%d: {<<: *a}\n", i) }), 200, 4000},
	}
}

// TestAmplification reads the costly files and compares the bytes kept and allocated
// with bounds.
func TestAmplification(t *testing.T) {
	for _, tt := range costlyFiles() {
		t.Run(tt.name, func(t *testing.T) {
			read := func() (heap, allocated int) {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc), int(m.TotalAlloc)
			}
			text := []byte(tt.text)
			_, _ = Parse("warm.yaml", []byte("node: {id: n}\n"), Options{})
			heap, allocated := read()
			cfg, err := Parse("large.yaml", text, Options{})
			after, total := read()
			kept, made := (after-heap)/len(text), (total-allocated)/len(text)
			t.Logf("%s: %d bytes: %d kept and %d allocated per byte; error: %.40v", tt.name, len(text), kept, made, err)
			if kept > tt.kept || made > tt.allocated {
				t.Errorf("at most %d and %d bytes are allowed", tt.kept, tt.allocated)
			}
			runtime.KeepAlive(cfg)
			runtime.KeepAlive(text)
		})
	}
}

// BenchmarkAmplification measures the processor time that the costly files take for
// each of their bytes.
func BenchmarkAmplification(b *testing.B) {
	for _, tt := range costlyFiles() {
		b.Run("input="+tt.name, func(b *testing.B) {
			text := []byte(tt.text)
			runtime.GC()
			m := budget.StartMeter(b)
			for b.Loop() {
				_, _ = Parse("large.yaml", text, Options{})
			}
			m.Report("cpu-ns/B", len(text))
		})
	}
}
