package render

import (
	"bytes"
	"slices"

	"github.com/grafana/regexp/syntax"
)

// An unanchored search can skip parts that any text satisfies, and a pattern
// that is only a literal needs no engine.

// trimDotStar drops a leading and a trailing .* of an unanchored pattern, which
// do not affect the result. The dot does not match a newline, so this holds for
// the ends of the pattern only if the match may begin and end anywhere, which
// an anchor would forbid.
func trimDotStar(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpConcat {
		for len(re.Sub) > 1 && dotStar(re.Sub[0]) {
			re.Sub = re.Sub[1:]
		}
		for len(re.Sub) > 1 && dotStar(re.Sub[len(re.Sub)-1]) {
			re.Sub = re.Sub[:len(re.Sub)-1]
		}
		if len(re.Sub) == 1 {
			return re.Sub[0]
		}
	}
	return re
}

func dotStar(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar &&
		(re.Sub[0].Op == syntax.OpAnyCharNotNL || re.Sub[0].Op == syntax.OpAnyChar)
}

// literalMatch returns a matcher for a pattern that is a literal, perhaps
// anchored, and nil for others.
func literalMatch(re *syntax.Regexp) func([]byte) (bool, error) {
	begin, end := false, false
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	if len(subs) > 0 && subs[0].Op == syntax.OpBeginText {
		begin, subs = true, subs[1:]
	}
	if n := len(subs) - 1; n >= 0 && subs[n].Op == syntax.OpEndText && subs[n].Flags&syntax.WasDollar != 0 {
		end, subs = true, subs[:n]
	}
	var lit []byte
	for _, s := range subs {
		if s.Op == syntax.OpEmptyMatch {
			continue
		}
		if s.Op != syntax.OpLiteral || s.Flags&syntax.FoldCase != 0 || slices.Contains(s.Rune, 0xfffd) {
			return nil
		}
		lit = append(lit, string(s.Rune)...)
	}
	var holds func(name, lit []byte) bool
	switch {
	case begin && end:
		holds = bytes.Equal
	case begin:
		holds = bytes.HasPrefix
	case end:
		holds = bytes.HasSuffix
	default:
		holds = bytes.Contains
	}
	return func(name []byte) (bool, error) { return holds(name, lit), nil }
}
