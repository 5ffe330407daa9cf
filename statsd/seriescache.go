package statsd

import (
	"bytes"
	"hash/maphash"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// seriesCache leads from the raw bytes that tell a series, as a client spells
// them, to what they mean: name section, type and tag options. It belongs to
// one worker. Nothing in it is a pointer for the collector to follow but the few
// chunks that hold the keys.
//
// It is an open addressing table with linear probing. What is removed closes
// the gap, so a probe ends at the first empty slot. When it is full a hand goes
// round and evicts the first slot that was not used since the hand came by
// last. Rejected spellings are kept too, in up to a quarter of the slots.
type seriesCache struct {
	seed  maphash.Seed
	slots []cacheEntry // a power of two
	max   int          // most slots in use

	used     int
	negative int // of used
	hand     int

	chunks [][]byte // keys
	live   int      // bytes of keys that slots refer to
	dead   int      // bytes of keys that no slot refers to
}

// cacheEntry is one spelling. Its key is in chunk at>>16 from at&0xffff on.
type cacheEntry struct {
	hash    uint64 // 0: the slot is empty
	at      uint32
	cell    uint32 // where the series is, unless reason or limit say otherwise
	gen     uint32 // of the cell, or the era of a limit, when the slot was filled
	length  uint16
	tags    tagCount
	typ     line.Type
	reason  line.Reason // not OK: lines like this are rejected
	limit   limit       // not 0: lines like this are over a limit
	visited bool
}

const (
	keyChunk   = 1 << 16
	cacheFirst = 256 // slots to begin with
)

// noCell stands for no cell: samples over a limit that have no overflow stat.
const noCell = 1<<32 - 1

func newSeriesCache(max int) *seriesCache {
	return &seriesCache{seed: maphash.MakeSeed(), slots: make([]cacheEntry, cacheFirst), max: max}
}

// lineKey are the pieces of a key.
type lineKey struct {
	base      uint64 // hash of everything but the type
	section   []byte
	tags      [][]byte
	container []byte
	length    int
}

// keyOf gathers the key of l's samples.
func (t *seriesCache) keyOf(l *line.Line) lineKey {
	k := lineKey{section: l.Section, tags: l.TagFields, container: l.Container}
	k.base = maphash.Bytes(t.seed, k.section)
	k.length = len(k.section)
	for _, f := range k.tags {
		k.base = k.base*0x9e3779b97f4a7c15 ^ maphash.Bytes(t.seed, f)
		k.length += 1 + len(f)
	}
	if k.container != nil {
		k.base = k.base*0xd6e8feb86659fd93 ^ maphash.Bytes(t.seed, k.container) ^ 1
		k.length += 2 + len(k.container)
	}
	return k
}

// hash returns the hash of k with a type.
func (k *lineKey) hash(typ line.Type) uint64 {
	h := (k.base ^ uint64(typ+1)*0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15
	return h ^ h>>32 | 1<<63
}

// append appends the bytes of k: pieces that hold no '|' and no line feed,
// joined by these.
func (k *lineKey) append(dst []byte) []byte {
	dst = append(dst, k.section...)
	for _, f := range k.tags {
		dst = append(append(dst, '|'), f...)
	}
	if k.container != nil {
		dst = append(append(dst, '|', '\n'), k.container...)
	}
	return dst
}

// equal reports whether key, made by append, is k's.
func (k *lineKey) equal(key []byte) bool {
	if len(key) != k.length || !bytes.HasPrefix(key, k.section) {
		return false
	}
	key = key[len(k.section):]
	for _, f := range k.tags {
		if len(key) < 1+len(f) || key[0] != '|' || !bytes.Equal(key[1:1+len(f)], f) {
			return false
		}
		key = key[1+len(f):]
	}
	if k.container != nil {
		return len(key) == 2+len(k.container) && key[0] == '|' && key[1] == '\n' && bytes.Equal(key[2:], k.container)
	}
	return len(key) == 0
}

func (t *seriesCache) key(s *cacheEntry) []byte {
	at := s.at & (keyChunk - 1)
	return t.chunks[s.at/keyChunk][at : at+uint32(s.length)]
}

// find returns the slot of a spelling, nil if it is not known. The slot is
// good until the next put or remove.
func (t *seriesCache) find(k *lineKey, typ line.Type) *cacheEntry {
	h := k.hash(typ)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.hash == h && s.typ == typ && k.equal(t.key(s)) {
			if !s.visited {
				s.visited = true
			}
			return s
		}
		if s.hash == 0 {
			return nil
		}
	}
}

// put remembers a spelling that is not known, whose meaning v tells. It
// reports whether another one had to go for it.
func (t *seriesCache) put(k *lineKey, typ line.Type, v cacheEntry) (evicted bool) {
	negative := v.reason != line.OK
	if k.length >= keyChunk || negative && t.negative >= t.max/4 {
		return false
	}
	for t.used > 0 && (t.used >= t.max || t.live+k.length > t.maxBytes()) {
		t.evict()
		evicted = true
	}
	if (t.used+1)*4 > len(t.slots)*3 {
		t.rehash(2 * len(t.slots))
	}
	v.hash, v.typ = k.hash(typ), typ
	v.length = uint16(k.length)
	v.at = t.store(k)
	t.insert(v)
	t.used++
	if negative {
		t.negative++
	}
	return evicted
}

// maxBytes is how much memory keys may take: long ones leave room for fewer.
func (t *seriesCache) maxBytes() int { return min(64*t.max, 1<<31) }

// store puts the bytes of k in a chunk and returns where.
func (t *seriesCache) store(k *lineKey) uint32 {
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last])+k.length > keyChunk {
		t.compact()
		t.chunks = append(t.chunks, make([]byte, 0, min(keyChunk, max(4096, 2*k.length*(t.used+1)))))
		last = len(t.chunks) - 1
	}
	at := uint32(last*keyChunk + len(t.chunks[last]))
	t.chunks[last] = k.append(t.chunks[last])
	t.live += k.length
	return at
}

