package budget

import (
	"math/rand/v2"
	"slices"
)

// State is the result for a bound.
type State uint8

// The states of a bound.
const (
	Held      State = iota // the whole interval is within the bound
	Broken                 // the whole interval is beyond it
	Uncertain              // the bound is inside the interval
	Missing                // the benchmark, its calibration or the unit was not measured
)

// String returns the word for s.
func (s State) String() string { return [...]string{"held", "broken", "uncertain", "missing"}[s] }

// Verdict is the result for one bound. Median, Low and High are absolute, or ratios
// to the calibration if the bound has one.
type Verdict struct {
	Bound
	State     State
	Median    float64 // of the rounds
	Low, High float64 // interval of 95 % around it
	Rounds    int
}

// Failed reports whether the bound counts as broken. If in doubt, the median decides.
func (v Verdict) Failed() bool {
	return v.State == Broken || v.State == Missing || v.State == Uncertain && v.Median > v.Limit
}

// noisySpread is the maximum width of the interval of a broken bound, relative to the
// median, before it is considered noise.
const noisySpread = 0.2

// Noisy reports whether a second measurement could change the verdict.
func (v Verdict) Noisy() bool {
	return v.State == Uncertain || v.State == Broken && v.High-v.Low > noisySpread*v.Median
}

// Over returns the relative excess of the median over the bound: 0.25 for 25 %. It is
// 1 if nothing is allowed, and 0 within the bound.
func (v Verdict) Over() float64 {
	switch {
	case v.Median <= v.Limit:
		return 0
	case v.Limit == 0:
		return 1
	}
	return v.Median/v.Limit - 1
}

// Judge compares each bound of b with the measurements.
func Judge(b *Budget, rounds []Round) []Verdict {
	verdicts := make([]Verdict, len(b.Bounds))
	for i, bound := range b.Bounds {
		verdicts[i] = judge(bound, rounds)
	}
	return verdicts
}

func judge(b Bound, rounds []Round) Verdict {
	v := Verdict{Bound: b, State: Missing}
	var xs []float64
	for _, r := range rounds {
		x, ok := r[b.Benchmark][b.Unit]
		if ok && b.Calibration != "" {
			var by float64
			if by, ok = r[b.Calibration][b.Unit]; by == 0 {
				ok = false
			}
			x /= by
		}
		if ok {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 {
		return v
	}
	v.Rounds = len(xs)
	v.Median, v.Low, v.High = Spread(xs)
	switch {
	case v.High <= b.Limit:
		v.State = Held
	case v.Low > b.Limit:
		v.State = Broken
	default:
		v.State = Uncertain
	}
	return v
}

// resamples is the number of bootstrap draws.
const resamples = 2000

// Spread returns the median of xs, which must not be empty, and its 95 % interval by
// the percentile bootstrap: medians of samples of the same size drawn with
// replacement. The draws are deterministic.
func Spread(xs []float64) (median, low, high float64) {
	r := rand.New(rand.NewPCG(1, uint64(len(xs))))
	medians := make([]float64, resamples)
	draw := make([]float64, len(xs))
	for i := range medians {
		for j := range draw {
			draw[j] = xs[r.IntN(len(xs))]
		}
		medians[i] = middle(draw)
	}
	slices.Sort(medians)
	const tail = resamples * 25 / 1000
	return middle(slices.Clone(xs)), medians[tail], medians[resamples-1-tail]
}

// middle returns the median of xs. It sorts xs.
func middle(xs []float64) float64 {
	slices.Sort(xs)
	n := len(xs)
	if n%2 == 1 {
		return xs[n/2]
	}
	return (xs[n/2-1] + xs[n/2]) / 2
}
