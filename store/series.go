package store

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
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
		dst = appendAlphabet(dst, name)
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

// AppendLabel appends the label name for the name of a tag.
func (n *Naming) AppendLabel(dst []byte, name string) []byte {
	switch {
	case name == "le" || name == "quantile" || strings.HasPrefix(name, "__"):
		dst = append(dst, "exported_"...)
	case name == "" || digit(name[0]):
		dst = append(dst, '_')
	}
	return appendAlphabet(dst, name)
}

// appendAlphabet appends s with every byte that metric names cannot have
// replaced by an underscore.
func appendAlphabet(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			c = '_'
		}
		dst = append(dst, c)
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
	// Merged is set if families of the same kind share the name. Their stats
	// stand together, and those with equal labels are one series.
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

	// special holds what is not as the name alone would have it: nearly
	// nothing, nearly always.
	special  sync.Map // family to *Series
	specials atomic.Int64
}

// metricOwner refers to the family that had a metric name first: to a Name by
// number, or to the only stat of a family without tags.
type metricOwner struct {
	ref   uint32
	kind  Kind
	named bool
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

func (x *seriesIndex) note(f family, s *Series) {
	if _, had := x.special.Swap(f, s); !had {
		x.specials.Add(1)
	}
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

// ownerFamily returns the family that o refers to.
func (s *Store) ownerFamily(o metricOwner) family {
	if o.named {
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
	_, rest := splitRecord(b.record(i))
	if n := s.recordFamily(rest); n != nil && n.listed>>k&1 != 0 {
		return
	}
	f, n := s.familyOf(b, i)
	owner := metricOwner{ref: x, kind: k}
	if n != nil {
		n.listed |= 1 << k
		owner.ref, owner.named = n.num, true
	}
	metric, ok := s.opts.Naming.AppendMetric(nil, f.name, f.network, k)
	if !ok {
		return
	}
	for {
		o, taken := s.metricTaken(metric, k)
		if !taken {
			break
		}
		first := s.ownerFamily(o)
		if o.kind == k && first.network == f.network {
			if first.name == f.name {
				return // the same family, with and without tags
			}
			s.collided.Add(1)
			lead := first.name
			if sp := idx.of(first); sp != nil && sp.Merged {
				lead = sp.lead
			}
			sp := Series{Merged: true, lead: lead}
			if old := idx.of(f); old != nil {
				sp.Suffix = old.Suffix
			}
			idx.note(f, &sp)
			if old := idx.of(first); old != nil {
				sp.Suffix = old.Suffix
			} else {
				sp.Suffix = ""
			}
			idx.note(first, &Series{sp.Suffix, true, lead})
			return
		}
		s.collided.Add(1)
		suffix := kindSuffix[k]
		if old := idx.of(f); old != nil {
			suffix = old.Suffix + suffix
		}
		idx.note(f, &Series{Suffix: suffix})
		metric = append(metric, kindSuffix[k]...)
	}
	for _, suffix := range sampleSuffixes[k] {
		idx.owners[s.metricHash(metric, suffix)] = owner
	}
}

// metricTaken reports whether a metric name, or one of the names that its
// samples would have, belongs to somebody, and to whom.
func (s *Store) metricTaken(metric []byte, k Kind) (metricOwner, bool) {
	for _, suffix := range sampleSuffixes[k] {
		if o, ok := s.series.owners[s.metricHash(metric, suffix)]; ok {
			return o, true
		}
	}
	return metricOwner{}, false
}

func (s *Store) metricHash(metric []byte, suffix string) uint64 {
	return maphash.Bytes(s.series.seed, append(metric[:len(metric):len(metric)], suffix...))
}

// leaveSeries forgets the family of a stat that ended, if the stat was all of
// it. It is called when nothing shows the stat any more.
func (s *Store) leaveSeries(b *block, i int, x id) {
	f, n := s.familyOf(b, i)
	if n == nil {
		s.forgetSeries(f, metricOwner{ref: x, kind: f.kind})
	}
}

// leaveNamed is leaveSeries for a family whose last stat ended.
func (s *Store) leaveNamed(n *Name) {
	for k := range Kind(kinds) {
		if n.listed>>k&1 != 0 {
			s.forgetSeries(family{n.key.network, k, n.key.text}, metricOwner{n.num, k, true})
		}
	}
}

func (s *Store) forgetSeries(f family, owner metricOwner) {
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
		idx.special.Delete(f)
		idx.specials.Add(-1)
	}
	for _, suffix := range sampleSuffixes[f.kind] {
		if h := s.metricHash(metric, suffix); idx.owners[h] == owner {
			delete(idx.owners, h)
		}
	}
}

// Collisions returns how often a family came to the metric name of another one.
func (s *Store) Collisions() uint64 { return s.collided.Load() }

// Naming returns the rules by which the store's stats are named in the
// exposition formats.
func (s *Store) Naming() *Naming { return &s.opts.Naming }

// Series returns what is special about the metric name of the stat's family,
// nil if nothing is, as for nearly all.
func (c *Cursor) Series() *Series {
	if c.s.series.specials.Load() == 0 {
		return nil
	}
	f, _ := c.s.familyOf(c.b, c.i)
	return c.s.series.of(f)
}
