package remotewrite

import (
	"hash/maphash"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

// symbols is the table of strings of a request of version 2.0, in which symbol 0 is "".
// Its zero value must be reset.
type symbols struct {
	seed  maphash.Seed
	table []byte // the encoded strings, and no others
	count uint32 // of symbols
	slots []slot // open addressing; a power of two
	last  []recent
}

// slot has bits of the hash of a symbol's text, the symbol, and where in the table its
// text begins and ends; symbol 0 means empty.
type slot struct{ hash, ref, from, to uint32 }

// recent is the last text at a place.
type recent struct {
	text *byte
	size int
	ref  uint64
}

const firstSlots = 1024

func (t *symbols) reset(seed maphash.Seed) {
	if t.slots == nil {
		t.slots = make([]slot, firstSlots)
	}
	t.seed = seed
	clear(t.slots)
	clear(t.last)
	t.table, t.count = protobuf.AppendBytes(t.table[:0], 4, ""), 1
}

// ref returns the symbol of a text with a hash.
func (t *symbols) ref(text []byte, hash uint64) uint64 {
	if len(text) == 0 {
		return 0
	}
	mask, h := uint32(len(t.slots)-1), uint32(hash>>32)
	i := h & mask
	for ; t.slots[i].ref != 0; i = (i + 1) & mask {
		if s := &t.slots[i]; s.hash == h && string(t.table[s.from:s.to]) == string(text) {
			return uint64(s.ref)
		}
	}
	ref := t.count
	t.count++
	t.table = protobuf.AppendBytes(t.table, 4, text)
	end := uint32(len(t.table))
	t.slots[i] = slot{h, ref, end - uint32(len(text)), end}
	if int(t.count)*4 > len(t.slots)*3 {
		t.grow()
	}
	return uint64(ref)
}

func (t *symbols) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.ref != 0 {
			i := s.hash & mask
			for t.slots[i].ref != 0 {
				i = (i + 1) & mask
			}
			t.slots[i] = s
		}
	}
}

// lasting returns the symbol of a text that never changes, so that the same memory as
// the last time at a place, a small number, means the same text.
func (t *symbols) lasting(place int, text []byte) uint64 {
	if len(text) == 0 {
		return 0
	}
	for place >= len(t.last) {
		t.last = append(t.last, recent{})
	}
	l := &t.last[place]
	if l.text != &text[0] || l.size != len(text) {
		*l = recent{&text[0], len(text), t.ref(text, maphash.Bytes(t.seed, text))}
	}
	return l.ref
}

// lastingString is lasting for a string.
func (t *symbols) lastingString(place int, text string) uint64 {
	return t.lasting(place, unsafe.Slice(unsafe.StringData(text), len(text)))
}
