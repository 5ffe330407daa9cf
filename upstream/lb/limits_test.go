package lb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestNoValuesAreNoCriteria: a request without values asks for no subset.
func TestNoValuesAreNoCriteria(t *testing.T) {
	for _, values := range []map[string]any{nil, {}} {
		if c := NewCriteria(values); c != nil {
			t.Errorf("%v: %+v", values, c)
		}
	}
}

// TestPanicAtTheThreshold has shares of available hosts around the threshold. A share of 100
// percent after overprovisioning never panics.
func TestPanicAtTheThreshold(t *testing.T) {
	for _, tt := range []struct {
		n, healthy, degraded int
		threshold            uint32
		want                 bool
	}{
		{4, 2, 0, 50, false}, {4, 2, 0, 51, true}, {4, 1, 1, 50, false}, {4, 1, 1, 51, true}, {4, 2, 0, 0, false},
		{100, 72, 0, 80, false}, {100, 71, 0, 80, true}, {100, 71, 0, 71, false}, {4, 2, 0, 400, true}, {4, 4, 0, 400, false},
		{0, 0, 0, 1, true}, {0, 0, 0, 0, false},
	} {
		if l := ComputeLoads(priorities(mixed(tt.n, tt.healthy, tt.degraded)), tt.threshold); l.Panic[0] != tt.want {
			t.Errorf("%+v: panic %v", tt, l.Panic[0])
		}
	}
	excluded := mixed(2, 0, 0)
	for _, h := range excluded {
		h.SetFlags(status.FailedActiveHC | status.PendingActiveHC)
	}
	for threshold, want := range map[uint32]bool{0: false, 1: true} {
		if got := panics(plainSet(excluded...), threshold); got != want {
			t.Errorf("all hosts excluded, threshold %d: %v", threshold, got)
		}
	}
}

// TestRoundingErrorsGoToTheFirstShare has shares that do not add up to 100, with a priority
// without hosts first.
func TestRoundingErrorsGoToTheFirstShare(t *testing.T) {
	third := func() []*host.Host { return mixed(100, 20, 0) } // 28 percent after overprovisioning
	l := ComputeLoads(priorities(nil, third(), third(), third()), 0)
	if l.Healthy[0] != 0 || l.Healthy[1] != 34 || l.Healthy[2] != 33 || l.Healthy[3] != 33 {
		t.Errorf("healthy %v", l.Healthy)
	}
	degraded := func() []*host.Host { return mixed(100, 0, 20) }
	l = ComputeLoads(priorities(nil, degraded(), degraded(), degraded()), 0)
	if l.Degraded[0] != 0 || l.Degraded[1] != 34 || l.Degraded[2] != 33 || l.Degraded[3] != 33 {
		t.Errorf("degraded %v", l.Degraded)
	}
	l = ComputeLoads(priorities(nil, mixed(3, 0, 0), mixed(3, 0, 0), mixed(3, 0, 0)), 50) // by count
	if l.Healthy[0] != 0 || l.Healthy[1] != 34 || l.Healthy[2] != 33 || l.Healthy[3] != 33 {
		t.Errorf("by count %v", l.Healthy)
	}
}

// TestLoadsAtTheirEdges draws the first and last number of each share.
func TestLoadsAtTheirEdges(t *testing.T) {
	l := Loads{Healthy: []uint32{0, 30, 20}, Degraded: []uint32{10, 0, 40}}
	for hash, want := range map[uint64]choice{
		0: {1, false, true}, 29: {1, false, true}, 30: {2, false, true}, 49: {2, false, true}, 50: {0, true, true}, 59: {0, true, true},
		60: {2, true, true}, 99: {2, true, true}, 100: {1, false, true}, 130: {2, false, true},
	} {
		if got := l.choose(hash); got != want {
			t.Errorf("%d: %+v, want %+v", hash, got, want)
		}
	}
	if got := (&Loads{Healthy: []uint32{0}, Degraded: []uint32{0}}).choose(7); got.ok {
		t.Errorf("no load: %+v", got)
	}
}

