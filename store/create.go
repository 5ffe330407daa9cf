package store

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Counter returns the counter called name in sc. Trailing dots of name are
// dropped. With tags the full name is name.tag.value for each tag in order,
// the family is name, the labels are exactly the tags, and no tag rule runs.
// A refused counter is a null counter; [Scope.TryCounter] returns the reason.
func (sc *Scope) Counter(name string, tgs ...tags.Tag) *Counter {
	c, _ := sc.TryCounter(name, tgs...)
	return c
}

// TryCounter is [Scope.Counter] with the reason for a null counter: [ErrLimit], [ErrKind], [ErrRejected] or [ErrClosed].
func (sc *Scope) TryCounter(name string, tgs ...tags.Tag) (*Counter, error) {
	b, i := sc.recall(variantCounter, Accumulate, name, tgs)
	if b != nil {
		return asCounter(b.pg.word(i)), nil
	}
	b, i, err := sc.ask(variantCounter, Accumulate, 0, name, tgs)
	return asCounter(b.pg.word(i)), err
}

// Gauge returns the gauge called name in sc; see [Scope.Counter].
func (sc *Scope) Gauge(name string, tgs ...tags.Tag) *Gauge {
	g, _ := sc.TryGauge(name, tgs...)
	return g
}

// TryGauge is [Scope.Gauge] with the reason for a null gauge; see [Scope.TryCounter].
func (sc *Scope) TryGauge(name string, tgs ...tags.Tag) (*Gauge, error) {
	return sc.TryGaugeWithMode(name, Accumulate, tgs...)
}

// GaugeWithMode is [Scope.Gauge] for a gauge whose import mode at a hot restart
// is not [Accumulate].
func (sc *Scope) GaugeWithMode(name string, mode ImportMode, tgs ...tags.Tag) *Gauge {
	g, _ := sc.TryGaugeWithMode(name, mode, tgs...)
	return g
}

// TryGaugeWithMode is [Scope.GaugeWithMode] with the reason for a null gauge;
// see [Scope.TryCounter].
func (sc *Scope) TryGaugeWithMode(name string, mode ImportMode, tgs ...tags.Tag) (*Gauge, error) {
	b, i := sc.recall(variantGauge, mode, name, tgs)
	if b != nil {
		return asGauge(b.pg.word(i)), nil
	}
	b, i, err := sc.ask(variantGauge, mode, 0, name, tgs)
	return asGauge(b.pg.word(i)), err
}

// FloatGauge returns the signed and fractional gauge called name in sc; see
// [Scope.Counter]. A name is either a [Gauge] or a FloatGauge; asking for the
// other one returns [ErrKind].
func (sc *Scope) FloatGauge(name string, tgs ...tags.Tag) *FloatGauge {
	g, _ := sc.TryFloatGauge(name, tgs...)
	return g
}

// TryFloatGauge is [Scope.FloatGauge] with the reason for a null gauge; see [Scope.TryCounter].
func (sc *Scope) TryFloatGauge(name string, tgs ...tags.Tag) (*FloatGauge, error) {
	b, i := sc.recall(variantFloat, Accumulate, name, tgs)
	if b != nil {
		return asFloatGauge(b.pg.word(i)), nil
	}
	b, i, err := sc.ask(variantFloat, Accumulate, 0, name, tgs)
	return asFloatGauge(b.pg.word(i)), err
}

// Text returns the text readout called name in sc; see [Scope.Counter].
func (sc *Scope) Text(name string, tgs ...tags.Tag) *TextReadout {
	t, _ := sc.TryText(name, tgs...)
	return t
}

// TryText is [Scope.Text] with the reason for a null readout; see [Scope.TryCounter].
func (sc *Scope) TryText(name string, tgs ...tags.Tag) (*TextReadout, error) {
	b, i := sc.recall(variantText, Accumulate, name, tgs)
	if b != nil {
		return (*b.texts.Load())[i], nil
	}
	b, i, err := sc.ask(variantText, Accumulate, 0, name, tgs)
	return (*b.texts.Load())[i], err
}

// Histogram returns the histogram called name in sc; see [Scope.Counter]. Output shows
// its values from the first flush after they were recorded: package server flushes at
// an interval, and a program or test without a server calls [Store.Flush]. A histogram
// that exists keeps the unit it was created with.
func (sc *Scope) Histogram(name string, unit Unit, tgs ...tags.Tag) *Histogram {
	h, _ := sc.TryHistogram(name, unit, tgs...)
	return h
}

// TryHistogram is [Scope.Histogram] with the reason for a null histogram, which is not
// nil; see [Scope.TryCounter].
func (sc *Scope) TryHistogram(name string, unit Unit, tgs ...tags.Tag) (*Histogram, error) {
	b, i := sc.recall(variantHistogram, Accumulate, name, tgs)
	if b != nil {
		return (*b.hists.Load())[i], nil
	}
	b, i, err := sc.ask(variantHistogram, Accumulate, unit, name, tgs)
	return (*b.hists.Load())[i], err
}

