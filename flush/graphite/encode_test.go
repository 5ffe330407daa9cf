package graphite

import (
	"maps"
	"testing"
)

// TestNumbersInPackets has lines without a number before lines with one.
func TestNumbersInPackets(t *testing.T) {
	lines := "none\nzero 0 1\na.b 2 1\nx nan 1\nc;t=v 4 1\n"
	got := map[string]uint64{}
	increments([]byte(markCounts+lines), func(key []byte, n uint64) { got[string(key)] += n })
	if want := map[string]uint64{"a.b": 2, "c;t=v": 4}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	increments([]byte(markTimers+lines), func(key []byte, n uint64) { t.Errorf("%s counts %d in timers", key, n) })
	timers := "h.max 9 1\nh.count 2 1\nh.sum 7 1\ni.max;a=b.count 9 1\ni.count;t=v 3 1\nj.count x 1\n"
	if n := observations([]byte(markTimers + timers)); n != 5 {
		t.Errorf("%d observations, want 5", n)
	}
	if n := observations([]byte(markCounts + timers)); n != 0 {
		t.Errorf("%d observations in counters", n)
	}
}