// TestZoneRoutingAtItsEdges has numbers of hosts and draws at each limit.
func TestZoneRoutingAtItsEdges(t *testing.T) {
	in := func(zones string) *host.Set {
		var hosts []*host.Host
		for i, z := range zones {
			hosts = append(hosts, upstreamtest.Host(i, zone(string(z))))
		}
		return host.NewSet(0, hosts, host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true})
	}
	for _, tt := range []struct {
		up, local string
		least     uint64
		routes    bool
		direct    bool
	}{
		{"aabbbb", "ab", 6, true, false}, {"aabbbb", "ab", 7, false, false}, {"aaabbb", "ab", 6, true, true}, {"aabb", "ab", 4, true, true},
		{"aabbb", "ab", 5, true, false}, {"aa", "ab", 1, false, false}, {"aabb", "aa", 1, false, false}, {"bbcc", "ab", 4, true, false},
	} {
		c := Config{Zone: ZoneConfig{MinClusterSize: func() uint64 { return tt.least }}}
		c.complete()
		z := c.routeZones(in(tt.up), in(tt.local))
		if (z != nil) != tt.routes || z != nil && z.direct != tt.direct {
			t.Errorf("%+v: %+v", tt, z)
		}
	}
	z := &zoneRouting{local: 2500, residual: []uint64{0, 10, 10, 30}}
	for draws, want := range map[[2]uint64]int{{2499, 0}: 0, {2500, 0}: 1, {2500, 9}: 1, {2500, 10}: 3, {2500, 29}: 3, {2500, 30}: 1, {9999, 39}: 1, {10000, 5}: 0} {
		n := 0
		c := Config{Rand: func() uint64 { n++; return draws[n-1] }}
		c.complete()
		if got := z.choose(&c); got != want {
			t.Errorf("draws %v: locality %d, want %d", draws, got, want)
		}
	}
}

// TestSlowStartEndsWithItsWindow looks at weights just before and at the end of the window,
// with a scale that was computed at the start.
func TestSlowStartEndsWithItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := []*host.Host{upstreamtest.Host(0), upstreamtest.Host(1)}
		s := slowStart{c: SlowStart{Window: 10 * time.Second}}
		s.update(priorities(hosts[:1]))
		time.Sleep(5 * time.Second)
		s.update(priorities(hosts)) // the first one keeps its age
		one := func(uint32) float64 { return 1 }
		w, slow := s.slows(hosts, one)
		if first, last := w(0), w(1); !slow || first != 0.5 || last != leastFactor {
			t.Errorf("weights %v and %v, slow %v", first, last, slow)
		}
		time.Sleep(10*time.Second - 1)
		if first, last := w(0), w(1); first != 1 || last >= 1 {
			t.Errorf("just before the end: weights %v and %v", first, last)
		}
		if _, slow := s.slows(hosts, one); !slow {
			t.Error("the time of the last update decides, and it was within the window")
		}
		time.Sleep(time.Nanosecond)
		if last := w(1); last != 1 {
			t.Errorf("at the end: weight %v", last)
		}
		s.update(priorities(hosts))
		if _, slow := s.slows(hosts, one); slow {
			t.Error("slow after the window")
		}
		s.update(priorities(hosts[:1]))
		s.update(priorities(hosts))
		if w, slow := s.slows(hosts, one); !slow || w(1) != leastFactor {
			t.Error("a host that came back is as new as at first")
		}
	})
}

// TestLoadsOfARequestWithoutAHost has loads of a request that choose no priority, or a
// priority that the cluster does not have.
func TestLoadsOfARequestWithoutAHost(t *testing.T) {
	for _, policy := range []config.Policy{config.RoundRobinPolicy, config.LeastRequestPolicy, config.RandomPolicy, config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: policy, Ring: config.RingHash{MinimumSize: 8, MaximumSize: 8}, MaglevTableSize: 7})
		b.Update(priorities(mixed(2, 2, 0), mixed(2, 2, 0)), nil)
		for name, l := range map[string]*Loads{
			"none":    {Healthy: []uint32{0, 0}, Degraded: []uint32{0, 0}},
			"unknown": {Healthy: []uint32{0, 0, 100}, Degraded: []uint32{0, 0, 0}},
		} {
			if h := b.Pick(&Context{Loads: l}); h != nil {
				t.Errorf("policy %v, %s: %s", policy, name, h.AddressText())
			}
		}
		if b.Pick(nil) == nil {
			t.Errorf("policy %v: no host by the loads of the cluster", policy)
		}
	}
}
