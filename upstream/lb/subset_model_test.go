package lb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// subsetModel says who may be picked by the rules alone: slow, and without anything
// that is prepared.
type subsetModel struct {
	s     config.Subset
	hosts []*host.Host

	selected, fallback, panics uint64 // of one pick
}

func sameValue(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// matching returns the hosts that have all of the values.
func (m *subsetModel) matching(values map[string]any) (out []*host.Host) {
	for _, h := range m.hosts {
		own := h.Metadata()["proxy.lb"]
		if !slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(k string) bool {
			have, ok := own[k]
			list, isList := have.([]any)
			if ok && m.s.ListAsAny && isList && slices.ContainsFunc(list, func(e any) bool { return sameValue(e, values[k]) }) {
				return false
			}
			return !ok || !sameValue(have, values[k])
		}) {
			out = append(out, h)
		}
	}
	return out
}

func sameKeys(values map[string]any, keys []string) bool {
	a, b := slices.Sorted(maps.Keys(values)), slices.Compact(slices.Sorted(slices.Values(keys)))
	return slices.Equal(a, b)
}

func (m *subsetModel) pick(criteria map[string]any) []*host.Host {
	for len(criteria) > 0 {
		i := slices.IndexFunc(m.s.Selectors, func(s config.SubsetSelector) bool { return sameKeys(criteria, s.Keys) })
		if i < 0 {
			break
		}
		if hosts := m.matching(criteria); len(hosts) > 0 {
			m.selected++
			return hosts
		}
		switch sel := m.s.Selectors[i]; sel.Fallback {
		case config.FallbackNone:
			return nil
		case config.FallbackAnyEndpoint:
			return m.hosts
		case config.FallbackDefaultSubset:
			return m.matching(m.s.DefaultSubset)
		case config.FallbackKeysSubset:
			fewer := map[string]any{}
			for _, k := range sel.FallbackKeys {
				fewer[k] = criteria[k]
			}
			criteria = fewer
			continue
		}
		break
	}
	var hosts []*host.Host
	switch m.s.Fallback {
	case config.FallbackNone:
		return nil
	case config.FallbackAnyEndpoint:
		hosts = m.hosts
	case config.FallbackDefaultSubset:
		hosts = m.matching(m.s.DefaultSubset)
	}
	switch {
	case len(hosts) > 0:
		m.fallback++
	case m.s.PanicModeAny && len(m.hosts) > 0:
		m.panics++
		hosts = m.hosts
	}
	return hosts
}

// TestSubsetsFollowTheModel compares picks and counts with the model, for any hosts,
// selectors and criteria, and again after another update.
func TestSubsetsFollowTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"a", "b", "c"}
		value := rapid.OneOf(
			rapid.SampledFrom([]any{"x", "y", 1.0, true, nil}),
			rapid.SliceOfN(rapid.SampledFrom([]any{"x", "y", 1.0}), 0, 2).AsAny(),
		)
		object := func(label string) map[string]any {
			m := rapid.MapOfN(rapid.SampledFrom(keys), value, 0, 3).Draw(t, label)
			return m
		}
		fallbacks := []config.Fallback{config.FallbackNone, config.FallbackAnyEndpoint, config.FallbackDefaultSubset}
		s := config.Subset{
			Fallback: rapid.SampledFrom(fallbacks).Draw(t, "fallback"), DefaultSubset: object("default"),
			ListAsAny: rapid.Bool().Draw(t, "list as any"), PanicModeAny: rapid.Bool().Draw(t, "panic mode"),
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "selectors") {
			sel := config.SubsetSelector{Keys: rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 3, rapid.ID[string]).Draw(t, fmt.Sprint("keys", i))}
			sel.Fallback = rapid.SampledFrom(append(fallbacks, config.FallbackNotDefined, config.FallbackKeysSubset)).Draw(t, "its fallback")
			if sel.Fallback == config.FallbackKeysSubset {
				if len(sel.Keys) == 1 {
					sel.Fallback = config.FallbackNotDefined
				} else {
					sel.FallbackKeys = slices.Clone(sel.Keys[:rapid.IntRange(1, len(sel.Keys)-1).Draw(t, "kept keys")])
				}
			}
			s.Selectors = append(s.Selectors, sel)
		}
		var counted subsetStats
		b := New(subsetConfig(&counted, s))
		for update := range 2 {
			m := subsetModel{s: s}
			for i := range rapid.IntRange(0, 6).Draw(t, "hosts") {
				var kv []any
				for k, v := range object(fmt.Sprint("host", i)) {
					kv = append(kv, k, v)
				}
				m.hosts = append(m.hosts, upstreamtest.Host(i, values(kv...)))
			}
			b.Update(priorities(m.hosts), nil)
			for range 5 {
				criteria := object("criteria")
				want := m.pick(criteria)
				n := uint64(max(len(want), 1) * 2)
				selected, fallback, panics := counted.selected.Value(), counted.fallback.Value(), counted.panics.Value()
				got := split(b, &Context{Criteria: NewCriteria(criteria)}, int(n))
				if len(want) == 0 {
					want = []*host.Host{nil}
				}
				for _, h := range want {
					if got[h] != 2 && h != nil {
						t.Fatalf("update %d, criteria %v: %s, want each of %d twice", update, criteria, showSplit(got, m.hosts), len(want))
					}
				}
				if len(got) != len(want) || (want[0] == nil) != (got[nil] > 0) {
					t.Fatalf("update %d, criteria %v: picked %s and none %d times, want %d hosts", update, criteria, showSplit(got, m.hosts), got[nil], len(want))
				}
				selected, fallback, panics = counted.selected.Value()-selected, counted.fallback.Value()-fallback, counted.panics.Value()-panics
				if selected != m.selected*n || fallback != m.fallback*n || panics != m.panics*n {
					t.Fatalf("update %d, criteria %v: selected %d, fallback %d, panic %d in %d picks, want %d, %d, %d each",
						update, criteria, selected, fallback, panics, n, m.selected, m.fallback, m.panics)
				}
				m.selected, m.fallback, m.panics = 0, 0, 0
			}
			if want := countSubsets(m.hosts, &s); counted.active.Value() != want || counted.created.Value()-counted.removed.Value() != want {
				t.Fatalf("active %d, created %d, removed %d, want %d active", counted.active.Value(), counted.created.Value(), counted.removed.Value(), want)
			}
		}
	})
}

// countSubsets counts the different combinations of values of the selectors' keys.
func countSubsets(hosts []*host.Host, s *config.Subset) uint64 {
	seen := map[string]bool{}
	for _, h := range hosts {
		own := h.Metadata()["proxy.lb"]
		for _, sel := range s.Selectors {
			keys := slices.Sorted(slices.Values(sel.Keys))
			ids := []string{fmt.Sprint(keys)}
			for _, k := range keys {
				v, ok := own[k]
				if !ok {
					ids = nil
					break
				}
				options := []any{v}
				if list, isList := v.([]any); isList && s.ListAsAny {
					options = list
				}
				var next []string
				for _, id := range ids {
					for _, o := range options {
						text, _ := json.Marshal(o)
						next = append(next, id+"|"+string(text))
					}
				}
				ids = next
			}
			for _, id := range ids {
				seen[id] = true
			}
		}
	}
	return uint64(len(seen))
}
