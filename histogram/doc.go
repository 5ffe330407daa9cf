// Package histogram counts values in bins of bounded relative error, without
// locks, and summarizes the last interval and the time since creation.
//
//	layout, err := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds})
//	h := histogram.New(layout)
//	h.Record(12)                       // tens of nanoseconds at most, no allocation
//	h.Merge()                          // once per flush
//	p99 := h.Snapshot().Interval.Quantile(0.99)
//
// The bins are the log-linear bins of HdrHistogram (unit magnitude 0, lowest
// discernible value 1): the values of a bin differ by less than one part in
// 10^digits. Count, sum, minimum, maximum and the number of values at or below
// each configured bound are exact.
//
// Record, RecordFloat and Snapshot can be called at any time from any
// goroutine. Merge calls of one histogram must not overlap. A value recorded
// while Merge runs is counted in exactly one interval, that one or the next. If
// Merge sees its count but not yet its sum, the interval has the nearest sum
// that its bins, minimum and maximum allow, and minimum and maximum are exact
// only to the bin. All cumulative values are exact after a Merge that starts
// once the last Record has returned.
package histogram