// compact copies the keys in use together when most of the bytes are dead.
func (t *seriesCache) compact() {
	if t.dead < t.live || t.dead < keyChunk {
		return
	}
	var chunks [][]byte
	for i := range t.slots {
		s := &t.slots[i]
		if s.hash == 0 {
			continue
		}
		last := len(chunks) - 1
		if last < 0 || len(chunks[last])+int(s.length) > keyChunk {
			chunks = append(chunks, make([]byte, 0, keyChunk))
			last++
		}
		key := t.key(s)
		s.at = uint32(last*keyChunk + len(chunks[last]))
		chunks[last] = append(chunks[last], key...)
	}
	t.chunks, t.dead = chunks, 0
}

func (t *seriesCache) insert(v cacheEntry) {
	mask := uint64(len(t.slots) - 1)
	i := v.hash & mask
	for t.slots[i].hash != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = v
}

func (t *seriesCache) rehash(size int) {
	old := t.slots
	t.slots = make([]cacheEntry, size)
	t.hand = 0
	for _, s := range old {
		if s.hash != 0 {
			t.insert(s)
		}
	}
}

// evict removes one slot: the first that the hand finds unused since its last
// round.
func (t *seriesCache) evict() {
	for {
		s := &t.slots[t.hand]
		if s.hash != 0 && !s.visited {
			t.remove(t.hand)
			return
		}
		s.visited = false
		t.hand = (t.hand + 1) & (len(t.slots) - 1)
	}
}

// forget removes the slot s.
func (t *seriesCache) forget(s *cacheEntry) {
	mask := len(t.slots) - 1
	for i := int(s.hash) & mask; ; i = (i + 1) & mask {
		if &t.slots[i] == s {
			t.remove(i)
			return
		}
	}
}

// remove empties slot i and moves up what was displaced by it.
func (t *seriesCache) remove(i int) {
	s := &t.slots[i]
	t.used--
	if s.reason != line.OK {
		t.negative--
	}
	t.dead += int(s.length)
	t.live -= int(s.length)
	mask := len(t.slots) - 1
	for j := i; ; {
		j = (j + 1) & mask
		if t.slots[j].hash == 0 {
			break
		}
		// The one at j may move to i unless its own place lies between.
		home := int(t.slots[j].hash) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = cacheEntry{}
}
