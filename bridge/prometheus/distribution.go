package prometheus

import (
	"fmt"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// decimals is the fixed point of imported histograms: seconds keep microseconds.
const decimals = 1_000_000

// distribution is what a histogram of the gatherer was at the last Refresh.
type distribution struct {
	counts []uint64 // cumulative, by bucket; the last is the total
	sum    float64
}

// distributeLocked records the growth of a histogram since the last Refresh. A histogram
// whose counts fell, or whose buckets changed, has started again from zero. im.mu is held.
func (im *Importer) distributeLocked(name string, labels []tags.Tag, from *dto.Histogram) {
	var bounds []float64
	var counts []uint64
	for _, b := range from.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		bounds = append(bounds, b.GetUpperBound())
		counts = append(counts, uint64(count(b.GetCumulativeCount(), b.GetCumulativeCountFloat())))
	}
	counts = append(counts, uint64(count(from.GetSampleCount(), from.GetSampleCountFloat())))

	k := key(name, labels)
	d := im.histograms[k]
	if d == nil {
		d = new(distribution)
		im.histograms[k] = d
	} else if slices.Equal(counts, d.counts) {
		return
	}
	if len(d.counts) != len(counts) || less(counts, d.counts) {
		d.counts, d.sum = make([]uint64, len(counts)), 0
	}
	grown := make([]uint64, len(counts)) // by bucket, not cumulative
	below := uint64(0)
	for i := range counts {
		n := counts[i] - d.counts[i]
		grown[i] = n - min(n, below)
		below = max(below, n)
	}
	histogram := im.scopeLocked(bounds).Histogram(name, store.Unspecified, labels...)
	for i, v := range spread(bounds, grown, from.GetSampleSum()-d.sum) {
		histogram.RecordFloat(v, float64(grown[i]))
	}
	d.counts, d.sum = counts, from.GetSampleSum()
}

// scopeLocked returns the scope of the histograms with the bounds. im.mu is held.
func (im *Importer) scopeLocked(bounds []float64) *store.Scope {
	k := fmt.Sprint(bounds)
	sc := im.scopes[k]
	if sc == nil {
		form := &store.HistogramForm{Scale: decimals}
		for _, b := range bounds {
			if b > 0 { // a store has no other bounds
				form.Buckets = append(form.Buckets, b)
			}
		}
		sc = im.to.WithHistograms(form)
		im.scopes[k] = sc
	}
	return sc
}

func less(now, before []uint64) bool {
	for i := range now {
		if now[i] < before[i] {
			return true
		}
	}
	return false
}

// spread returns a value inside each bucket so that the values, as often as the buckets
// grew, add up to sum. All lie at the same part of the way between their bounds. Values
// in the last bucket, which has no upper bound, make up for the rest.
func spread(bounds []float64, grown []uint64, sum float64) []float64 {
	last := len(bounds)
	lower := func(i int) float64 {
		switch {
		case i > 0:
			return bounds[i-1]
		case last > 0:
			return min(bounds[0], 0)
		}
		return 0
	}
	least, width := 0.0, 0.0
	for i, n := range grown {
		least += float64(n) * lower(i)
		if i < last {
			width += float64(n) * (bounds[i] - lower(i))
		}
	}
	part := 0.5
	switch rest := sum - least; {
	case !(rest > 0): // or not a number
		part = 0
	case width > 0 && grown[last] == 0:
		part = min(rest/width, 1)
	case width > 0:
		part = min(rest/width, 0.5)
	}
	values := make([]float64, len(grown))
	rest := sum - least - part*width
	for i := range values {
		values[i] = lower(i)
		if i < last {
			// A bound belongs to the bucket below it, so the value stays above its
			// lower bound.
			values[i] += max(part*(bounds[i]-lower(i)), min(1.0/decimals, bounds[i]-lower(i)))
		} else if grown[last] > 0 {
			values[i] += max(rest/float64(grown[last]), 1.0/decimals)
		}
	}
	return values
}
