package lb

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// burden gives hosts active requests and returns their sum.
func burden(hosts []*host.Host, active ...int) func() uint64 {
	sum := uint64(0)
	for i, n := range active {
		for range n {
			hosts[i].Stats.RqActive.Inc()
			sum++
		}
	}
	return func() uint64 { return sum }
}

func TestBoundedLoad(t *testing.T) {
	tests := []struct {
		name    string
		weights []uint32
		active  []int
		factor  uint32
		other   bool // the host of the hash, 0, has too much
	}{
		// 4 requests and one more by 125 %, rounded up, are 7 slots: 3 for each.
		{"at-the-bound", []uint32{1, 1, 1}, []int{3, 1, 0}, 125, false},
		{"above-the-bound", []uint32{1, 1, 1}, []int{4, 0, 0}, 125, true},
		{"no-factor", []uint32{1, 1, 1}, []int{100, 0, 0}, 0, false},
		{"one-host", []uint32{1}, []int{100}, 100, false},
		{"always-one-slot", []uint32{1, 100, 100}, []int{1, 0, 0}, 100, false},
		// 5 requests, 100 %: 6 slots, 3 of them for half of the weight.
		{"heavy", []uint32{2, 1, 1}, []int{3, 1, 1}, 100, false},
		{"light", []uint32{1, 2, 1}, []int{3, 1, 1}, 100, true},
	}
	for _, policy := range []config.Policy{config.RingHashPolicy, config.MaglevPolicy} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				hosts := weightedHosts(tt.weights...)
				b := New(Config{Policy: policy, HashBalanceFactor: tt.factor, ActiveRequests: burden(hosts, tt.active...)})
				b.Update(priorities(hosts), nil)
				plain := New(Config{Policy: policy})
				plain.Update(priorities(hosts), nil)
				seen := map[*host.Host]bool{}
				for hash := range uint64(1000) {
					ctx := &Context{Hash: mix(hash), HasHash: true}
					want, got := plain.Pick(ctx), b.Pick(ctx)
					if again := b.Pick(ctx); again != got {
						t.Fatalf("hash %d: %s, then %s", hash, got.AddressText(), again.AddressText())
					}
					switch {
					case want != hosts[0] || !tt.other:
						if got != want {
							t.Fatalf("hash %d: %s, want %s", hash, got.AddressText(), want.AddressText())
						}
					case got == hosts[0]:
						t.Fatalf("hash %d: the host that has too much", hash)
					default:
						seen[got] = true
					}
				}
				if tt.other && len(seen) != len(hosts)-1 {
					t.Errorf("what one host has too much goes to %d others, want all", len(seen))
				}
			})
		}
	}
}

func TestBoundedLoadWhenAllHaveTooMuch(t *testing.T) {
	hosts := weightedHosts(1, 1, 1, 1)
	burden(hosts, 9, 8, 7, 8)
	b := New(Config{Policy: config.MaglevPolicy, HashBalanceFactor: 100, ActiveRequests: func() uint64 { return 1 }})
	b.Update(priorities(hosts), nil)
	for hash := range uint64(100) {
		if got := b.Pick(&Context{Hash: hash, HasHash: true}); got != hosts[2] {
			t.Fatalf("hash %d: %s, want the least busy", hash, got.AddressText())
		}
	}
}

// One key that is asked for all the time fills one host after the other, never
// one further than its bound.
func TestBoundedLoadOfAHotKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var weights []uint32
		for range rapid.IntRange(2, 12).Draw(t, "hosts") {
			weights = append(weights, rapid.Uint32Range(1, 5).Draw(t, "weight"))
		}
		hosts := weightedHosts(weights...)
		factor := rapid.Uint32Range(100, 300).Draw(t, "factor")
		active := uint64(0)
		b := New(Config{Policy: config.RingHashPolicy, HashBalanceFactor: factor, ActiveRequests: func() uint64 { return active }})
		b.Update(priorities(hosts), nil)
		ctx := &Context{Hash: rapid.Uint64().Draw(t, "hash"), HasHash: true}
		sum := host.Weight(hosts)
		for range 200 {
			h := b.Pick(ctx)
			slots := ((active+1)*uint64(factor) + 99) / 100
			share := max((slots*uint64(h.Weight())+sum-1)/sum, 1)
			if had := h.Stats.RqActive.Value(); had > share+1 { // one for rounding of weights
				t.Fatalf("picked a host with %d of %d requests, its share is %d", had, active, share)
			}
			h.Stats.RqActive.Inc()
			active++
		}
	})
}

// TestMix has the first outputs of SplitMix64 with the seed 0, as its reference
// implementation gives them.
func TestMix(t *testing.T) {
	const step = 0x9e3779b97f4a7c15
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec} {
		if got := mix(uint64(i) * step); got != want {
			t.Errorf("output %d: %#x, want %#x", i, got, want)
		}
	}
}
