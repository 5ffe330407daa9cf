package symtab

import "encoding/binary"

// AppendLiteral appends an encoded name with s, including its dots, as a single
// literal segment. It takes no lock and holds no reference. The empty string
// yields the empty name.
func (t *Table) AppendLiteral(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, 0)
	if s == "" {
		return dst
	}
	return setLength(appendLiteralSegment(dst, s), start)
}

// AppendJoin appends the concatenation of encoded names, skipping empty ones.
// It takes no lock and no reference: the result is valid as long as its parts
// are held, see Retain.
func (t *Table) AppendJoin(dst []byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(payload(p))
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for _, p := range parts {
		dst = append(dst, payload(p)...)
	}
	return dst
}

// Cursor walks the segments of an encoded name without allocating:
//
//	for c := t.Segments(enc); c.Next(); {
//		use(c.Symbol(), c.Text())
//	}
type Cursor struct {
	t       *Table
	rest    []byte
	symbol  Symbol
	literal []byte
}

// Segments returns a cursor before the first segment of enc.
func (t *Table) Segments(enc []byte) Cursor { return Cursor{t: t, rest: payload(enc)} }

// Next moves to the next segment and reports whether there is one.
func (c *Cursor) Next() bool {
	if len(c.rest) == 0 {
		return false
	}
	c.symbol, c.literal, c.rest = segment(c.rest)
	return true
}

// Symbol returns the symbol of the current segment, 0 for a literal one.
func (c *Cursor) Symbol() Symbol { return c.symbol }

// Literal returns the bytes of the current segment if it is a literal one.
// They are part of the encoded name.
func (c *Cursor) Literal() []byte { return c.literal }

// Text returns the bytes of the current segment, literal or not. They must not
// be changed.
func (c *Cursor) Text() []byte {
	if c.symbol == 0 {
		return c.literal
	}
	return c.t.tokens.get(c.symbol)
}

// payload returns the segments of the encoded name at the start of enc.
func payload(enc []byte) []byte {
	n, w := uvarint(enc)
	enc = enc[w:]
	if n < uint64(len(enc)) {
		enc = enc[:n]
	}
	return enc
}

// segment splits the first segment off a non-empty payload. For any bytes, rest
// is shorter than the payload.
func segment(payload []byte) (sym Symbol, literal, rest []byte) {
	if b := payload[0]; b != 0 && b < 0x80 {
		return Symbol(b), nil, payload[1:]
	} else if b >= 0x80 && len(payload) > 1 && payload[1]-1 < 0x7f {
		return Symbol(b&0x7f) | Symbol(payload[1])<<7, nil, payload[2:]
	}
	n, w := uvarint(payload)
	rest = payload[w:]
	if n != 0 {
		return Symbol(n), nil, rest
	}
	n, w = uvarint(rest)
	rest = rest[w:]
	n = min(n, uint64(len(rest)))
	return 0, rest[:n:n], rest[n:]
}

// uvarint reads a varint and its width. A varint that is cut off or too long
// for 64 bits takes all of b and has the value 0.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	n, w := binary.Uvarint(b)
	if w <= 0 {
		return 0, len(b)
	}
	return n, w
}

func appendLiteralSegment(dst []byte, s string) []byte {
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// setLength writes the length of dst[start+1:] at dst[start], which is one
// byte wide, and moves the rest if it needs more.
func setLength(dst []byte, start int) []byte {
	n := len(dst) - start - 1
	if n < 0x80 {
		dst[start] = byte(n)
		return dst
	}
	var length [binary.MaxVarintLen64]byte
	w := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[1:w]...) // makes the room; overwritten below
	copy(dst[start+w:], dst[start+1:start+1+n])
	copy(dst[start:], length[:w])
	return dst
}
