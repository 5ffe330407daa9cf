package lb

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// abc returns the hosts of the known answers.
func abc(weights ...uint32) []*host.Host {
	var out []*host.Host
	for i, a := range []string{"10.1.2.3:8080", "10.1.2.4:8080", "[fd00::1]:8080"} {
		s := host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(a)}}
		if i < len(weights) {
			s.Weight = weights[i]
		}
		out = append(out, host.New(s))
	}
	return out
}

func TestHashes(t *testing.T) {
	tests := []struct {
		key        string
		xx, murmur uint64
	}{
		{"10.1.2.3:8080_0", 11410870849598857684, 14377032246591910286},
		{"10.1.2.4:8080_0", 15319403561705899023, 8097989063891975710},
		{"[fd00::1]:8080_0", 16990659058273214782, 9129114568859458351},
	}
	for _, tt := range tests {
		if got := xxhash.Sum64String(tt.key); got != tt.xx {
			t.Errorf("xx(%q) = %d, want %d", tt.key, got, tt.xx)
		}
		if got := murmur2([]byte(tt.key), murmurSeed); got != tt.murmur {
			t.Errorf("murmur(%q) = %d, want %d", tt.key, got, tt.murmur)
		}
	}
	for _, tt := range []struct {
		key  string
		want uint64
	}{{"10.1.2.3:8080", 3216634620115230233}, {"10.1.2.4:8080", 14807801573512526284}, {"[fd00::1]:8080", 660343364719215269}} {
		if got := seededHash(tt.key, 1); got != tt.want {
			t.Errorf("xx(%q, 1) = %d, want %d", tt.key, got, tt.want)
		}
	}
}

func updated(c Config, hosts []*host.Host) *hashed {
	b := New(c).(*hashed)
	b.Update(priorities(hosts), nil)
	return b
}

func TestRing(t *testing.T) {
	tests := []struct {
		weights  []uint32
		min, max uint64 // of the configuration
		size     uint64
		few, lot uint64
	}{
		{[]uint32{1, 1, 2}, 8, 0, 8, 2, 4},
		{[]uint32{1, 1, 1}, 5, 5, 5, 1, 2},
		{[]uint32{1, 3, 5}, 0, 0, 1026, 114, 570},
		{[]uint32{1, 1, 1}, 0, 0, 1026, 342, 342},
	}
	for _, tt := range tests {
		var size, few, lot upstreamtest.Count
		updated(Config{
			Policy: config.RingHashPolicy, Ring: config.RingHash{MinimumSize: tt.min, MaximumSize: tt.max},
			Stats: Stats{RingSize: size.Gauge(), RingMinHashes: few.Gauge(), RingMaxHashes: lot.Gauge()},
		}, abc(tt.weights...))
		if size.Value() != tt.size || few.Value() != tt.few || lot.Value() != tt.lot {
			t.Errorf("weights %v, min %d, max %d: size %d, %d to %d; want %d, %d to %d",
				tt.weights, tt.min, tt.max, size.Value(), few.Value(), lot.Value(), tt.size, tt.few, tt.lot)
		}
	}
}

func TestRingOwners(t *testing.T) {
	hosts := abc(1, 1, 2)
	b := updated(Config{Policy: config.RingHashPolicy, Ring: config.RingHash{MinimumSize: 8}}, hosts)
	r := b.table.Load().priorities[0].placer.(*ring)
	wantHashes := []uint64{
		1605685413956288590, 2911762004161918194, 3918430439933811004, 11410870849598857684,
		14898127380015259526, 14998016676536142201, 15319403561705899023, 16990659058273214782,
	}
	if !slices.Equal(r.hashes, wantHashes) {
		t.Fatalf("points %v, want %v", r.hashes, wantHashes)
	}
	owners := []int{2, 1, 2, 0, 2, 0, 1, 2}
	for i, h := range wantHashes {
		// The point itself, just below it, and just above the one before.
		for _, x := range []uint64{h, h - 1} {
			if got := b.Pick(&Context{Hash: x, HasHash: true}); got != hosts[owners[i]] {
				t.Errorf("hash %d: %s, want owner %d", x, got.AddressText(), owners[i])
			}
		}
		next := owners[(i+1)%len(owners)]
		if got := b.Pick(&Context{Hash: h + 1, HasHash: true}); got != hosts[next] {
			t.Errorf("hash %d: %s, want owner %d", h+1, got.AddressText(), next)
		}
	}
	// Further attempts go round the ring, also over its end.
	for a := range 9 {
		refused := 0
		ctx := &Context{Hash: 16990659058273214782 + 1, HasHash: true, Retries: a, Reject: func(*host.Host) bool { refused++; return true }}
		if got := b.Pick(ctx); got != hosts[owners[a%8]] {
			t.Errorf("attempt %d beyond the end: %s, want owner %d", a, got.AddressText(), owners[a%8])
		}
	}
}

