package upstream

import "testing"

func TestRequestsAreDroppedWhenTheAssignmentSaysSo(t *testing.T) {
	var drawn uint64
	r := newRig(t, func(c *Config) { c.Rand = func() uint64 { return drawn } })
	c := r.eds("")
	c.DiscoveryDone()
	tests := []struct {
		percent float64
		drawn   uint64
		want    bool
	}{
		{0, 0, false},
		{25, 249_999, true},
		{25, 1_249_999, true}, // one draw in a million
		{25, 250_000, false},
		{0.0001, 0, true},
		{0.0001, 1, false},
		{100, 999_999, true},
	}
	want := uint64(0)
	for _, tt := range tests {
		a := hosts(spec(1))
		a.DropOverload = tt.percent
		c.UpdateHosts(0, a)
		drawn = tt.drawn
		if got := c.DropRequest(); got != tt.want {
			t.Errorf("%v%%, %d drawn: dropped %t", tt.percent, tt.drawn, got)
		}
		if tt.want {
			want++
		}
	}
	if got := c.DroppedRequests(); got != want {
		t.Errorf("%d dropped, want %d", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { c.DropRequest() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
