package store

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
	"github.com/statsd-admin/statsd-admin/internal/schedule"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// Cursor walks stats in the order of a [View]. It starts before the first stat:
//
//	for c.Next() {
//		buf = c.AppendName(buf)
//	}
//
// All methods except Next refer to the current stat. Steps do not allocate. Only
// one goroutine can use a cursor.
//
// Neighbors in an order are far apart in memory, so a cursor fetches stats in
// batches, whose loads overlap. Values are those at the time of the fetch.
type Cursor struct {
	s      *Store
	blocks []atomic.Pointer[block]
	chunks [][]id
	chunk  []id
	pick   *picker // nil: all stats are walked

	used    []usedBits // by block; nil: unused stats are walked too
	usedIDs []id       // backs chunk then

	*step // the stat under the cursor, one of next
	at    int
	n     int
	next  [batchSteps]step

	scattered bool // neighbors are far apart in memory
	flushed   bool // values are those of the flush
	counting  bool // see Counting
	hints     prefetch.Batch
	names     *symtab.Reader // from the first whole batch on

	labels   []Label
	values   [][]byte
	family   lastName
	label    lastName
	tagged   tagged
	patterns *patterns // nil: none was asked for
}

// batchSteps is the size of a batch. A stat takes at most two hints.
const batchSteps = prefetch.Max / 2

// step is the location of a stat and the data that renderers need.
type step struct {
	b   *block
	rec []byte // begins with its record
	cut uint32 // length of the name in rec
	x   id
	i   int
	raw uint64 // word of a gauge, total of a counter
}

// enc returns the encoded name.
func (s *step) enc() []byte { return s.rec[:s.cut] }

// rest returns the record after the name.
func (s *step) rest() []byte { return s.rec[s.cut:] }

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
	c.step = &c.next[c.at]
	c.at++
	return true
}

// take fills the batch with the next stats that are alive and reads their
// values.
func (c *Cursor) take() {
	if c.counting {
		c.count()
		return
	}
	c.locate()
	for j := range c.next[:c.n] {
		switch st := &c.next[j]; st.b.variant {
		case variantCounter:
			st.raw = st.b.pg.total(st.i)
		case variantGauge, variantFloat:
			st.raw = st.b.gauge(st.i)
		}
	}
}

// Counting makes the rest of the walk faster, for a caller that wants no names or values of
// the stats: only ID, Ref, Kind, Network and Hidden can be used after the next steps.
func (c *Cursor) Counting() { c.counting = true }

// count is take without the records and the values.
func (c *Cursor) count() {
	ids := c.chunk[:min(len(c.chunk), batchSteps)]
	c.chunk = c.chunk[len(ids):]
	c.at, c.n = 0, 0
	for _, x := range ids {
		if b, i := c.block(x), int(x&(1<<slotBits-1)); b != nil && b.alive.has(i) {
			schedule.Point()
			st := &c.next[c.n]
			st.b, st.i, st.x = b, i, x
			c.n++
		}
	}
}

// locate is take without the values.
func (c *Cursor) locate() {
	ids := c.chunk[:min(len(c.chunk), batchSteps)]
	c.chunk = c.chunk[len(ids):]
	if len(ids) == batchSteps && c.names == nil {
		c.names = c.s.symbols.NewReader() // there may be many more to come
	}
	c.at, c.n = 0, 0
	var offsets [batchSteps]uint32
	for _, x := range ids {
		b, i := c.block(x), int(x&(1<<slotBits-1))
		if b != nil && b.alive.has(i) {
			schedule.Point()
			st := &c.next[c.n]
			st.b, st.i, st.x = b, i, x
			offsets[c.n] = b.offset[i]
			c.n++
		}
	}
	for j := range c.next[:c.n] {
		st := &c.next[j]
		st.rec = st.b.arena.Load().b[offsets[j]:]
		n, w := uvarint(st.rec)
		st.cut = uint32(w) + uint32(n)
	}
	if c.names != nil {
		c.names.Prefetch(c.n, func(j int) []byte { return c.next[j].enc() })
	}
	c.lookAhead()
}

