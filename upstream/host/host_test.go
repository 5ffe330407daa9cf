package host

import (
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func testHost(i int, change ...func(*Spec)) *Host {
	s := Spec{Address: config.Address{IP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)}}
	for _, c := range change {
		c(&s)
	}
	return New(s)
}

func at(z string) func(*Spec)         { return func(s *Spec) { s.Locality.Zone = z } }
func with(f status.Flags) func(*Spec) { return func(s *Spec) { s.EDS = f } }
func heavy(w uint32) func(*Spec)      { return func(s *Spec) { s.Weight = w } }

func TestNewHost(t *testing.T) {
	h := testHost(1, with(status.FailedEDSHealth|status.FailedOutlierCheck))
	if h.Flags() != status.FailedEDSHealth {
		t.Errorf("flags %s: only those of an assignment are taken", h.Flags())
	}
	if h.Weight() != 1 || h.SuccessRate() != -1 || h.LocalOriginSuccessRate() != -1 || h.HealthCheckAddress() != h.Address() {
		t.Errorf("weight %d, rates %v %v, check address %s", h.Weight(), h.SuccessRate(), h.LocalOriginSuccessRate(), h.HealthCheckAddress())
	}
	h.SetFlags(status.FailedActiveHC | status.FailedOutlierCheck)
	if got := Replace(h, Spec{}, true).Flags(); got != status.FailedActiveHC {
		t.Errorf("inherited %s", got)
	}
	if got := Replace(h, Spec{}, false).Flags(); got != 0 {
		t.Errorf("inherited %s, want nothing", got)
	}
}

func TestHostChanges(t *testing.T) {
	h := testHost(1, heavy(4))
	for _, tt := range []struct{ set, want uint32 }{{7, 7}, {1, 1}, {0, 1}} {
		if h.SetWeight(tt.set); h.Weight() != tt.want {
			t.Errorf("weight %d after %d", h.Weight(), tt.set)
		}
	}
	if h.SetPriority(3); h.Priority() != 3 {
		t.Errorf("priority %d", h.Priority())
	}
	if h.Metadata() != nil {
		t.Errorf("metadata %v", h.Metadata())
	}
	given := New(Spec{Metadata: config.Metadata{"a": {"b": 1.0}}})
	if m := given.Metadata(); m["a"]["b"] != 1.0 {
		t.Errorf("metadata %v", m)
	}
	if h.SetMetadata(config.Metadata{"c": {}}); len(h.Metadata()) != 1 {
		t.Errorf("metadata %v after a change", h.Metadata())
	}
}

func TestAddresses(t *testing.T) {
	a, b, c := testHost(1).Address(), testHost(2).Address(), testHost(3).Address()
	h := testHost(1)
	before := h.Addresses()
	for _, more := range [][]config.Address{nil, {b, c}, {c}, nil} {
		h.SetAddress(a, config.Address{}, more...)
		if got := h.Addresses(); !slices.Equal(got, append([]config.Address{a}, more...)) || h.Address() != a || h.HealthCheckAddress() != a {
			t.Errorf("addresses %v, want %s and %v", got, a, more)
		}
	}
	h.SetAddress(c, b)
	if h.AddressText() != c.String() || h.HealthCheckAddress() != b || !slices.Equal(before, []config.Address{a}) {
		t.Errorf("moved to %s, checked at %s; what was read before is %v", h.AddressText(), h.HealthCheckAddress(), before)
	}
	if h := New(Spec{Address: a, Additional: []config.Address{b}}); !slices.Equal(h.Addresses(), []config.Address{a, b}) {
		t.Errorf("new host at %v", h.Addresses())
	}
}

func TestStatsOrderAndFloor(t *testing.T) {
	var s Stats
	s.RqActive.Dec()
	s.CxTotal.Inc()
	all := s.All()
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	if !slices.IsSorted(names) || len(names) != 8 {
		t.Errorf("names %v are not in order", names)
	}
	if all[2] != (status.HostStat{Name: "cx_total", Gauge: false, Value: 1}) || all[3] != (status.HostStat{Name: "rq_active", Gauge: true, Value: 0}) {
		t.Errorf("values %v", all)
	}
}

func TestFlagsFromManyGoroutines(t *testing.T) {
	h := testHost(1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				h.SetFlags(1 << i)
				h.ClearFlags(1 << i)
				h.PutFlags(status.EDSStatusDraining, status.Flags(i%2)<<9)
			}
			h.SetFlags(1 << i)
		})
	}
	wg.Wait()
	if h.Flags()&0xff != 0xff {
		t.Errorf("flags %s: some were lost", h.Flags())
	}
}