// The conversions below rely on a handle consisting of one word.

func asCounter(w *word) *Counter       { return (*Counter)(unsafe.Pointer(w)) }
func asGauge(w *word) *Gauge           { return (*Gauge)(unsafe.Pointer(w)) }
func asFloatGauge(w *word) *FloatGauge { return (*FloatGauge)(unsafe.Pointer(w)) }

var (
	_ [0]struct{} = [unsafe.Sizeof(Counter{}) - unsafe.Sizeof(word{})]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(Gauge{}) - unsafe.Sizeof(word{})]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(FloatGauge{}) - unsafe.Sizeof(word{})]struct{}{}
)

// recall returns the stat from the table of recent lookups, nil if it is not
// there. It takes no lock and does not allocate.
func (sc *Scope) recall(v variant, mode ImportMode, name string, tgs []tags.Tag) (*block, int) {
	if len(tgs) > 0 {
		return sc.recallTagged(v, mode, name, tgs)
	}
	s := sc.store
	t := s.hot.table.Load()
	stat, ok := t.stats.Find(&s.hot.keys, &sc.salt, name)
	if !ok || sc.closed.Load() {
		return nil, 0
	}
	b, i := t.at(stat)
	if !b.alive.has(i) || !b.offers(v, mode, i) || !b.lease(i) || !s.symbols.CountUntracked() {
		return nil, 0
	}
	return b, i
}

// recallTagged is recall for names with tags. A name with tags is the same stat
// as the composed name unless that is ambiguous.
func (sc *Scope) recallTagged(v variant, mode ImportMode, name string, tgs []tags.Tag) (*block, int) {
	var buf [256]byte
	text, _ := sc.compose(buf[:0], "", name, tgs)
	if ambiguous(text) {
		return nil, 0
	}
	return sc.recall(v, mode, text, nil)
}

// ambiguous reports whether a name composed with tags can be another stat than
// the same text without tags, from which trailing dots are dropped and which
// gets another dot before a leading one. Tags without a name and a value compose none.
func ambiguous(composed string) bool {
	return composed == "" || composed[0] == '.' || composed[len(composed)-1] == '.'
}

// remember makes recall find a stat under a name and tags in sc.
func (sc *Scope) remember(name string, tgs []tags.Tag, b *block, i int) {
	if len(tgs) > 0 {
		var buf [256]byte
		name, _ = sc.compose(buf[:0], "", name, tgs)
		if ambiguous(name) {
			return
		}
	}
	sc.store.hot.keep(sc, name, b, i)
}

// offers reports whether the stat in slot i has the variant and mode.
func (b *block) offers(v variant, mode ImportMode, i int) bool {
	return b.variant == v && (b.modes == nil || ImportMode(b.modes[i].Load()) == mode)
}

// ask finds or creates a stat by its full name, and remembers those found. It
// returns a null stat with an error.
func (sc *Scope) ask(v variant, mode ImportMode, unit Unit, name string, tgs []tags.Tag) (*block, int, error) {
	s := sc.store
	var buf [256]byte
	full, base := sc.compose(buf[:0], sc.prefix, name, tgs)
	s.symbols.CountLookup(full)
	h := s.lookup.hash(sc.cls.network, full)
	b, i, existed := s.find(h, sc.cls.network, full)
	if !existed || b.owner(i) != sc.id || !b.offers(v, mode, i) || !b.lease(i) {
		kept := strings.Clone(full) // keeps buf on the stack
		var err error
		if b, i, err = sc.askSlow(h, v, mode, unit, kept, kept[:base], tgs); err != nil {
			s.noteMisuse(sc, kept, err)
			return s.null, int(v), err
		}
	}
	if existed && full != "" {
		sc.remember(name, tgs, b, i)
	}
	return b, i, nil
}

// compose builds a stat's name, in buf if it fits, and returns the length of the
// part before the tags.
func (sc *Scope) compose(buf []byte, prefix, name string, tgs []tags.Tag) (text string, base int) {
	for len(name) > 0 && name[len(name)-1] == '.' {
		name = name[:len(name)-1]
	}
	if prefix == "" && len(tgs) == 0 {
		return name, len(name)
	}
	buf = append(buf, prefix...)
	if len(buf) > 0 && name != "" {
		buf = append(buf, '.')
	}
	buf = append(buf, name...)
	base = len(buf)
	for i, t := range tgs {
		if i > 0 || base > 0 {
			buf = append(buf, '.')
		}
		buf = append(buf, t.Name...)
		if !bare(t, sc.cls.network) {
			buf = append(append(buf, '.'), t.Value...)
		}
	}
	return unsafe.String(unsafe.SliceData(buf), len(buf)), base
}

