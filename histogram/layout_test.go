package histogram_test

import (
	"math"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

func TestLayoutErrors(t *testing.T) {
	tests := []struct {
		name   string
		config histogram.Config
		want   string
	}{
		{"digits-low", histogram.Config{SignificantDigits: -1}, "histogram: significant digits -1 not in [1,5]"},
		{"digits-high", histogram.Config{SignificantDigits: 6}, "histogram: significant digits 6 not in [1,5]"},
		{"scale", histogram.Config{Scale: -10}, "histogram: scale -10 not at least 1"},
		{"unit", histogram.Config{Unit: 9}, "histogram: unit 9 unknown"},
		{"bound-zero", histogram.Config{Bounds: []float64{1, 0}}, "histogram: bound 0 not a positive finite number"},
		{"bound-negative", histogram.Config{Bounds: []float64{-5}}, "histogram: bound -5 not a positive finite number"},
		{"bound-nan", histogram.Config{Bounds: []float64{math.NaN()}}, "histogram: bound NaN not a positive finite number"},
		{"bound-inf", histogram.Config{Bounds: []float64{math.Inf(1)}}, "histogram: bound +Inf not a positive finite number"},
		{"bound-twice", histogram.Config{Bounds: []float64{5, 1, 5}}, "histogram: bound 5 not unique"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := histogram.NewLayout(tt.config)
			if err == nil || err.Error() != tt.want {
				t.Errorf("NewLayout(%+v) = %v, error %v; want error %s", tt.config, l, err, tt.want)
			}
		})
	}
}

func TestLayoutDefaults(t *testing.T) {
	l := newLayout(t, histogram.Config{})
	want := []float64{0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000}
	if got := l.Bounds(); !slices.Equal(got, want) || !slices.Equal(histogram.DefaultBounds(histogram.Unspecified), want) {
		t.Errorf("bounds = %v, want %v", got, want)
	}
	inSeconds := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	if got := newLayout(t, histogram.Config{Unit: histogram.Seconds}).Bounds(); !slices.Equal(got, inSeconds) {
		t.Errorf("bounds in seconds = %v, want %v", got, inSeconds)
	}
	if l.Unit() != histogram.Unspecified || l.SignificantDigits() != 2 {
		t.Errorf("unit %v, digits %d; want unspecified, 2", l.Unit(), l.SignificantDigits())
	}
}

func TestLayoutSortsBoundsAndKeepsTheCallers(t *testing.T) {
	given := []float64{50, 5, 0.5}
	l := newLayout(t, histogram.Config{Bounds: given})
	if got := l.Bounds(); !slices.Equal(got, []float64{0.5, 5, 50}) {
		t.Errorf("bounds = %v, want them ascending", got)
	}
	if !slices.Equal(given, []float64{50, 5, 0.5}) {
		t.Errorf("the caller's slice became %v", given)
	}
}

func TestNoBounds(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Bounds: []float64{}}))
	h.Record(3)
	checkCounts(t, "without bounds", h.Merge().Cumulative)
}

func TestUnitNames(t *testing.T) {
	want := []string{"unspecified", "bytes", "microseconds", "milliseconds", "percent", "seconds", "unknown"}
	for u, name := range want {
		if got := histogram.Unit(u).String(); got != name {
			t.Errorf("Unit(%d) = %q, want %q", u, got, name)
		}
	}
}