// TestRingIsNotBuiltAfterStop: an update of a balancer that is not needed any more does
// not wait for a ring.
func TestRingIsNotBuiltAfterStop(t *testing.T) {
	done := make(chan struct{})
	close(done)
	var size upstreamtest.Count
	b := updated(Config{
		Policy: config.RingHashPolicy, Ring: config.RingHash{MinimumSize: 8 << 20}, Done: done, Stats: Stats{RingSize: size.Gauge()},
	}, abc(1, 2))
	if h := b.Pick(&Context{Hash: 1, HasHash: true}); h != nil || size.Value() != 0 {
		t.Errorf("picked %s of a ring of %d points", h.AddressText(), size.Value())
	}
}

// TestSortPoints compares with a plain stable sort, and stops in the middle.
func TestSortPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, stopPoints - 1, stopPoints, 3 * stopPoints} {
		points := make([]point, n)
		for i := range points {
			points[i] = point{rng.Uint64() & (1<<63 | 1<<62 | 1<<40 | 0xff), &host.Host{}}
		}
		want := slices.Clone(points)
		slices.SortStableFunc(want, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
		if !sortPoints(points, nil) || !slices.Equal(points, want) {
			t.Errorf("%d points are not sorted", n)
		}
		done := make(chan struct{})
		close(done)
		if sortPoints(points, done) {
			t.Errorf("%d points: sorted after the end", n)
		}
	}
}

// TestRingPlaces: a hash belongs to the first point not below it, also around the limits of
// the parts that the ring is divided into.
func TestRingPlaces(t *testing.T) {
	var points []point
	for _, h := range []uint64{0, 5, 1<<61 - 1, 1 << 61, 1 << 61, 1 << 62, 1<<63 + 1, math.MaxUint64} {
		points = append(points, point{h, &host.Host{}})
	}
	for n := 1; n <= len(points); n++ {
		r := newRing(points[:n])
		for _, p := range points {
			for _, hash := range []uint64{p.hash - 1, p.hash, p.hash + 1} {
				want := slices.IndexFunc(points[:n], func(p point) bool { return p.hash >= hash })
				want = max(want, 0)
				for attempt := range 3 {
					if got := r.place(hash, attempt); got != points[(want+attempt)%n].owner {
						t.Errorf("%d points, hash %x, attempt %d: not the owner of point %d", n, hash, attempt, want)
					}
				}
			}
		}
	}
}

func TestRingMurmur(t *testing.T) {
	hosts := abc()
	b := updated(Config{Policy: config.RingHashPolicy, Ring: config.RingHash{MinimumSize: 3, Function: config.MurmurHash2}}, hosts)
	for h, want := range map[uint64]int{14377032246591910286: 0, 8097989063891975710: 1, 9129114568859458351: 2} {
		if got := b.Pick(&Context{Hash: h, HasHash: true}); got != hosts[want] {
			t.Errorf("hash %d: %s, want host %d", h, got.AddressText(), want)
		}
	}
}