// askSlow is ask under the lock.
func (sc *Scope) askSlow(h uint64, v variant, mode ImportMode, unit Unit, full, base string, tgs []tags.Tag) (*block, int, error) {
	s := sc.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc.closed.Load() {
		return nil, 0, fmt.Errorf("store: %q: %w", full, ErrClosed)
	}
	if b, i, ok := s.find(h, sc.cls.network, full); ok {
		if b.variant != v {
			return nil, 0, fmt.Errorf("store: %q is a %s, asked for as a %s: %w", full, b.variant, v, ErrKind)
		}
		if err := s.takeMode(b, i, mode); err != nil {
			return nil, 0, fmt.Errorf("store: %q: %w", full, err)
		}
		if err := s.hold(sc, b, i, makeID(b.index, i)); err != nil {
			return nil, 0, fmt.Errorf("store: %q: %w", full, err)
		}
		b.lease(i)
		return b, i, nil
	}
	k := v.kind()
	if s.reject != nil && mode != HiddenAccumulate && s.reject(full) {
		return nil, 0, fmt.Errorf("store: %q: %w", full, ErrRejected)
	}
	l := sc.limits[k]
	if l != nil && sc.counts[k] >= *l || s.opts.MaxStats > 0 && s.stats >= s.opts.MaxStats {
		return nil, 0, fmt.Errorf("store: %q: %w", full, s.overflowed(k))
	}
	b, i := s.create(sc, h, v, mode, unit, full, base, tgs)
	return b, i, nil
}

// maxMisused limits the names whose misuse is logged.
const maxMisused = 100

// noteMisuse logs the first ErrKind of a name, since only the Try functions return it.
func (s *Store) noteMisuse(sc *Scope, full string, err error) {
	if !sc.cls.network && errors.Is(err, ErrKind) { // the sender chooses the names of network stats
		s.logOnce(full, err)
	}
}

// logOnce logs the first error of a name. Without a logger, it keeps the error for
// SetLogger, since programs create stats before the server that sets one. It is called
// without a lock, because a logger can count its lines in the store.
func (s *Store) logOnce(full string, err error) {
	s.mu.Lock()
	log := s.refreshers.log.Load()
	_, known := s.misused[full]
	known = known || len(s.misused) >= maxMisused
	if !known {
		if s.misused == nil {
			s.misused = make(map[string]error)
		}
		s.misused[full] = nil
		if log == nil {
			s.misused[full] = err
		}
	}
	s.mu.Unlock()
	if !known && log != nil {
		logMisuse(log, err)
	}
}

// SetLogger sets the logger for panics of functions that the store calls, and for the
// first [ErrKind] of a name and invalid forms of histograms, also of names and scopes
// that were used before. By default, and if log is nil, none is logged.
func (s *Store) SetLogger(log *slog.Logger) {
	var early []error
	s.mu.Lock()
	s.refreshers.log.Store(log)
	if log != nil {
		for _, full := range slices.Sorted(maps.Keys(s.misused)) {
			if err := s.misused[full]; err != nil {
				early, s.misused[full] = append(early, err), nil
			}
		}
	}
	s.mu.Unlock()
	for _, err := range early {
		logMisuse(log, err)
	}
}

func logMisuse(log *slog.Logger, err error) {
	what := "a stat is asked for with the wrong kind; what is recorded there is lost"
	if errors.Is(err, errForm) {
		what = "a scope uses the default form of histograms"
	}
	log.Warn(what, "error", err)
}

// takeMode sets the mode of a gauge that has none yet.
func (s *Store) takeMode(b *block, i int, mode ImportMode) error {
	if b.modes == nil {
		return nil
	}
	switch have := ImportMode(b.modes[i].Load()); {
	case have == mode || mode == Uninitialized:
		return nil
	case have == Uninitialized:
		b.modes[i].Store(uint32(mode))
		if mode == NeverImport {
			b.forget(i)
		}
		return nil
	default:
		return fmt.Errorf("the gauge has import mode %d, asked for with %d: %w", have, mode, ErrKind)
	}
}

// overflowed counts a stat that a limit refused. Store.mu must be held.
func (s *Store) overflowed(k Kind) error {
	c := s.overflow[k]
	if c == nil {
		full := joinName(s.own.prefix, "server.stats_overflow."+k.Word())
		if s.reject != nil && s.reject(full) {
			return ErrLimit
		}
		h := s.lookup.hash(false, full)
		b, i, ok := s.find(h, false, full)
		if !ok {
			b, i = s.create(s.own, h, variantCounter, Accumulate, 0, full, full, nil)
		}
		if b.variant != variantCounter {
			return ErrLimit
		}
		c = asCounter(b.pg.word(i))
		s.overflow[k] = c
	}
	c.Inc()
	return ErrLimit
}

