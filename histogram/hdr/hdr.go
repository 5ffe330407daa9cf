// Package hdr converts histograms to and from HdrHistogram
// ([github.com/HdrHistogram/hdrhistogram-go]) and encodes them in its V2
// compressed form, which the HdrHistogram tools of all languages read.
//
//	h := hdr.From(snapshot.Interval)      // to analyze or merge elsewhere
//	text, err := hdr.Append(nil, stats)   // base64, as in a histogram log
//	hdr.Record(ours, h)                   // and back
//
// # Precision
//
// Both packages use the same bins if the significant digits match and the
// lowest discernible value is 1. From always chooses such a histogram, so each
// count stays in its bin. Three things are lost: the exact minimum, maximum and
// sum, known to HdrHistogram only to the bin, that is to one part in 10^digits;
// the sign of negative values, which count as 0; and counts beyond a total of
// 2^63-1.
//
// Record counts the middle of each bin. If the bins match, counts per bin and
// quantiles do not change. Otherwise a value moves by at most half the width of
// its bin in HdrHistogram before it is counted in a bin of the layout. Minimum,
// maximum, sum and the counts at bounds follow from the recorded values.
//
// # Units
//
// An HdrHistogram holds whole numbers: the fixed-point values of the layout.
// Its integer-to-double conversion ratio, which is part of the encoded form, is
// 1/[histogram.Layout.Divisor], so value × ratio is in shown units. Record
// applies the ratio, and a histogram from elsewhere usually has the ratio 1.
package hdr

import (
	"cmp"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
)

// From returns a copy of the counts of s. The highest trackable value of the
// result is that of the highest bin that has counts, at least 2.
func From(s *histogram.Stats) *hdrhistogram.Histogram {
	top := int64(2)
	s.FixedBins(func(_, highest int64, _ uint64) bool {
		top = max(top, highest)
		return true
	})
	h := hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue:           1,
		HighestTrackableValue:          top,
		SignificantFigures:             int64(s.Layout().SignificantDigits()),
		IntegerToDoubleConversionRatio: 1 / s.Layout().Divisor(),
	})
	s.FixedBins(func(lowest, _ int64, n uint64) bool {
		n = min(n, uint64(math.MaxInt64-h.TotalCount()))
		// Value and count are in range, so there is no error.
		_ = h.RecordValues(max(lowest, 0), int64(n))
		return true
	})
	return h
}

// Record counts the values of from in into. It reads from without changing it.
func Record(into *histogram.Histogram, from *hdrhistogram.Histogram) {
	ratio := cmp.Or(from.Export().IntegerToDoubleConversionRatio, 1)
	factor := ratio * into.Layout().Divisor()
	same := math.Abs(factor-1) < 1e-9
	for _, bar := range from.Distribution() {
		v := bar.From + (bar.To-bar.From)/2
		if !same {
			x := math.Round(float64(v) * factor)
			if !(x < math.MaxInt64) {
				v = math.MaxInt64
			} else {
				v = int64(x)
			}
		}
		into.RecordFixed(v, uint64(bar.Count))
	}
}

// Append appends the V2 compressed form of s in base64, as
// [hdrhistogram.Decode] and histogram logs take it.
func Append(dst []byte, s *histogram.Stats) ([]byte, error) {
	text, err := From(s).EncodeV2()
	return append(dst, text...), err
}

// Encoder encodes many histograms like [Append], but compresses the empty
// histogram of a layout only once. The zero value is ready. It is not safe for
// concurrent use.
type Encoder struct {
	empty map[*histogram.Layout][]byte
}

// Append appends the V2 compressed form of s in base64.
func (e *Encoder) Append(dst []byte, s *histogram.Stats) ([]byte, error) {
	if s.Count() != 0 {
		return Append(dst, s)
	}
	text := e.empty[s.Layout()]
	if text == nil {
		var err error
		if text, err = Append(nil, s); err != nil {
			return dst, err
		}
		if e.empty == nil {
			e.empty = make(map[*histogram.Layout][]byte)
		}
		e.empty[s.Layout()] = text
	}
	return append(dst, text...), nil
}
