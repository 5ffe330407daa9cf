package lb

import (
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

type subsetStats struct {
	active, created, removed, selected, fallback, panics, duplicates upstreamtest.Count
}

func subsetConfig(s *subsetStats, c config.Subset) Config {
	return Config{
		Subset: &c, MetadataNamespace: "proxy.lb", AltNamespace: "envoy.lb", Slots: -1,
		Stats: Stats{
			SubsetsActive: s.active.Gauge(), SubsetsDuplicates: s.duplicates.Gauge(), SubsetsCreated: s.created.Counter(), SubsetsRemoved: s.removed.Counter(),
			SubsetsSelected: s.selected.Counter(), SubsetsFallback: s.fallback.Counter(), SubsetsFallbackPanic: s.panics.Counter(),
		},
	}
}

func TestSubsetFallbacks(t *testing.T) {
	hosts := []*host.Host{
		upstreamtest.Host(0, values("version", "1", "stage", "prod")),
		upstreamtest.Host(1, values("version", "1", "stage", "dev")),
		upstreamtest.Host(2, values("version", "2", "stage", "prod")),
		upstreamtest.Host(3, values("stage", "prod")),
		upstreamtest.Host(4),
	}
	sel := func(f config.Fallback, cut []string, keys ...string) config.SubsetSelector {
		return config.SubsetSelector{Keys: keys, Fallback: f, FallbackKeys: cut}
	}
	type m = map[string]any
	none := []int(nil)
	tests := []struct {
		name     string
		s        config.Subset
		criteria m
		want     []int // hosts that may be picked
		selected uint64
		fallback uint64
		panics   uint64
	}{
		{"match", config.Subset{Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "1"}, []int{0, 1}, 1, 0, 0},
		{"two keys", config.Subset{Selectors: []config.SubsetSelector{sel(0, nil, "stage", "version")}}, m{"version": "1", "stage": "dev"}, []int{1}, 1, 0, 0},
		{"no fallback", config.Subset{Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, none, 0, 0, 0},
		{"no fallback despite panic mode", config.Subset{PanicModeAny: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, none, 0, 0, 0},
		{"any", config.Subset{Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, []int{0, 1, 2, 3, 4}, 0, 1, 0},
		{"any without criteria", config.Subset{Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, nil, []int{0, 1, 2, 3, 4}, 0, 1, 0},
		{"more keys than the selector", config.Subset{Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "1", "stage": "prod"}, []int{0, 1, 2, 3, 4}, 0, 1, 0},
		{"default", config.Subset{Fallback: config.FallbackDefaultSubset, DefaultSubset: m{"stage": "prod"}, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, []int{0, 2, 3}, 0, 1, 0},
		{"empty default is all", config.Subset{Fallback: config.FallbackDefaultSubset, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, []int{0, 1, 2, 3, 4}, 0, 1, 0},
		{"default without hosts", config.Subset{Fallback: config.FallbackDefaultSubset, DefaultSubset: m{"stage": "x"}, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, none, 0, 0, 0},
		{"default without hosts, panic", config.Subset{PanicModeAny: true, Fallback: config.FallbackDefaultSubset, DefaultSubset: m{"stage": "x"}, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "9"}, []int{0, 1, 2, 3, 4}, 0, 0, 1},
		{"selector says none", config.Subset{Fallback: config.FallbackAnyEndpoint, PanicModeAny: true, Selectors: []config.SubsetSelector{sel(config.FallbackNone, nil, "version")}}, m{"version": "9"}, none, 0, 0, 0},
		{"selector says any", config.Subset{Selectors: []config.SubsetSelector{sel(config.FallbackAnyEndpoint, nil, "version")}}, m{"version": "9"}, []int{0, 1, 2, 3, 4}, 0, 0, 0},
		{"selector says default", config.Subset{DefaultSubset: m{"stage": "dev"}, Selectors: []config.SubsetSelector{sel(config.FallbackDefaultSubset, nil, "version")}}, m{"version": "9"}, []int{1}, 0, 0, 0},
		{"keys subset", config.Subset{Selectors: []config.SubsetSelector{
			sel(config.FallbackKeysSubset, []string{"stage"}, "stage", "version"), sel(0, nil, "stage"),
		}}, m{"version": "9", "stage": "prod"}, []int{0, 2, 3}, 1, 0, 0},
		{"keys subset, chain to the top", config.Subset{Fallback: config.FallbackDefaultSubset, DefaultSubset: m{"version": "2"}, Selectors: []config.SubsetSelector{
			sel(config.FallbackKeysSubset, []string{"stage"}, "stage", "version"), sel(0, nil, "stage"),
		}}, m{"version": "9", "stage": "x"}, []int{2}, 0, 1, 0},
		{"list: the second one", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "7", "fallback_list": []any{m{"version": "8"}, m{"version": "2"}, m{"version": "1"}}}, []int{2}, 1, 0, 0},
		{"list: added keys", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "stage", "version")}}, m{"version": "1", "fallback_list": []any{m{"stage": "dev"}}}, []int{1}, 1, 0, 0},
		{"list: what there is without it", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "2", "fallback_list": []any{m{"version": "8"}, m{}}}, []int{2}, 1, 0, 0},
		{"list: empty", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "2", "fallback_list": []any{}}, []int{2}, 1, 0, 0},
		{"list: nothing demanded", config.Subset{MetadataFallback: true, Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"fallback_list": []any{m{}, m{"version": "1"}}}, []int{0, 1, 2, 3, 4}, 0, 1, 0},
		{"list: none of them", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "1", "fallback_list": []any{m{"version": "8"}}}, none, 0, 0, 0},
		{"list: not allowed", config.Subset{Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "1", "fallback_list": []any{m{"version": "2"}}}, none, 0, 0, 0},
		{"list: no list", config.Subset{MetadataFallback: true, Selectors: []config.SubsetSelector{sel(0, nil, "version")}}, m{"version": "1", "fallback_list": "x"}, none, 0, 0, 0},
		{"same keys twice: the first one's fallback", config.Subset{Selectors: []config.SubsetSelector{
			sel(config.FallbackAnyEndpoint, nil, "version"), sel(config.FallbackNone, nil, "version"),
		}}, m{"version": "9"}, []int{0, 1, 2, 3, 4}, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.s.Fallback == 0 {
				tt.s.Fallback = config.FallbackNone
			}
			var s subsetStats
			b := New(subsetConfig(&s, tt.s))
			b.Update(priorities(hosts), nil)
			ctx := &Context{Criteria: NewCriteria(tt.criteria)}
			asked := ctx.Criteria
			h := b.Pick(ctx)
			if ctx.Criteria != asked {
				t.Error("the criteria of the caller are others after a pick")
			}
			if s.selected.Value() != tt.selected || s.fallback.Value() != tt.fallback || s.panics.Value() != tt.panics {
				t.Errorf("selected %d, fallback %d, panic %d; want %d, %d, %d",
					s.selected.Value(), s.fallback.Value(), s.panics.Value(), tt.selected, tt.fallback, tt.panics)
			}
			if tt.want == nil {
				if h != nil {
					t.Errorf("picked %s, want none", h.AddressText())
				}
				return
			}
			want := map[*host.Host]bool{}
			for _, i := range tt.want {
				want[hosts[i]] = true
			}
			got := split(b, ctx, 60)
			for h := range got {
				if !want[h] {
					t.Errorf("picked %v, want hosts %v only", h, tt.want)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d hosts picked, want %d", len(got), len(want))
			}
		})
	}
}

func TestSubsetsAreFinalEvenWithoutAHealthyHost(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, values("v", "1"), flags(status.FailedEDSHealth)), upstreamtest.Host(1, values("v", "2"))}
	var s subsetStats
	c := subsetConfig(&s, config.Subset{Fallback: config.FallbackAnyEndpoint, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}})
	c.PanicThreshold = func() uint32 { return 0 }
	b := New(c)
	b.Update(priorities(hosts), nil)
	if h := b.Pick(&Context{Criteria: NewCriteria(map[string]any{"v": "1"})}); h != nil || s.selected.Value() != 1 {
		t.Errorf("picked %v, selected = %d; want none and 1", h, s.selected.Value())
	}
}

