package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestPace(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		live, other   int64
		percent       int
		least, memory int64
	}{
		{0, mib, 200, 9 * mib, 14 * mib},
		{4 * mib, 4 * mib, 100, 16 * mib, 21 * mib},
		{16 * mib, 4 * mib, 51, 28 * mib, 33 * mib},
		{200 * mib, 10 * mib, 7, 222 * mib, 235 * mib},
		{4096 * mib, 100 * mib, 7, 4452 * mib, 4600 * mib},
	} {
		percent, memory := pace(tt.live, tt.other)
		if percent != tt.percent || memory < tt.least || memory > tt.memory {
			t.Errorf("%d live, %d others: %d percent, %d bytes; want %d and %d to %d", tt.live, tt.other, percent, memory, tt.percent, tt.least, tt.memory)
		}
		if goal := tt.live + tt.live*int64(percent)/100; goal+tt.other > memory {
			t.Errorf("%d live, %d others: the limit %d is below the goal %d", tt.live, tt.other, memory, goal)
		}
	}
}

// TestEnvironmentPacesTheCollector: settings of the environment stay.
func TestEnvironmentPacesTheCollector(t *testing.T) {
	percent, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(math.MaxInt64/2)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		paceCollector(func(asked string) string {
			if asked == name {
				return "77"
			}
			return ""
		})
		if p, l := debug.SetGCPercent(77), debug.SetMemoryLimit(-1); p != 77 || l != math.MaxInt64/2 {
			t.Errorf("with %s: %d percent, limit %d", name, p, l)
		}
	}
}

// TestCollectorIsPaced expects settings that the pacer has noted, within the limit of the
// process.
func TestCollectorIsPaced(t *testing.T) {
	percent, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(math.MaxInt64)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	for _, most := range []int64{math.MaxInt64, 1 << 40, 12 << 20} {
		debug.SetGCPercent(77)
		debug.SetMemoryLimit(math.MaxInt64)
		p := &pacer{limit: most}
		p.adjust()
		if got, soft := debug.SetGCPercent(p.percent), debug.SetMemoryLimit(-1); got != p.percent || soft != p.soft || got < 1 || got > startPercent || soft <= minGrowth || soft > min(most, 1<<39) {
			t.Errorf("limit %d: %d percent and %d bytes, noted are %d and %d", most, got, soft, p.percent, p.soft)
		}
	}
}
