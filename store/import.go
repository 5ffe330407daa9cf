package store

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Handed is a counter or gauge that a process hands over to its successor.
type Handed struct {
	// Name is the full name without the tags that follow it.
	Name string
	// Tags are the tags that were given, not those that rules took out of the
	// name.
	Tags []tags.Tag
	// Network says that network input made the stat.
	Network bool
	// Kind is KindCounter or KindGauge.
	Kind Kind
	// Fractional says that the gauge is a [FloatGauge].
	Fractional bool

	// Settled is what was added to a counter and given to the sinks already.
	// Delta is what was added since.
	Settled, Delta uint64
	// Value is the value of a gauge; of a fractional one as of
	// math.Float64bits.
	Value uint64
}

// Export hands stats over to a successor. Each call of [Export.Next] takes what
// changed since the one before. From the first call on nobody else may flush
// the store: what a flush takes is lost to the successor. One goroutine may use
// it at a time.
type Export struct {
	s     *Store
	begun bool
}

// NewExport returns an export that has not handed over anything.
func (s *Store) NewExport() *Export { return &Export{s: s} }

// Next calls yield for each counter and gauge that changed, the first time for
// each that is used, until it returns false; what is left is then lost. Gauges
// that are never imported are left out. The argument is valid during the call.
func (e *Export) Next(yield func(*Handed) bool) {
	first := !e.begun
	e.begun = true
	snap := e.s.Flush(FlushOptions{SkipHistograms: true, Totals: first})
	defer snap.Close()
	var h Handed
	more := true
	walked := make(map[id]bool)
	if first {
		more = settled(snap, walked, yield)
	}
	// Stats may be younger than the view that was walked.
	if more {
		snap.CounterChanges(func(c *Cursor, delta uint64) bool {
			h.describe(c)
			h.Delta = delta
			more = yield(&h)
			return more
		})
	}
	if more {
		snap.visit(snap.gauges, func(c *Cursor) bool { return walked[c.x] || !h.describe(c) || yield(&h) })
	}
}

// settled hands over all gauges, which it adds to walked, and of counters what
// was there before the flush. It reports whether more is wanted.
func settled(snap *Snapshot, walked map[id]bool, yield func(*Handed) bool) bool {
	deltas := make(map[id]uint64, len(snap.counters))
	for _, ch := range snap.counters {
		deltas[ch.x] = ch.delta
	}
	var h Handed
	for c := snap.view.ByName(Scalars); c.Next(); {
		if !c.Used() || !h.describe(&c) {
			continue
		}
		if h.Kind == KindCounter {
			total, ok := snap.Total(&c)
			if !ok {
				continue
			}
			h.Settled = total - deltas[c.x]
			if base := c.b.base.Load(); base != nil {
				h.Settled -= min(h.Settled, base[c.i].Load())
			}
			if h.Settled == 0 {
				continue
			}
		} else {
			walked[c.x] = true
		}
		if !yield(&h) {
			return false
		}
	}
	return true
}

// describe fills in what h is about. It reports whether it is to be handed
// over.
func (h *Handed) describe(c *Cursor) bool {
	tgs := h.Tags[:0]
	*h = Handed{Kind: c.Kind(), Network: c.Network(), Fractional: c.b.variant == variantFloat}
	if c.b.modes != nil && ImportMode(c.b.modes[c.i].Load()) == NeverImport {
		return false
	}
	if h.Kind == KindGauge {
		h.Value = c.raw
	}
	if !c.given() {
		h.Name = c.Name()
		return true
	}
	h.Tags = c.AppendTags(tgs)
	if f := c.Family(); f != nil {
		h.Name = f.String()
	}
	return true
}

// given reports whether the tags of the stat were given.
func (c *Cursor) given() bool {
	return c.rest()[0]&flagExplicit != 0
}

// parents are what a parent process adds to the gauges of a block.
type parents struct {
	values  [slotsPerBlock]atomic.Uint64
	changed atomicBits // since the last flush
}

// take adds to changed what changed since the last call.
func (p *parents) take(changed *bitset) {
	for w := range p.changed {
		if p.changed[w].Load() != 0 {
			changed[w] |= p.changed[w].Swap(0)
		}
	}
}

// gauge returns the value of gauge i: the own one and that of a parent.
func (b *block) gauge(i int) uint64 {
	v := b.pg.word(i).load()
	if p := b.parents.Load(); p != nil {
		v += p.values[i].Load()
	}
	return v
}

// Import takes in what a parent process hands over: the other end of an
// [Export]. Its methods are safe for concurrent use.
//
// A counter goes on from where the parent's was; only what the parent had not
// given to its sinks is given to those of this store. A gauge of whole numbers
// shows the sum of its own value and the parent's, as long as there is a
// parent, unless its mode is [NeverImport]. A fractional gauge takes over the
// parent's value and follows its changes.
type Import struct {
	s *Store
	// find returns the *Counter or *FloatGauge for a stat of network input, nil
	// if it is to be kept like one of the program.
	find func(*Handed) any

	mu      sync.Mutex // guards the rest
	scope   *Scope
	network *Scope
	floats  map[string]float64 // values that the parent last had, by what tells gauges apart
	closed  bool
}

