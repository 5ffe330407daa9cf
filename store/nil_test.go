package store_test

import (
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

func TestNilHandlesTakeWrites(t *testing.T) {
	var c *store.Counter
	c.Inc()
	c.Add(2)
	var g *store.Gauge
	g.Set(1)
	g.Add(2)
	g.Sub(1)
	g.Inc()
	g.Dec()
	var f *store.FloatGauge
	if err := f.Set(1); err != nil {
		t.Error(err)
	}
	if err := f.Add(1); err != nil {
		t.Error(err)
	}
	if err := f.Set(math.Inf(1)); err == nil {
		t.Error("a nil gauge was set to infinity without an error")
	}
	var s *store.TextReadout
	s.Set("x")
	if c.Value() != 0 || c.Total() != 0 || g.Value() != 0 || f.Value() != 0 || s.Value() != "" {
		t.Errorf("nil handles have the values %d, %d, %d, %v, %q", c.Value(), c.Total(), g.Value(), f.Value(), s.Value())
	}
}
