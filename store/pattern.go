package store

// Pattern is what the names of many stats have in common: the family, the names of the
// tags, and where in the name their values are.
type Pattern struct {
	kind   Kind
	slot   uint16
	tags   uint8
	size   uint8 // of end
	family *Name

	names    [patternTags]*Name
	segments [patternTags]uint8 // of the name, with the values of the tags
	end      [patternBytes]byte // of the record, after the name
}

// PatternSlots is the number of results of [Pattern.Slot].
const PatternSlots = 512

// The limits of a pattern.
const (
	patternTags  = 8
	patternBytes = 38
)

// Family returns the family, whose name is not empty.
func (p *Pattern) Family() *Name { return p.family }

// Tags returns the names of the tags in order. They must not be modified.
func (p *Pattern) Tags() []*Name { return p.names[:p.tags] }

// Slot returns a number below [PatternSlots]. Patterns can share a slot, but a
// cursor uses only one at a time.
func (p *Pattern) Slot() int { return int(p.slot) }

// patterns are the patterns of a cursor.
type patterns struct {
	slots [PatternSlots]struct {
		p      *Pattern
		missed uint32 // 1 + the number of the last family without a pattern here
	}
	fresh []Pattern // not used yet
}

// Pattern returns the pattern of the stat, or nil. Stats of a kind with the
// same family and names of tags share it, so an output format can keep what it
// derives from a pattern while the cursor walks. A stat has no pattern if it
// has no family, is not plain (see [Cursor.Plain]), has many tags, or has a tag
// whose value is empty or only a part of a segment of the name. A new stat may
// not have one yet.
func (c *Cursor) Pattern() *Pattern {
	rest := c.rest()
	if rest[0]&(flagTagged|flagEscaped|flagOdd) != flagTagged {
		return nil
	}
	num, _ := uvarint(rest[1:])
	if c.patterns == nil {
		c.patterns = new(patterns)
	}
	at := &c.patterns.slots[num%PatternSlots]
	if p := at.p; p != nil && int(p.size) <= len(rest) && string(p.end[:p.size]) == string(rest[:p.size]) && p.kind == c.Kind() {
		return p
	}
	if at.missed != uint32(num)+1 { // it can be the only stat of its family
		at.missed = uint32(num) + 1
		return nil
	}
	p := c.newPattern(rest)
	if p != nil {
		p.slot, at.p = uint16(num%PatternSlots), p
	}
	return p
}

// newPattern returns the pattern of the stat, rest of whose record follows the name, or
// nil.
func (c *Cursor) newPattern(rest []byte) *Pattern {
	family := c.Family()
	list, n := c.tags()
	if n > patternTags || family.String() == "" {
		return nil
	}
	if len(c.patterns.fresh) == 0 {
		c.patterns.fresh = make([]Pattern, 32)
	}
	p := &c.patterns.fresh[0]
	*p = Pattern{kind: c.Kind(), family: family, tags: uint8(n)}
	for i := range n {
		num, w := uvarint(list)
		segment, v := uvarint(list[w:])
		if segment == 0 || segment > 0xff {
			return nil
		}
		p.names[i], p.segments[i] = c.s.names.at(uint32(num)), uint8(segment-1)
		list = list[w+v:]
	}
	size := len(rest) - len(list)
	if size > patternBytes {
		return nil
	}
	p.size = uint8(copy(p.end[:], rest[:size]))
	c.patterns.fresh = c.patterns.fresh[1:]
	return p
}

// Values returns the values of the tags of the stat, whose pattern is p. The slice is
// valid until the cursor moves.
func (c *Cursor) Values(p *Pattern) [][]byte {
	of := segmentsOf(c.enc())
	c.values = c.values[:0]
	for _, n := range p.segments[:p.tags] {
		c.values = append(c.values, of.text(c.s.symbols, int(n)))
	}
	return c.values
}
