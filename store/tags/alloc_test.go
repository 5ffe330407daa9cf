//go:build !race

package tags

import "testing"

func TestAllocations(t *testing.T) {
	e := mustNew(t, Config{UseDefaults: true})
	buf, dst := make([]byte, 0, 256), make([]Tag, 0, 8)
	for _, tt := range defaultExtractions {
		var want float64
		if tt.base != tt.name {
			want = 1 // the base name
		}
		if got := testing.AllocsPerRun(20, func() { _, dst = e.Extract(tt.name, dst[:0]) }); got > want {
			t.Errorf("Extract(%q) allocates %v times, want %v", tt.name, got, want)
		}
		if got := testing.AllocsPerRun(20, func() { buf, dst = e.ExtractInto(tt.name, buf[:0], dst[:0]) }); got != 0 {
			t.Errorf("ExtractInto(%q) allocates %v times, want none", tt.name, got)
		}
	}
}
