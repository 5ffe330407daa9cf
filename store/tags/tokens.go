package tags

import "strings"

// dotsOnStack is how many dots a name may have before splitting it allocates.
const dotsOnStack = 48

// tokenized is a name with the places of its dots. Its tokens are numbered
// from 0; they may be empty.
type tokenized struct {
	text string
	dots []int32
}

func appendDots(dst []int32, name string) []int32 {
	for i := 0; ; i++ {
		n := strings.IndexByte(name[i:], '.')
		if n < 0 {
			return dst
		}
		i += n
		dst = append(dst, int32(i))
	}
}

// len returns the number of tokens, at least 1.
func (n tokenized) len() int { return len(n.dots) + 1 }

// start returns where token i begins.
func (n tokenized) start(i int) int {
	if i == 0 {
		return 0
	}
	return int(n.dots[i-1]) + 1
}

// end returns where token i ends: at its dot or at the end of the name.
func (n tokenized) end(i int) int {
	if i == len(n.dots) {
		return len(n.text)
	}
	return int(n.dots[i])
}

func (n tokenized) token(i int) string { return n.text[n.start(i):n.end(i)] }

// withDotAfter is the match whose value is token i and which takes the dot
// after the token with it.
func (n tokenized) withDotAfter(i int) found {
	return found{span{n.start(i), n.end(i) + 1}, span{n.start(i), n.end(i)}}
}

// withDotBefore is the same with the dot before the token.
func (n tokenized) withDotBefore(i int) found {
	return found{span{n.start(i) - 1, n.end(i)}, span{n.start(i), n.end(i)}}
}

// pattern is a list of tokens to compare a name's tokens with.
type pattern []patternToken

type patternToken struct {
	kind patternKind
	text string
}

type patternKind uint8

const (
	literal patternKind = iota
	one                 // "*": any one token
	some                // "**": any tokens, also none, but at least one at the end
	value               // "$": one token, the value
)

func parsePattern(s string) pattern {
	var p pattern
	for text := range strings.SplitSeq(s, ".") {
		t := patternToken{text: text}
		switch text {
		case "*":
			t.kind = one
		case "**":
			t.kind = some
		case "$":
			t.kind = value
		}
		p = append(p, t)
	}
	return p
}

// find compares all tokens of n with p.
func (p pattern) find(n tokenized) found {
	at, ok := p.match(n, 0)
	if !ok || at < 0 || n.start(at) == n.end(at) {
		return found{}
	}
	if at == n.len()-1 && at > 0 {
		return n.withDotBefore(at)
	}
	m := n.withDotAfter(at)
	m.cut.end = min(m.cut.end, len(n.text))
	return m
}

// match compares the tokens from i on with p. It returns the number of the
// token that is the value, -1 if p has none.
func (p pattern) match(n tokenized, i int) (at int, ok bool) {
	at = -1
	for k, t := range p {
		if t.kind == some {
			rest := p[k+1:]
			if len(rest) == 0 {
				return at, i < n.len()
			}
			for ; i < n.len(); i++ {
				if v, ok := rest.match(n, i); ok {
					return max(at, v), true
				}
			}
			return -1, false
		}
		if i == n.len() {
			return -1, false
		}
		switch t.kind {
		case literal:
			if n.token(i) != t.text {
				return -1, false
			}
		case value:
			at = i
		}
		i++
	}
	return at, i == n.len()
}