func TestMaglevTables(t *testing.T) {
	tests := []struct {
		weights  []uint32
		size     uint64
		want     []uint32
		few, lot uint64
	}{
		{[]uint32{1, 1, 1}, 11, []uint32{1, 2, 0, 1, 2, 2, 0, 1, 1, 0, 0}, 3, 4},
		{[]uint32{1, 1, 2}, 11, []uint32{2, 2, 0, 1, 2, 2, 0, 1, 1, 0, 2}, 3, 5},
		{[]uint32{1, 1, 1}, 13, []uint32{0, 0, 2, 2, 2, 1, 1, 0, 0, 1, 2, 1, 0}, 4, 5},
		{[]uint32{1, 1, 2}, 0, nil, 16385, 32767},
	}
	for _, tt := range tests {
		var few, lot upstreamtest.Count
		hosts := abc(tt.weights...)
		b := updated(Config{Policy: config.MaglevPolicy, MaglevTableSize: tt.size, Stats: Stats{MaglevMinEntries: few.Gauge(), MaglevMaxEntries: lot.Gauge()}}, hosts)
		m := b.table.Load().priorities[0].placer.(*maglev)
		if tt.want != nil && !slices.Equal(m.table, tt.want) {
			t.Errorf("weights %v, size %d: %v, want %v", tt.weights, tt.size, m.table, tt.want)
		}
		if few.Value() != tt.few || lot.Value() != tt.lot {
			t.Errorf("weights %v, size %d: %d to %d, want %d to %d", tt.weights, tt.size, few.Value(), lot.Value(), tt.few, tt.lot)
		}
	}
}

func TestMaglevAttempts(t *testing.T) {
	hosts := abc()
	b := updated(Config{Policy: config.MaglevPolicy, MaglevTableSize: 11}, hosts)
	m := b.table.Load().priorities[0].placer.(*maglev)
	for a, index := range []int{1, 3, 2, 1} {
		if got, want := m.place(100, a), m.owners[m.table[index]]; got != want {
			t.Errorf("attempt %d: %s, want slot %d (%s)", a, got.AddressText(), index, want.AddressText())
		}
	}
}

func TestHashKeys(t *testing.T) {
	named := func(s *host.Spec) { s.Hostname = "a.example" }
	c := Config{MetadataNamespace: "proxy.lb", AltNamespace: "envoy.lb"}
	use := c
	use.UseHostname = true
	tests := []struct {
		c    Config
		h    *host.Host
		want string
	}{
		{c, upstreamtest.Host(1, named), "10.0.0.1:80"},
		{use, upstreamtest.Host(1, named), "a.example"},
		{use, upstreamtest.Host(1), "10.0.0.1:80"},
		{use, upstreamtest.Host(1, named, values("hash_key", "k")), "k"},
		{c, upstreamtest.Host(1, values("hash_key", 3.0)), "10.0.0.1:80"},
		{c, upstreamtest.Host(1, values("hash_key", "")), "10.0.0.1:80"},
	}
	for _, tt := range tests {
		if got := newHashed(tt.c, nil).key(tt.h); got != tt.want {
			t.Errorf("key = %q, want %q", got, tt.want)
		}
	}
}

func TestHashedLocalityWeights(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, zone("a")), upstreamtest.Host(1, zone("a")), upstreamtest.Host(2, zone("b"), weight(9)), upstreamtest.Host(3, zone("c"))}
	s := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 3, {Zone: "b"}: 1}})
	for _, p := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: p, LocalityWeighted: true}).(*hashed)
		b.Update([]*host.Set{s}, nil)
		var got []float64
		for _, e := range b.table.Load().priorities[0].entries {
			got = append(got, e.weight)
		}
		if want := []float64{0.375, 0.375, 0.25}; !slices.Equal(got, want) {
			t.Errorf("policy %d: weights %v, want %v", p, got, want)
		}
		none := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{}})
		b.Update([]*host.Set{none}, nil)
		if h := b.Pick(nil); h != nil {
			t.Errorf("policy %d, all weights 0: %s, want no host", p, h.AddressText())
		}
		last := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "c"}: 1}})
		b.Update([]*host.Set{last}, nil)
		if h := b.Pick(nil); h != hosts[3] {
			t.Errorf("policy %d, only the last locality has a weight: %v", p, h)
		}
	}
}

