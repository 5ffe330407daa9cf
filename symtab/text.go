package symtab

import "bytes"

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

// Compare orders two encoded names token by token: it returns a negative number
// if a comes before b, a positive one if it comes after, and 0 if their texts
// are equal. A name comes before its own continuations. A literal segment
// counts as the tokens between its dots.
func (t *Table) Compare(a, b []byte) int {
	ta, tb := tokenCursor{rest: payload(a)}, tokenCursor{rest: payload(b)}
	for {
		moreA, moreB := ta.next(), tb.next()
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return 1
		}
		if ta.sym != 0 && ta.sym == tb.sym {
			continue
		}
		if c := bytes.Compare(ta.text(t), tb.text(t)); c != 0 {
			return c
		}
	}
}

// HasPrefix reports whether the tokens of enc begin with the tokens of prefix.
// The empty name is a prefix of every name.
func (t *Table) HasPrefix(enc, prefix []byte) bool {
	te, tp := tokenCursor{rest: payload(enc)}, tokenCursor{rest: payload(prefix)}
	for tp.next() {
		if !te.next() {
			return false
		}
		if tp.sym != 0 && tp.sym == te.sym {
			continue
		}
		if !bytes.Equal(te.text(t), tp.text(t)) {
			return false
		}
	}
	return true
}

// tokenCursor walks the tokens of a name; literal segments are split at dots.
type tokenCursor struct {
	rest    []byte
	sym     Symbol // 0 for a token out of a literal
	literal []byte // the token, if sym is 0
	pending []byte // what follows it in the same literal segment
	split   bool   // whether pending holds another token, maybe an empty one
}

func (c *tokenCursor) next() bool {
	segmentText := c.pending
	if !c.split {
		if len(c.rest) == 0 {
			return false
		}
		if c.sym, segmentText, c.rest = segment(c.rest); c.sym != 0 {
			return true
		}
	}
	c.literal, c.pending, c.split = cutDot(segmentText)
	return true
}

func (c *tokenCursor) text(t *Table) []byte {
	if c.sym != 0 {
		return t.tokens.get(c.sym)
	}
	return c.literal
}

func cutDot(b []byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(b, '.'); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}
