package tags

import (
	"fmt"
	"strings"
)

// boundsOnStack is the size of the array that callers keep for
// [appendBounds]; a name with more tokens makes it allocate.
const boundsOnStack = 48

// tokenized is a name cut at its dots. Its tokens are numbered from 0; they may
// be empty.
type tokenized struct {
	text string

	// bounds holds -1, the place of each dot, and the length of the name: token
	// i is what lies between bounds[i] and bounds[i+1].
	bounds []int32
}

func appendBounds(dst []int32, name string) []int32 {
	dst = append(dst, -1)
	for at := 0; ; {
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			break
		}
		dst = append(dst, int32(at+dot))
		at += dot + 1
	}
	return append(dst, int32(len(name)))
}

// len returns the number of tokens, at least 1.
func (n tokenized) len() int { return len(n.bounds) - 1 }

// start returns where token i begins.
func (n tokenized) start(i int) int { return int(n.bounds[i]) + 1 }

// end returns where token i ends: at its dot or at the end of the name.
func (n tokenized) end(i int) int { return int(n.bounds[i+1]) }

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

// Limits of configured patterns. Each "**" multiplies the positions to try.
const (
	maxPatternTokens = 64
	maxPatternSome   = 3
)

// CheckTokens returns an error if a pattern for [Spec.Tokens] is invalid.
func CheckTokens(s string) error {
	count := make(map[patternKind]int)
	p := parsePattern(s)
	for _, t := range p {
		count[t.kind]++
	}
	switch {
	case count[value] != 1:
		return fmt.Errorf("token pattern %q has %d tokens \"$\", want 1", s, count[value])
	case len(p) > maxPatternTokens || count[some] > maxPatternSome:
		return fmt.Errorf("token pattern %q has more than %d tokens or %d \"**\"", s, maxPatternTokens, maxPatternSome)
	}
	return nil
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