func TestHashedPanicAndDegraded(t *testing.T) {
	for _, p := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		var panics upstreamtest.Count
		hosts := mixed(10, 2, 0)
		b := New(Config{Policy: p, Stats: Stats{HealthyPanic: panics.Counter()}, FailOnPanic: true})
		b.Update(priorities(hosts), nil)
		seen := map[*host.Host]bool{}
		for x := range uint64(1000) {
			seen[b.Pick(&Context{Hash: x * 0x9E3779B97F4A7C15, HasHash: true})] = true
		}
		if len(seen) != 10 || seen[nil] || panics.Value() != 1000 {
			t.Errorf("policy %d in panic: %d hosts seen, counted %d, want 10 and 1000", p, len(seen), panics.Value())
		}
		// Degraded hosts are in no table, the load on them leads to the healthy ones.
		hosts = mixed(4, 1, 1)
		b.Update(priorities(hosts), nil)
		got := map[*host.Host]int{}
		for x := range uint64(1000) {
			got[b.Pick(&Context{Hash: x * 0x9E3779B97F4A7C15, HasHash: true})]++
		}
		checkSplit(t, got, hosts, 1000, 0, 0, 0)
	}
}

func TestTablesOfUnchangedHostsAreKept(t *testing.T) {
	hosts := mixed(10, 10, 0)
	b := updated(Config{Policy: config.MaglevPolicy}, hosts)
	before := b.table.Load().priorities[0].placer
	b.Update(priorities(hosts), nil)
	if b.table.Load().priorities[0].placer != before {
		t.Error("the same hosts got a new table")
	}
	hosts[3].SetFlags(status.FailedActiveHC)
	b.Update(priorities(hosts), nil)
	if b.table.Load().priorities[0].placer == before {
		t.Error("other hosts kept the table")
	}
}

// owners returns who gets each of n hashes.
func owners(c Config, hosts []*host.Host, n int) []*host.Host {
	b := New(c)
	b.Update(priorities(hosts), nil)
	out := make([]*host.Host, n)
	for i := range out {
		out[i] = b.Pick(&Context{Hash: xxhash.Sum64String(fmt.Sprint(i)), HasHash: true})
	}
	return out
}

// TestRingDisruption: without a host, exactly its own hashes move.
func TestRingDisruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "hosts")
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		hosts := mixed(n, n, 0)
		// Points per host must not depend on the number of hosts.
		perHost := uint64(rapid.IntRange(10, 200).Draw(t, "points"))
		c := Config{Policy: config.RingHashPolicy, Ring: config.RingHash{MinimumSize: perHost * uint64(n)}}
		before := owners(c, hosts, 500)
		c.Ring.MinimumSize = perHost * uint64(n-1)
		after := owners(c, slices.Delete(slices.Clone(hosts), gone, gone+1), 500)
		for i := range before {
			if before[i] != hosts[gone] && before[i] != after[i] {
				t.Fatalf("hash %d moved from %s to %s", i, before[i].AddressText(), after[i].AddressText())
			}
			if after[i] == hosts[gone] {
				t.Fatalf("hash %d is still at the host that is gone", i)
			}
		}
	})
}

// TestMaglevBalanceAndDisruption: shares follow weights to a few entries, and
// without a host few hashes of the others move.
func TestMaglevBalanceAndDisruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 10).Draw(t, "hosts")
		var hosts []*host.Host
		sum := 0
		var weights []int
		for i := range n {
			w := rapid.IntRange(1, 5).Draw(t, "weight")
			weights = append(weights, w)
			hosts = append(hosts, upstreamtest.Host(i, weight(uint32(w))))
			sum += w
		}
		const size = 5003
		b := updated(Config{Policy: config.MaglevPolicy, MaglevTableSize: size}, hosts)
		m := b.table.Load().priorities[0].placer.(*maglev)
		got := map[*host.Host]int{}
		for _, o := range m.table {
			got[m.owners[o]]++
		}
		for i, h := range hosts {
			want := size * weights[i] / sum
			if d := got[h] - want; d < -6 || d > 6 {
				t.Fatalf("weights %v: host %d has %d entries, want about %d", weights, i, got[h], want)
			}
		}
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		if n < 3 {
			return
		}
		c := Config{Policy: config.MaglevPolicy, MaglevTableSize: size}
		before, after := owners(c, hosts, 1000), owners(c, slices.Delete(slices.Clone(hosts), gone, gone+1), 1000)
		moved, stayed := 0, 0
		for i := range before {
			if before[i] == hosts[gone] {
				continue
			}
			stayed++
			if before[i] != after[i] {
				moved++
			}
		}
		if moved*3 > stayed {
			t.Fatalf("weights %v without %d: %d of %d hashes of other hosts moved", weights, gone, moved, stayed)
		}
	})
}

