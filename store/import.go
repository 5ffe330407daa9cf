package store

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// ExportedStat is a counter or gauge that a process hands over to its
// successor.
type ExportedStat struct {
	// Name is the full name without the tags that follow it.
	Name string
	// Tags are the explicit tags, not the tags that rules extract from the
	// name.
	Tags []tags.Tag
	// Network reports whether network input created the stat.
	Network bool
	// Kind is KindCounter or KindGauge.
	Kind Kind
	// Fractional reports whether the gauge is a [FloatGauge].
	Fractional bool

	// Settled is the growth of the flushed part of a counter since its last
	// export, and Delta the growth of the rest. Settled is negative, in two's
	// complement, if an increment moves from the flushed part to the rest.
	Settled, Delta uint64
	// Reset is the growth of the part that resets hide.
	Reset uint64
	// Value is the value of a gauge, encoded by math.Float64bits if it is
	// fractional.
	Value uint64
}

// Export copies the stats of a store to a successor process. It has two phases:
//
//   - Until [Export.Cut] the store is flushed as usual, and counters are exported
//     as if all of their value had been flushed. Dropping the export has no
//     effect on the store.
//   - Cut makes the successor responsible for flushes. From then on the store must not be flushed, and increments are exported as deltas. The store regards
//     an increment as flushed only after [Export.Ack]. If the successor dies and
//     flushes resume, the next one reports every increment that was not
//     acknowledged.
//
// An Export must not be used by two goroutines at the same time.
type Export struct {
	s    *Store
	cut  bool
	done map[*block]*exportedBlock
	sent []sentTotal // since the last Ack
}

// exportedBlock is the state of a block's stats as of their last export.
type exportedBlock struct {
	words [slotsPerBlock]uint64 // totals and values
	bases [slotsPerBlock]uint64 // of counters: see block.base
	known bitset                // gauges that were exported
	latch bool                  // the counters were split by their latch after Cut
}

// sentTotal is the total of a counter as of its last export.
type sentTotal struct {
	b     *block
	i     int
	total uint64
}

// NewExport returns an export in its first phase.
func (s *Store) NewExport() *Export { return &Export{s: s, done: make(map[*block]*exportedBlock)} }

// Cut begins the second phase. The caller has flushed the store for the last
// time.
func (e *Export) Cut() { e.cut = true }

// Ack marks all increments that Next has exported since Cut as flushed, and
// releases the counters among them that have ended.
func (e *Export) Ack() {
	e.s.flushMu.Lock()
	defer e.s.flushMu.Unlock()
	for _, t := range e.sent {
		t.b.latch[t.i] = t.total
	}
	e.sent = nil
	if e.cut {
		e.s.releaseSent()
	}
}

// Next calls yield for each counter and gauge that has changed since the
// previous call, or at the first call for each that is used, until yield
// returns false. After that the export must not be used. Gauges in mode
// [NeverImport] are left out. The argument is valid during the call.
func (e *Export) Next(yield func(*ExportedStat) bool) {
	v := e.s.View()
	defer v.Close()
	var unsent map[uint32]*bitset
	if e.cut {
		unsent = e.s.unsentByBlock()
	}
	blocks, ns := e.s.blocksInUse()
	before := e.done
	e.done = make(map[*block]*exportedBlock, len(before)) // forgets blocks that are gone
	c, h := v.cursor(nil), new(ExportedStat)
	c.step = &c.next[0]
	for k, b := range blocks {
		if b.variant != variantCounter && b.variant != variantGauge && b.variant != variantFloat {
			continue
		}
		x := before[b]
		if x == nil {
			x = new(exportedBlock)
		}
		e.done[b] = x
		latch, ended := e.latches(b, x), unsent[b.index]
		for i := range ns[k] {
			if !b.alive.has(i) && (ended == nil || !ended.has(i)) || !e.changed(h, b, i, x, latch) {
				continue
			}
			// The stat can end meanwhile, but not while v is open be released.
			c.read(makeID(b.index, i), 0)
			if h.describe(&c) && !yield(h) {
				return
			}
		}
	}
}

// unsentByBlock returns the slots in Store.unsent, by block index.
func (s *Store) unsentByBlock() map[uint32]*bitset {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	return bitsByBlock(s.unsent)
}

// latches returns a copy of the latch of a block of counters, the first time
// after Cut, and otherwise nil.
func (e *Export) latches(b *block, x *exportedBlock) *[slotsPerBlock]uint64 {
	if !e.cut || x.latch || b.variant != variantCounter {
		return nil
	}
	x.latch = true
	e.s.flushMu.Lock()
	defer e.s.flushMu.Unlock()
	latch := *b.latch
	return &latch
}

