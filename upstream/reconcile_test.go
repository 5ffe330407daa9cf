package upstream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func inZone(z string) func(*host.Spec)    { return func(s *host.Spec) { s.Locality.Zone = z } }
func weighing(w uint32) func(*host.Spec)  { return func(s *host.Spec) { s.Weight = w } }
func eds(f status.Flags) func(*host.Spec) { return func(s *host.Spec) { s.EDS = f } }
func unchecked(s *host.Spec)              { s.DisableActiveHC = true }
func checkedAt(i int) func(*host.Spec) {
	return func(s *host.Spec) { s.HealthCheckAddress = spec(i).Address }
}
func tagged(v string) func(*host.Spec) {
	return func(s *host.Spec) { s.Metadata = config.Metadata{"proxy.lb": {"v": v}} }
}

func TestReconcile(t *testing.T) {
	checked := rules{checked: true}
	passing := func(h *host.Host) { h.ClearFlags(status.FailedActiveHC | status.PendingActiveHC) }
	type kept int // wanted: the same object as old host number n, or new
	const fresh kept = -1
	tests := []struct {
		name           string
		r              rules
		old            []host.Spec
		touch          func(old []*host.Host)
		want           []host.Spec
		hosts          []kept
		flags          []status.Flags
		added, removed int
		changed        bool
	}{
		{"new", rules{}, nil, nil, []host.Spec{spec(1), spec(2)}, []kept{fresh, fresh}, []status.Flags{0, 0}, 2, 0, true},
		{"new, checked", checked, nil, nil, []host.Spec{spec(1), spec(2, unchecked)}, []kept{fresh, fresh}, []status.Flags{status.FailedActiveHC, 0}, 2, 0, true},
		{"new, checked, ignored until then", rules{checked: true, ignoreNew: true}, nil, nil, []host.Spec{spec(1)}, []kept{fresh}, []status.Flags{status.FailedActiveHC | status.PendingActiveHC}, 1, 0, true},
		{"twice", rules{}, nil, nil, []host.Spec{spec(1, weighing(3)), spec(1)}, []kept{fresh}, nil, 1, 0, true},
		{"same", rules{}, []host.Spec{spec(1), spec(2)}, nil, []host.Spec{spec(1), spec(2)}, []kept{0, 1}, nil, 0, 0, false},
		{"weight", rules{}, []host.Spec{spec(1)}, nil, []host.Spec{spec(1, weighing(2))}, []kept{0}, nil, 0, 0, true},
		{"metadata", rules{}, []host.Spec{spec(1, tagged("1"))}, nil, []host.Spec{spec(1, tagged("2"))}, []kept{0}, nil, 0, 0, true},
		{"same metadata", rules{}, []host.Spec{spec(1, tagged("1"))}, nil, []host.Spec{spec(1, tagged("1"))}, []kept{0}, nil, 0, 0, false},
		{"eds health", rules{}, []host.Spec{spec(1)}, nil, []host.Spec{spec(1, eds(status.FailedEDSHealth))}, []kept{0}, []status.Flags{status.FailedEDSHealth}, 0, 0, true},
		{"eds health of a host that fails already", checked, []host.Spec{spec(1)}, nil, []host.Spec{spec(1, eds(status.FailedEDSHealth))}, []kept{0}, []status.Flags{status.FailedActiveHC | status.FailedEDSHealth}, 0, 0, false},
		{"draining in place of unhealthy leaves the denominators", rules{}, []host.Spec{spec(1, eds(status.FailedEDSHealth))}, nil, []host.Spec{spec(1, eds(status.EDSStatusDraining))}, []kept{0}, []status.Flags{status.EDSStatusDraining}, 0, 0, true},
		{"eds health back", rules{}, []host.Spec{spec(1, eds(status.DegradedEDSHealth))}, nil, []host.Spec{spec(1)}, []kept{0}, []status.Flags{0}, 0, 0, true},
		{"gone, not checked", rules{}, []host.Spec{spec(1), spec(2)}, nil, []host.Spec{spec(2)}, []kept{1}, nil, 0, 1, true},
		{"gone, failing", checked, []host.Spec{spec(1), spec(2)}, nil, []host.Spec{spec(2)}, []kept{1}, nil, 0, 1, true},
		{"gone, passing", checked, []host.Spec{spec(1), spec(2)}, func(o []*host.Host) { passing(o[0]) }, []host.Spec{spec(2)}, []kept{1, 0}, []status.Flags{status.FailedActiveHC, status.PendingDynamicRemoval}, 0, 0, true},
		{"gone, ejected only", checked, []host.Spec{spec(1)}, func(o []*host.Host) { passing(o[0]); o[0].SetFlags(status.FailedOutlierCheck) }, nil, []kept{0}, []status.Flags{status.FailedOutlierCheck | status.PendingDynamicRemoval}, 0, 0, true},
		{"gone, passing, health ignored", rules{checked: true, ignoreHealth: true}, []host.Spec{spec(1)}, func(o []*host.Host) { passing(o[0]) }, nil, nil, nil, 0, 1, true},
		{"gone, unchecked host", checked, []host.Spec{spec(1, unchecked)}, nil, nil, nil, nil, 0, 1, true},
		{"gone, unhealthy by eds", checked, []host.Spec{spec(1, eds(status.FailedEDSHealth))}, func(o []*host.Host) { passing(o[0]) }, nil, nil, nil, 0, 1, true},
		{"back again", checked, []host.Spec{spec(1)}, func(o []*host.Host) { passing(o[0]); o[0].SetFlags(status.PendingDynamicRemoval) }, []host.Spec{spec(1)}, []kept{0}, []status.Flags{0}, 0, 0, false},
		{"another locality", rules{}, []host.Spec{spec(1, inZone("a"))}, nil, []host.Spec{spec(1, inZone("b"))}, []kept{fresh}, nil, 1, 1, true},
		{"another locality keeps what checks found", checked, []host.Spec{spec(1, inZone("a"))}, func(o []*host.Host) {
			passing(o[0])
			o[0].SetFlags(status.DegradedActiveHC | status.FailedOutlierCheck)
		}, []host.Spec{spec(1, inZone("b"))}, []kept{fresh}, []status.Flags{status.DegradedActiveHC}, 1, 1, true},
		{"another check address", checked, []host.Spec{spec(1)}, func(o []*host.Host) { passing(o[0]) }, []host.Spec{spec(1, checkedAt(9))}, []kept{fresh}, []status.Flags{status.FailedActiveHC}, 1, 1, true},
		{"another check address without checks", rules{}, []host.Spec{spec(1)}, nil, []host.Spec{spec(1, checkedAt(9))}, []kept{0}, nil, 0, 0, false},
		{"checks switched off", checked, []host.Spec{spec(1)}, nil, []host.Spec{spec(1, unchecked)}, []kept{fresh}, []status.Flags{0}, 1, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := reconcile(nil, hosts(tt.old...).Priorities, tt.r)
			old := first.priorities[0].hosts
			if tt.touch != nil {
				tt.touch(old)
			}
			c := reconcile([][]*host.Host{old}, hosts(tt.want...).Priorities, tt.r)
			pc := c.priorities[0]
			if pc.changed != tt.changed || len(c.added) != tt.added || len(c.removed) != tt.removed {
				t.Errorf("changed %t, added %d, removed %d; want %t, %d, %d", pc.changed, len(c.added), len(c.removed), tt.changed, tt.added, tt.removed)
			}
			if len(pc.hosts) != len(tt.hosts) {
				t.Fatalf("%d hosts, want %d", len(pc.hosts), len(tt.hosts))
			}
			for i, k := range tt.hosts {
				if got := kept(slices.Index(old, pc.hosts[i])); got != k {
					t.Errorf("host %d is old host %d, want %d", i, got, k)
				}
				if tt.flags != nil && pc.hosts[i].Flags() != tt.flags[i] {
					t.Errorf("host %d: %s, want %s", i, pc.hosts[i].Flags(), tt.flags[i])
				}
			}
		})
	}
}

