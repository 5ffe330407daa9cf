package lb

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// subset divides the hosts by their metadata. Each combination of values of a
// selector's keys has its own balancer over a filtered view, with its own priorities,
// panic and round robin state.
type subset struct {
	c     Config
	s     *config.Subset
	all   Balancer
	deflt Balancer // over default_subset; nil unless something falls back to it
	table atomic.Pointer[subsetTable]

	selectors []selector           // with different sets of keys
	byKeys    map[string]*selector // by keyID; fixed
}

type selector struct {
	keys     []string
	keyID    string
	fallback config.Fallback
	cut      []string // keys left for FallbackKeysSubset
	single   bool     // its subsets have one host only
}

// subsetTable is immutable.
type subsetTable struct {
	subsets map[string]*subsetEntry
}

// subsetEntry is one subset. Only Update uses members other than balancer.
type subsetEntry struct {
	balancer Balancer
	indexes  [][]int // of the hosts, by priority
	first    *host.Host
	alias    bool // for a list value as a whole beside its elements: not counted
}

func newSubset(c Config) *subset {
	b := &subset{c: c, s: c.Subset, byKeys: make(map[string]*selector)}
	b.all = newPlain(c)
	wantDefault := b.s.Fallback == config.FallbackDefaultSubset
	for _, sel := range b.s.Selectors {
		keys := slices.Compact(slices.Sorted(slices.Values(sel.Keys)))
		id := keyID(keys)
		if _, twice := b.byKeys[id]; len(keys) == 0 || twice {
			continue
		}
		wantDefault = wantDefault || sel.Fallback == config.FallbackDefaultSubset
		b.selectors = append(b.selectors, selector{keys, id, sel.Fallback, slices.Sorted(slices.Values(sel.FallbackKeys)), sel.SingleHostPerSubset})
		b.byKeys[id] = nil
	}
	for i := range b.selectors {
		b.byKeys[b.selectors[i].keyID] = &b.selectors[i]
	}
	if wantDefault {
		b.deflt = newPlain(c)
	}
	return b
}

// Update implements [Balancer]. It adds new subsets before it removes empty ones.
func (b *subset) Update(sets []*host.Set, local *host.Set) {
	b.all.Update(sets, local)
	if b.deflt != nil {
		b.deflt.Update(b.view(sets, b.defaults(sets)), local)
	}
	old := map[string]*subsetEntry{}
	if t := b.table.Load(); t != nil {
		old = t.subsets
	}
	subsets, duplicates := b.divide(sets)
	t := &subsetTable{subsets: subsets}
	active := uint64(0)
	for id, e := range t.subsets {
		if o := old[id]; o != nil {
			e.balancer = o.balancer
		} else {
			e.balancer = newPlain(b.c)
			if !e.alias {
				b.c.Stats.SubsetsCreated.Inc()
			}
		}
		e.balancer.Update(b.view(sets, e.indexes), local)
		e.indexes, e.first = nil, nil
		if !e.alias {
			active++
		}
	}
	b.table.Store(t)
	for id, o := range old {
		if t.subsets[id] == nil && !o.alias {
			b.c.Stats.SubsetsRemoved.Inc()
		}
	}
	b.c.Stats.SubsetsActive.Set(active)
	b.c.Stats.SubsetsDuplicates.Set(uint64(duplicates))
}

// divide finds the subsets and their hosts. A subset with a single host gets the first
// one; duplicates counts the others.
func (b *subset) divide(sets []*host.Set) (subsets map[string]*subsetEntry, duplicates int) {
	subsets = make(map[string]*subsetEntry)
	for p, s := range sets {
		for i, h := range s.Hosts {
			values := b.c.hostValues(h)
			for k := range b.selectors {
				sel := &b.selectors[k]
				combine(values, sel.keys, b.s.ListAsAny, func(encoded []string, alias bool) {
					id := subsetID(sel.keyID, encoded)
					e := subsets[id]
					switch {
					case e == nil:
						e = &subsetEntry{indexes: make([][]int, len(sets)), alias: alias, first: h}
						subsets[id] = e
					case sel.single && e.first != h:
						if !alias {
							duplicates++
						}
						return
					}
					e.alias = e.alias && alias
					// A list can hold a value twice.
					if x := e.indexes[p]; len(x) == 0 || x[len(x)-1] != i {
						e.indexes[p] = append(x, i)
					}
				})
			}
		}
	}
	return subsets, duplicates
}