// lookAhead prefetches the next two batches in the chunk: the records of the
// next one, whose offsets the last call prefetched, and the offsets and values of
// the one after it.
func (c *Cursor) lookAhead() {
	if !prefetch.Enabled || !c.scattered || len(c.chunk) == 0 {
		return
	}
	next := c.chunk[:min(len(c.chunk), batchSteps)]
	prefetch.Lines(&c.hints, c.hintRecords(next))
	after := c.chunk[len(next):]
	prefetch.Lines(&c.hints, c.hintValues(after[:min(len(after), batchSteps)]))
}

// hintRecords sets the hints to the records of stats and returns their number.
func (c *Cursor) hintRecords(ids []id) (n int) {
	for _, x := range ids {
		if b, i := c.block(x), x&(1<<slotBits-1); b != nil {
			if records, from := b.arena.Load().b, int(b.offset[i]); from < len(records) {
				at := uintptr(unsafe.Pointer(&records[from]))
				c.hints[n] = at
				n++
				if end := at + mostRecords - 1; end/lineBytes != at/lineBytes {
					c.hints[n] = end
					n++
				}
			}
		}
	}
	return n
}

// hintValues sets the hints to the offsets and values of stats and returns their number.
func (c *Cursor) hintValues(ids []id) (n int) {
	for _, x := range ids {
		if b, i := c.block(x), x&(1<<slotBits-1); b != nil && b.pg != nil {
			c.hints[n] = uintptr(unsafe.Pointer(&b.offset[i]))
			c.hints[n+1] = b.pg.address(int(i))
			n += 2
		}
	}
	return n
}

// stand moves c to x. It returns false if that stat has ended.
func (c *Cursor) stand(x id) bool {
	c.chunk, c.chunks = append(c.chunk[:0:0], x), nil
	c.take()
	return c.Next()
}

// block returns the block of x, which must not be younger than the cursor.
func (c *Cursor) block(x id) *block { return c.blocks[x>>slotBits].Load() }

// ID returns a small number that is unique while the view is open.
func (c *Cursor) ID() uint32 { return c.x }

// Kind returns the kind of the stat.
func (c *Cursor) Kind() Kind { return c.b.variant.kind() }

// Network reports whether network input created the stat.
func (c *Cursor) Network() bool { return c.b.cls.network }

// Used reports whether the stat was ever updated: a counter added to, a gauge
// or text readout set, a histogram recorded to before the last flush.
func (c *Cursor) Used() bool { return c.raw != 0 || c.b.isUsed(c.i) }

func (b *block) isUsed(i int) bool {
	switch b.variant {
	case variantCounter:
		return b.pg.total(i) != 0
	case variantGauge, variantFloat:
		// A flush sets the bit in used before it takes the mark.
		return b.gauge(i) != 0 || b.pg.touched(i) || b.used.has(i)
	case variantText:
		return (*b.texts.Load())[i].v.Load() != nil
	default:
		return (*b.hists.Load())[i].Snapshot().Used
	}
}

// Hidden reports whether output omits the stat unless hidden stats are requested.
func (c *Cursor) Hidden() bool {
	return c.b.modes != nil && ImportMode(c.b.modes[c.i].Load()) == HiddenAccumulate
}

// AppendName appends the full name.
func (c *Cursor) AppendName(dst []byte) []byte {
	if c.names != nil {
		return c.names.AppendText(dst, c.enc())
	}
	return c.s.symbols.AppendText(dst, c.enc())
}

// Name returns the full name.
func (c *Cursor) Name() string { return string(c.AppendName(nil)) }

// Plain reports whether every byte of the name and of the values of its tags
// is printable ASCII other than '"', '\', '<' and '>', so that no output format
// escapes any of it.
func (c *Cursor) Plain() bool {
	return c.rec[c.cut]&flagEscaped == 0
}