// TestReconcileRepeatedAddresses: an address counts where it is first, and the hosts
// behind its repetition stay.
func TestReconcileRepeatedAddresses(t *testing.T) {
	list := hosts(spec(1), spec(1), spec(2), spec(1), spec(3)).Priorities
	c := reconcile(nil, append(list, hosts(spec(2), spec(4)).Priorities...), rules{})
	if p0, p1 := c.priorities[0], c.priorities[1]; len(p0.hosts) != 3 || len(p1.hosts) != 1 || len(c.added) != 4 {
		t.Errorf("%d and %d hosts, want 3 and 1", len(p0.hosts), len(p1.hosts))
	}
}

func TestReconcileMovesBetweenPriorities(t *testing.T) {
	first := reconcile(nil, hosts(spec(1), spec(2)).Priorities, rules{})
	h := first.priorities[0].hosts[0]
	h.Stats.RqTotal.Inc()
	c := reconcile([][]*host.Host{first.priorities[0].hosts}, []PriorityHosts{{Hosts: []host.Spec{spec(2)}}, {Hosts: []host.Spec{spec(1)}}}, rules{})
	if len(c.added)+len(c.removed) != 0 {
		t.Errorf("cluster: %d added, %d removed, want none", len(c.added), len(c.removed))
	}
	p0, p1 := c.priorities[0], c.priorities[1]
	if len(p0.removed) != 1 || len(p1.added) != 1 || p1.hosts[0] != h || h.Priority() != 1 || h.Stats.RqTotal.Value() != 1 {
		t.Errorf("P0 removed %d, P1 added %d, priority %d", len(p0.removed), len(p1.added), h.Priority())
	}
	// Priorities that are missing are emptied.
	c = reconcile([][]*host.Host{p0.hosts, p1.hosts}, nil, rules{})
	if len(c.removed) != 2 || len(c.priorities) != 2 || len(c.priorities[1].hosts) != 0 {
		t.Errorf("removed %d of 2", len(c.removed))
	}
}

