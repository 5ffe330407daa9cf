package lb

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestScheduleOrder(t *testing.T) {
	weights := []float64{3, 1, 2}
	weight := func(i uint32) float64 { return weights[i] }
	e := newEDF(3, weight)
	var got []uint32
	for range 12 {
		got = append(got, e.next(weight))
	}
	if want := []uint32{0, 2, 0, 1, 2, 0, 0, 2, 0, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestScheduleTiesAreFirstInFirstOut(t *testing.T) {
	one := func(uint32) float64 { return 1 }
	e := newEDF(4, one)
	for i := range uint32(12) {
		if got := e.next(one); got != i%4 {
			t.Fatalf("pick %d = %d, want %d", i, got, i%4)
		}
	}
}

// TestScheduleShares holds for any weights: after any number of picks no item
// is more than one pick away from its fair share, within rounding.
func TestScheduleShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 20).Draw(t, "weights")
		weight := func(i uint32) float64 { return float64(weights[i]) }
		e := newEDF(len(weights), weight)
		sum := 0
		for _, w := range weights {
			sum += w
		}
		got := make([]int, len(weights))
		n := sum * rapid.IntRange(1, 3).Draw(t, "cycles")
		for range n {
			got[e.next(weight)]++
		}
		for i, w := range weights {
			if want := float64(n) * float64(w) / float64(sum); math.Abs(float64(got[i])-want) > 1 {
				t.Fatalf("weights %v: item %d got %d of %d, want %.1f", weights, i, got[i], n, want)
			}
		}
	})
}

func TestRoundRobin(t *testing.T) {
	hosts := weightedHosts(1, 1, 1)
	b := New(Config{Seed: 1})
	b.Update(priorities(hosts), nil)
	for i := range 6 {
		if got := b.Pick(nil); got != hosts[(i+1)%3] {
			t.Fatalf("pick %d is %s", i, got.AddressText())
		}
	}
	// The position survives an update.
	b.Pick(nil)
	b.Update(priorities(hosts), nil)
	if got := b.Pick(nil); got != hosts[2] {
		t.Errorf("after the update: %s, want %s", got.AddressText(), hosts[2].AddressText())
	}
}

func TestWeightedRoundRobinSeesWeightsAtOnce(t *testing.T) {
	hosts := weightedHosts(1, 3)
	b := New(Config{Slots: -1})
	b.Update(priorities(hosts), nil)
	checkSplit(t, split(b, nil, 400), hosts, 100, 300)
	hosts[1].SetWeight(1) // without an update
	b.Pick(nil)
	got := split(b, nil, 400)
	if d := got[hosts[0]] - 200; d < -2 || d > 2 {
		t.Errorf("after the change: %s, want halves", showSplit(got, hosts))
	}
}

// TestWeightedSharesOverSlots takes schedules that belong to scheduler slots:
// each is fair by itself, so their sum is.
func TestWeightedSharesOverSlots(t *testing.T) {
	hosts := weightedHosts(1, 2, 5)
	b := New(Config{})
	b.Update(priorities(hosts), nil)
	const each, goroutines = 8000, 4
	var mu sync.Mutex
	got := make(map[*host.Host]int)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			mine := split(b, nil, each)
			mu.Lock()
			defer mu.Unlock()
			for h, n := range mine {
				got[h] += n
			}
		})
	}
	wg.Wait()
	for i, w := range []int{1, 2, 5} {
		want := goroutines * each * w / 8
		if d := got[hosts[i]] - want; d < -100 || d > 100 {
			t.Errorf("host %d: %d picks, want about %d", i, got[hosts[i]], want)
		}
	}
}

func TestLeastRequestTakesTheLessBusy(t *testing.T) {
	hosts := weightedHosts(1, 1, 1, 1)
	for range 5 {
		hosts[0].Stats.RqActive.Inc()
	}
	hosts[2].Stats.RqActive.Inc()
	tests := []struct {
		choices int
		rand    []uint64 // the first number of a pick chooses the priority
		want    int
	}{
		{2, []uint64{0, 0, 1}, 1},
		{2, []uint64{0, 0, 2}, 2},
		{2, []uint64{0, 0, 0}, 0},
		{3, []uint64{0, 0, 2, 1}, 1},
		{2, []uint64{0, 1, 1}, 1},
	}
	for _, tt := range tests {
		b := New(Config{Policy: config.LeastRequestPolicy, ChoiceCount: tt.choices, Rand: numbers(tt.rand...)})
		b.Update(priorities(hosts), nil)
		if got := b.Pick(nil); got != hosts[tt.want] {
			t.Errorf("choices %d, numbers %v: %s, want host %d", tt.choices, tt.rand, got.AddressText(), tt.want)
		}
	}
	// Of equally busy ones the first drawn stays.
	hosts[1].Stats.RqActive.Inc()
	b := New(Config{Policy: config.LeastRequestPolicy, Rand: numbers(0, 2, 1, 3)})
	b.Update(priorities(hosts), nil)
	if got := b.Pick(nil); got != hosts[2] {
		t.Errorf("tie: %s, want host 2", got.AddressText())
	}
}