func TestSubsetLifecycle(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, values("v", "1")), upstreamtest.Host(1, values("v", "2")), upstreamtest.Host(2)}
	var s subsetStats
	b := New(subsetConfig(&s, config.Subset{Fallback: config.FallbackNone, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}}))
	b.Update(priorities(hosts), nil)
	check := func(active, created, removed uint64) {
		t.Helper()
		if s.active.Value() != active || s.created.Value() != created || s.removed.Value() != removed {
			t.Errorf("active %d, created %d, removed %d; want %d, %d, %d", s.active.Value(), s.created.Value(), s.removed.Value(), active, created, removed)
		}
	}
	check(2, 2, 0)
	b.Update(priorities(hosts[:1], []*host.Host{upstreamtest.Host(5, values("v", "3"))}), nil)
	check(2, 3, 1)
	b.Update(priorities(nil), nil)
	check(0, 3, 3)
}

func TestSubsetValues(t *testing.T) {
	hosts := []*host.Host{
		upstreamtest.Host(0, values("v", []any{"a", "b"})),
		upstreamtest.Host(1, values("v", "a")),
		upstreamtest.Host(2, values("v", 1.0)),
		upstreamtest.Host(3, values("v", true)),
		upstreamtest.Host(4, values("v", map[string]any{"x": 1.0})),
		upstreamtest.Host(5, values("v", "1")),
	}
	if h := New(subsetConfig(new(subsetStats), config.Subset{Fallback: config.FallbackNone, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}})).Pick(&Context{Criteria: NewCriteria(map[string]any{"v": "a"})}); h != nil {
		t.Errorf("picked %v before the first update", h)
	}
	tests := []struct {
		any   bool
		value any
		want  []int
	}{
		{false, "a", []int{1}},
		{false, []any{"a", "b"}, []int{0}},
		{true, "a", []int{0, 1}},
		{true, "b", []int{0}},
		{true, []any{"a", "b"}, []int{0}}, // equal as a whole
		{true, []any{"b", "a"}, nil},
		{false, 1.0, []int{2}},
		{false, "1", []int{5}},
		{false, true, []int{3}},
		{false, map[string]any{"x": 1.0}, []int{4}},
		{false, nil, nil},
	}
	for _, tt := range tests {
		var s subsetStats
		b := New(subsetConfig(&s, config.Subset{Fallback: config.FallbackNone, ListAsAny: tt.any, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}}))
		b.Update(priorities(hosts), nil)
		got := split(b, &Context{Criteria: NewCriteria(map[string]any{"v": tt.value})}, 12)
		for _, i := range tt.want {
			if got[hosts[i]] == 0 {
				t.Errorf("any=%t %v: host %d not picked", tt.any, tt.value, i)
			}
		}
		if tt.want == nil && got[nil] != 12 || tt.want != nil && (len(got) != len(tt.want) || got[nil] > 0) {
			t.Errorf("any=%t %v: %s", tt.any, tt.value, showSplit(got, hosts))
		}
		if want := map[bool]uint64{false: 6, true: 6}[tt.any]; s.active.Value() != want {
			t.Errorf("any=%t: %d subsets, want %d", tt.any, s.active.Value(), want)
		}
	}
}