// Uint returns the value of a counter since the last reset, or of a gauge.
func (c *Cursor) Uint() uint64 {
	if c.b.variant != variantCounter {
		return c.raw
	}
	if base := c.b.base.Load(); base != nil {
		from := base[c.i].total.Load()
		if n := c.raw - from; from <= c.raw || int64(n) > 0 { // totals wrap
			return n
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

// AppendValue appends the value of a counter or gauge as in all output formats:
// whole numbers without a point, others as the shortest decimal that parses to
// the same value.
func (c *Cursor) AppendValue(dst []byte) []byte {
	v := c.Uint()
	switch c.b.variant {
	case variantFloat:
		return AppendFloat(dst, math.Float64frombits(v))
	case variantGauge:
		if int64(v) < 0 {
			return strconv.AppendInt(dst, int64(v), 10)
		}
	}
	return appendUint(dst, v)
}

// AppendFloat appends x in the format of gauges: without a decimal point if it
// is whole and below 2^53, with an exponent from 1e21 on, and otherwise as the
// shortest decimal that parses to x.
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

// Family returns the family of the stat, its tag-extracted name, or nil if that
// is the full name.
func (c *Cursor) Family() *Name {
	rest := c.rest()
	if c.tagged.is(rest) {
		return c.tagged.family
	}
	if rest[0]&flagTagged == 0 {
		return nil
	}
	num, w := uvarint(rest[1:])
	f := c.family.of(&c.s.names, uint32(num))
	if list := rest[1+w:]; list[0] == 1 { // one tag
		c.noteTagged(rest, list[1:], f)
	}
	return f
}

// tagged caches the end of the last record, after its name, if that is at most
// eight bytes: a family and one tag whose value is a segment of the name. It is
// the same for most neighbors in the order of families.
type tagged struct {
	bytes, mask uint64 // in little endian; mask 0: there was no such record
	family      *Name
	label       *Name
	segment     int
}

// is reports whether a record's end, after its name, is the cached one.
func (t *tagged) is(rest []byte) bool {
	return overread && len(rest) >= 8 && t.mask != 0 && binary.LittleEndian.Uint64(rest)&t.mask == t.bytes
}

// noteTagged caches rest, in which list has the only tag, in c.tagged if it has that form.
func (c *Cursor) noteTagged(rest, list []byte, family *Name) {
	c.tagged.mask = 0
	if !overread || len(rest) < 8 {
		return
	}
	num, w := uvarint(list)
	segment, v := uvarint(list[w:])
	size := len(rest) - len(list) + w + v
	if segment == 0 || size > 8 {
		return
	}
	mask := ^uint64(0) >> (64 - 8*size)
	c.tagged = tagged{binary.LittleEndian.Uint64(rest) & mask, mask, family, c.s.names.at(uint32(num)), int(segment) - 1}
}

// recordFamily decodes the family from a record after the name.
func (s *Store) recordFamily(rest []byte) *Name {
	if rest[0]&flagTagged == 0 {
		return nil
	}
	num, _ := uvarint(rest[1:])
	return s.names.at(uint32(num))
}

// Label is a tag of a stat. Value is valid until the cursor moves.
type Label struct {
	Name  *Name
	Value []byte
}

// lastName caches the last name looked up, which most neighbors share.
type lastName struct {
	num  uint32
	name *Name
}

func (l *lastName) of(t *nameTable, num uint32) *Name {
	if l.name == nil || l.num != num {
		l.num, l.name = num, t.at(num)
	}
	return l.name
}

// Labels returns the tags of the stat in order. The slice is valid until the
// cursor moves.
func (c *Cursor) Labels() []Label {
	rest, n := c.tags()
	c.labels = slices.Grow(c.labels[:0], n)[:n]
	of := segmentsOf(c.enc())
	for i := range c.labels {
		rest = c.tag(&c.labels[i], rest, &of)
	}
	return c.labels
}

// OnlyLabel returns the tag of a stat with exactly one. Its value is valid until
// the cursor moves.
func (c *Cursor) OnlyLabel() (l Label, ok bool) {
	if t := &c.tagged; t.is(c.rest()) {
		return Label{t.label, c.s.segment(c.enc(), t.segment)}, true
	}
	rest, n := c.tags()
	if n != 1 {
		return l, false
	}
	of := segmentsOf(c.enc())
	c.tag(&l, rest, &of)
	return l, true
}

// tags returns the part of the record with the tags, and their number.
func (c *Cursor) tags() (rest []byte, n int) {
	rest = c.rest()
	if rest[0]&flagTagged == 0 {
		return nil, 0
	}
	_, w := uvarint(rest[1:])
	rest = rest[1+w:]
	count, w := uvarint(rest)
	return rest[w:], int(count)
}

// tag decodes the tag at the start of rest into l and returns what follows. of has the
// segments of the name.
func (c *Cursor) tag(l *Label, rest []byte, of *segments) (after []byte) {
	var num, seg uint64
	if len(rest) > 1 && rest[0]|rest[1] < 0x80 {
		num, seg, rest = uint64(rest[0]), uint64(rest[1]), rest[2:]
	} else {
		var w int
		num, w = uvarint(rest)
		rest = rest[w:]
		seg, w = uvarint(rest)
		rest = rest[w:]
	}
	l.Name = c.label.of(&c.s.names, uint32(num))
	if seg > 0 {
		l.Value = of.text(c.s.symbols, int(seg)-1)
		return rest
	}
	n, w := uvarint(rest)
	l.Value = rest[w : w+int(n) : w+int(n)]
	return rest[w+int(n):]
}

// segments finds segments of a name, in one pass if they are in ascending order.
type segments struct {
	name []byte // encoded, without its length
	next int    // index of the segment at from
	from int
}

func segmentsOf(enc []byte) segments {
	_, w := uvarint(enc)
	return segments{name: enc[w:]}
}

// text returns segment n, nil if there is none.
func (g *segments) text(symbols *symtab.Table, n int) []byte {
	name, i, skip := g.name, g.from, n-g.next
	if skip < 0 {
		i, skip = 0, n
	}
	for ; skip > 0 && i < len(name); skip-- {
		c := name[i]
		if i++; c == 0 { // a literal
			size, w := uvarint(name[i:])
			i += w + int(size)
		}
		for c >= 0x80 && i < len(name) {
			c = name[i]
			i++
		}
	}
	if g.next = n + 1; i >= len(name) {
		g.from = i
		return nil
	}
	symbol, w := uvarint(name[i:])
	if i += w; symbol != 0 {
		g.from = i
		return symbols.Token(symtab.Symbol(symbol))
	}
	size, w := uvarint(name[i:])
	i += w
	g.from = i + int(size)
	return name[i:g.from:g.from]
}

// segment returns segment n of an encoded name.
func (s *Store) segment(enc []byte, n int) []byte {
	of := segmentsOf(enc)
	return of.text(s.symbols, n)
}

// AppendTags appends the tags of the stat to dst, as copies.
func (c *Cursor) AppendTags(dst []tags.Tag) []tags.Tag {
	for _, l := range c.Labels() {
		dst = append(dst, tags.Tag{Name: l.Name.String(), Value: string(l.Value)})
	}
	return dst
}

// TagSteps returns how the rules split the full name into tags, nil if they did not.
// given reports whether the tags were given with the name instead. Offsets count from
// the end of the prefix of the engine's own stats, if the name has it.
func (c *Cursor) TagSteps() (steps []tags.Step, given bool) {
	switch flags := c.rest()[0]; {
	case flags&flagExplicit != 0:
		return nil, true
	case flags&flagTagged == 0:
		return nil, false
	}
	_, rest := c.s.ruled(c.Name(), c.Network())
	return c.s.opts.Tags.Explain(rest), false
}