func TestWeightedLeastRequest(t *testing.T) {
	tests := []struct {
		bias func() float64
		want [2]int // of 600
	}{
		{nil, [2]int{200, 400}}, // 1/(0+1) against 4/(1+1)
		{func() float64 { return 0 }, [2]int{120, 480}},
		{func() float64 { return 2 }, [2]int{300, 300}},
		{func() float64 { return 0.5 }, [2]int{157, 443}}, // 1 against 4/√2
		{func() float64 { return -1 }, [2]int{200, 400}},
		{math.NaN, [2]int{200, 400}},
		{func() float64 { return 1 }, [2]int{200, 400}},
	}
	for i, tt := range tests {
		hosts := weightedHosts(1, 4)
		hosts[1].Stats.RqActive.Inc()
		b := New(Config{Policy: config.LeastRequestPolicy, ActiveRequestBias: tt.bias, Slots: -1})
		b.Update(priorities(hosts), nil)
		got := split(b, nil, 600)
		if d := got[hosts[0]] - tt.want[0]; d < -1 || d > 1 {
			t.Errorf("case %d: %s, want %v", i, showSplit(got, hosts), tt.want)
		}
	}
}

// TestWeightsMayBlock: a bias or aggression whose function parks the goroutine, to wait for
// a lock for example, is read while the goroutine is not pinned. The runtime ends the
// process otherwise.
func TestWeightsMayBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var biases, aggressions int
		calls := func(n *int) func() float64 {
			return func() float64 {
				*n++
				time.Sleep(time.Millisecond)
				return float64(*n)
			}
		}
		hosts := weightedHosts(1, 4)
		b := New(Config{Policy: config.LeastRequestPolicy, ActiveRequestBias: calls(&biases),
			SlowStart: SlowStart{Window: time.Hour, Aggression: calls(&aggressions)}})
		b.Update(priorities(hosts), nil)
		biases, aggressions = 0, 0
		split(b, nil, 20)
		if biases != 20 || aggressions != 20 {
			t.Errorf("20 picks read the bias %d and the aggression %d times, want 20", biases, aggressions)
		}
	})
}

func TestRandomIgnoresWeights(t *testing.T) {
	hosts := weightedHosts(1, 100)
	b := New(Config{Policy: config.RandomPolicy})
	b.Update(priorities(hosts), nil)
	got := split(b, nil, 10000)
	if d := got[hosts[0]] - 5000; d < -300 || d > 300 {
		t.Errorf("%s, want halves", showSplit(got, hosts))
	}
}

func TestRejectedCandidates(t *testing.T) {
	hosts := weightedHosts(1, 1, 1)
	asked := 0
	for _, tt := range []struct {
		retries, asked, want int
	}{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {5, 2, 2}} {
		b := New(Config{})
		b.Update(priorities(hosts), nil)
		asked = 0
		ctx := &Context{Retries: tt.retries, Reject: func(h *host.Host) bool { asked++; return h != hosts[2] }}
		if got := b.Pick(ctx); got != hosts[tt.want] {
			t.Errorf("retries %d: %s, want host %d", tt.retries, got.AddressText(), tt.want)
		}
		if want := min(tt.retries, 3); asked != want {
			t.Errorf("retries %d: asked %d times, want %d", tt.retries, asked, want)
		}
	}
}

func TestNoHosts(t *testing.T) {
	for _, p := range []config.Policy{config.RoundRobinPolicy, config.LeastRequestPolicy, config.RandomPolicy, config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: p})
		if h := b.Pick(nil); h != nil {
			t.Errorf("policy %d before an update: %v", p, h)
		}
		b.Update(priorities(nil), nil)
		if h := b.Pick(&Context{}); h != nil {
			t.Errorf("policy %d without hosts: %v", p, h)
		}
		b.Update(nil, nil)
		if h := b.Pick(&Context{}); h != nil {
			t.Errorf("policy %d without priorities: %v", p, h)
		}
	}
}

