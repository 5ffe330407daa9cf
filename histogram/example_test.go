package histogram_test

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

func Example() {
	layout, err := histogram.NewLayout(histogram.Config{
		Unit:   histogram.Milliseconds,
		Bounds: []float64{10, 100, 1000},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := histogram.New(layout)
	for _, ms := range []uint64{3, 7, 12, 12, 48} {
		h.Record(ms)
	}
	h.Merge()
	h.Record(150)
	s := h.Merge()
	fmt.Println("interval:", s.Interval.Count(), "median", s.Interval.Quantile(0.5))
	fmt.Println("cumulative:", s.Cumulative.Count(), "median", s.Cumulative.Quantile(0.5), "sum", s.Cumulative.Sum())
	fmt.Println("at or below", layout.Bounds(), "are", s.Cumulative.AppendCumulative(nil))
	// Output:
	// interval: 1 median 150
	// cumulative: 6 median 12 sum 232
	// at or below [10 100 1000] are [2 5 6]
}

// A sampled value counts as often as its weight.
func ExampleHistogram_RecordFloat() {
	layout, _ := histogram.NewLayout(histogram.Config{Scale: 1000, Signed: true})
	h := histogram.New(layout)
	h.RecordFloat(12.5, 1/0.1) // as in the StatsD line "db.query:12.5|ms|@0.1"
	s := h.Merge().Cumulative
	fmt.Println(s.Count(), s.Sum())
	// Output: 10 125
}

func ExampleHistogram_RecordDuration() {
	layout, _ := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds, Scale: 1000})
	h := histogram.New(layout)
	h.RecordDuration(1500 * time.Microsecond)
	h.RecordDuration(2 * time.Second)
	s := h.Merge().Cumulative
	fmt.Println(s.Min(), s.Max())
	// Output: 1.5 2000
}
