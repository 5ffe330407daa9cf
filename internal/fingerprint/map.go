package fingerprint

import (
	"iter"
	"math/bits"
	"sync/atomic"
)

// Salt separates equal texts of different owners: it is added to their fingerprints.
// It must be as secret as the keys.
type Salt [2]uint64

// Key represents the text of an owner by 96 bits of its fingerprint.
type Key struct {
	low  uint64
	high uint32
}

// Key returns the key of a text.
func (k *Keys) Key(salt *Salt, text string) Key {
	lo, hi := k.Of(text)
	return Key{lo ^ salt[0], uint32(hi ^ salt[1])}
}

// tag is the part of a key stored in its group. It is not 0.
func (k Key) tag() uint64 { return uint64(k.high>>25 | 0x80) }

// Map maps keys to numbers. Any number of goroutines may read it while one writes. It
// never grows and never removes a key.
//
// It is an open addressing table with a power of two of groups. The tags of a group
// share a word, so that most searches read one word and one entry, as in Abseil's
// Swiss tables. Entries are small because a search is bound by memory. An entry is
// written before its tag, which makes it visible; afterwards only its value changes.
type Map struct {
	tags    []atomic.Uint64 // a byte per entry: 0, or 128 and seven bits of a key
	entries []entry         // groupSize for each word of tags
}

type entry struct {
	low   uint64
	high  uint32
	value atomic.Uint32
}

const (
	groupSize = 8

	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// NewMap returns a map for n keys, a power of two and at least 8.
func NewMap(n int) *Map {
	return &Map{make([]atomic.Uint64, n/groupSize), make([]entry, n)}
}

// Cap returns the capacity given to NewMap.
func (m *Map) Cap() int { return len(m.entries) }

// Find returns the value of a text's key, and whether it exists. It does not allocate
// and does not retain text.
func (m *Map) Find(keys *Keys, salt *Salt, text string) (value uint32, ok bool) {
	v := find(m, keys, salt, text)
	return uint32(v), v >= 0
}

// findPortable returns the value of a text's key, -1 if it does not exist.
func findPortable(m *Map, keys *Keys, salt *Salt, text string) (value int64) {
	if v, ok := m.Get(keys.Key(salt, text)); ok {
		return int64(v)
	}
	return -1
}

// Get returns the value of k, and whether it exists.
func (m *Map) Get(k Key) (value uint32, ok bool) {
	if e := m.entry(k); e != nil {
		return e.value.Load(), true
	}
	return 0, false
}

func (m *Map) entry(k Key) *entry {
	mask := uint64(len(m.tags) - 1)
	tag := k.tag() * eachByte
	for g := k.low & mask; ; g = (g + 1) & mask {
		tags := m.tags[g].Load()
		x := tags ^ tag
		// The lowest zero byte is found reliably. Others may be false positives,
		// which fail the comparison.
		for same := (x - eachByte) & ^x & topBits; same != 0; same &= same - 1 {
			e := &m.entries[g*groupSize+uint64(bits.TrailingZeros64(same)/8)]
			if e.low == k.low && e.high == k.high {
				return e
			}
		}
		if tags&topBits != topBits {
			return nil
		}
	}
}

// Put sets the value of k to v. A new key requires that m has fewer than Cap-1 keys,
// because searches end at a free entry.
func (m *Map) Put(k Key, v uint32) {
	if e := m.entry(k); e != nil {
		e.value.Store(v)
		return
	}
	mask := uint64(len(m.tags) - 1)
	g := k.low & mask
	for m.tags[g].Load()&topBits == topBits {
		g = (g + 1) & mask
	}
	tags := m.tags[g].Load()
	i := uint64(bits.TrailingZeros64(^tags&topBits) / 8)
	e := &m.entries[g*groupSize+i]
	e.low, e.high = k.low, k.high
	e.value.Store(v)
	m.tags[g].Store(tags | k.tag()<<(8*i))
}

// All yields the keys and their values.
func (m *Map) All() iter.Seq2[Key, uint32] {
	return func(yield func(Key, uint32) bool) {
		for i := range m.entries {
			if m.tags[i/groupSize].Load()>>(i%groupSize*8)&0x80 == 0 {
				continue
			}
			if e := &m.entries[i]; !yield(Key{e.low, e.high}, e.value.Load()) {
				return
			}
		}
	}
}
