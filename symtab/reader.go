package symtab

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
}

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