func TestLocalityWeights(t *testing.T) {
	down := flags(status.FailedEDSHealth)
	hosts := []*host.Host{
		upstreamtest.Host(0, zone("a")), upstreamtest.Host(1, zone("a"), down), // 50 % of a: 70 % by the factor
		upstreamtest.Host(2, zone("b")),
		upstreamtest.Host(3, zone("c")), // no weight
	}
	s := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 10, {Zone: "b"}: 7}})
	got := LocalityWeights(s, func(l *host.LocalitySet) []*host.Host { return l.Healthy })
	if want := []float64{7, 7, 0}; !slices.Equal(got, want) {
		t.Fatalf("effective weights %v, want %v", got, want)
	}
	b := New(Config{LocalityWeighted: true, Slots: -1})
	b.Update([]*host.Set{s}, nil)
	checkSplit(t, split(b, nil, 100), hosts, 50, 0, 50, 0)

	// A locality without eligible hosts is no end of the list.
	first := host.NewSet(0, []*host.Host{upstreamtest.Host(0, zone("a"), flags(status.EDSStatusDraining)), upstreamtest.Host(1, zone("b"))},
		host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 10, {Zone: "b"}: 7}})
	got = LocalityWeights(first, func(l *host.LocalitySet) []*host.Host { return l.Healthy })
	if want := []float64{0, 7}; !slices.Equal(got, want) {
		t.Errorf("effective weights %v, want %v", got, want)
	}

	// Without any weight the whole healthy set is used.
	s = host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{}})
	b.Update([]*host.Set{s}, nil)
	checkSplit(t, split(b, nil, 99), hosts, 33, 0, 33, 33)
}

func TestZoneRouting(t *testing.T) {
	in := func(zones ...string) *host.Set {
		var hosts []*host.Host
		for i, z := range zones {
			hosts = append(hosts, upstreamtest.Host(i, zone(z)))
		}
		return host.NewSet(0, hosts, host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true})
	}
	up := in("a", "b", "b", "b", "c", "c")
	local := in("a", "a", "b", "c")

	var calc, sampled, cross, direct, small, notOK, none upstreamtest.Count
	c := Config{Stats: Stats{
		RecalculateZoneStructures: calc.Counter(), ZoneRoutingSampled: sampled.Counter(), ZoneRoutingCrossZone: cross.Counter(),
		ZoneRoutingAllDirectly: direct.Counter(), ZoneClusterTooSmall: small.Counter(), LocalClusterNotOK: notOK.Counter(), ZoneNoCapacityLeft: none.Counter(),
	}}
	c.complete()
	z := c.routeZones(up, local)
	if z.direct || z.local != 3332 || !slices.Equal(z.residual, []uint64{0, 2500, 3333}) {
		t.Fatalf("routing %+v, want local 3332, residual [0 2500 3333]", *z)
	}

	x := uint64(0)
	c.Rand = func() uint64 { x += 7919; return x }
	b := New(c)
	b.Update([]*host.Set{up}, local)
	got := split(b, nil, 10000)
	byZone := map[string]int{}
	for h, n := range got {
		byZone[h.Locality().Zone] += n
	}
	if a := byZone["a"]; a < 3200 || a > 3500 {
		t.Errorf("%d of 10000 stay, want about 3332", a)
	}
	if r := float64(byZone["b"]) / float64(byZone["b"]+byZone["c"]); r < 0.70 || r > 0.80 {
		t.Errorf("zone b gets %.2f of the rest, want 0.75", r)
	}
	if int(sampled.Value()) != byZone["a"] || int(cross.Value()) != byZone["b"]+byZone["c"] {
		t.Errorf("sampled %d, cross %d; by zone %v", sampled.Value(), cross.Value(), byZone)
	}

	b.Update([]*host.Set{in("a", "a", "a", "b", "b", "c")}, local)
	split(b, nil, 10)
	if direct.Value() != 10 {
		t.Errorf("all_directly = %d, want 10", direct.Value())
	}
	if z = c.routeZones(in("a", "b", "c"), local); z != nil || small.Value() != 1 {
		t.Errorf("small cluster: %v, too_small = %d", z, small.Value())
	}
	if z = c.routeZones(up, in("b", "c")); z != nil || notOK.Value() != 1 {
		t.Errorf("no local host: %v, not_ok = %d", z, notOK.Value())
	}
	if z = c.routeZones(in("b", "b", "b", "b", "b", "b"), local); z != nil {
		t.Errorf("one locality: %+v", z)
	}
	// No other locality has spare capacity.
	z = &zoneRouting{residual: []uint64{0, 0}}
	c.Rand = numbers(9999, 5) // not to stay, the locality
	if got := z.choose(&c); got != 1 || none.Value() != 1 {
		t.Errorf("without capacity: locality %d, no_capacity_left = %d, want 1 and 1", got, none.Value())
	}
	if calc.Value() < 4 {
		t.Errorf("recalculated %d times", calc.Value())
	}
}

