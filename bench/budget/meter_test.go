//go:build unix

package budget

import (
	"testing"
	"time"
)

// spin uses some processor time.
func spin(d time.Duration) {
	for end := ProcessTime() + d; ProcessTime() < end; {
	}
}

func TestMeterCountsWhatRuns(t *testing.T) {
	res := testing.Benchmark(func(b *testing.B) {
		m := StartMeter(b)
		for range b.N {
			spin(2 * time.Millisecond)
			m.Stop()
			spin(8 * time.Millisecond)
			m.Start()
		}
		m.Report("cpu-ns/part", 2)
	})
	got := time.Duration(res.Extra["cpu-ns/part"])
	if got < time.Millisecond || got > 3*time.Millisecond {
		t.Errorf("a part takes %v, want a little more than 1ms", got)
	}
}
