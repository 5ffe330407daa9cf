package statsd

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// seriesCache maps the part of a line that identifies a series, exactly as a
// client writes it, to the series. It belongs to one worker, holds no pointers,
// and keeps 79-bit fingerprints under a random seed instead of text.
//
// It is an open addressing table with linear probing. Removing an entry closes
// the gap, so a probe ends at the first empty slot. A full cache evicts by the
// clock algorithm, with a hand that starts anew at the home of each new entry: a
// hand that swept the table would leave the slots before it full and those behind
// it empty, and a probe in the full ones takes a time that grows with the table.
// Rejected keys are cached too, in up to a quarter of the entries.
//
// A client that writes the tags of a series in another order each time would
// fill it. The first line of a series is cached as written, which is all that
// most clients need. A line that differs from it also caches the normal form of
// its name and tags, and that entry counts how many further variants were
// cached. Lines beyond maxVariants are found by their normal form each time.
type seriesCache struct {
	budget *cacheBudget
	seeds  [2]maphash.Seed
	slots  []cacheEntry
	max    int // entries

	varied []uint64 // bits by cell: a variant of its series was cached since the last prune

	used     int
	negative int // of used
}

// cacheEntry is what a cache knows about one key.
type cacheEntry struct {
	print  [2]uint32  // print[0] is 0 if the slot is empty
	more   uint16     // of the fingerprint
	rule   ruleNumber // that maps or drops the samples
	cell   uint32     // of the series, unless reason or limit say otherwise; noCell without them: rule drops the samples
	gen    uint32     // of the cell, or the era of a limit or conflict, when the entry was made
	tags   tagCount
	reason line.Reason // not OK: such lines are rejected
	state  uint8       // a limit that such lines exceed, or noLimit, variants and visited
}

const (
	// visited is set in the state of an entry that was used since an eviction
	// passed it.
	visited = 0x80

	// The entry of a normal form counts in its state the variants that were cached.
	oneVariant  = 0x10
	maxVariants = 7

	limitBits = oneVariant - 1
)

func (s *cacheEntry) limit() limit { return limit(s.state & limitBits) }

// addVariant counts a variant of the normal form s. It reports false if there are
// too many of them to cache another.
func (s *cacheEntry) addVariant() bool {
	if s.state&^visited/oneVariant == maxVariants {
		return false
	}
	s.state += oneVariant
	return true
}

const (
	cacheFirst = 256 // slots of a new cache
	entryBytes = 24
)

// noCell stands for no cell: samples over a limit that have no overflow stat.
const noCell = 1<<32 - 1

// cacheBudget bounds the memory by which all caches together outgrow their first
// slots, whatever the number of workers.
type cacheBudget struct {
	max  int64 // bytes
	fair int64 // bytes that a cache gets even when the others hold the rest
	used atomic.Int64
}

// resize changes the size of a cache, in slots. It reports false, and changes
// nothing, if the budget does not allow a cache to grow.
func (b *cacheBudget) resize(from, to int) bool {
	delta := int64(to-from) * entryBytes
	if now := b.used.Add(delta); delta > 0 && now > b.max && int64(to)*entryBytes > b.fair {
		b.used.Add(-delta)
		return false
	}
	return true
}

func newSeriesCache(max int, budget *cacheBudget) *seriesCache {
	return &seriesCache{
		budget: budget,
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		slots:  make([]cacheEntry, cacheFirst),
		max:    max,
	}
}

func (t *seriesCache) clear() {
	t.budget.resize(len(t.slots), cacheFirst)
	t.slots = make([]cacheEntry, cacheFirst)
	t.used, t.negative = 0, 0
	t.varied = nil
}

// firstVariant reports whether no variant of the series of a cell was cached
// before, and notes that one is now. An overflow series takes lines of many
// names, so that the answer is true at most for the first.
func (t *seriesCache) firstVariant(cell uint32) bool {
	if cell == noCell {
		return false
	}
	i, bit := int(cell/64), uint64(1)<<(cell%64)
	for len(t.varied) <= i {
		t.varied = append(t.varied, 0)
	}
	first := t.varied[i]&bit == 0
	t.varied[i] |= bit
	return first
}

// lineKey is the fingerprint of a line's key without the type.
type lineKey [2]uint64

func (t *seriesCache) keyOf(l *line.Line) (k lineKey) {
	for i, seed := range t.seeds {
		h := maphash.Bytes(seed, l.Section)
		for _, f := range l.TagFields {
			h = mix(h) ^ maphash.Bytes(seed, f)
		}
		if l.Container != nil {
			h = mix(h+1) ^ maphash.Bytes(seed, l.Container)
		}
		k[i] = h
	}
	return k
}

