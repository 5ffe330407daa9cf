package lb

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestLoads(t *testing.T) {
	type pr struct{ n, healthy, degraded int }
	tests := []struct {
		name      string
		threshold uint32
		in        []pr
		healthy   []uint32
		degraded  []uint32
		panics    []bool
	}{
		{"all healthy", 50, []pr{{10, 10, 0}, {10, 10, 0}}, []uint32{100, 0}, []uint32{0, 0}, []bool{false, false}},
		{"overprovisioned", 50, []pr{{100, 72, 0}, {100, 100, 0}}, []uint32{100, 0}, []uint32{0, 0}, []bool{false, false}},
		{"spill", 50, []pr{{100, 71, 0}, {100, 100, 0}}, []uint32{99, 1}, []uint32{0, 0}, []bool{false, false}},
		{"spill a lot", 50, []pr{{100, 25, 0}, {100, 100, 0}}, []uint32{35, 65}, []uint32{0, 0}, []bool{false, false}},
		{"normalized", 50, []pr{{100, 25, 0}, {100, 25, 0}}, []uint32{50, 50}, []uint32{0, 0}, []bool{true, true}},
		{"degraded takes the rest", 50, []pr{{10, 6, 0}, {8, 2, 4}}, []uint32{84, 16}, []uint32{0, 0}, []bool{false, false}},
		{"all panic", 50, []pr{{10, 3, 0}, {8, 1, 1}}, []uint32{56, 44}, []uint32{0, 0}, []bool{true, true}},
		{"no panic wanted", 0, []pr{{10, 3, 0}, {8, 1, 1}}, []uint32{56, 22}, []uint32{0, 22}, []bool{false, false}},
		{"nobody, no panic", 0, []pr{{10, 0, 0}, {8, 0, 0}}, []uint32{100, 0}, []uint32{0, 0}, []bool{false, false}},
		{"one percent, no panic wanted", 0, []pr{{100, 1, 0}, {8, 0, 0}}, []uint32{100, 0}, []uint32{0, 0}, []bool{false, false}},
		{"nobody", 50, []pr{{10, 0, 0}, {10, 0, 0}}, []uint32{50, 50}, []uint32{0, 0}, []bool{true, true}},
		{"no hosts", 50, []pr{{0, 0, 0}, {0, 0, 0}}, []uint32{100, 0}, []uint32{0, 0}, []bool{true, true}},
		{"empty first", 50, []pr{{0, 0, 0}, {3, 3, 0}}, []uint32{0, 100}, []uint32{0, 0}, []bool{false, false}},
		{"degraded first, healthy second", 50, []pr{{10, 0, 10}, {10, 5, 0}}, []uint32{0, 70}, []uint32{30, 0}, []bool{false, false}},
		{"thirds", 50, []pr{{10, 10, 0}, {0, 0, 0}, {10, 10, 0}}, []uint32{100, 0, 0}, []uint32{0, 0, 0}, []bool{false, false, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sets []*host.Set
			for p, in := range tt.in {
				sets = append(sets, host.NewSet(uint32(p), mixed(in.n, in.healthy, in.degraded), host.SetOptions{}))
			}
			l := ComputeLoads(sets, tt.threshold)
			if !slices.Equal(l.Healthy, tt.healthy) || !slices.Equal(l.Degraded, tt.degraded) || !slices.Equal(l.Panic, tt.panics) {
				t.Errorf("loads %v %v panic %v, want %v %v %v", l.Healthy, l.Degraded, l.Panic, tt.healthy, tt.degraded, tt.panics)
			}
		})
	}
}

func TestLoadsExcludedHostsLeaveTheDenominator(t *testing.T) {
	hosts := mixed(4, 2, 0)
	for _, h := range hosts[2:] {
		h.SetFlags(status.FailedActiveHC | status.PendingActiveHC)
	}
	backup := mixed(2, 2, 0)
	l := ComputeLoads(priorities(hosts, backup), 50)
	if l.Healthy[0] != 100 {
		t.Errorf("load of P0 = %d, want 100: its new hosts do not count", l.Healthy[0])
	}
	for _, h := range hosts[2:] {
		h.ClearFlags(status.PendingActiveHC)
	}
	if l = ComputeLoads(priorities(hosts, backup), 50); l.Healthy[0] != 70 {
		t.Errorf("load of P0 = %d, want 70: now they count", l.Healthy[0])
	}
}

