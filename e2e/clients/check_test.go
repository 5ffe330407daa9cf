package clients

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// checkHistogram checks the count and sum of a histogram in an exposition, and that
// its buckets grow to the count.
func checkHistogram(t *testing.T, exposition, metric, labels string, count, sum float64) {
	t.Helper()
	values := map[string]float64{}
	last, buckets := 0.0, 0
	for line := range strings.Lines(exposition) {
		series, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		values[series] = v
		if strings.HasPrefix(series, metric+"_bucket{"+labels+`,le="`) {
			if v < last {
				t.Errorf("%s: %v after a bucket with %v", series, v, last)
			}
			last, buckets = v, buckets+1
		}
	}
	if got := values[fmt.Sprintf("%s_count{%s}", metric, labels)]; got != count || last != count || buckets < 2 {
		t.Errorf("%s: count %v, last of %d buckets %v, want %v", metric, got, buckets, last, count)
	}
	if got := values[fmt.Sprintf("%s_sum{%s}", metric, labels)]; math.Abs(got-sum) > sum*1e-9 {
		t.Errorf("%s: sum %v, want %v", metric, got, sum)
	}
}

// checkSampled checks a counter with a sample rate of one half. Clients that
// aggregate count before they sample.
func checkSampled(t *testing.T, got, increments float64) {
	t.Helper()
	if int64(got)%2 != 0 || got < increments*7/10 || got > increments*13/10 {
		t.Errorf("a counter sampled at 0.5 is %v after %v increments", got, increments)
	}
}
