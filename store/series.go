package store

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Series describes how the metric name or series of a family differ from the
// plain ones because of a conflict.
type Series struct {
	// Suffix follows the metric name because a family of another kind or origin
	// owns the plain one.
	Suffix string
	// Merged is set if several stats can be one series: stats with equal labels
	// of families that share a metric name, or of a family with tags that map to
	// the same label names. Views by family list such families together.
	Merged bool

	lead string // the tag-extracted name under which a merged family is ordered
}

// family identifies a family of one kind.
type family struct {
	network bool
	kind    Kind
	name    string // tag-extracted
}

// seriesIndex records which family has which metric name, so that expositions
// never write a name twice. It covers a kind once its stats are listed by family.
// It belongs to the store because the order of families depends on it.
type seriesIndex struct {
	mu     sync.Mutex
	owners naming.Owners
	seed   maphash.Seed // of shapes
	shared map[uint32]*sharedMetric
	shares uint32 // numbers of shared that were handed out

	// special holds the few families with a Series. Their stats have a mark;
	// see markSpecial.
	special  sync.Map // family to *Series
	specials atomic.Int64
}

// metricOwner refers to the first owner of a metric name: to a Name by number,
// to the only stat of a family without tags, or to a sharedMetric.
type metricOwner struct {
	ref  uint32
	kind Kind
	form ownerForm
}

type ownerForm uint8

const (
	ownerStat ownerForm = iota
	ownerName
	ownerShared
)

// packed returns o as the series index keeps it.
func (o metricOwner) packed() naming.Owner {
	return naming.Owner(o.form)<<34 | naming.Owner(o.kind)<<32 | naming.Owner(o.ref)
}

func unpackOwner(p naming.Owner) metricOwner {
	return metricOwner{ref: uint32(p), kind: Kind(p >> 32 & 3), form: ownerForm(p >> 34)}
}

var _ [4 - kinds]struct{} // a kind takes two bits

// findOwner returns the owner of a metric name; see [naming.Owners.Find].
func (x *seriesIndex) findOwner(metric string, histogram bool) (o metricOwner, ok bool) {
	p, ok := x.owners.Find(metric, histogram)
	return unpackOwner(p), ok
}

func (x *seriesIndex) setOwner(metric string, o metricOwner) {
	x.owners.Set(metric, o.kind == KindHistogram, o.packed())
}

func (x *seriesIndex) dropOwner(metric string, o metricOwner) {
	x.owners.Delete(metric, o.kind == KindHistogram, o.packed())
}

// ownsMetric reports whether a metric name belongs to an owner in the index.
// seriesIndex.mu must be held.
func (s *Store) ownsMetric(p naming.Owner, name string) bool {
	o := unpackOwner(p)
	var metric []byte
	if o.form == ownerShared {
		sm := s.series.shared[o.ref]
		metric = append(append(metric, sm.base...), sm.suffix...)
	} else {
		f := s.ownerFamily(o)
		metric, _ = s.appendMetric(f)
		if sp := s.series.of(f); sp != nil {
			metric = append(metric, sp.Suffix...)
		}
	}
	return naming.Owns(string(metric), o.kind == KindHistogram, name)
}

// sharedMetric is a metric name with several owners: families whose names differ
// only in replaced bytes, or a family in both forms, with and without tags.
type sharedMetric struct {
	lead    string // tag-extracted name of the first family
	network bool
	base    string // metric name without suffix
	suffix  string
	members map[metricOwner]string // to their tag-extracted names
	forms   map[string]int         // how many members have a tag-extracted name
}

// has reports whether a member is the family called name, in its other form.
func (sm *sharedMetric) has(name string) bool { return sm.forms[name] > 0 }

func (sm *sharedMetric) add(owner metricOwner, name string) {
	sm.members[owner] = name
	sm.forms[name]++
}

func (sm *sharedMetric) remove(owner metricOwner, name string) {
	delete(sm.members, owner)
	if sm.forms[name]--; sm.forms[name] == 0 {
		delete(sm.forms, name)
	}
}

// suffix distinguishes metric names of k from equal names of other kinds.
func (k Kind) suffix() string { return naming.Suffix(k.Word()) }

func (s *Store) appendMetric(f family) ([]byte, bool) {
	return s.opts.Naming.AppendMetric(nil, f.name, f.network, f.kind == KindCounter)
}

// of returns the Series of a family, nil if it has none.
func (x *seriesIndex) of(f family) *Series {
	if x.specials.Load() == 0 {
		return nil
	}
	if s, ok := x.special.Load(f); ok {
		return s.(*Series)
	}
	return nil
}

// noteSpecial sets the Series of f. seriesIndex.mu must be held.
func (s *Store) noteSpecial(f family, sp Series) {
	if _, had := s.series.special.Swap(f, &sp); !had {
		s.series.specials.Add(1)
	}
	if n := s.names.byText(nameKey{f.network, f.name}); n != nil {
		n.special.Or(1 << f.kind)
	}
	if b, i, ok := s.find(s.lookup.hash(f.network, f.name), f.network, f.name); ok {
		b.markSpecial(i)
	}
}

