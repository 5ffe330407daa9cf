package history

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// A section is a list of changes, sorted by reference: blocks of 1024 references,
// each as
//
//	uvarint twice the growth of the block's index, plus 1 if a reuse follows
//	uvarint reuse, the high bits of the references, if it is not 0
//	uvarint length of the rest in bytes
//	for each change:
//	    uvarint growth of the slot, less one
//	    uvarint change
//
// Changes of gauges are zigzag numbers.
type section struct {
	data   []byte
	signed bool
	marks  []mark // of every marked-th block, without the first
}

// mark is where a block begins.
type mark struct {
	block blockOf
	prev  uint32 // index of the block before
	at    uint32 // in the data
}

const (
	marked    = 8
	markBytes = 16
)

func (s section) size() int { return len(s.data) + markBytes*len(s.marks) }

// blockOf is the part of a reference that the references of a block share, in the
// order of a section.
type blockOf struct{ index, reuse uint32 }

func (a blockOf) less(b blockOf) bool {
	return a.index < b.index || a.index == b.index && a.reuse < b.reuse
}

func split(ref uint64) (b blockOf, slot int) {
	return blockOf{uint32(ref) >> 10, uint32(ref >> 32)}, int(ref & 1023)
}

func (b blockOf) ref(slot int) uint64 {
	return uint64(b.reuse)<<32 | uint64(b.index)<<10 | uint64(slot)
}

// writer encodes a section.
type writer struct {
	signed bool
	out    []byte
	body   []byte
	block  blockOf
	prev   uint32 // index of the block written last
	last   int    // slot
	blocks int    // written
	marks  []mark
}

func (w *writer) reset(signed bool) {
	*w = writer{signed: signed, out: w.out[:0], body: w.body[:0], marks: w.marks[:0]}
}

// add adds a change. References must come in the order of blocks and slots.
func (w *writer) add(ref, diff uint64) {
	b, slot := split(ref)
	if b != w.block || len(w.body) == 0 {
		w.close()
		w.block, w.last = b, -1
	}
	if w.signed {
		diff = diff<<1 ^ -(diff >> 63)
	}
	w.body = binary.AppendUvarint(w.body, uint64(slot-w.last-1))
	w.body = binary.AppendUvarint(w.body, diff)
	w.last = slot
}

// close ends a block.
func (w *writer) close() {
	if len(w.body) == 0 {
		return
	}
	if w.blocks > 0 && w.blocks%marked == 0 {
		w.marks = append(w.marks, mark{w.block, w.prev, uint32(len(w.out))})
	}
	w.blocks++
	head := uint64(w.block.index-w.prev) << 1
	if w.block.reuse != 0 {
		w.out = binary.AppendUvarint(w.out, head|1)
		w.out = binary.AppendUvarint(w.out, uint64(w.block.reuse))
	} else {
		w.out = binary.AppendUvarint(w.out, head)
	}
	w.out = binary.AppendUvarint(w.out, uint64(len(w.body)))
	w.out = append(w.out, w.body...)
	w.prev, w.body = w.block.index, w.body[:0]
}

// section returns the added changes.
func (w *writer) section() section {
	w.close()
	return section{append(make([]byte, 0, len(w.out)), w.out...), w.signed, append(make([]mark, 0, len(w.marks)), w.marks...)}
}

// reader visits the blocks of a section.
type reader struct {
	data   []byte
	signed bool
	block  blockOf
	body   []byte
}

func (s section) reader() reader { return reader{data: s.data, signed: s.signed} }

// readerAt is a reader that leaves out blocks before b.
func (s section) readerAt(b blockOf) reader {
	r := s.reader()
	n := sort.Search(len(s.marks), func(i int) bool { return b.less(s.marks[i].block) })
	if n > 0 {
		r.block.index, r.data = s.marks[n-1].prev, s.data[s.marks[n-1].at:]
	}
	return r
}

// next goes to the next block.
func (r *reader) next() bool {
	if len(r.data) == 0 {
		return false
	}
	take := func() uint64 {
		v, n := binary.Uvarint(r.data)
		r.data = r.data[n:]
		return v
	}
	head := take()
	r.block.index += uint32(head >> 1)
	r.block.reuse = 0
	if head&1 != 0 {
		r.block.reuse = uint32(take())
	}
	n := take()
	r.body, r.data = r.data[:n], r.data[n:]
	return true
}

// each calls yield with the changes of the block until it returns false.
func (r *reader) each(yield func(slot int, diff uint64) bool) {
	slot := -1
	for body := r.body; len(body) > 0; {
		gap, n := binary.Uvarint(body)
		diff, m := binary.Uvarint(body[n:])
		body = body[n+m:]
		slot += int(gap) + 1
		if r.signed {
			diff = diff>>1 ^ -(diff & 1)
		}
		if !yield(slot, diff) {
			return
		}
	}
}

// find returns the change of a reference, 0 if there is none.
func (s section) find(ref uint64) (diff uint64) {
	b, slot := split(ref)
	for r := s.readerAt(b); r.next() && !b.less(r.block); {
		if r.block != b {
			continue
		}
		r.each(func(at int, d uint64) bool {
			if at == slot {
				diff = d
			}
			return at < slot
		})
	}
	return diff
}

// sums are the sums of the changes of a block.
type sums struct {
	set  [16]uint64
	diff [1024]uint64
}

func (s *sums) add(r *reader) {
	r.each(func(slot int, diff uint64) bool {
		s.set[slot/64] |= 1 << (slot % 64)
		s.diff[slot] += diff
		return true
	})
}

// merge returns the sums of sections of one sign.
func merge(w *writer, sections []section) section {
	w.reset(sections[0].signed)
	readers := make([]reader, 0, len(sections))
	for _, s := range sections {
		if r := s.reader(); r.next() {
			readers = append(readers, r)
		}
	}
	total := new(sums)
	for len(readers) > 0 {
		at := readers[0].block
		for i := range readers {
			if readers[i].block.less(at) {
				at = readers[i].block
			}
		}
		*total = sums{}
		kept := readers[:0]
		for _, r := range readers {
			if r.block == at {
				total.add(&r)
				if !r.next() {
					continue
				}
			}
			kept = append(kept, r)
		}
		readers = kept
		for word, m := range total.set {
			for ; m != 0; m &= m - 1 {
				slot := word*64 + bits.TrailingZeros64(m)
				if total.diff[slot] != 0 {
					w.add(at.ref(slot), total.diff[slot])
				}
			}
		}
	}
	return w.section()
}