// TestZoneRoutingLosesNoPick keeps all in a zone that has none of the degraded hosts,
// which half of the load is for.
func TestZoneRoutingLosesNoPick(t *testing.T) {
	o := host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true}
	local := host.NewSet(0, []*host.Host{upstreamtest.Host(20, zone("a")), upstreamtest.Host(21, zone("b"))}, o)
	degraded, down := flags(status.DegradedEDSHealth), flags(status.FailedEDSHealth)
	hosts := []*host.Host{
		upstreamtest.Host(0, zone("a")), upstreamtest.Host(1, zone("a")), upstreamtest.Host(2, zone("b"), degraded), upstreamtest.Host(3, zone("b"), degraded),
		upstreamtest.Host(4, zone("b"), down), upstreamtest.Host(5, zone("b"), down),
	}
	x := uint64(0)
	b := New(Config{Zone: ZoneConfig{MinClusterSize: func() uint64 { return 0 }}, Rand: func() uint64 { x++; return x - 1 }})
	b.Update([]*host.Set{host.NewSet(0, hosts, o)}, local)
	checkSplit(t, split(b, nil, 100), hosts, 25, 25, 25, 25, 0, 0)
}

func TestZoneRoutingForcedToStay(t *testing.T) {
	in := func(zones string) *host.Set {
		var hosts []*host.Host
		for i, z := range zones {
			hosts = append(hosts, upstreamtest.Host(i, zone(string(z))))
		}
		return host.NewSet(0, hosts, host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true})
	}
	for _, tt := range []struct {
		up    string
		force uint32
		want  bool
	}{
		{"aabbbb", 0, false}, // a third of the hosts for half of the traffic
		{"aabbbb", 1, true},
		{"aabbbb", 2, true},
		{"aabbbb", 3, false},
		{"bbbccc", 1, false},
	} {
		c := Config{Zone: ZoneConfig{ForceLocal: tt.force}}
		c.complete()
		if z := c.routeZones(in(tt.up), in("ab")); z == nil || z.direct != tt.want {
			t.Errorf("%s, forced from %d: %+v, want all to stay: %t", tt.up, tt.force, z, tt.want)
		}
	}
}

// TestZoneRoutingWithoutLocalHosts: with no share of the callers and none of the hosts,
// the local zone does not get the load of the others.
func TestZoneRoutingWithoutLocalHosts(t *testing.T) {
	o := host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true}
	callers := []*host.Host{upstreamtest.Host(0, zone("a"))}
	for range 10000 {
		callers = append(callers, upstreamtest.Host(1, zone("b")))
	}
	var hosts []*host.Host
	for i := range 6 {
		hosts = append(hosts, upstreamtest.Host(i, zone(string(rune('b'+i%2)))))
	}
	x := uint64(0)
	b := New(Config{Rand: func() uint64 { x += 7919; return x }})
	b.Update([]*host.Set{host.NewSet(0, hosts, o)}, host.NewSet(0, callers, o))
	got := split(b, nil, 600)
	for i, h := range hosts {
		if (got[h] == 0) != (i%2 == 0) { // b has fewer hosts than callers
			t.Errorf("picks %s", showSplit(got, hosts))
			break
		}
	}
}

func TestZoneRoutingOffByPercentage(t *testing.T) {
	var hosts []*host.Host
	for i := range 6 {
		hosts = append(hosts, upstreamtest.Host(i, zone(string(rune('a'+i%2)))))
	}
	o := host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true}
	up, local := host.NewSet(0, hosts, o), host.NewSet(0, hosts, o)
	on := uint32(0)
	b := New(Config{Zone: ZoneConfig{Enabled: func() uint32 { return on }}})
	b.Update([]*host.Set{up}, local)
	checkSplit(t, split(b, nil, 60), hosts, 10, 10, 10, 10, 10, 10)
	on = 100
	checkSplit(t, split(b, nil, 60), hosts, 20, 0, 20, 0, 20, 0)
}

