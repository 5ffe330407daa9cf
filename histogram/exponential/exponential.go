// Package exponential converts histograms to buckets whose bounds are powers of a
// root of two, the form of Prometheus' native histograms and of OTLP's exponential
// histograms.
//
// Bucket i of schema s covers the values above 2^((i-1)/2^s) and up to 2^(i/2^s).
// Unless the layout of the histogram has a schema, it is the coarsest one whose buckets
// are no wider than the precision of the bins, at most 8. A bin is assigned to the bucket of its lowest value,
// which is exact for bins that hold a single value. Any other value is at most one bin
// above its bucket. So with two significant digits, a quantile that a reader computes from
// the buckets is at most 1.6 % off, with three at most 0.4 %.
package exponential

import (
	"math"
	"slices"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// ZeroThreshold is the largest magnitude in the bucket around zero.
const ZeroThreshold = 0x1p-128

// Bucket is a nonempty bucket.
type Bucket struct {
	Index int32
	Count uint64
}

// Histogram holds the buckets of a histogram. It can be reused.
type Histogram struct {
	Schema             int
	Zero               uint64   // values in the bucket around zero
	Negative, Positive []Bucket // by ascending index
}

// Schema returns the coarsest schema whose buckets are not wider than the precision of
// bins with significant decimal digits, at most 8, the finest that Prometheus knows.
func Schema(digits int) int {
	precision := math.Pow10(-digits)
	schema := 0
	for schema < 8 && math.Exp2(math.Exp2(-float64(schema)))-1 > precision {
		schema++
	}
	return schema
}

// minSchema is the coarsest schema there is.
const minSchema = -4

// Fill sets the buckets to the values of st divided by unit. It uses the schema of the
// layout if that has one, and a coarser one if there would be more buckets than the
// layout allows.
func (h *Histogram) Fill(st *histogram.Stats, unit float64) {
	l := st.Layout()
	schema, most, ok := l.NativeSchema()
	if !ok {
		schema = Schema(l.SignificantDigits())
	}
	h.Schema = schema
	h.Zero, h.Negative, h.Positive = 0, h.Negative[:0], h.Positive[:0]
	st.Bins(func(lower, _ float64, count uint64) bool {
		switch {
		case lower > 0:
			h.Positive = add(h.Positive, index(lower/unit, h.Schema), count)
		case lower < 0:
			h.Negative = add(h.Negative, index(-lower/unit, h.Schema), count)
		default:
			h.Zero += count
		}
		return true
	})
	slices.Reverse(h.Negative)
	for most > 0 && len(h.Negative)+len(h.Positive) > most && h.Schema > minSchema {
		h.Halve()
	}
}

func add(b []Bucket, index int32, count uint64) []Bucket {
	if n := len(b); n > 0 && b[n-1].Index == index {
		b[n-1].Count += count
		return b
	}
	return append(b, Bucket{index, count})
}

// index returns the bucket that holds x > 0.
func index(x float64, schema int) int32 {
	frac, exp := math.Frexp(x)
	if schema < 0 {
		return int32(math.Ceil(math.Ldexp(float64(exp)+math.Log2(frac), schema)))
	}
	return int32(exp<<schema) + int32(math.Ceil(math.Ldexp(math.Log2(frac), schema)))
}

// maxFilledGap empty buckets are listed rather than a new span begun.
const maxFilledGap = 2

// Spans lists buckets in the form of native histograms: it calls span for each run of
// neighbors with its distance from the run before, or from 0, and its length, and delta
// for each bucket in the runs with the difference of its count from the one before.
func Spans(buckets []Bucket, span func(offset int32, length uint32), delta func(int64)) {
	next := int32(0)   // index behind the run before
	before := int64(0) // count of the bucket before
	for i := 0; i < len(buckets); {
		// A run goes on over gaps that are cheaper to fill than to skip.
		end := i + 1
		for end < len(buckets) && buckets[end].Index-buckets[end-1].Index <= maxFilledGap+1 {
			end++
		}
		from, to := buckets[i].Index, buckets[end-1].Index
		span(from-next, uint32(to-from+1))
		next = to + 1
		at := from
		for ; i < end; i++ {
			for ; at < buckets[i].Index; at++ {
				delta(-before)
				before = 0
			}
			count := int64(buckets[i].Count)
			delta(count - before)
			before = count
			at++
		}
	}
}

// Halve merges pairs of neighboring buckets into buckets of the next coarser schema.
func (h *Histogram) Halve() {
	h.Schema--
	h.Negative, h.Positive = halve(h.Negative), halve(h.Positive)
}

func halve(list []Bucket) []Bucket {
	out := list[:0]
	for _, b := range list {
		out = add(out, (b.Index+1)>>1, b.Count)
	}
	return out
}
