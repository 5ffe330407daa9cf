package store

import "github.com/statsd-admin/statsd-admin/histogram"

// Kind is the type of a stat. A name has one kind.
type Kind uint8

// The kinds of stats.
const (
	KindCounter Kind = iota
	KindGauge
	KindText
	KindHistogram

	kinds = 4
)

// String returns "counter", "gauge", "text readout" or "histogram".
func (k Kind) String() string {
	if k >= kinds {
		return "unknown kind"
	}
	return [kinds]string{"counter", "gauge", "text readout", "histogram"}[k]
}

// Word is the word for k inside names and in JSON: "counter", "gauge", "text" or
// "histogram".
func (k Kind) Word() string {
	if k == KindText {
		return "text"
	}
	return k.String()
}

// ImportMode determines how a gauge combines with that of the parent process at
// a hot restart, and whether it is shown.
type ImportMode uint8

const (
	// Accumulate adds the parent's value to the gauge's own.
	Accumulate ImportMode = iota
	// NeverImport ignores the parent's value.
	NeverImport
	// Uninitialized is the mode of a gauge that only the parent has set. The
	// gauge gets its mode when it is created here.
	Uninitialized
	// HiddenAccumulate is Accumulate for a gauge that output omits unless
	// hidden gauges are requested. It bypasses the stats matcher.
	HiddenAccumulate
)

// Unit is the unit of a histogram's values.
type Unit = histogram.Unit

// The units of histograms.
const (
	Unspecified  = histogram.Unspecified
	Bytes        = histogram.Bytes
	Microseconds = histogram.Microseconds
	Milliseconds = histogram.Milliseconds
	Percent      = histogram.Percent
	Seconds      = histogram.Seconds
)

// Histogram records a distribution of values; see package histogram for the cost
// and guarantees of recording. Output shows its state as of the last flush. A nil
// histogram, unlike the nil handles of other kinds, must not be used.
type Histogram = histogram.Histogram
