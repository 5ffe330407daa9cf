package store

import (
	"errors"
	"math"
)

// Gauge is an unsigned whole number that goes up and down, shared by any
// number of goroutines. Its methods take no lock, look up no name and never
// allocate. A nil gauge takes writes, and its value is 0. Values from 2^63 on are
// shown as negative numbers: see [Gauge.Sub].
type Gauge struct {
	_ noCopy
	w word
}

// Set sets the value of g to n.
func (g *Gauge) Set(n uint64) {
	if g != nil {
		g.w.set(n)
	}
}

// Add adds n to g.
func (g *Gauge) Add(n uint64) {
	if g != nil {
		g.w.add(n)
	}
}

// Sub subtracts n from g. If more is subtracted than was added, a bug in the
// caller, the value is shown as a negative number.
func (g *Gauge) Sub(n uint64) { g.Add(-n) }

// Inc adds one to g.
func (g *Gauge) Inc() { g.Add(1) }

// Dec subtracts one from g.
func (g *Gauge) Dec() { g.Sub(1) }

// Value returns the value of g.
func (g *Gauge) Value() uint64 {
	if g == nil {
		return 0
	}
	b, i := g.w.home()
	if b.null {
		return 0
	}
	return b.gauge(i)
}

// FloatGauge is a gauge that can be negative or fractional, like StatsD gauges.
// Any number of goroutines can share it; its methods take no lock, look up no
// name and never allocate. A nil gauge accepts writes, and its value is 0.
type FloatGauge struct {
	_ noCopy
	w word
}

// ErrNotFinite is the error for infinities and NaN, which not every output format
// can represent.
var ErrNotFinite = errors.New("store: gauge value is not a finite number")

// Set sets the value of g to x. It returns [ErrNotFinite], and has no effect, if
// x is not finite.
func (g *FloatGauge) Set(x float64) error {
	if !finite(x) {
		return ErrNotFinite
	}
	if g != nil {
		g.w.set(floatWord(x))
	}
	return nil
}

// Add adds x, which can be negative, to g. It returns [ErrNotFinite], and has no
// effect, if the sum is not finite.
func (g *FloatGauge) Add(x float64) error {
	if g == nil {
		return nil
	}
	for {
		old := g.w.load()
		sum := math.Float64frombits(old) + x
		if !finite(sum) {
			return ErrNotFinite
		}
		if g.w.swapIf(old, floatWord(sum)) {
			return nil
		}
	}
}

// Value returns the value of g.
func (g *FloatGauge) Value() float64 {
	if g == nil {
		return 0
	}
	if b, _ := g.w.home(); b.null {
		return 0
	}
	return math.Float64frombits(g.w.load())
}

// finite reports whether x is neither an infinity nor NaN. It does no arithmetic: a
// difference could be fused with a product in x, which is then not rounded.
func finite(x float64) bool { return x <= math.MaxFloat64 && x >= -math.MaxFloat64 }

// floatWord returns the word for x. Negative zero becomes zero.
func floatWord(x float64) uint64 { return math.Float64bits(x + 0) }