// extract returns the tag-extracted name and the tags of a name.
func (s *Store) extract(full string, network bool) (base string, tgs []tags.Tag) {
	prefix, rest := s.ruled(full, network)
	base, tgs = s.opts.Tags.Extract(rest, nil)
	if prefix == "" {
		return base, tgs
	}
	return joinName(prefix, base), tgs
}

// ruled splits a name into the prefix of the engine's own stats, which the rules do
// not see, and the rest, to which they apply.
func (s *Store) ruled(full string, network bool) (prefix, rest string) {
	prefix = s.own.prefix
	if network || prefix == "" || len(full) <= len(prefix) || full[len(prefix)] != '.' || full[:len(prefix)] != prefix {
		return "", full
	}
	return prefix, full[len(prefix)+1:]
}

// create creates a stat that does not exist. Store.mu must be held.
func (s *Store) create(sc *Scope, h uint64, v variant, mode ImportMode, unit Unit, full, base string, tgs []tags.Tag) (*block, int) {
	explicit := len(tgs) > 0
	if !explicit && sc.tagged {
		base, tgs = s.extract(full, sc.cls.network)
	}
	var buf [512]byte
	rec := s.appendRecord(buf[:0], sc.cls.network, full, base, tgs, explicit)

	b := s.openBlock(sc.cls, v)
	i := b.n
	b.append(i, rec)
	b.setOwner(i, sc.id)
	switch v {
	case variantGauge:
		b.modes[i].Store(uint32(mode))
	case variantText:
		appendShared(&b.texts, new(TextReadout))
	case variantHistogram:
		appendShared(&b.hists, histogram.New(s.layoutFor(full, unit, sc.cls.network, sc.form)))
	}
	now := s.opts.Now()
	b.noteBirth(i, now.UnixMilli(), s.flushes)
	if b.active != nil {
		b.active[i].Store(s.age(now))
		b.asked.set(i)
	}
	b.n++
	b.live++
	if b.full() {
		b.trim()
		sc.cls.open[v] = nil
		s.remains.Add(b.remains())
	}
	b.alive.set(i)
	x := makeID(b.index, i)
	s.lookup.insert(h, x)

	k := v.kind()
	s.stats++
	s.byKind[k]++
	sc.add(k, x)
	for _, o := range [...]*order{&s.byName[SetOf(k)], &s.byFamily[k]} {
		if o.asked {
			o.pending = append(o.pending, x)
		}
	}
	for _, o := range s.byTag {
		o.pending = append(o.pending, x)
	}
	return b, i
}

// appendShared appends v to a list that is read without a lock.
func appendShared[T any](list *atomic.Pointer[[]T], v T) {
	var l []T
	if p := list.Load(); p != nil {
		l = *p
	}
	l = append(l, v)
	list.Store(&l)
}

// openBlock returns the block for the next stat of a class and variant. Store.mu
// must be held.
func (s *Store) openBlock(c *class, v variant) *block {
	if b := c.open[v]; b != nil {
		return b
	}
	b := &block{cls: c, variant: v}
	switch v {
	case variantGauge, variantFloat, variantCounter:
		if len(c.spare[v]) == 0 {
			c.spare[v] = newPages()
		}
		b.pg, c.spare[v] = c.spare[v][0], c.spare[v][1:]
		b.pg.blk = b
		if v == variantGauge {
			b.modes = new([slotsPerBlock]atomic.Uint32)
		}
	}
	if c.expires(v.kind()) {
		b.active = new([slotsPerBlock]atomic.Uint32)
	}
	switch {
	case c.network && v == variantCounter:
		// Together they fit a size of the allocator; alone, an eighth is unused.
		both := new(struct {
			latch [slotsPerBlock]uint64
			marks [slotsPerBlock]atomic.Uint32
		})
		b.latch, b.marks = &both.latch, &both.marks
	case c.network:
		b.marks = new([slotsPerBlock]atomic.Uint32)
	case v == variantCounter:
		b.latch = new([slotsPerBlock]uint64)
	}
	if n := len(s.freeBlocks); n > 0 {
		free := s.freeBlocks[n-1]
		b.index, b.reuse, s.freeBlocks = free.index, free.reuse, s.freeBlocks[:n-1]
	} else {
		b.index = s.blockCount
		s.blockCount++
	}
	s.blocks.Put(int(b.index), b)
	c.open[v] = b
	return b
}

// String returns the word for v in messages.
func (v variant) String() string {
	switch v {
	case variantFloat:
		return "signed gauge"
	default:
		return v.kind().String()
	}
}