// markSpecial marks slot i, a stat without tags, as a family with a Series.
// seriesIndex.mu must be held.
func (b *block) markSpecial(i int) {
	p := b.special.Load()
	if p == nil {
		p = new(atomicBits)
		b.special.Store(p)
	}
	p.set(i)
}

// seriesOf returns the Series of the family of slot i, nil if it has none. rest
// is the record after the name.
func (s *Store) seriesOf(b *block, i int, rest []byte) *Series {
	if s.series.specials.Load() == 0 {
		return nil
	}
	if n := s.recordFamily(rest); n != nil {
		if n.special.Load()>>b.variant.kind()&1 == 0 {
			return nil
		}
	} else if p := b.special.Load(); p == nil || !p.has(i) {
		return nil
	}
	f, _ := s.familyOf(b, i)
	return s.series.of(f)
}

// familyOf returns the family of a stat, and its shared name if it has one.
func (s *Store) familyOf(b *block, i int) (family, *Name) {
	enc, rest := splitRecord(b.record(i))
	f := family{network: b.cls.network, kind: b.variant.kind()}
	if n := s.recordFamily(rest); n != nil {
		f.name = n.String()
		return f, n
	}
	f.name = string(s.symbols.AppendText(nil, enc))
	return f, nil
}

// ownerFamily returns the family of o, which must not be shared.
func (s *Store) ownerFamily(o metricOwner) family {
	if o.form == ownerName {
		n := s.names.at(o.ref)
		return family{n.key.network, o.kind, n.key.text}
	}
	b, i := s.at(o.ref)
	f, _ := s.familyOf(b, i)
	return f
}

// enterSeries registers the family of the stat x.
func (s *Store) enterSeries(x id) {
	b, i := s.at(x)
	k := b.variant.kind()
	idx := &s.series
	idx.mu.Lock()
	defer idx.mu.Unlock()
	enc, rest := splitRecord(b.record(i))
	owner := metricOwner{ref: x, kind: k}
	n := s.recordFamily(rest)
	if n != nil {
		s.noteShape(b, enc, rest, n)
		if n.listed>>k&1 != 0 {
			return
		}
		n.listed |= 1 << k
		owner.ref, owner.form = n.num, ownerName
	}
	f, _ := s.familyOf(b, i)
	s.claimMetric(f, owner)
	if idx.of(f) == nil {
		return
	}
	if n != nil {
		n.special.Or(1 << k)
	} else {
		b.markSpecial(i)
	}
}

// claimMetric assigns a metric name to f: the plain one if it is free or owned
// by families that differ from f only in replaced bytes, else one with a suffix.
// Network input cannot take a name from the program's own stats: it gets a
// suffix even if it was first.
func (s *Store) claimMetric(f family, owner metricOwner) {
	metric, ok := s.appendMetric(f)
	if !ok {
		return
	}
	idx, base := &s.series, len(metric)
	sp := Series{lead: f.name}
	if old := idx.of(f); old != nil { // known in its other form
		sp.Merged, sp.lead = old.Merged, old.lead
		metric = append(metric, old.Suffix...)
	}
	for {
		o, taken := idx.findOwner(string(metric), f.kind == KindHistogram)
		if !taken {
			break
		}
		if o.kind == f.kind {
			sm := s.sharedBy(o)
			if sm.network == f.network && sm.base == string(metric[:base]) && sm.suffix == string(metric[base:]) && (!s.opts.Naming.Unique || sm.has(f.name)) {
				s.joinMetric(o, sm, f, owner)
				return
			}
		}
		if !f.network && len(metric) == base && s.displace(o) {
			continue
		}
		if s.opts.Naming.Unique && len(metric) == base+len(f.kind.suffix()) {
			metric = appendDigest(metric, f.name)
		} else {
			metric = append(metric, f.kind.suffix()...)
		}
	}
	if len(metric) > base {
		s.collide(f.name, string(metric[:base]))
		sp.Suffix = string(metric[base:])
		s.noteSpecial(f, sp)
	}
	idx.setOwner(string(metric), owner)
}

// appendDigest appends a digest that distinguishes a name from others that differ
// only in replaced bytes. Finding names with equal digests is infeasible.
func appendDigest(metric []byte, name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return hex.AppendEncode(append(metric, '_'), sum[:8])
}

// displace adds a suffix to a metric name that network input owns. It returns
// false, and does nothing, if the program owns the name.
func (s *Store) displace(o metricOwner) bool {
	idx := &s.series
	sm := s.sharedBy(o)
	if !sm.network {
		return false
	}
	idx.dropOwner(sm.base+sm.suffix, o)
	if o.form != ownerShared {
		s.collide(sm.lead, sm.base)
	}
	// The old name is free while the new suffix is chosen, so the suffix must
	// change.
	for taken := true; taken; {
		sm.suffix += o.kind.suffix()
		_, taken = idx.findOwner(sm.base+sm.suffix, o.kind == KindHistogram)
	}
	idx.setOwner(sm.base+sm.suffix, o)
	for _, name := range sm.members {
		f := family{true, o.kind, name}
		sp := Series{lead: sm.lead}
		if old := idx.of(f); old != nil {
			sp = *old
		}
		sp.Suffix = sm.suffix
		s.noteSpecial(f, sp)
	}
	return true
}

