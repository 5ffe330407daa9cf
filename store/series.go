package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Naming turns tag-extracted names and names of tags into those of the
// exposition formats, and says which stats would be the same series there.
// The zero value means all defaults.
type Naming struct {
	// Product is put in front of the names of the program's own stats, with
	// an underscore. Default: the store's product name.
	Product string
	// Namespaces are first segments of names that are dropped instead of
	// putting the product in front.
	Namespaces []string
	// NetworkPrefix is put in front of names from network input. Default "".
	NetworkPrefix string
	// NetworkTotal puts "_total" behind counters from network input.
	NetworkTotal bool
	// NetworkRunes cleans names from network input by characters instead of by
	// bytes: a character of several bytes becomes one underscore, and so does
	// a run of hyphens. That is how statsd_exporter names them.
	NetworkRunes bool
	// NetworkSeconds shows the timers of network input, which are kept in
	// milliseconds, in seconds.
	NetworkSeconds bool
	// NetworkSummaries shows the histograms of network input as summaries,
	// unless a certain form is asked for: quantiles of the last interval, but
	// sum and count since the start, so that their rates mean something.
	NetworkSummaries bool
	// Unique gives each family a metric name of its own, also those that differ
	// from another one in replaced bytes only: the later one gets its kind as a
	// suffix, those after it also a digest of their name.
	// Otherwise they share the metric name, and those with equal labels a series.
	Unique bool
}

// AppendMetric appends the metric name for a tag-extracted name. It reports
// false, and appends nothing, for names that cannot be shown: what is left of
// a namespaced one is empty or begins with a digit.
func (n *Naming) AppendMetric(dst []byte, name string, network bool, k Kind) ([]byte, bool) {
	at := len(dst)
	switch {
	case network:
		dst = append(dst, n.NetworkPrefix...)
		if at == len(dst) && name != "" && digit(name[0]) {
			dst = append(dst, '_')
		}
		if n.NetworkRunes {
			dst = appendRunes(dst, name)
		} else {
			dst = appendAlphabet(dst, name)
		}
		if len(dst) == at {
			dst = append(dst, '_')
		}
		if k == KindCounter && n.NetworkTotal {
			dst = append(dst, "_total"...)
		}
		return dst, true
	case n.namespaced(name):
		_, rest, _ := strings.Cut(name, ".")
		if rest == "" || digit(rest[0]) {
			return dst, false
		}
		return appendAlphabet(dst, rest), true
	default:
		dst = appendAlphabet(dst, n.Product)
		dst = append(dst, '_')
		return appendAlphabet(dst, name), true
	}
}

// AppendMetricBytes is [Naming.AppendMetric] for a name held as bytes, which it
// does not keep.
func (n *Naming) AppendMetricBytes(dst, name []byte, network bool, k Kind) ([]byte, bool) {
	return n.AppendMetric(dst, unsafe.String(unsafe.SliceData(name), len(name)), network, k)
}

func (n *Naming) namespaced(name string) bool {
	if len(n.Namespaces) == 0 {
		return false
	}
	first, _, more := strings.Cut(name, ".")
	if !more {
		return false
	}
	for _, ns := range n.Namespaces {
		if ns == first {
			return true
		}
	}
	return false
}

// AppendLabel appends the label name for the name of a tag. What the formats
// reserve gets "exported_" in front.
func (n *Naming) AppendLabel(dst []byte, name string) []byte {
	at := len(dst)
	if name == "" || digit(name[0]) {
		dst = append(dst, '_')
	}
	dst = appendAlphabet(dst, name)
	return AppendUnreserved(dst[:at], string(dst[at:]))
}

const exported = "exported_"

// DistinctLabel returns the label name with "exported_" in front as often as
// it takes to be none of those taken.
func DistinctLabel(name []byte, taken [][]byte) []byte {
	for slices.ContainsFunc(taken, func(t []byte) bool { return bytes.Equal(t, name) }) {
		name = append([]byte(exported), name...)
	}
	return name
}