func TestHashedPanicWithLocalityWeights(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, zone("a")), upstreamtest.Host(1, zone("a"), flags(status.FailedEDSHealth)), upstreamtest.Host(2, zone("b"), flags(status.FailedEDSHealth)), upstreamtest.Host(3, zone("c"))}
	s := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 1, {Zone: "b"}: 1}})
	b := New(Config{Policy: config.MaglevPolicy, LocalityWeighted: true, PanicThreshold: func() uint32 { return 90 }}).(*hashed)
	b.Update([]*host.Set{s}, nil)
	if got := len(b.table.Load().priorities[0].entries); got != 3 {
		t.Errorf("%d hosts in the table, want all three of the weighted localities", got)
	}
}

func TestNoHashIsARandomOne(t *testing.T) {
	hosts := mixed(10, 10, 0)
	for _, p := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: p})
		b.Update(priorities(hosts), nil)
		for name, ctx := range map[string]*Context{"empty": {}, "nil": nil} {
			if got := split(b, ctx, 1000); len(got) < 5 {
				t.Errorf("policy %d, %s context: only %d hosts picked", p, name, len(got))
			}
		}
	}
}

// TestHashChoosesThePriorityToo has loads of 98 and 2 percent.
func TestHashChoosesThePriorityToo(t *testing.T) {
	first, second := mixed(10, 7, 0), []*host.Host{upstreamtest.Host(100)}
	for _, p := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: p})
		b.Update(priorities(first, second), nil)
		for hash := range uint64(1000) {
			got, want := b.Pick(&Context{Hash: hash, HasHash: true}) == second[0], hash%100 >= 98
			if got != want {
				t.Errorf("policy %d, hash %d: second priority %t, want %t", p, hash, got, want)
			}
		}
	}
}

// TestGaugesAreOfTheTableBuiltLast builds one for each priority, then one for none.
func TestGaugesAreOfTheTableBuiltLast(t *testing.T) {
	var size, few, lot, least, most upstreamtest.Count
	stats := Stats{RingSize: size.Gauge(), RingMinHashes: few.Gauge(), RingMaxHashes: lot.Gauge(), MaglevMinEntries: least.Gauge(), MaglevMaxEntries: most.Gauge()}
	for _, p := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		b := New(Config{Policy: p, Ring: config.RingHash{MinimumSize: 8}, MaglevTableSize: 11, Stats: stats})
		b.Update(priorities(mixed(5, 5, 0), abc(1, 1, 2)), nil)
		b.Update(priorities(nil, nil), nil)
	}
	if size.Value() != 8 || few.Value() != 2 || lot.Value() != 4 || least.Value() != 3 || most.Value() != 5 {
		t.Errorf("ring %d, %d to %d; maglev %d to %d; want 8, 2 to 4; 3 to 5", size.Value(), few.Value(), lot.Value(), least.Value(), most.Value())
	}
}

func TestMaglevDoesNotDependOnTheOrderOfHosts(t *testing.T) {
	hosts := abc(1, 3, 2)
	turned := slices.Clone(hosts)
	slices.Reverse(turned)
	c := Config{Policy: config.MaglevPolicy, MaglevTableSize: 251}
	if a, b := owners(c, hosts, 1000), owners(c, turned, 1000); !slices.Equal(a, b) {
		t.Error("another order of the same hosts gives another table")
	}
}