// changed sets the values of h to the growth of stat i of b since its last
// export and reports whether there is any.
func (e *Export) changed(h *ExportedStat, b *block, i int, x *exportedBlock, latch *[slotsPerBlock]uint64) bool {
	*h = ExportedStat{Tags: h.Tags}
	if b.variant != variantCounter {
		h.Value = b.gauge(i)
		if h.Value == x.words[i] && (x.known.has(i) || !b.isUsed(i)) {
			return false
		}
		x.words[i] = h.Value
		x.known.set(i)
		return true
	}
	if bases := b.base.Load(); bases != nil {
		base := bases[i].total.Load() // before the total, which is never less
		h.Reset, x.bases[i] = base-x.bases[i], base
	}
	total := b.pg.total(i)
	switch {
	case !e.cut:
		h.Settled = total - x.words[i]
	case latch != nil:
		// A flush can miss an increment that was exported before, because its
		// mark is set after the value. Then Settled is negative.
		h.Settled, h.Delta = latch[i]-x.words[i], total-latch[i]
	default:
		h.Delta = total - x.words[i]
	}
	if h.Settled == 0 && h.Delta == 0 && h.Reset == 0 {
		return false
	}
	x.words[i] = total
	if e.cut {
		e.sent = append(e.sent, sentTotal{b, i, total})
	}
	return true
}

// describe fills in the identity of the stat at c. It reports whether the stat
// is exported.
func (h *ExportedStat) describe(c *Cursor) bool {
	tgs := h.Tags[:0]
	h.Kind, h.Network, h.Fractional, h.Tags = c.Kind(), c.Network(), c.b.variant == variantFloat, nil
	if c.b.modes != nil && ImportMode(c.b.modes[c.i].Load()) == NeverImport {
		return false
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

// Import adds the stats of a parent process, the other end of an [Export], to a
// store. Its methods are safe for concurrent use.
//
// A counter continues from the parent's value, and this store's sinks get only
// the increments that the parent's sinks did not get. A gauge of whole numbers
// shows the sum of its own value and the parent's while there is a parent, unless
// its mode is [NeverImport]. A fractional gauge starts from the parent's value
// and follows its changes.
type Import struct {
	s *Store
	// find returns the *Counter or *FloatGauge for a stat from network input,
	// nil to keep it in the import's own scope.
	find func(*ExportedStat) any

	mu      sync.Mutex // guards the rest
	scope   *Scope
	network *Scope
	floats  map[string]importedFloat // by ExportedStat.key
	closed  bool
}

// importedFloat is the gauge that follows a fractional gauge of the parent, and the
// parent's last value.
type importedFloat struct {
	gauge *FloatGauge
	value float64
}

// NewImport returns an import. find returns the *[Counter] or *[FloatGauge] for
// a stat from network input, so that the owner of such stats knows it; if it
// returns nil the import holds the stat. find can be nil.
//
// Stats that only the import holds end when it is closed.
func (s *Store) NewImport(find func(*ExportedStat) any) *Import {
	return &Import{
		s: s, find: find, scope: s.Scope(""), network: s.ScopeWith("", ScopeOptions{Network: true}),
		floats: make(map[string]importedFloat),
	}
}

// Add adds one stat. If it returns an error, the stat is refused and its values
// are lost. It does not retain h.
func (im *Import) Add(h *ExportedStat) error {
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

func (im *Import) in(h *ExportedStat) *Scope {
	if h.Network {
		return im.network
	}
	return im.scope
}

// known asks find for a stat of network input.
func (im *Import) known(h *ExportedStat) any {
	if !h.Network || im.find == nil {
		return nil
	}
	return im.find(h)
}

func (im *Import) counter(h *ExportedStat) (err error) {
	c, ok := im.known(h).(*Counter)
	if !ok {
		if c, err = im.in(h).TryCounter(h.Name, h.Tags...); err != nil {
			return err
		}
	}
	if b, i := c.w.home(); !b.null {
		b.inherit(i)
	}
	if h.Settled != 0 {
		im.s.settle(c, h.Settled)
	}
	c.Add(h.Delta)
	if h.Reset != 0 {
		im.s.hide(c, h.Reset)
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

// hide subtracts n from the value of c, as a reset does. A reset of this store can have
// hidden a part of it before.
func (s *Store) hide(c *Counter, n uint64) {
	b, i := c.w.home()
	if b.null {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	base := &b.resetsLocked()[i].total
	base.Add(min(n, b.pg.total(i)-base.Load()))
	s.resets.Add(1)
}

func (im *Import) float(h *ExportedStat) (err error) {
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
	before := 0.0
	if last := im.floats[key]; last.gauge == g { // otherwise that gauge has ended
		before = last.value
	}
	im.floats[key] = importedFloat{g, value}
	if g.w.swapIf(floatWord(before), floatWord(value)) { // no writer here has changed it
		return nil
	}
	return g.Add(value - before)
}

// key identifies a gauge.
func (h *ExportedStat) key() string {
	k := h.Name
	for _, t := range h.Tags {
		k += "\x00" + t.Name + "\x01" + t.Value
	}
	if h.Network {
		k += "\x02"
	}
	return k
}

func (im *Import) gauge(h *ExportedStat) error {
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
	p.changed.set(i) // report it to sinks
	b.used.set(i)
	return nil
}

// forget removes the parent's part of gauge i, whose mode turned out to be
// NeverImport and which this process has not written. Store.mu must be held.
func (b *block) forget(i int) {
	if p := b.parents.Load(); p != nil {
		p.values[i].Store(0)
		p.changed.clear(i)
		b.used.clear(i)
	}
}

// Close ends the import and removes the parent's part from gauges. Counters and
// fractional gauges keep their values. Closing twice does nothing.
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
