package hdr_test

import (
	"bytes"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/hdr"
)

func ExampleFrom() {
	layout, _ := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds})
	h := histogram.New(layout)
	h.RecordN(12, 99)
	h.Record(150)
	converted := hdr.From(h.Merge().Interval)
	fmt.Println(converted.TotalCount(), converted.ValueAtQuantile(50), converted.ValueAtQuantile(100))
	// Output: 100 12 150
}

// A histogram log holds one line for each interval.
func ExampleFrom_log() {
	layout, _ := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds})
	h := histogram.New(layout)
	h.Record(12)
	h.Record(150)
	interval := hdr.From(h.Merge().Interval)
	interval.SetStartTimeMs(1_000)
	interval.SetEndTimeMs(6_000)
	interval.SetTag("db.query")

	var file bytes.Buffer
	log := hdrhistogram.NewHistogramLogWriter(&file)
	_ = log.OutputLogFormatVersion()
	_ = log.OutputIntervalHistogram(interval)

	read, err := hdrhistogram.NewHistogramLogReader(&file).NextIntervalHistogram()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Tag(), read.TotalCount(), read.Max())
	// Output: db.query 2 150
}

func ExampleRecord() {
	theirs := hdrhistogram.New(1, 3_600_000, 2)
	_ = theirs.RecordValues(42, 7)
	layout, _ := histogram.NewLayout(histogram.Config{})
	ours := histogram.New(layout)
	hdr.Record(ours, theirs)
	s := ours.Merge().Cumulative
	fmt.Println(s.Count(), s.Sum())
	// Output: 7 294
}
