package lb

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// weighted is the balancer of the policies without hashing: round robin, least request
// and random. It chooses a priority, a locality if localities matter, and then a host
// by the policy.
type weighted struct {
	c     Config
	table atomic.Pointer[weightedTable]

	slow     *slowStart // nil: no slow start; only Update touches it
	readings readings   // on which weights depend

	// indexes are the round robin positions by list. They survive updates. Only Update
	// touches the map.
	indexes map[listKey]*rotation
}

// listKey identifies a list of hosts of a priority.
type listKey struct {
	priority int
	kind     listKind
	locality int
}

type listKind uint8

const (
	allHosts listKind = iota
	healthyHosts
	degradedHosts
	localityHealthyHosts
	localityDegradedHosts
)

type weightedTable struct {
	choices    *choices
	priorities []spreadPriority
	zone       *zoneRouting // nil: none
}

type spreadPriority struct {
	panic             bool
	all               picker
	healthy, degraded avail
}

// avail holds the hosts of one availability in a priority.
type avail struct {
	picker    picker    // over all localities
	locality  []picker  // by locality; nil unless localities matter
	scheduled *schedule // over localities by weight; nil: not weighted
}

// picker picks from one list; nil is a list without hosts.
type picker interface{ pick() *host.Host }

func newWeighted(c Config) *weighted {
	b := &weighted{c: c, indexes: make(map[listKey]*rotation)}
	b.c.ActiveRequestBias = b.readings.add(c.ActiveRequestBias)
	if c.SlowStart.Window > 0 && c.Policy != config.RandomPolicy {
		b.slow = &slowStart{c: c.SlowStart}
		b.slow.c.Aggression = b.readings.add(c.SlowStart.Aggression)
	}
	return b
}

// Update implements [Balancer].
func (b *weighted) Update(sets []*host.Set, local *host.Set) {
	b.readings.refresh()
	if b.slow != nil {
		b.slow.update(sets)
	}
	loads := ComputeLoads(sets, b.c.PanicThreshold())
	t := &weightedTable{choices: loads.table(), priorities: make([]spreadPriority, len(sets))}
	if local != nil && !b.c.LocalityWeighted && len(sets) > 0 {
		t.zone = b.c.routeZones(sets[0], local)
	}
	for p, s := range sets {
		sp := &t.priorities[p]
		sp.panic = loads.Panic[p]
		sp.all = b.list(listKey{priority: p, kind: allHosts}, s.Hosts)
		zoned := p == 0 && t.zone != nil
		sp.healthy = b.avail(s, p, healthyHosts, zoned)
		sp.degraded = b.avail(s, p, degradedHosts, zoned)
	}
	b.table.Store(t)
}

// avail builds the lists of an availability. Lists by locality are built only if
// localities are weighted or zones are routed.
func (b *weighted) avail(s *host.Set, p int, kind listKind, zoned bool) avail {
	hosts, localityKind := s.Healthy, localityHealthyHosts
	of := func(l *host.LocalitySet) []*host.Host { return l.Healthy }
	if kind == degradedHosts {
		hosts, localityKind = s.Degraded, localityDegradedHosts
		of = func(l *host.LocalitySet) []*host.Host { return l.Degraded }
	}
	a := avail{picker: b.list(listKey{priority: p, kind: kind}, hosts)}
	weighted := b.c.LocalityWeighted && s.LocalityWeighted
	if !weighted && !zoned {
		return a
	}
	if weighted {
		weights := LocalityWeights(s, of)
		a.scheduled = newSchedule(len(weights), func(i uint32) float64 { return weights[i] }, b.c.Slots, b.c.Seed)
	}
	a.locality = make([]picker, len(s.Localities))
	for i := range s.Localities {
		a.locality[i] = b.list(listKey{p, localityKind, i}, of(&s.Localities[i]))
	}
	return a
}

// LocalityWeights returns the effective weight of each locality of s: its configured
// weight, reduced if the eligible hosts cannot make up for missing ones.
func LocalityWeights(s *host.Set, eligible func(*host.LocalitySet) []*host.Host) []float64 {
	weights := make([]float64, len(s.Localities))
	for i := range s.Localities {
		l := &s.Localities[i]
		n := len(l.Hosts) - len(l.Excluded)
		if n <= 0 {
			continue
		}
		ratio := float64(len(eligible(l))) / float64(n)
		weights[i] = float64(l.Weight) * min(1, float64(s.Overprovisioning)/100*ratio)
	}
	return weights
}

// list returns the picker for a list.
func (b *weighted) list(k listKey, hosts []*host.Host) picker {
	if len(hosts) == 0 {
		return nil
	}
	if b.c.Policy == config.RandomPolicy {
		return &randomPicker{hosts, b.c.Rand}
	}
	weight := func(i uint32) float64 { return float64(hosts[i].Weight()) }
	if b.c.Policy == config.LeastRequestPolicy {
		weight = leastWeight(hosts, b.c.ActiveRequestBias)
	}
	slow := false
	if b.slow != nil {
		weight, slow = b.slow.slows(hosts, weight)
	}
	if !slow && sameWeight(hosts) {
		if b.c.Policy == config.LeastRequestPolicy {
			return &leastPicker{hosts, b.c.Rand, b.c.ChoiceCount}
		}
		i := b.indexes[k]
		if i == nil {
			i = new(rotation)
			i.next.Store(b.c.Seed)
			b.indexes[k] = i
		}
		return &rotatePicker{hosts, i}
	}
	return &weightedPicker{hosts, newSchedule(len(hosts), weight, b.c.Slots, b.c.Seed), b.readings}
}