// appendAlphabet appends s with every byte that metric names cannot have
// replaced by an underscore.
func appendAlphabet(dst []byte, s string) []byte {
	at := len(dst)
	dst = append(dst, s...)
	b := dst[at:]
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, alphabetWord(binary.LittleEndian.Uint64(b)))
	}
	for i, c := range b {
		b[i] = alphabet[c]
	}
	return dst
}

// alphabetWord is [alphabet] for eight bytes at once: additions to bytes below
// 0x80 carry into no neighbour, and set the top bit of those above a bound.
func alphabetWord(x uint64) uint64 {
	const each, top = 0x0101010101010101, 0x8080808080808080
	low := x &^ top
	lower := low | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x80-'z'-1)*each)
	digits := (low + (0x80-'0')*each) &^ (low + (0x80-'9'-1)*each)
	others := (^(letters | digits) | x) & top
	mask := others >> 7 * 0xff
	return x&^mask | '_'*each&mask
}

// alphabet says for each byte what stands for it in a metric name.
const alphabet = "________________________________________________0123456789______" +
	"_ABCDEFGHIJKLMNOPQRSTUVWXYZ______abcdefghijklmnopqrstuvwxyz_____" +
	"________________________________________________________________" +
	"________________________________________________________________"

// appendRunes is appendAlphabet by characters: see Naming.NetworkRunes.
func appendRunes(dst []byte, s string) []byte {
	last := rune(0)
	for _, r := range s {
		switch {
		case r < 0x80 && (digit(byte(r)) || r|0x20 >= 'a' && r|0x20 <= 'z'):
			dst = append(dst, byte(r))
		case r != '-' || last != '-':
			dst = append(dst, '_')
		}
		last = r
	}
	return dst
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// Series says what is special about the metric name of some stats because
// another family came to the same one.
type Series struct {
	// Suffix goes behind the metric name, since a stat of another kind, or of
	// other origin, had the name first.
	Suffix string
	// Merged is set if several stats may be one series: those with equal labels
	// of families that share a metric name, and those of a family some of whose
	// tags have the same label names. The families stand together.
	Merged bool

	lead string // the tag-extracted name under which a merged family is ordered
}

// family is what makes a family of one kind.
type family struct {
	network bool
	kind    Kind
	name    string // tag-extracted
}

// seriesIndex knows which family has which metric name, so that the
// expositions never write a name twice. A kind enters it when its stats are
// first listed by family.
type seriesIndex struct {
	mu     sync.Mutex
	seed   maphash.Seed
	owners map[uint64]metricOwner // by hash of the metric name
	shared map[uint32]*sharedMetric
	shares uint32 // numbers of shared that were handed out

	// special holds what is not as the name alone would have it: nearly
	// nothing, nearly always. The stats concerned have a mark, see markSpecial.
	special  sync.Map // family to *Series
	specials atomic.Int64
}

// metricOwner refers to who had a metric name first: to a Name by number, to
// the only stat of a family without tags, or to those that share it.
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

// sharedMetric is a metric name that several have: families whose names differ
// in replaced bytes only, or a family in both forms, with and without tags.
type sharedMetric struct {
	lead    string // tag-extracted name of the first family
	network bool
	base    string // metric name without suffix
	suffix  string
	members map[metricOwner]string // to their tag-extracted names
	forms   map[string]int         // how many members have a tag-extracted name
}

// has reports whether one of the members is that family, in its other form.
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

// kindSuffix tells kinds apart whose metric names would be equal.
var kindSuffix = [kinds]string{"_counter", "_gauge", "_text", "_histogram"}

// sampleSuffixes are the endings that the samples of a kind add to its name.
var sampleSuffixes = [kinds][]string{{""}, {""}, {""}, {"", "_bucket", "_sum", "_count"}}

// of returns what is special about a family, nil if nothing is.
func (x *seriesIndex) of(f family) *Series {
	if x.specials.Load() == 0 {
		return nil
	}
	if s, ok := x.special.Load(f); ok {
		return s.(*Series)
	}
	return nil
}

// noteSpecial makes sp what is special about f. seriesIndex.mu must be held.
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

// markSpecial notes that slot i, a stat without tags, may be a special family.
// seriesIndex.mu must be held.
func (b *block) markSpecial(i int) {
	p := b.special.Load()
	if p == nil {
		p = new(atomicBits)
		b.special.Store(p)
	}
	p.set(i)
}

// seriesOf returns what is special about the family of slot i, whose record
// after the name is rest.
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

// ownerFamily returns the family that o, which is not shared, refers to.
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

// claimMetric gives f its metric name: the plain one if nobody has it, the
// same as families have that differ from it in replaced bytes only, and one
// with a suffix otherwise. Network input cannot take a name from the program's
// own stats: it gets a suffix, even if it was first.
func (s *Store) claimMetric(f family, owner metricOwner) {
	metric, ok := s.opts.Naming.AppendMetric(nil, f.name, f.network, f.kind)
	if !ok {
		return
	}
	idx, base := &s.series, len(metric)
	sp := Series{lead: f.name}
	if old := idx.of(f); old != nil { // it is there in its other form
		sp.Merged, sp.lead = old.Merged, old.lead
		metric = append(metric, old.Suffix...)
	}
	for {
		o, taken := s.metricTaken(metric, f.kind)
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
		if s.opts.Naming.Unique && len(metric) == base+len(kindSuffix[f.kind]) {
			metric = appendDigest(metric, f.name)
		} else {
			metric = append(metric, kindSuffix[f.kind]...)
		}
	}
	if len(metric) > base {
		s.collide(f.name, string(metric[:base]))
		sp.Suffix = string(metric[base:])
		s.noteSpecial(f, sp)
	}
	s.setOwner(string(metric), owner)
}

// appendDigest appends what tells a name from those that differ in replaced bytes
// only, however many there are. Nobody can find many names with the same.
func appendDigest(metric []byte, name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return hex.AppendEncode(append(metric, '_'), sum[:8])
}

// setOwner makes o the owner of a metric name and of those of its samples.
func (s *Store) setOwner(metric string, o metricOwner) {
	for _, suffix := range sampleSuffixes[o.kind] {
		s.series.owners[s.metricHash(metric, suffix)] = o
	}
}

// displace gives a metric name that network input made another suffix. It
// reports false, and does nothing, if the owner is the program.
func (s *Store) displace(o metricOwner) bool {
	idx := &s.series
	sm := s.sharedBy(o)
	if !sm.network {
		return false
	}
	metric := sm.base + sm.suffix
	for _, suffix := range sampleSuffixes[o.kind] {
		if h := s.metricHash(metric, suffix); idx.owners[h] == o {
			delete(idx.owners, h)
		}
	}
	if o.form != ownerShared {
		s.collide(sm.lead, sm.base)
	}
	// The new suffix is found while the owner of the old name is out of the
	// way, so it must not be the old one.
	for taken := true; taken; {
		sm.suffix += kindSuffix[o.kind]
		_, taken = s.metricTaken([]byte(sm.base+sm.suffix), o.kind)
	}
	s.setOwner(sm.base+sm.suffix, o)
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

// sharedBy returns the sharedMetric of o, or what it would be if o shared its
// name.
func (s *Store) sharedBy(o metricOwner) *sharedMetric {
	if o.form == ownerShared {
		return s.series.shared[o.ref]
	}
	first := s.ownerFamily(o)
	sm := &sharedMetric{lead: first.name, network: first.network, members: make(map[metricOwner]string), forms: make(map[string]int)}
	sm.add(o, first.name)
	m, _ := s.opts.Naming.AppendMetric(nil, first.name, first.network, first.kind)
	sm.base = string(m)
	if sp := s.series.of(first); sp != nil {
		sm.lead, sm.suffix = sp.lead, sp.Suffix
	}
	return sm
}

// joinMetric makes f share the metric name of o, which is that of sm.
func (s *Store) joinMetric(o metricOwner, sm *sharedMetric, f family, owner metricOwner) {
	idx := &s.series
	if o.form != ownerShared {
		if idx.shared == nil {
			idx.shared = make(map[uint32]*sharedMetric)
		}
		for idx.shares++; idx.shared[idx.shares] != nil; idx.shares++ {
		}
		idx.shared[idx.shares] = sm
		s.setOwner(sm.base+sm.suffix, metricOwner{idx.shares, f.kind, ownerShared})
	}
	known := sm.has(f.name)
	sm.add(owner, f.name)
	if known {
		return
	}
	s.collide(f.name, sm.base)
	sp := Series{sm.suffix, true, sm.lead}
	if len(sm.forms) > 2 { // the others are known to share it
		s.noteSpecial(f, sp)
		return
	}
	for name := range sm.forms {
		s.noteSpecial(family{f.network, f.kind, name}, sp)
	}
}

// metricTaken reports whether a metric name, or one of the names that its
// samples would have, belongs to somebody, and to whom.
func (s *Store) metricTaken(metric []byte, k Kind) (metricOwner, bool) {
	for _, suffix := range sampleSuffixes[k] {
		if o, ok := s.series.owners[s.metricHash(string(metric), suffix)]; ok {
			return o, true
		}
	}
	return metricOwner{}, false
}

// HasMetric reports whether a family of a kind that was listed by family has
// a metric name.
func (s *Store) HasMetric(metric string) bool {
	s.series.mu.Lock()
	defer s.series.mu.Unlock()
	_, ok := s.series.owners[s.metricHash(metric, "")]
	return ok
}

func (s *Store) metricHash(metric, suffix string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.series.seed)
	h.WriteString(metric)
	h.WriteString(suffix)
	return h.Sum64()
}

// leaveSeries forgets the family of a stat that ended, if the stat was all of
// it. It is called when nothing shows the stat any more.
func (s *Store) leaveSeries(b *block, i int, x id) {
	f, n := s.familyOf(b, i)
	if n == nil {
		s.leaveMetric(f, metricOwner{x, f.kind, ownerStat})
	}
}

// leaveNamed is leaveSeries for a family whose last stat ended.
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
	if len(idx.owners) == 0 {
		return
	}
	metric, ok := s.opts.Naming.AppendMetric(nil, f.name, f.network, f.kind)
	if !ok {
		return
	}
	if sp := idx.of(f); sp != nil {
		metric = append(metric, sp.Suffix...)
	}
	o, taken := idx.owners[s.metricHash(string(metric), "")]
	if !taken {
		return
	}
	more := false // others have the metric name
	if o.form == ownerShared {
		sm := idx.shared[o.ref]
		if _, in := sm.members[owner]; !in {
			return
		}
		sm.remove(owner, f.name)
		more = len(sm.members) > 0
		if sm.has(f.name) {
			return // the family goes on in its other form
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
	for _, suffix := range sampleSuffixes[f.kind] {
		if h := s.metricHash(string(metric), suffix); idx.owners[h] == o {
			delete(idx.owners, h)
		}
	}
}

// Collision is a family that came to the metric name of another one.
type Collision struct {
	Name   string // tag-extracted, of who has a suffix or shares the metric name since
	Metric string // what both are without a suffix
}

func (s *Store) collide(name, metric string) {
	s.clashed.Store(&Collision{strings.Clone(name), metric})
	s.collided.Add(1)
}

// Collisions returns how often a family came to the metric name of another one.
func (s *Store) Collisions() uint64 { return s.collided.Load() }

// LastCollision returns the last one that [Store.Collisions] counts, the zero
// value if there was none.
func (s *Store) LastCollision() Collision {
	if c := s.clashed.Load(); c != nil {
		return *c
	}
	return Collision{}
}

// Naming returns the rules by which the store's stats are named in the
// exposition formats.
func (s *Store) Naming() *Naming { return &s.opts.Naming }

// Tags returns the rules that find tags in names.
func (s *Store) Tags() *tags.Extractor { return s.opts.Tags }

// Series returns what is special about the metric name of the stat's family,
// nil if nothing is, as for nearly all.
func (c *Cursor) Series() *Series {
	if c.s.series.specials.Load() == 0 {
		return nil
	}
	rest := c.rest()
	return c.s.seriesOf(c.b, c.i, rest)
}