// TestListsAsAWholeAreNotCounted: that a list may also be matched as a whole is
// no subset of its own, unless it is an element of another list.
func TestListsAsAWholeAreNotCounted(t *testing.T) {
	list := []any{"a", "b"}
	outer, inner := upstreamtest.Host(1, values("v", []any{list})), upstreamtest.Host(0, values("v", list))
	for _, tt := range []struct {
		hosts []*host.Host
		want  uint64
	}{
		{[]*host.Host{inner}, 2},
		{[]*host.Host{outer}, 1},
		{[]*host.Host{inner, outer}, 3},
		{[]*host.Host{outer, inner}, 3},
	} {
		var s subsetStats
		b := New(subsetConfig(&s, config.Subset{Fallback: config.FallbackNone, ListAsAny: true, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}}))
		b.Update(priorities(tt.hosts), nil)
		if s.active.Value() != tt.want || s.created.Value() != tt.want {
			t.Errorf("%d hosts: active %d, created %d, want %d", len(tt.hosts), s.active.Value(), s.created.Value(), tt.want)
		}
	}
}

// TestListsWithRepeatedValues: a host counts once in a subset, and the second host of
// a subset for one counts as a duplicate for each element.
func TestListsWithRepeatedValues(t *testing.T) {
	hosts := []*host.Host{upstreamtest.Host(0, values("v", []any{"a", "a", "b"})), upstreamtest.Host(1, values("v", []any{"a", "b"}))}
	var s subsetStats
	criteria := &Context{Criteria: NewCriteria(map[string]any{"v": "a"})}
	for single, want := range map[bool][]int{false: {6, 6}, true: {12, 0}} {
		b := New(subsetConfig(&s, config.Subset{Fallback: config.FallbackNone, ListAsAny: true, Selectors: []config.SubsetSelector{{Keys: []string{"v"}, SingleHostPerSubset: single}}}))
		b.Update(priorities([]*host.Host{hosts[0]}), nil)
		b.Update(priorities(hosts), nil)
		checkSplit(t, split(b, criteria, 12), hosts, want...)
		if n := s.duplicates.Value(); n != map[bool]uint64{false: 0, true: 2}[single] {
			t.Errorf("single=%t: %d duplicates", single, n)
		}
	}
}

