// Package histogram counts values in bins of bounded relative error, from any
// number of goroutines without a lock, and shows what was counted in the last
// interval and since the start.
//
//	layout, err := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds})
//	h := histogram.New(layout)
//	h.Record(12)                       // tens of nanoseconds at most, no allocation
//	h.Merge()                          // once per flush
//	p99 := h.Snapshot().Interval.Quantile(0.99)
//
// Bins are those of HdrHistogram (unit magnitude 0, lowest discernible value
// 1): log-linear, so that any value differs from the others of its bin by less
// than one part in 10^digits. Count, sum, minimum, maximum and the number of
// values at or below each configured bound are exact.
//
// Record, RecordFloat and Snapshot may be called at any time from any
// goroutine. Merge calls of one histogram must not overlap each other. A value
// that is recorded while Merge runs is counted in exactly one interval, that
// one or the next; its share of the sum may land in the interval before its
// count, and the interval's minimum and maximum are then exact only to the bin.
// Once a Merge has run after the last Record, the cumulative figures are exact.
package histogram
