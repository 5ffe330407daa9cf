package store

import "github.com/statsd-admin/statsd-admin/histogram"

// Kind tells what a stat is. A name has one kind.
type Kind uint8

// The kinds of stats.
const (
	KindCounter Kind = iota
	KindGauge
	KindText
	KindHistogram

	kinds = 4
)

// String returns the word for k that messages use: "counter", "gauge", "text
// readout" or "histogram".
func (k Kind) String() string {
	switch k {
	case KindCounter:
		return "counter"
	case KindGauge:
		return "gauge"
	case KindText:
		return "text readout"
	case KindHistogram:
		return "histogram"
	}
	return "unknown kind"
}

// word is the word for k inside names: "counter", "gauge", "text" or "histogram".
func (k Kind) word() string {
	if k == KindText {
		return "text"
	}
	return k.String()
}

// ImportMode says what becomes of a gauge's value when a parent process hands
// its values over at a hot restart, and whether the gauge is shown.
type ImportMode uint8

const (
	// Accumulate adds the parent's value to the own one.
	Accumulate ImportMode = iota
	// NeverImport ignores the parent's value.
	NeverImport
	// Uninitialized is the mode of a gauge that only the parent has set so
	// far. It takes on the mode its creation asks for.
	Uninitialized
	// HiddenAccumulate is Accumulate for a gauge that is left out of all
	// output unless hidden ones are asked for. It bypasses the stats matcher.
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
)

// Histogram records a distribution of values; see package histogram for what
// recording costs and promises. What is shown is as of the last flush.
type Histogram = histogram.Histogram