// TestDifferentValuesDiffer, also behind others in a list.
func TestDifferentValuesDiffer(t *testing.T) {
	seen := map[string]any{}
	for _, v := range []any{
		nil, true, false, 0.0, 1.0, "", "t", "a", []any{}, map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": true}, map[string]any{"b": true},
		map[string]any{"a": true, "b": 1.0}, []any{"a"}, []any{"a", "b"}, []any{"ab"}, []any{[]any{"a"}, "b"}, []any{[]any{"a", "b"}},
		[]any{"a", true}, []any{"b", true}, []any{"a", false}, []any{"b", false}, []any{"a", nil}, []any{"b", nil}, []any{"a", 1.0}, []any{"b", 1.0},
		[]any{"a", []any{}}, []any{"b", []any{}}, []any{"a", map[string]any{}}, []any{"b", map[string]any{}},
		[]any{map[string]any{"a": nil}, map[string]any{"b": nil}}, []any{map[string]any{"a": nil, "b": nil}, map[string]any{}},
	} {
		id := valueID(v)
		if other, ok := seen[id]; ok {
			t.Errorf("%#v and %#v are equal", v, other)
		}
		seen[id] = v
	}
	if valueID(math.Copysign(0, -1)) != valueID(0.0) || valueID(map[string]any{"a": 1.0, "b": 2.0}) != valueID(map[string]any{"b": 2.0, "a": 1.0}) {
		t.Error("equal values differ")
	}
}

