package store

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/symtab"
)

// Selection caches which stats a predicate on names selects, so that a later
// walk with the same predicate calls it only for new names and skips the other
// stats. The zero value is empty. A selection is for one store and one
// predicate, and safe for concurrent use.
//
// It needs one bit for each stat of the orders that were walked.
type Selection struct {
	byName   [nameSets]atomic.Pointer[selected]
	byFamily [kinds]atomic.Pointer[selected]
}

// selected is the immutable result of a whole walk. Chunks of an order do not
// change, so the result for a chunk holds as long as the order has it. For a
// chunk that was replaced, the results for its ids hold unless ids were reused
// since.
type selected struct {
	recycled uint64 // Store.recycled before the walk
	chunks   []selectedChunk
	index    map[*id]int // of a chunk by its first id
	bytes    int
}

type selectedChunk struct {
	ids  []id
	bits [chunkSize / 64]uint64
}

func (sc *selectedChunk) has(i int) bool { return sc.bits[i/64]>>(i%64)&1 != 0 }
func (sc *selectedChunk) set(i int)      { sc.bits[i/64] |= 1 << (i % 64) }

// Bytes estimates the memory of the selection. Ids count as its own, since they can
// be of an order that has changed since.
func (sel *Selection) Bytes() (n int) {
	for i := range sel.byName {
		if s := sel.byName[i].Load(); s != nil {
			n += s.bytes
		}
	}
	for i := range sel.byFamily {
		if s := sel.byFamily[i].Load(); s != nil {
			n += s.bytes
		}
	}
	return n
}

const selectedBytes = int(unsafe.Sizeof(selectedChunk{})) + 40 // with its place in an index

// ByNameIn is [View.ByName] for the stats whose names judge selects. If judge
// returns an error the walk ends there; see [Cursor.Err].
//
// judge may use only those methods of the cursor that concern the name.
func (v *View) ByNameIn(set NameSet, sel *Selection, judge func(*Cursor) (bool, error)) Cursor {
	c := v.ByName(set)
	c.pick = newPicker(v.s, &sel.byName[set], judge, len(c.chunks))
	return c
}

// ByFamilyIn is [View.ByFamily] for the stats whose names judge selects; see
// [View.ByNameIn].
func (v *View) ByFamilyIn(k Kind, sel *Selection, judge func(*Cursor) (bool, error)) Cursor {
	c := v.ByFamily(k)
	c.pick = newPicker(v.s, &sel.byFamily[k], judge, len(c.chunks))
	return c
}

// Err returns the error that ended the walk early, if one did.
func (c *Cursor) Err() error {
	if c.pick == nil {
		return nil
	}
	return c.pick.err
}

// Segments returns a cursor over the dot-separated segments of the full name.
func (c *Cursor) Segments() symtab.Cursor {
	return c.s.symbols.Segments(c.enc())
}

// SymbolAfter returns the symbol of the last segment of the full name. It
// returns false if the segments before it are not those in before, a result of
// [Cursor.AppendBeforeLast], if before is empty, or if the segment is a literal.
func (c *Cursor) SymbolAfter(before []byte) (symbol uint32, ok bool) {
	last, ok := bytes.CutPrefix(c.segments(), before)
	if !ok || len(before) == 0 {
		return 0, false
	}
	for i, b := range last {
		symbol |= uint32(b&0x7f) << (7 * i)
		if b < 0x80 {
			return symbol, symbol != 0 && i+1 == len(last)
		}
	}
	return 0, false
}

// AppendBeforeLast appends the encoded segments of the full name except the
// last, and nothing if the name has literal segments.
func (c *Cursor) AppendBeforeLast(dst []byte) []byte {
	segments := c.segments()
	last := 0
	for i, b := range segments {
		if b == 0 {
			return dst
		}
		if b < 0x80 && i < len(segments)-1 {
			last = i + 1
		}
	}
	return append(dst, segments[:last]...)
}

// segments returns the encoded segments of the full name.
func (c *Cursor) segments() []byte {
	w := 1
	if c.rec[0] >= 0x80 {
		_, w = binary.Uvarint(c.rec)
	}
	return c.rec[w:c.cut]
}

// AppendSymbols appends the symbol of each segment of the full name. It returns
// false if a segment is a literal, which has none.
func (c *Cursor) AppendSymbols(dst []uint32) ([]uint32, bool) {
	rec := c.segments()
	for i := 0; i < len(rec); {
		v := uint32(rec[i])
		i++
		if v >= 0x80 {
			v &= 0x7f
			for shift := 7; i < len(rec); shift += 7 {
				b := uint32(rec[i])
				i++
				v |= b & 0x7f << shift
				if b < 0x80 {
					break
				}
			}
		}
		if v == 0 {
			return dst, false
		}
		dst = append(dst, v)
	}
	return dst, true
}

// picker applies a selection in one walk.
type picker struct {
	home  *atomic.Pointer[selected]
	judge func(*Cursor) (bool, error)
	old   *selected
	now   selected
	total int  // chunks of the order
	at    int  // chunks passed
	same  bool // all of them are the chunks of old
	err   error

	ids []id // selected ids of the current chunk
	ask []id // those to judge

	// The position of the walk in old, for carry.
	oldChunk, oldID int
}