// NewImport returns an import. find returns the *[Counter] or *[FloatGauge] for
// a stat that network input made, so that who owns such stats knows of it; nil
// leaves it to the import. find itself may be nil.
//
// What nobody in this process has asked for until then ends with the import.
func (s *Store) NewImport(find func(*Handed) any) *Import {
	return &Import{
		s: s, find: find, scope: s.Scope(""), network: s.Scope("", ScopeOptions{Network: true}),
		floats: make(map[string]float64),
	}
}

// Add takes in one stat. An error says why it is refused; what was handed over
// is then lost. It does not keep h.
func (im *Import) Add(h *Handed) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	switch {
	case im.closed:
		return fmt.Errorf("store: import of %q: %w", h.Name, ErrClosed)
	case h.Kind == KindCounter:
		return im.counter(h)
	case h.Kind == KindGauge && h.Fractional:
		return im.float(h)
	case h.Kind == KindGauge:
		return im.gauge(h)
	}
	return fmt.Errorf("store: import of %q: a %s is not handed over: %w", h.Name, h.Kind, ErrKind)
}

func (im *Import) in(h *Handed) *Scope {
	if h.Network {
		return im.network
	}
	return im.scope
}

// known asks find for a stat of network input.
func (im *Import) known(h *Handed) any {
	if !h.Network || im.find == nil {
		return nil
	}
	return im.find(h)
}

func (im *Import) counter(h *Handed) (err error) {
	c, ok := im.known(h).(*Counter)
	if !ok {
		if c, err = im.in(h).TryCounter(h.Name, h.Tags...); err != nil {
			return err
		}
	}
	if h.Settled != 0 {
		im.s.settle(c, h.Settled)
	}
	if h.Delta != 0 {
		c.Add(h.Delta)
	}
	return nil
}

// settle adds n to c as if it had been flushed before.
func (s *Store) settle(c *Counter, n uint64) {
	b, i := c.w.home()
	if b.null {
		return
	}
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	c.w.add(n)
	b.latch[i] += n
}

func (im *Import) float(h *Handed) (err error) {
	value := math.Float64frombits(h.Value)
	if !finite(value) {
		return fmt.Errorf("store: import of %q: %w", h.Name, ErrNotFinite)
	}
	g, ok := im.known(h).(*FloatGauge)
	if !ok {
		if g, err = im.in(h).TryFloatGauge(h.Name, h.Tags...); err != nil {
			return err
		}
	}
	key := h.key()
	before := im.floats[key]
	im.floats[key] = value
	if g.w.swapIf(floatWord(before), floatWord(value)) { // nobody here has changed it
		return nil
	}
	return g.Add(value - before)
}

// key tells gauges apart.
func (h *Handed) key() string {
	k := h.Name
	for _, t := range h.Tags {
		k += "\x00" + t.Name + "\x01" + t.Value
	}
	if h.Network {
		k += "\x02"
	}
	return k
}

func (im *Import) gauge(h *Handed) error {
	b, i, err := im.in(h).ask(variantGauge, Uninitialized, 0, h.Name, h.Tags)
	if err != nil {
		return err
	}
	s := im.s
	s.mu.Lock() // a gauge's mode does not change while it is held
	defer s.mu.Unlock()
	if ImportMode(b.modes[i].Load()) == NeverImport || !b.alive.has(i) {
		return nil
	}
	p := b.parents.Load()
	if p == nil {
		p = new(parents)
		b.parents.Store(p)
	}
	p.values[i].Store(h.Value)
	p.changed.set(i) // the sinks are to hear of it
	b.used.set(i)
	return nil
}

// forget drops what a parent added to gauge i, which turned out to be one that
// is never imported. Nothing here has written to it. Store.mu must be held.
func (b *block) forget(i int) {
	if p := b.parents.Load(); p != nil {
		p.values[i].Store(0)
		p.changed.clear(i)
		b.used.clear(i)
	}
}

// Close ends the import: there is no parent any more, and what it added to
// gauges is taken away. Counters and fractional gauges stay as they are.
// Closing twice does nothing.
func (im *Import) Close() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return
	}
	im.closed = true
	s := im.s
	s.mu.Lock()
	for _, b := range s.eachBlock() {
		p := b.parents.Swap(nil)
		for i := range b.n {
			if p != nil && (p.values[i].Load() != 0 || p.changed.has(i)) {
				b.pg.word(i).add(0)
			}
		}
	}
	s.mu.Unlock()
	im.scope.Close()
	im.network.Close()
	im.floats = nil
}