func TestSet(t *testing.T) {
	hosts := []*Host{
		testHost(0, at("b")), testHost(1, at("a"), with(status.DegradedEDSHealth)), testHost(2, at("c"), with(status.EDSStatusDraining)),
		testHost(3, at("a")), testHost(4, at("b"), with(status.FailedEDSHealth)),
	}
	s := NewSet(1, hosts, SetOptions{Local: config.Locality{Zone: "b"}, KnowLocal: true, LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 3}})
	pick := func(idx ...int) (out []*Host) {
		for _, i := range idx {
			out = append(out, hosts[i])
		}
		return out
	}
	if !slices.Equal(s.Healthy, pick(0, 3)) || !slices.Equal(s.Degraded, pick(1)) || !slices.Equal(s.Excluded, pick(2)) {
		t.Errorf("healthy %d, degraded %d, excluded %d", len(s.Healthy), len(s.Degraded), len(s.Excluded))
	}
	if !s.HasLocal || len(s.Localities) != 3 || s.Localities[0].Locality.Zone != "b" || s.Localities[1].Locality.Zone != "a" || s.Localities[2].Locality.Zone != "c" {
		t.Fatalf("localities %+v", s.Localities)
	}
	if a := s.Localities[1]; a.Weight != 3 || !slices.Equal(a.Hosts, pick(1, 3)) || !slices.Equal(a.Healthy, pick(3)) || !slices.Equal(a.Degraded, pick(1)) {
		t.Errorf("locality a: %+v", a)
	}
	if s.Overprovisioning != 140 || !s.LocalityWeighted {
		t.Errorf("factor %d, weighted %t", s.Overprovisioning, s.LocalityWeighted)
	}

	// A subset sees what the set saw, whatever happened since.
	hosts[0].SetFlags(status.FailedActiveHC)
	sub := s.Subset([]int{0, 1}, nil)
	if !slices.Equal(sub.Healthy, pick(0)) || sub.LocalityWeighted || len(sub.Localities) != 2 {
		t.Errorf("subset: healthy %d, weighted %t, %d localities", len(sub.Healthy), sub.LocalityWeighted, len(sub.Localities))
	}
	sub = s.Subset([]int{1, 3}, func(l config.Locality, n int) uint32 { return uint32(n) * 10 })
	if !sub.LocalityWeighted || sub.Localities[0].Weight != 20 || sub.HasLocal {
		t.Errorf("weighted subset: %+v", sub.Localities)
	}
}

// TestSetWithOneLocality: the locality shares the lists of the set.
func TestSetWithOneLocality(t *testing.T) {
	for _, know := range []bool{true, false} {
		s := NewSet(0, []*Host{testHost(0, at("b")), testHost(1, at("b"), heavy(4))}, SetOptions{Local: config.Locality{Zone: "b"}, KnowLocal: know})
		if s.HasLocal != know || len(s.Localities) != 1 || len(s.Localities[0].Healthy) != 2 || &s.Localities[0].Hosts[0] != &s.Hosts[0] || Weight(s.Hosts) != 5 {
			t.Errorf("know=%t: %+v", know, s)
		}
	}
	if s := NewSet(0, nil, SetOptions{}); len(s.Localities) != 0 || s.HasLocal {
		t.Errorf("empty: %+v", s)
	}
}

func TestCanaryChanges(t *testing.T) {
	h := testHost(1, func(s *Spec) { s.Canary = true })
	for _, want := range []bool{true, false, true} {
		if h.SetCanary(want); h.Canary() != want {
			t.Errorf("canary %t, want %t", h.Canary(), want)
		}
	}
	if testHost(1).Canary() {
		t.Error("a host is a canary by default")
	}
}

// TestLocalitiesAreInOrder: the local one is first if there are hosts in it, the others
// follow by name, whatever the order of the hosts.
func TestLocalitiesAreInOrder(t *testing.T) {
	for _, tt := range []struct {
		local string
		know  bool
		want  string
	}{
		{"c", true, "cabd"}, {"d", true, "dabc"}, {"a", true, "abcd"}, {"z", true, "abcd"}, {"c", false, "abcd"},
	} {
		for _, order := range []string{"abcd", "dcba", "bdac", "cadb"} {
			var hosts []*Host
			for i, z := range order {
				hosts = append(hosts, testHost(i, at(string(z))))
			}
			s := NewSet(0, hosts, SetOptions{Local: config.Locality{Zone: tt.local}, KnowLocal: tt.know})
			got := ""
			for _, l := range s.Localities {
				got += l.Locality.Zone
			}
			if got != tt.want || s.HasLocal != (tt.know && tt.local != "z") {
				t.Errorf("hosts in %s, local %s (known: %t): %s, want %s; has a local one: %t", order, tt.local, tt.know, got, tt.want, s.HasLocal)
			}
		}
	}
}

// codeMonitor counts reports.
type codeMonitor struct{ codes, results int }

func (m *codeMonitor) PutCode(int)           { m.codes++ }
func (m *codeMonitor) PutResult(Result, int) { m.results++ }

// TestMonitorIsRemoved: after SetMonitor(nil) reports go nowhere.
func TestMonitorIsRemoved(t *testing.T) {
	h, m := testHost(1), &codeMonitor{}
	h.ReportCode(200)
	h.SetMonitor(m)
	h.ReportCode(200)
	h.SetMonitor(nil)
	h.ReportCode(200)
	if m.codes != 1 {
		t.Errorf("%d reports, want 1", m.codes)
	}
}
