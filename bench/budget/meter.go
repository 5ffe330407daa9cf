package budget

import (
	"testing"
	"time"
)

// Meter measures the processor time that a benchmark takes, of all its
// goroutines together. Unlike time on the clock it hardly depends on what else
// the machine does. Collections of garbage are part of it.
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

// StartMeter returns a meter that is running. Call it after the set-up.
func StartMeter(b *testing.B) *Meter {
	m := &Meter{b: b}
	m.Start()
	return m
}

// Start goes on after Stop.
func (m *Meter) Start() {
	if !m.running {
		m.running, m.started = true, processTime()
	}
}

// Stop leaves out what comes until Start.
func (m *Meter) Stop() {
	if m.running {
		m.sum, m.running = m.sum+processTime()-m.started, false
	}
}

// Report stops the meter and reports nanoseconds in unit for each of the parts
// that an operation of the benchmark has. Where the system does not tell the
// time of a process it reports nothing.
func (m *Meter) Report(unit string, parts int) {
	m.Stop()
	if m.sum > 0 {
		m.b.ReportMetric(float64(m.sum.Nanoseconds())/float64(m.b.N)/float64(parts), unit)
	}
}