// combine calls yield with the encoded values of keys, once for each combination if
// lists match by any element. It skips a host that lacks a key.
func combine(values map[string]any, keys []string, listAsAny bool, yield func(encoded []string, alias bool)) {
	encoded := make([]string, len(keys))
	var fill func(i int, alias bool)
	fill = func(i int, alias bool) {
		if i == len(keys) {
			yield(encoded, alias)
			return
		}
		v, ok := values[keys[i]]
		if !ok {
			return
		}
		list, isList := v.([]any)
		if isList && listAsAny {
			for _, e := range list {
				encoded[i] = valueID(e)
				fill(i+1, alias)
			}
			alias = true
		}
		encoded[i] = valueID(v)
		fill(i+1, alias)
	}
	fill(0, false)
}

// defaults returns the indexes of the hosts that match the default subset.
func (b *subset) defaults(sets []*host.Set) [][]int {
	want := make(map[string]string, len(b.s.DefaultSubset))
	for k, v := range b.s.DefaultSubset {
		want[k] = valueID(v)
	}
	matches := func(h *host.Host) bool {
		values := b.c.hostValues(h)
		for k, w := range want {
			v, ok := values[k]
			if !ok {
				return false
			}
			list, isList := v.([]any)
			any := isList && b.s.ListAsAny && slices.ContainsFunc(list, func(e any) bool { return valueID(e) == w })
			if !any && valueID(v) != w {
				return false
			}
		}
		return true
	}
	indexes := make([][]int, len(sets))
	for p, s := range sets {
		for i, h := range s.Hosts {
			if matches(h) {
				indexes[p] = append(indexes[p], i)
			}
		}
	}
	return indexes
}

// view returns the sets reduced to the hosts at indexes.
func (b *subset) view(sets []*host.Set, indexes [][]int) []*host.Set {
	out := make([]*host.Set, len(sets))
	for p, s := range sets {
		var weights func(config.Locality, int) uint32
		if b.s.LocalityWeightAware {
			weights = func(l config.Locality, n int) uint32 { return b.weight(s, l, n) }
		}
		out[p] = s.Subset(indexes[p], weights)
	}
	return out
}

// weight is the weight of a locality of which the subset has n hosts.
func (b *subset) weight(s *host.Set, l config.Locality, n int) uint32 {
	ls := &s.Localities[slices.IndexFunc(s.Localities, func(ls host.LocalitySet) bool { return ls.Locality == l })]
	if !b.s.ScaleLocalityWeight {
		return ls.Weight
	}
	return uint32(math.Round(float64(ls.Weight) * float64(n) / float64(len(ls.Hosts))))
}

// Pick implements [Balancer].
func (b *subset) Pick(ctx *Context) *host.Host {
	t := b.table.Load()
	if t == nil {
		return nil
	}
	if b.s.MetadataFallback && ctx != nil && ctx.Criteria != nil && ctx.Criteria.fallbacks != nil {
		for _, c := range ctx.Criteria.fallbacks {
			next := *ctx
			next.Criteria = c
			if h := b.once(t, &next); h != nil {
				return h
			}
		}
		return nil
	}
	return b.once(t, ctx)
}

// once picks by one list of criteria.
func (b *subset) once(t *subsetTable, ctx *Context) *host.Host {
	if ctx != nil && ctx.Criteria != nil {
		if h, final := b.bySelector(t, ctx); final {
			return h
		}
	}
	var fallback Balancer
	switch b.s.Fallback {
	case config.FallbackAnyEndpoint:
		fallback = b.all
	case config.FallbackDefaultSubset:
		fallback = b.deflt
	default:
		return nil
	}
	if h := fallback.Pick(ctx); h != nil {
		b.c.Stats.SubsetsFallback.Inc()
		return h
	}
	if b.s.PanicModeAny {
		if h := b.all.Pick(ctx); h != nil {
			b.c.Stats.SubsetsFallbackPanic.Inc()
			return h
		}
	}
	return nil
}

// bySelector returns the subset of the criteria, or the fallback of the selector with
// these keys. The result is not final if the top-level policy decides.
func (b *subset) bySelector(t *subsetTable, ctx *Context) (h *host.Host, final bool) {
	// Each round has fewer keys than the one before.
	for c := ctx.Criteria; c != nil; {
		if e := t.subsets[c.id]; e != nil {
			b.c.Stats.SubsetsSelected.Inc()
			return e.balancer.Pick(ctx), true
		}
		sel := b.byKeys[c.keyID]
		if sel == nil {
			return nil, false
		}
		switch sel.fallback {
		case config.FallbackNone:
			return nil, true
		case config.FallbackAnyEndpoint:
			return b.all.Pick(ctx), true
		case config.FallbackDefaultSubset:
			return b.deflt.Pick(ctx), true
		case config.FallbackKeysSubset:
			if len(sel.cut) >= len(sel.keys) {
				return nil, false
			}
			c = c.only(sel.cut)
		default:
			return nil, false
		}
	}
	return nil, false
}
