package histogram

import "math"

// Rank returns how many values are at or below v: at least below and at most
// upTo. The two differ only if v is inside a bin, by the values in that bin.
func (s *Stats) Rank(v float64) (below, upTo uint64) {
	if !(v >= s.Min()) { // also for NaN, and without values
		return 0, 0
	}
	if v >= s.Max() {
		return s.count, s.count
	}
	at := s.layout.floor(v)
	s.FixedBins(func(lowest, highest int64, n uint64) bool {
		switch {
		case float64(highest) <= at:
			below += n
			upTo += n
			return true
		case float64(lowest) <= at:
			upTo += n
		}
		return false
	})
	return below, upTo
}

// RelativeError returns the error bound of quantiles: an answer is at most that
// fraction above a recorded value of the rank, and not below it. Values whose fixed
// point form is below 10 to the power of SignificantDigits are exact.
func (l *Layout) RelativeError() float64 { return math.Pow(10, -float64(l.digits)) }