func TestLoadsWeightedHealth(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, weight(1)), upstreamtest.Host(1, weight(3), flags(status.FailedEDSHealth))}
	sets := []*host.Set{
		host.NewSet(0, hosts, host.SetOptions{WeightedHealth: true, Overprovisioning: 100}),
		plainSet(upstreamtest.Host(2)),
	}
	if l := ComputeLoads(sets, 0); l.Healthy[0] != 25 || l.Healthy[1] != 75 {
		t.Errorf("loads = %v, want [25 75]", l.Healthy)
	}
}

// TestLoadsProperties holds for any health: all traffic goes somewhere, only to
// priorities that have hosts for it, and panic needs a reason.
func TestLoadsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "priorities")
		threshold := uint32(rapid.IntRange(0, 100).Draw(t, "threshold"))
		sets := make([]*host.Set, n)
		any := false
		for p := range sets {
			size := rapid.IntRange(0, 20).Draw(t, "hosts")
			healthy := rapid.IntRange(0, size).Draw(t, "healthy")
			degraded := rapid.IntRange(0, size-healthy).Draw(t, "degraded")
			sets[p] = host.NewSet(uint32(p), mixed(size, healthy, degraded), host.SetOptions{})
			any = any || healthy+degraded > 0
		}
		l := ComputeLoads(sets, threshold)
		var sum uint32
		allPanic := true
		for p := range sets {
			sum += l.Healthy[p] + l.Degraded[p]
			allPanic = allPanic && l.Panic[p]
			if any && !l.Panic[p] && l.Healthy[p] > 0 && len(sets[p].Healthy) == 0 {
				t.Fatalf("P%d has healthy load %d and no healthy host", p, l.Healthy[p])
			}
			if l.Degraded[p] > 0 && len(sets[p].Degraded) == 0 {
				t.Fatalf("P%d has degraded load %d and no degraded host", p, l.Degraded[p])
			}
		}
		if sum != 100 {
			t.Fatalf("loads %v %v sum up to %d", l.Healthy, l.Degraded, sum)
		}
		if threshold == 0 && slices.Contains(l.Panic, true) {
			t.Fatalf("panic %v with threshold 0", l.Panic)
		}
		// The table says what the walk says.
		table := l.table()
		x := rapid.Uint64().Draw(t, "hash")
		if got, want := table[x%100], l.choose(x); got != want {
			t.Fatalf("choice of %d: table %v, walk %v", x, got, want)
		}
	})
}

func TestPanicUsesAllHostsAndIsCounted(t *testing.T) {
	for _, fail := range []bool{false, true} {
		var panics upstreamtest.Count
		hosts := mixed(4, 1, 0)
		b := New(Config{Stats: Stats{HealthyPanic: panics.Counter()}, FailOnPanic: fail, Rand: numbers(0)})
		b.Update(priorities(hosts), nil)
		got := split(b, nil, 8)
		if panics.Value() != 8 {
			t.Errorf("fail=%t: lb_healthy_panic = %d, want 8", fail, panics.Value())
		}
		if fail {
			if got[nil] != 8 {
				t.Errorf("failing on panic: %d of 8 picks found nothing", got[nil])
			}
			continue
		}
		checkSplit(t, got, hosts, 2, 2, 2, 2)
	}
}

func TestDegradedLoadGoesToDegradedHosts(t *testing.T) {
	hosts := mixed(4, 1, 1) // health 35, degraded 35, no panic at 50 percent
	x := uint64(0)
	b := New(Config{Rand: func() uint64 { x++; return x - 1 }})
	b.Update(priorities(hosts), nil)
	// N = 70: 50 healthy, 50 degraded.
	checkSplit(t, split(b, nil, 100), hosts, 50, 50, 0, 0)
}

func TestContextLoadsReplaceThoseOfTheSets(t *testing.T) {
	first, second := mixed(2, 2, 0), []*host.Host{upstreamtest.Host(9)}
	b := New(Config{})
	b.Update(priorities(first, second), nil)
	ctx := &Context{Loads: &Loads{Healthy: []uint32{0, 100}, Degraded: []uint32{0, 0}}}
	checkSplit(t, split(b, ctx, 10), second, 10)
}