func newPicker(s *Store, home *atomic.Pointer[selected], judge func(*Cursor) (bool, error), total int) *picker {
	// The count is read after the order: an id in it that was recycled is
	// counted.
	p := &picker{home: home, judge: judge, old: home.Load(), total: total, same: true}
	p.now.recycled = s.recycled.Load()
	if p.old == nil {
		p.old = new(selected)
	}
	return p
}

// fill collects selected ids from the next chunks of c, at least a batch of them
// if possible, and makes them the chunk of c.
func (p *picker) fill(c *Cursor) {
	p.ids = p.ids[:0]
	for len(c.chunks) > 0 && len(p.ids) < batchSteps {
		c.chunk, c.chunks = c.chunks[0], c.chunks[1:]
		p.take(c, c.chunk)
	}
	c.chunk = p.ids
}

// take appends the selected ids of a chunk to p.ids.
func (p *picker) take(c *Cursor, ids []id) {
	var sc *selectedChunk
	if n := p.find(ids); n >= 0 {
		sc = &p.old.chunks[n]
		if n != p.at {
			p.diverge()
		}
		p.oldChunk, p.oldID = n+1, 0
	} else {
		p.diverge()
	}
	if sc == nil {
		p.now.chunks = append(p.now.chunks, selectedChunk{ids: ids})
		sc = &p.now.chunks[len(p.now.chunks)-1]
		if !p.judgeAll(c, sc) {
			c.chunks = nil
			return
		}
	} else if !p.same {
		p.now.chunks = append(p.now.chunks, *sc)
	}
	p.at++
	for w, m := range sc.bits {
		for ; m != 0; m &= m - 1 {
			p.ids = append(p.ids, ids[w*64+bits.TrailingZeros64(m)])
		}
	}
	if p.at == p.total {
		p.finish()
	}
}

// find returns the index of the chunk ids in old, -1 if it is not there. The chunk is
// usually at the same place; the index costs several times as much.
func (p *picker) find(ids []id) int {
	if p.at < len(p.old.chunks) {
		if old := p.old.chunks[p.at].ids; &old[0] == &ids[0] && len(old) == len(ids) {
			return p.at
		}
	}
	if n, ok := p.old.index[&ids[0]]; ok && len(p.old.chunks[n].ids) == len(ids) {
		return n
	}
	return -1
}

// diverge is called when the chunks begin to differ from the old ones.
func (p *picker) diverge() {
	if !p.same {
		return
	}
	p.same = false
	p.now.chunks = append(make([]selectedChunk, 0, p.total), p.old.chunks[:p.at]...)
}

// judgeAll sets the bits of a chunk that is not in old.
func (p *picker) judgeAll(c *Cursor, sc *selectedChunk) bool {
	if len(p.old.chunks) == 0 {
		return p.judgeIDs(c, sc, sc.ids)
	}
	p.ask = p.ask[:0]
	for i, x := range sc.ids {
		switch hit, known := p.carry(c, x); {
		case !known:
			p.ask = append(p.ask, x)
		case hit:
			sc.set(i)
		}
	}
	return p.judgeIDs(c, sc, p.ask)
}

// judgeIDs sets the bits of ids of sc, which are in the same order.
func (p *picker) judgeIDs(c *Cursor, sc *selectedChunk, ids []id) bool {
	c.chunk = ids
	i := 0
	for len(c.chunk) > 0 {
		c.locate()
		for j := range c.next[:c.n] {
			c.step = &c.next[j]
			hit, err := p.judge(c)
			if err != nil {
				p.err, c.n, c.at = err, 0, 0
				return false
			}
			for sc.ids[i] != c.x {
				i++
			}
			if hit {
				sc.set(i)
			}
		}
		c.n, c.at = 0, 0
	}
	return true
}

// carry returns the result for x in old. Both have the same order, so the next
// id in old is x, or ended, or follows x, which is new then.
func (p *picker) carry(c *Cursor, x id) (hit, known bool) {
	if p.old.recycled != p.now.recycled {
		return false, false
	}
	for p.oldChunk < len(p.old.chunks) {
		sc := &p.old.chunks[p.oldChunk]
		if p.oldID == len(sc.ids) {
			p.oldChunk++
			p.oldID = 0
			continue
		}
		y := sc.ids[p.oldID]
		if y != x {
			if b := c.block(y); b != nil && b.alive.has(int(y&(1<<slotBits-1))) {
				return false, false
			}
			p.oldID++
			continue
		}
		p.oldID++
		return sc.has(p.oldID - 1), true
	}
	return false, false
}

// finish publishes the result of the walk.
func (p *picker) finish() {
	if p.same && p.at == len(p.old.chunks) && p.old.recycled == p.now.recycled {
		return
	}
	p.diverge()
	p.now.index, p.now.bytes = make(map[*id]int, len(p.now.chunks)), 0
	for i := range p.now.chunks {
		ids := p.now.chunks[i].ids
		p.now.index[&ids[0]] = i
		p.now.bytes += selectedBytes + 4*cap(ids)
	}
	now := p.now
	p.home.Store(&now)
}