// TestReconcileProperties: without checks the hosts are exactly the wanted ones, in
// their order, and remaining hosts keep their object.
func TestReconcileProperties(t *testing.T) {
	list := rapid.Custom(func(t *rapid.T) []host.Spec {
		var out []host.Spec
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 0, 12, rapid.ID).Draw(t, "hosts") {
			out = append(out, spec(i, weighing(uint32(rapid.IntRange(1, 3).Draw(t, "weight")))))
		}
		return out
	})
	rapid.Check(t, func(t *rapid.T) {
		var old []*host.Host
		for range 4 {
			want := list.Draw(t, "list")
			c := reconcile([][]*host.Host{old}, hosts(want...).Priorities, rules{})
			got := c.priorities[0].hosts
			if len(got) != len(want) {
				t.Fatalf("%d hosts, want %d", len(got), len(want))
			}
			for i, h := range got {
				if h.Address() != want[i].Address || h.Weight() != want[i].Weight {
					t.Fatalf("host %d is %s weight %d, want %+v", i, h.AddressText(), h.Weight(), want[i])
				}
				if slices.Contains(old, h) == slices.Contains(c.added, h) {
					t.Fatalf("host %d is both old and added, or neither", i)
				}
			}
			if len(old)+len(c.added)-len(c.removed) != len(got) {
				t.Fatalf("%d hosts, %d added, %d removed give %d", len(old), len(c.added), len(c.removed), len(got))
			}
			old = got
		}
	})
}

// TestUpdatesChangeCanaries: a host that stays becomes a canary, and no longer is.
func TestUpdatesChangeCanaries(t *testing.T) {
	_, c := started(t, nil, static("c", 1, ""))
	for _, want := range []bool{true, false} {
		s := spec(1)
		s.Canary = want
		before := c.Sets()[0].Hosts[0]
		c.UpdateHosts(0, hosts(s))
		if h := c.Sets()[0].Hosts[0]; h != before || h.Canary() != want {
			t.Errorf("same host %t, canary %t; want canary %t", h == before, h.Canary(), want)
		}
	}
}