func TestPicksDuringUpdates(t *testing.T) {
	hosts := append(mixed(20, 15, 2), weightedHosts(3, 1)...)
	for i, h := range hosts {
		h.SetMetadata(config.Metadata{"proxy.lb": {"v": float64(i % 3)}})
	}
	for _, c := range []Config{
		{}, {Policy: config.LeastRequestPolicy}, {Policy: config.RandomPolicy}, {Policy: config.RingHashPolicy},
		{Policy: config.MaglevPolicy, MaglevTableSize: 251},
		{MetadataNamespace: "proxy.lb", Subset: &config.Subset{Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}}},
	} {
		b := New(c)
		b.Update(priorities(hosts), nil)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		ctx := &Context{Criteria: NewCriteria(map[string]any{"v": 1.0})}
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if b.Pick(ctx) == nil {
							t.Errorf("policy %d: no host", c.Policy)
							return
						}
					}
				}
			})
		}
		for i := range 50 {
			hosts[i%10].PutFlags(status.EDSFlags, status.Flags(i)<<2)
			b.Update(priorities(hosts[:len(hosts)-i%5]), nil)
		}
		close(stop)
		wg.Wait()
		for _, h := range hosts {
			h.ClearFlags(status.EDSFlags)
		}
	}
}

func TestZoneRoutingWhileTheLocalClusterPanics(t *testing.T) {
	o := host.SetOptions{Local: config.Locality{Zone: "a"}, KnowLocal: true}
	var hosts, own []*host.Host
	for i := range 6 {
		hosts = append(hosts, upstreamtest.Host(i, zone(string(rune('a'+i%2)))))
	}
	for i := range 6 {
		own = append(own, upstreamtest.Host(20+i, zone(string(rune('a'+i%2)))))
		if i > 1 {
			own[i].SetFlags(status.FailedActiveHC)
		}
	}
	for _, fail := range []bool{false, true} {
		var notOK upstreamtest.Count
		b := New(Config{FailOnPanic: fail, Stats: Stats{LocalClusterNotOK: notOK.Counter()}})
		b.Update([]*host.Set{host.NewSet(0, hosts, o)}, host.NewSet(0, own, o))
		got := split(b, nil, 12)
		if notOK.Value() != 12 {
			t.Errorf("fail=%t: lb_local_cluster_not_ok = %d, want 12", fail, notOK.Value())
		}
		if fail {
			if got[nil] != 12 {
				t.Errorf("%d of 12 picks found no host", got[nil])
			}
			continue
		}
		checkSplit(t, got, hosts, 2, 2, 2, 2, 2, 2)
	}
}

func TestSeedSkipsPicksOfASchedule(t *testing.T) {
	hosts := weightedHosts(3, 1, 2)
	plain, seeded := New(Config{Slots: -1}), New(Config{Slots: -1, Seed: 4})
	plain.Update(priorities(hosts), nil)
	seeded.Update(priorities(hosts), nil)
	for range 4 {
		plain.Pick(nil)
	}
	for i := range 12 {
		if a, b := plain.Pick(nil), seeded.Pick(nil); a != b {
			t.Fatalf("pick %d: %s without a seed, %s with one", i, a.AddressText(), b.AddressText())
		}
	}
}

// TestEveryListHasAPositionOfItsOwn goes in turns over the lists of healthy hosts, of
// all hosts and of degraded ones.
func TestEveryListHasAPositionOfItsOwn(t *testing.T) {
	hosts := weightedHosts(1, 1, 1, 1)
	b := New(Config{Seed: 1})
	show := func(f status.Flags, change ...int) {
		for _, i := range change {
			hosts[i].PutFlags(status.EDSFlags, f)
		}
		b.Update(priorities(hosts), nil)
	}
	check := func(when string, want int) {
		t.Helper()
		if got := b.Pick(nil); got != hosts[want] {
			t.Errorf("%s: %s, want host %d", when, got.AddressText(), want)
		}
	}
	show(0)
	check("healthy", 1)
	check("healthy", 2)
	show(status.FailedEDSHealth, 1, 2, 3)
	check("panic", 1) // begins where all lists do
	check("panic", 2)
	check("panic", 3)
	show(status.DegradedEDSHealth, 0, 1, 2, 3)
	check("degraded", 1)
	show(0, 0, 1, 2, 3)
	check("healthy again", 3)
	show(status.FailedEDSHealth, 1, 2, 3)
	check("panic again", 0)
}

func TestRandomDrawsANumberOfItsOwn(t *testing.T) {
	hosts := weightedHosts(1, 1, 1)
	b := New(Config{Policy: config.RandomPolicy, Rand: numbers(7, 2)}) // of the priority, of the host
	b.Update(priorities(hosts), nil)
	if got := b.Pick(nil); got != hosts[2] {
		t.Errorf("picked %s, want host 2", got.AddressText())
	}
}
