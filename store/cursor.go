package store

import (
	"encoding/binary"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// Cursor walks stats in the order of a [View]. It starts before the first one:
//
//	for c.Next() {
//		buf = c.AppendName(buf)
//	}
//
// Its methods, Next apart, are about the stat it stands on. Steps do not
// allocate. A cursor is used by one goroutine.
//
// Stats next to each other in an order are far apart in memory, so a cursor
// takes some steps at a time: the loads of a batch do not wait for each other.
// Values are those at the time their batch was taken.
type Cursor struct {
	s      *Store
	blocks []atomic.Pointer[block]
	chunks [][]id
	chunk  []id
	pick   *picker // nil: all stats are walked

	used    []usedBits // by block; nil: unused stats are walked too
	usedIDs []id       // what chunk is made of then

	step // the stat under the cursor
	at   int
	n    int
	next [batchSteps]step

	labels []Label
	touch  byte // keeps the loads of take
}

const batchSteps = 32

// step is where a stat is and what a renderer will want of it.
type step struct {
	b   *block
	i   int
	x   id
	raw uint64 // word of a gauge, total of a counter
	rec []byte
}

// Next goes to the next stat and reports whether there is one.
func (c *Cursor) Next() bool {
	for c.at == c.n {
		if len(c.chunk) == 0 {
			if len(c.chunks) == 0 {
				return false
			}
			if c.refill(); len(c.chunk) == 0 {
				continue
			}
		}
		c.take()
	}
	c.step = c.next[c.at]
	c.at++
	return true
}

// take fills the batch with the stats of the next ids that are alive.
func (c *Cursor) take() {
	ids := c.chunk[:min(len(c.chunk), batchSteps)]
	c.chunk = c.chunk[len(ids):]
	c.at, c.n = 0, 0
	var offsets [batchSteps]uint32
	for _, x := range ids {
		b, i := c.block(x), int(x&(1<<slotBits-1))
		if b == nil || !b.alive.has(i) {
			continue
		}
		st := &c.next[c.n]
		st.b, st.i, st.x = b, i, x
		offsets[c.n] = b.offset[i]
		switch b.variant {
		case variantCounter:
			st.raw = b.pg.total(i)
		case variantGauge, variantFloat:
			st.raw = b.pg.word(i).load()
		}
		c.n++
	}
	var touch byte
	for j := range c.n {
		st := &c.next[j]
		st.rec = st.b.arena.Load().b[offsets[j]:]
		touch |= st.rec[0]
	}
	c.touch = touch
}

// stand makes c stand on x, unless that stat has ended.
func (c *Cursor) stand(x id) bool {
	c.chunk, c.chunks = append(c.chunk[:0:0], x), nil
	c.take()
	return c.Next()
}

// block returns the block of x, which may be younger than the cursor's list.
func (c *Cursor) block(x id) *block {
	n := int(x >> slotBits)
	if n >= len(c.blocks) {
		c.blocks = *c.s.blocks.Load()
	}
	return c.blocks[n].Load()
}

// ID returns a small number that no other stat has while the view is open.
func (c *Cursor) ID() uint32 { return c.x }

// Kind returns the kind of the stat.
func (c *Cursor) Kind() Kind { return c.b.variant.kind() }

// Network reports whether network input made the stat.
func (c *Cursor) Network() bool { return c.b.cls.network }

// Used reports whether the stat was ever updated: a counter added to, a gauge
// or text readout set, a histogram recorded to before the last flush.
func (c *Cursor) Used() bool { return c.raw != 0 || c.b.isUsed(c.i) }

func (b *block) isUsed(i int) bool {
	switch b.variant {
	case variantCounter:
		return b.pg.total(i) != 0
	case variantGauge, variantFloat:
		return b.pg.word(i).load() != 0 || b.used.has(i)
	case variantText:
		return (*b.texts.Load())[i].v.Load() != nil
	default:
		return (*b.hists.Load())[i].Snapshot().Used
	}
}

// Hidden reports whether the stat is left out unless hidden ones are asked for.
func (c *Cursor) Hidden() bool {
	return c.b.modes != nil && ImportMode(c.b.modes[c.i].Load()) == HiddenAccumulate
}

// AppendName appends the full name.
func (c *Cursor) AppendName(dst []byte) []byte {
	enc, _ := splitRecord(c.rec)
	return c.s.symbols.AppendText(dst, enc)
}

// Name returns the full name.
func (c *Cursor) Name() string { return string(c.AppendName(nil)) }

// Plain reports whether every byte of the name is printable ASCII other than
// '"', '\', '<' and '>', so that no output format escapes any of it.
func (c *Cursor) Plain() bool {
	_, rest := splitRecord(c.rec)
	return rest[0]&flagEscaped == 0
}

// Uint returns the value of a counter since the last reset, or of a gauge.
func (c *Cursor) Uint() uint64 {
	if c.b.variant != variantCounter {
		return c.raw
	}
	if base := c.b.base.Load(); base != nil {
		if from := base[c.i].Load(); from <= c.raw {
			return c.raw - from
		}
		return 0 // reset since the batch was taken
	}
	return c.raw
}

// Float returns the value of a counter or gauge.
func (c *Cursor) Float() float64 {
	switch v := c.Uint(); {
	case c.b.variant == variantFloat:
		return math.Float64frombits(v)
	case c.b.variant == variantGauge && int64(v) < 0:
		return float64(int64(v))
	default:
		return float64(v)
	}
}

// AppendValue appends the value of a counter or gauge as all output formats
// write it: decimal, whole numbers without a point, others as the shortest
// text that reads back.
func (c *Cursor) AppendValue(dst []byte) []byte {
	v := c.Uint()
	switch c.b.variant {
	case variantFloat:
		return AppendFloat(dst, math.Float64frombits(v))
	case variantGauge:
		return strconv.AppendInt(dst, int64(v), 10)
	default:
		return strconv.AppendUint(dst, v, 10)
	}
}

// AppendFloat appends x the way gauges are written: without a point if it is
// whole and below 2^53, with an exponent from 1e21 on, else the shortest
// decimal that reads back as x.
func AppendFloat(dst []byte, x float64) []byte {
	if math.Abs(x) >= 1e21 {
		return strconv.AppendFloat(dst, x, 'g', -1, 64)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// Text returns the value of a text readout.
func (c *Cursor) Text() string { return (*c.b.texts.Load())[c.i].Value() }

// Histogram returns the histogram.
func (c *Cursor) Histogram() *Histogram { return (*c.b.hists.Load())[c.i] }

// Family returns the family of the stat: its tag-extracted name. It is nil if
// that is the full name itself.
func (c *Cursor) Family() *Name {
	_, rest := splitRecord(c.rec)
	return c.s.recordFamily(rest)
}

// recordFamily decodes the family from a record after the name.
func (s *Store) recordFamily(rest []byte) *Name {
	if rest[0]&flagTagged == 0 {
		return nil
	}
	num, _ := binary.Uvarint(rest[1:])
	return s.names.at(uint32(num))
}

// Label is a tag of a stat: its name, shared by many, and its value, which is
// valid until the cursor moves.
type Label struct {
	Name  *Name
	Value []byte
}

// Labels returns the tags of the stat in their order. The slice is valid until
// the cursor moves.
func (c *Cursor) Labels() []Label {
	c.labels = c.labels[:0]
	enc, rest := splitRecord(c.rec)
	if rest[0]&flagTagged == 0 {
		return nil
	}
	_, w := binary.Uvarint(rest[1:])
	rest = rest[1+w:]
	n, w := binary.Uvarint(rest)
	rest = rest[w:]
	for range n {
		num, w := binary.Uvarint(rest)
		rest = rest[w:]
		seg, w := binary.Uvarint(rest)
		rest = rest[w:]
		l := Label{Name: c.s.names.at(uint32(num))}
		if seg > 0 {
			l.Value = c.s.segment(enc, int(seg)-1)
		} else {
			n, w := binary.Uvarint(rest)
			l.Value = rest[w : w+int(n) : w+int(n)]
			rest = rest[w+int(n):]
		}
		c.labels = append(c.labels, l)
	}
	return c.labels
}

// segment returns segment n of an encoded name.
func (s *Store) segment(enc []byte, n int) []byte {
	_, w := binary.Uvarint(enc)
	enc = enc[w:]
	for len(enc) > 0 {
		sym, w := binary.Uvarint(enc)
		enc = enc[w:]
		var lit []byte
		if sym == 0 {
			size, w := binary.Uvarint(enc)
			lit = enc[w : w+int(size) : w+int(size)]
			enc = enc[w+int(size):]
		}
		if n > 0 {
			n--
			continue
		}
		if sym == 0 {
			return lit
		}
		return s.symbols.Token(symtab.Symbol(sym))
	}
	return nil
}

// AppendTags appends the tags of the stat to dst, as copies.
func (c *Cursor) AppendTags(dst []tags.Tag) []tags.Tag {
	for _, l := range c.Labels() {
		dst = append(dst, tags.Tag{Name: l.Name.String(), Value: string(l.Value)})
	}
	return dst
}