func TestSubsetLocalityWeights(t *testing.T) {
	in := func(i int, z, v string) *host.Host { return upstreamtest.Host(i, zone(z), values("v", v)) }
	hosts := []*host.Host{in(0, "a", "1"), in(1, "a", "2"), in(2, "a", "2"), in(3, "a", "2"), in(4, "b", "1")}
	s := host.NewSet(0, hosts, host.SetOptions{LocalityWeights: map[config.Locality]uint32{{Zone: "a"}: 8, {Zone: "b"}: 8}})
	for _, tt := range []struct {
		aware, scale bool
		want         [2]int // of hosts 0 and 4, of 100
	}{{false, false, [2]int{50, 50}}, {true, false, [2]int{50, 50}}, {true, true, [2]int{20, 80}}} {
		var st subsetStats
		c := subsetConfig(&st, config.Subset{
			Fallback: config.FallbackNone, LocalityWeightAware: tt.aware, ScaleLocalityWeight: tt.scale,
			Selectors: []config.SubsetSelector{{Keys: []string{"v"}}},
		})
		c.LocalityWeighted = true
		b := New(c)
		b.Update([]*host.Set{s}, nil)
		got := split(b, &Context{Criteria: NewCriteria(map[string]any{"v": "1"})}, 100)
		if got[hosts[0]] != tt.want[0] || got[hosts[4]] != tt.want[1] {
			t.Errorf("aware=%t scale=%t: %s, want %v", tt.aware, tt.scale, showSplit(got, hosts), tt.want)
		}
	}
}

// FuzzCriteria checks that criteria are equal exactly when their values are.
func FuzzCriteria(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("a", "bc", "ab", "c")
	f.Add("", "", "", "x")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		a := NewCriteria(map[string]any{k1: v1})
		b := NewCriteria(map[string]any{k2: v2})
		if (a.id == b.id) != (k1 == k2 && v1 == v2) {
			t.Errorf("%q=%q and %q=%q: ids %q, %q", k1, v1, k2, v2, a.id, b.id)
		}
		if (valueID([]any{v1, v2}) == valueID([]any{k1, k2})) != (v1 == k1 && v2 == k2) {
			t.Errorf("lists of %q, %q and %q, %q", v1, v2, k1, k2)
		}
	})
}

// TestSubsetsPanicAndSpillByThemselves has subsets whose health is not that of the
// cluster.
func TestSubsetsPanicAndSpillByThemselves(t *testing.T) {
	down := flags(status.FailedEDSHealth)
	first := []*host.Host{
		upstreamtest.Host(0, values("v", "sick")), upstreamtest.Host(1, values("v", "sick"), down), upstreamtest.Host(2, values("v", "sick"), down),
		upstreamtest.Host(3, values("v", "spills"), down), upstreamtest.Host(4, values("v", "spills")),
		upstreamtest.Host(5), upstreamtest.Host(6), upstreamtest.Host(7), upstreamtest.Host(8), upstreamtest.Host(9), upstreamtest.Host(10), upstreamtest.Host(11), upstreamtest.Host(12), upstreamtest.Host(13),
	}
	second := []*host.Host{upstreamtest.Host(20, values("v", "spills")), upstreamtest.Host(21)}
	var s subsetStats
	var panics upstreamtest.Count
	c := subsetConfig(&s, config.Subset{Fallback: config.FallbackNone, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}})
	x := uint64(0)
	c.Stats.HealthyPanic, c.Rand = panics.Counter(), func() uint64 { x++; return x - 1 }
	b := New(c)
	b.Update(priorities(first, second), nil)
	of := func(v string) *Context { return &Context{Criteria: NewCriteria(map[string]any{"v": v})} }
	checkSplit(t, split(b, of("sick"), 30), first[:3], 10, 10, 10)
	if panics.Value() != 30 {
		t.Errorf("lb_healthy_panic = %d, want 30", panics.Value())
	}
	x = 0
	checkSplit(t, split(b, of("spills"), 100), append(first[3:5:5], second[0]), 0, 70, 30)
	if panics.Value() != 30 {
		t.Errorf("lb_healthy_panic = %d after picks without panic, want 30", panics.Value())
	}
}