func sameWeight(hosts []*host.Host) bool {
	return !slices.ContainsFunc(hosts, func(h *host.Host) bool { return h.Weight() != hosts[0].Weight() })
}

// leastWeight is the weight of a host by its active requests: weight / (active requests
// + 1)^bias.
func leastWeight(hosts []*host.Host, bias func() float64) func(uint32) float64 {
	return func(i uint32) float64 {
		h := hosts[i]
		w, busy := float64(h.Weight()), float64(h.Stats.RqActive.Value()+1)
		x := 1.0
		if bias != nil {
			x = bias()
		}
		switch {
		case x == 0 || busy == 1:
			return w
		case x > 0 && x != 1:
			return max(w/math.Pow(busy, x), math.SmallestNonzeroFloat32)
		}
		return w / busy
	}
}

// Pick implements [Balancer].
func (b *weighted) Pick(ctx *Context) *host.Host {
	t := b.table.Load()
	if t == nil {
		return nil
	}
	if ctx == nil {
		return b.once(t, nil)
	}
	h := b.once(t, ctx)
	if ctx.Reject != nil {
		for a := 0; a < ctx.Retries && h != nil && ctx.Reject(h); a++ {
			h = b.once(t, ctx)
		}
	}
	return h
}

// once draws one candidate.
func (b *weighted) once(t *weightedTable, ctx *Context) *host.Host {
	p := b.source(t, ctx)
	if p == nil {
		return nil
	}
	return p.pick()
}

// source returns the list to pick from, nil if it is empty.
func (b *weighted) source(t *weightedTable, ctx *Context) picker {
	x := b.c.Rand()
	ch := t.choices[x%100]
	if ctx != nil && ctx.Loads != nil {
		ch = ctx.Loads.choose(x)
	}
	if !ch.ok || int(ch.priority) >= len(t.priorities) {
		return nil
	}
	p := &t.priorities[ch.priority]
	if p.panic {
		b.c.Stats.HealthyPanic.Inc()
		if b.c.FailOnPanic {
			return nil
		}
		return p.all
	}
	a := &p.healthy
	if ch.degraded {
		a = &p.degraded
	}
	switch {
	case a.scheduled != nil:
		return a.locality[a.scheduled.next()]
	case ch.priority == 0 && t.zone != nil:
		return b.zoned(t.zone, a)
	}
	return a.picker
}

// zoned returns the list of the locality that zone-aware routing chooses.
func (b *weighted) zoned(z *zoneRouting, a *avail) picker {
	if on := b.c.Zone.Enabled(); on < 100 && b.c.Rand()%100 >= uint64(on) {
		return a.picker
	}
	if z.localPanics {
		b.c.Stats.LocalClusterNotOK.Inc()
		if b.c.FailOnPanic {
			return nil
		}
		return a.picker
	}
	if p := a.locality[z.choose(&b.c)]; p != nil {
		return p
	}
	return a.picker // no hosts, of degraded ones for instance
}

// rotatePicker picks hosts in turn.
type rotatePicker struct {
	hosts []*host.Host
	index *rotation // shared with the pickers before and after an update
}

// rotation is a position in a list. It is padded because every pick writes it, which
// would slow down reads of neighbors.
type rotation struct {
	_    [64]byte
	next atomic.Uint64
	_    [64]byte
}

func (p *rotatePicker) pick() *host.Host {
	if len(p.hosts) == 1 {
		return p.hosts[0]
	}
	return p.hosts[(p.index.next.Add(1)-1)%uint64(len(p.hosts))]
}

// weightedPicker picks hosts by a schedule.
type weightedPicker struct {
	hosts    []*host.Host
	schedule *schedule
	readings readings
}

func (p *weightedPicker) pick() *host.Host {
	p.readings.refresh()
	return p.hosts[p.schedule.next()]
}

// leastPicker picks the least busy of a few random hosts.
type leastPicker struct {
	hosts   []*host.Host
	rand    func() uint64
	choices int
}

func (p *leastPicker) pick() *host.Host {
	var best *host.Host
	var least uint64
	for range p.choices {
		h := p.hosts[p.rand()%uint64(len(p.hosts))]
		if busy := h.Stats.RqActive.Value(); best == nil || busy < least {
			best, least = h, busy
		}
	}
	return best
}

// randomPicker picks a random host.
type randomPicker struct {
	hosts []*host.Host
	rand  func() uint64
}

func (p *randomPicker) pick() *host.Host { return p.hosts[p.rand()%uint64(len(p.hosts))] }