// sharedBy returns the sharedMetric of o, or a new one with o as its only
// member.
func (s *Store) sharedBy(o metricOwner) *sharedMetric {
	if o.form == ownerShared {
		return s.series.shared[o.ref]
	}
	first := s.ownerFamily(o)
	sm := &sharedMetric{lead: first.name, network: first.network, members: make(map[metricOwner]string), forms: make(map[string]int)}
	sm.add(o, first.name)
	m, _ := s.appendMetric(first)
	sm.base = string(m)
	if sp := s.series.of(first); sp != nil {
		sm.lead, sm.suffix = sp.lead, sp.Suffix
	}
	return sm
}

// joinMetric makes f share the metric name of o, which sm describes.
func (s *Store) joinMetric(o metricOwner, sm *sharedMetric, f family, owner metricOwner) {
	idx := &s.series
	if o.form != ownerShared {
		if idx.shared == nil {
			idx.shared = make(map[uint32]*sharedMetric)
		}
		for idx.shares++; idx.shared[idx.shares] != nil; idx.shares++ {
		}
		idx.shared[idx.shares] = sm
		idx.setOwner(sm.base+sm.suffix, metricOwner{idx.shares, f.kind, ownerShared})
	}
	known := sm.has(f.name)
	sm.add(owner, f.name)
	if known {
		return
	}
	s.collide(f.name, sm.base)
	sp := Series{sm.suffix, true, sm.lead}
	if len(sm.forms) > 2 { // the others are marked already
		s.noteSpecial(f, sp)
		return
	}
	for name := range sm.forms {
		s.noteSpecial(family{f.network, f.kind, name}, sp)
	}
}

// HasMetric reports whether a family has the metric name, among the kinds that
// were listed by family.
func (s *Store) HasMetric(metric string) bool {
	s.series.mu.Lock()
	defer s.series.mu.Unlock()
	_, ok := s.series.owners.Find(metric, false)
	return ok
}

// leaveSeries removes the family of an ended stat if the stat was its only one.
// It is called when no view can have the stat.
func (s *Store) leaveSeries(b *block, i int, x id) {
	f, n := s.familyOf(b, i)
	if n == nil {
		s.leaveMetric(f, metricOwner{x, f.kind, ownerStat})
	}
}

// leaveNamed removes a family whose last stat has ended.
func (s *Store) leaveNamed(n *Name) {
	for k := range Kind(kinds) {
		if n.listed>>k&1 != 0 {
			s.leaveMetric(family{n.key.network, k, n.key.text}, metricOwner{n.num, k, ownerName})
		}
	}
}

func (s *Store) leaveMetric(f family, owner metricOwner) {
	idx := &s.series
	idx.mu.Lock()
	defer idx.mu.Unlock()
	if idx.owners.Len() == 0 {
		return
	}
	metric, ok := s.appendMetric(f)
	if !ok {
		return
	}
	if sp := idx.of(f); sp != nil {
		metric = append(metric, sp.Suffix...)
	}
	o, taken := idx.findOwner(string(metric), false)
	if !taken {
		return
	}
	more := false // others share the metric name
	if o.form == ownerShared {
		sm := idx.shared[o.ref]
		if _, in := sm.members[owner]; !in {
			return
		}
		sm.remove(owner, f.name)
		more = len(sm.members) > 0
		if sm.has(f.name) {
			return // the family still exists in its other form
		}
		if !more {
			delete(idx.shared, o.ref)
		}
	} else if o != owner {
		return
	}
	if _, had := idx.special.LoadAndDelete(f); had {
		idx.specials.Add(-1)
	}
	if more {
		return
	}
	idx.dropOwner(string(metric), o)
}

// Collision is a conflict of two families over a metric name.
type Collision struct {
	Name   string // tag-extracted name of the family that got a suffix or shares the metric name
	Metric string // the metric name without suffix
}

func (s *Store) collide(name, metric string) {
	s.conflict.Store(&Collision{strings.Clone(name), metric})
	s.collided.Add(1)
}

// Collisions returns the number of conflicts over metric names.
func (s *Store) Collisions() uint64 { return s.collided.Load() }

// LastCollision returns the last conflict that [Store.Collisions] counts, the
// zero value before the first.
func (s *Store) LastCollision() Collision {
	if c := s.conflict.Load(); c != nil {
		return *c
	}
	return Collision{}
}

// Naming returns the naming rules of the store's stats in the exposition formats.
func (s *Store) Naming() *naming.Rules { return &s.opts.Naming }

// Tags returns the rules that extract tags from names.
func (s *Store) Tags() *tags.Extractor { return s.opts.Tags }

// Series returns the conflict of the stat's family, or nil if it has none.
func (c *Cursor) Series() *Series {
	if c.s.series.specials.Load() == 0 {
		return nil
	}
	rest := c.rest()
	return c.s.seriesOf(c.b, c.i, rest)
}
