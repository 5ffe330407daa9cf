package budget

import (
	"testing"
	"time"
)

// Meter measures the processor time of a benchmark over all goroutines, garbage
// collection and a profiler included: with -cpuprofile, short waits cost twice as much.
// Unlike elapsed time it hardly depends on other load.
//
//	m := budget.StartMeter(b)
//	for b.Loop() {
//		...
//	}
//	m.Report("cpu-ns/op", 1)
type Meter struct {
	b       *testing.B
	started time.Duration
	sum     time.Duration
	running bool
}

// StartMeter returns a running meter. Call it after the setup.
func StartMeter(b *testing.B) *Meter {
	m := &Meter{b: b}
	m.Start()
	return m
}

// Start resumes after Stop.
func (m *Meter) Start() {
	if !m.running {
		m.running, m.started = true, ProcessTime()
	}
}

// Stop pauses the meter until Start.
func (m *Meter) Stop() {
	if m.running {
		m.sum, m.running = m.sum+ProcessTime()-m.started, false
	}
}

// Report stops the meter and reports nanoseconds in unit, divided by the number of
// parts per operation. It reports nothing on systems without process times.
func (m *Meter) Report(unit string, parts int) {
	m.Stop()
	if m.sum > 0 {
		m.b.ReportMetric(float64(m.sum.Nanoseconds())/float64(m.b.N)/float64(parts), unit)
	}
}
