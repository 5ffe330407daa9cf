package jsonlines

import (
	"maps"
	"testing"
)

// TestIncrementsOfMixedPackets has lines of other kinds, and lines that are cut, before
// and between counters and histograms.
func TestIncrementsOfMixedPackets(t *testing.T) {
	packet := `{"time":1,` + typeGauge + `g","value":3}` + "\n" +
		`{"time":1,` + typeCounter + `a","value":7` + keyIncrement + `2}` + "\n" +
		`{"time":1,` + typeHistogram + `h"` + keyCount + `5}` + "\n" +
		`{"time":1,` + typeCounter + `cut` + "\n" +
		`{"time":1,` + typeCounter + `b","value":7` + keyIncrement + `0}` + "\n" +
		`{"time":1,` + typeCounter + `c","value":7` + keyIncrement + `4}` + "\n" +
		`{"time":1,` + typeHistogram + `i"` + keyCount + `6}` + "\n"
	got := map[string]uint64{}
	increments([]byte(packet), func(key []byte, n uint64) { got[string(key)] += n })
	if want := map[string]uint64{`a","value":7`: 2, `c","value":7`: 4}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := observations([]byte(packet)); n != 11 {
		t.Errorf("%d observations, want 11", n)
	}
}