// normalKey returns the key of the normal form of l, which is identified: its
// name and sorted tags. Only a line that is its name and nothing else has one
// variant; then ok is false.
func (t *seriesCache) normalKey(l *line.Line) (k lineKey, ok bool) {
	if len(l.TagFields) == 0 && l.Container == nil && len(l.Name) == len(l.Section) {
		return k, false
	}
	for i, seed := range t.seeds {
		h := mix(maphash.Bytes(seed, l.Name) + 2) // unlike any key of keyOf
		for _, tag := range l.Tags {
			h = mix(h) ^ maphash.Bytes(seed, tag.Key)
			h = mix(h) ^ maphash.Bytes(seed, tag.Value)
		}
		k[i] = h
	}
	return k, true
}

func (k *lineKey) print(typ line.Type) (print [2]uint32, more uint16) {
	a := mix(k[0] + uint64(typ+1)*0x9e3779b97f4a7c15)
	return [2]uint32{uint32(a>>32) | 1, uint32(a)}, uint16(k[1])
}

// home returns the slot where the probe for a fingerprint starts.
func (t *seriesCache) home(print uint32) int {
	return int(uint64(print) * uint64(len(t.slots)) >> 32)
}

func (t *seriesCache) after(i int) int {
	if i++; i == len(t.slots) {
		return 0
	}
	return i
}

// find returns the entry of a key, or nil. The entry is valid until the next
// put or forget.
func (t *seriesCache) find(k *lineKey, typ line.Type) *cacheEntry {
	p, more := k.print(typ)
	for i := t.home(p[0]); ; i = t.after(i) {
		s := &t.slots[i]
		if s.print == p && s.more == more {
			if s.state&visited == 0 {
				s.state |= visited
			}
			return s
		}
		if s.print[0] == 0 {
			return nil
		}
	}
}

// put caches v for a key that is not cached. It reports whether another entry
// was evicted.
func (t *seriesCache) put(k *lineKey, typ line.Type, v cacheEntry) (evicted bool) {
	negative := v.reason != line.OK
	if negative && t.negative >= t.max/4 {
		return false
	}
	v.print, v.more = k.print(typ)
	if t.used >= t.max || (t.used+1)*5 > len(t.slots)*4 && !t.resize(len(t.slots)*5/4) {
		t.evict(t.home(v.print[0]))
		evicted = true
	}
	t.insert(v)
	t.used++
	if negative {
		t.negative++
	}
	return evicted
}

func (t *seriesCache) insert(v cacheEntry) {
	i := t.home(v.print[0])
	for t.slots[i].print[0] != 0 {
		i = t.after(i)
	}
	t.slots[i] = v
}

// resize changes the number of slots. It reports false if the budget forbids
// it.
func (t *seriesCache) resize(size int) bool {
	if !t.budget.resize(len(t.slots), size) {
		return false
	}
	old := t.slots
	t.slots = make([]cacheEntry, size)
	for _, s := range old {
		if s.print[0] != 0 {
			t.insert(s)
		}
	}
	return true
}

// stale reports whether a sample of the entries of a grown cache is mostly not
// valid.
func (t *seriesCache) stale(valid func(*cacheEntry) bool) bool {
	if len(t.slots) <= cacheFirst {
		return false
	}
	used, invalid := 0, 0
	for i := 0; i < len(t.slots); i += len(t.slots) / cacheFirst {
		if s := &t.slots[i]; s.print[0] != 0 {
			used++
			if !valid(s) {
				invalid++
			}
		}
	}
	return invalid*2 > used
}

// prune removes the entries that are not valid and the memory that this frees.
func (t *seriesCache) prune(valid func(*cacheEntry) bool) {
	old := t.slots
	t.used, t.negative = 0, 0
	t.varied = nil
	for i := range old {
		switch s := &old[i]; {
		case s.print[0] == 0:
		case !valid(s):
			s.print[0] = 0
		default:
			t.used++
			if s.reason != line.OK {
				t.negative++
			} else {
				t.firstVariant(s.cell)
			}
		}
	}
	size := len(old)
	for size/2 >= cacheFirst && t.used*4 < size {
		size /= 2
	}
	t.resize(size) // also closes the gaps
}

// evict removes the first entry from slot i on that was not used since an eviction
// passed it.
func (t *seriesCache) evict(i int) {
	for t.slots[i].print[0] == 0 || t.slots[i].state&visited != 0 {
		t.slots[i].state &^= visited
		i = t.after(i)
	}
	t.remove(i)
}

func (t *seriesCache) forget(s *cacheEntry) {
	for i := t.home(s.print[0]); ; i = t.after(i) {
		if &t.slots[i] == s {
			t.remove(i)
			return
		}
	}
}

// remove empties slot i and moves up the entries that it displaced.
func (t *seriesCache) remove(i int) {
	s := &t.slots[i]
	t.used--
	if s.reason != line.OK {
		t.negative--
	}
	n := len(t.slots)
	distance := func(from, to int) int { return (to - from + n) % n }
	for j := t.after(i); t.slots[j].print[0] != 0; j = t.after(j) {
		// The entry at j can move to i unless its home lies between.
		if distance(t.home(t.slots[j].print[0]), j) >= distance(i, j) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = cacheEntry{}
}
