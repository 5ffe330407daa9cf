package lb

import (
	"slices"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// hashed is the balancer of the hash policies: one table for each priority, over its
// healthy hosts or, in panic, over all of them.
type hashed struct {
	c     Config
	build func([]entry) placer
	table atomic.Pointer[hashedTable]
}

type hashedTable struct {
	choices    *choices
	priorities []hashedPriority
}

type hashedPriority struct {
	panic   bool
	entries []entry
	placer  placer   // nil: no hosts
	bounded *bounded // nil: no bounds
}

// entry is a host with its key and its share of all entries.
type entry struct {
	host   *host.Host
	key    string
	weight float64 // all of a table sum up to 1
}

// placer maps a hash to a host; further attempts yield other hosts.
type placer interface {
	place(hash uint64, attempt int) *host.Host
}

func newHashed(c Config, build func([]entry) placer) *hashed {
	return &hashed{c: c, build: build}
}

// Update implements [Balancer]. It keeps tables whose hosts, keys and weights are
// unchanged.
func (b *hashed) Update(sets []*host.Set, _ *host.Set) {
	loads := ComputeLoads(sets, b.c.PanicThreshold())
	old := b.table.Load()
	t := &hashedTable{choices: loads.table(), priorities: make([]hashedPriority, len(sets))}
	for p, s := range sets {
		hp := &t.priorities[p]
		hp.panic = loads.Panic[p]
		hp.entries = b.entries(s, hp.panic)
		switch {
		case len(hp.entries) == 0:
		case old != nil && p < len(old.priorities) && slices.Equal(old.priorities[p].entries, hp.entries):
			hp.placer, hp.bounded = old.priorities[p].placer, old.priorities[p].bounded
		default:
			hp.placer, hp.bounded = b.build(hp.entries), b.c.bound(hp.entries)
		}
	}
	b.table.Store(t)
}

// entries returns the hosts with normalized weights.
func (b *hashed) entries(s *host.Set, all bool) []entry {
	if !b.c.LocalityWeighted || !s.LocalityWeighted {
		hosts := s.Healthy
		if all {
			hosts = s.Hosts
		}
		return b.appendEntries(nil, hosts, 1)
	}
	var sum float64
	for i := range s.Localities {
		sum += float64(s.Localities[i].Weight)
	}
	var out []entry
	for i := range s.Localities {
		l := &s.Localities[i]
		if l.Weight == 0 {
			continue
		}
		hosts := l.Healthy
		if all {
			hosts = l.Hosts
		}
		out = b.appendEntries(out, hosts, float64(l.Weight)/sum)
	}
	return out
}

func (b *hashed) appendEntries(dst []entry, hosts []*host.Host, share float64) []entry {
	sum := float64(host.Weight(hosts))
	for _, h := range hosts {
		dst = append(dst, entry{h, b.key(h), share * float64(h.Weight()) / sum})
	}
	return dst
}

// key returns the text that is hashed for h.
func (b *hashed) key(h *host.Host) string {
	if k, ok := b.c.hostValues(h)["hash_key"].(string); ok && k != "" {
		return k
	}
	if b.c.UseHostname && h.Hostname() != "" {
		return h.Hostname()
	}
	return h.AddressText()
}

// hostValues returns the balancing metadata of h.
func (c *Config) hostValues(h *host.Host) map[string]any {
	m := h.Metadata()
	if v, ok := m[c.MetadataNamespace]; ok {
		return v
	}
	return m[c.AltNamespace]
}

// Pick implements [Balancer].
func (b *hashed) Pick(ctx *Context) *host.Host {
	t := b.table.Load()
	if t == nil {
		return nil
	}
	if ctx == nil {
		hash := b.c.Rand()
		return b.at(t.choices[hash%100], t, hash, 0)
	}
	hash := ctx.Hash
	if !ctx.HasHash {
		hash = b.c.Rand()
	}
	ch := t.choices[hash%100]
	if ctx.Loads != nil {
		ch = ctx.Loads.choose(hash)
	}
	h := b.at(ch, t, hash, 0)
	if ctx.Reject != nil {
		for a := 1; a <= ctx.Retries && h != nil && ctx.Reject(h); a++ {
			h = b.at(ch, t, hash, a)
		}
	}
	return h
}

func (b *hashed) at(ch choice, t *hashedTable, hash uint64, attempt int) *host.Host {
	if !ch.ok || int(ch.priority) >= len(t.priorities) {
		return nil
	}
	p := &t.priorities[ch.priority]
	if p.panic && attempt == 0 {
		b.c.Stats.HealthyPanic.Inc()
	}
	if p.placer == nil {
		return nil
	}
	h := p.placer.place(hash, attempt)
	if p.bounded != nil {
		return p.bounded.choose(h, hash)
	}
	return h
}
