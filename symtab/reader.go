package symtab

import (
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

// Reader decodes many encodings on one goroutine. It is efficient for names in
// order, because it reuses the text of all but the last segment of the previous
// name and caches the texts of some last segments. Create it with
// [Table.NewReader].
//
// The caller must hold references to the tokens of an encoding while reading
// it, as for [Table.AppendText]. Their symbols must not be reused for other
// tokens as long as the reader is in use.
type Reader struct {
	table *Table

	before []byte // the segments of the last name but its last one
	text   []byte // their text, with the dot behind it

	last [lastSymbols]struct {
		symbol Symbol
		text   []byte
	}
	missed int // last segments that were not in last, since Prefetch

	ahead [readAhead]Symbol
	hints prefetch.Batch
}

// readAhead is the maximum number of names per call of [Reader.Prefetch].
const readAhead = 32

const lastSymbols = 256

// NewReader returns a new reader.
func (t *Table) NewReader() *Reader { return &Reader{table: t} }

// AppendText appends the dotted text of enc, as [Table.AppendText] does.
func (r *Reader) AppendText(dst, enc []byte) []byte {
	p := payload(enc)
	if n := len(r.before); n > 0 && n < len(p) && string(p[:n]) == string(r.before) {
		symbol, text, rest := segment(p[n:])
		if len(rest) == 0 {
			if symbol != 0 {
				text = r.token(symbol)
			}
			return append(append(dst, r.text...), text...)
		}
	}
	return r.read(dst, p)
}

// token returns the text of the last symbol of a name.
func (r *Reader) token(symbol Symbol) []byte {
	l := &r.last[symbol%lastSymbols]
	if l.symbol != symbol {
		r.missed++
		l.symbol, l.text = symbol, r.table.tokens.get(symbol)
	}
	return l.text
}

// read appends the text of a payload and keeps that of all but the last segment.
func (r *Reader) read(dst, p []byte) []byte {
	start, last, lastText := len(dst), 0, len(dst)
	for rest := p; len(rest) > 0; {
		if len(rest) < len(p) {
			dst = append(dst, '.')
		}
		last, lastText = len(p)-len(rest), len(dst)
		var symbol Symbol
		var text []byte
		if symbol, text, rest = segment(rest); symbol != 0 {
			text = r.table.tokens.get(symbol)
		}
		dst = append(dst, text...)
	}
	r.before = append(r.before[:0], p[:last]...)
	r.text = append(r.text[:0], dst[start:lastText]...)
	return dst
}

// Prefetch hints that the next n names, at most 32, will be the results of enc.
// The texts of their last segments are then read in parallel, which pays off if
// they are different and scattered in memory. It has no effect unless this was
// true of a part of the names since the last call.
func (r *Reader) Prefetch(n int, enc func(int) []byte) {
	missed := r.missed
	r.missed, n = 0, min(n, readAhead)
	if !prefetch.Enabled || missed < n/4 {
		return
	}
	pages, found := 0, 0
	for i := range n {
		symbol := lastSymbol(enc(i))
		p := r.table.tokens.page(symbol)
		if p == nil || r.last[symbol%lastSymbols].symbol == symbol {
			continue
		}
		r.ahead[pages] = symbol
		r.hints[pages] = uintptr(unsafe.Pointer(&p.where[symbol%pageSize]))
		pages++
	}
	prefetch.Lines(&r.hints, pages)
	for _, symbol := range r.ahead[:pages] {
		if text := r.table.tokens.get(symbol); len(text) > 0 {
			r.hints[found] = uintptr(unsafe.Pointer(&text[0]))
			found++
		}
	}
	prefetch.Lines(&r.hints, found)
}

// lastSymbol returns the last symbol of an encoding without literal segments, and any
// value otherwise.
func lastSymbol(enc []byte) (symbol Symbol) {
	for i := len(enc) - 1; i >= 0; i-- {
		if i < len(enc)-1 && enc[i] < 0x80 {
			break
		}
		symbol = symbol<<7 | Symbol(enc[i]&0x7f)
	}
	return symbol
}
