package symtab

// Token returns the bytes of a symbol, or nil if it is not held. They must not
// be changed and stay valid after the symbol is released.
func (t *Table) Token(sym Symbol) []byte { return t.tokens.get(sym) }

// AppendText appends the dotted text of enc. The caller must hold references to
// its tokens, otherwise the result is arbitrary text.
func (t *Table) AppendText(dst []byte, enc []byte) []byte {
	for rest, first := payload(enc), true; len(rest) > 0; first = false {
		if !first {
			dst = append(dst, '.')
		}
		var sym Symbol
		var text []byte
		if sym, text, rest = segment(rest); sym != 0 {
			text = t.tokens.get(sym)
		}
		dst = append(dst, text...)
	}
	return dst
}

// EqualText reports whether enc decodes to text, byte for byte; unlike in
// AppendEncode, trailing dots count. If the tokens of enc have been released,
// the result is arbitrary.
func (t *Table) EqualText(enc []byte, text string) bool {
	rest := payload(enc)
	for len(rest) > 0 {
		var sym Symbol
		var token []byte
		if sym, token, rest = segment(rest); sym != 0 {
			token = t.tokens.get(sym)
		}
		n := len(token)
		if n > len(text) || string(token) != text[:n] {
			return false
		}
		text = text[n:]
		if len(rest) > 0 {
			if text == "" || text[0] != '.' {
				return false
			}
			text = text[1:]
		}
	}
	return text == ""
}
