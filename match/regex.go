package match

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"
)

// Limits for expressions from configuration. They bound the memory of a compiled
// expression and the time per match.
const (
	MaxPatternBytes  = 1024   // length of the expression, in bytes
	MaxProgramLength = 10_000 // instructions of the compiled program
)

// Compile compiles an RE2 expression for unanchored searches and enforces
// [MaxPatternBytes] and [MaxProgramLength]. Errors name the expression.
func Compile(expr string) (*regexp.Regexp, error) {
	if _, err := parse(expr); err != nil {
		return nil, err
	}
	return compile(expr, expr)
}

// compileFull is like Compile, but the expression must match the whole text.
func compileFull(expr string) (*regexp.Regexp, error) {
	tree, err := parse(expr)
	if err != nil {
		return nil, err
	}
	// Wrap the printed tree instead of expr: an expression can end inside \Q,
	// which would quote the closing bracket.
	return compile(expr, `\A(?:`+tree.String()+`)\z`)
}

func compile(shown, expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, invalid(shown, err)
	}
	return re, nil
}

func invalid(expr string, err error) error {
	if se, ok := errors.AsType[*syntax.Error](err); ok {
		if se.Expr == "" || se.Expr == expr {
			return fmt.Errorf("match: regex %q: %s", expr, se.Code)
		}
		return fmt.Errorf("match: regex %q: %s: %q", expr, se.Code, se.Expr)
	}
	return fmt.Errorf("match: regex %q: %w", expr, err)
}

// parse checks expr against the limits before anything large is allocated.
func parse(expr string) (*syntax.Regexp, error) {
	if expr == "" {
		return nil, errors.New("match: regex is empty")
	}
	if len(expr) > MaxPatternBytes {
		return nil, fmt.Errorf("match: regex %q… has %d bytes, at most %d are allowed", expr[:32], len(expr), MaxPatternBytes)
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, invalid(expr, err)
	}
	if ProgramLength(tree) > MaxProgramLength {
		return nil, fmt.Errorf("match: regex %q compiles to more than %d instructions", expr, MaxProgramLength)
	}
	return tree, nil
}

// ProgramLength returns an upper bound on the number of instructions in the
// compiled form of re, a tree that has not been simplified. Counted repetitions
// multiply, so a short expression can be large. The result saturates at a value
// above every limit.
func ProgramLength(re *syntax.Regexp) int { return programLength(re) + 2 } // two: match and fail

func programLength(re *syntax.Regexp) int {
	const enough = 1 << 20
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = max(1, len(re.Rune))
	case syntax.OpCapture:
		n = 2 + programLength(re.Sub[0])
	case syntax.OpStar:
		n = 2 + programLength(re.Sub[0]) // x* of an x that can be empty is (x+)?
	case syntax.OpPlus, syntax.OpQuest:
		n = 1 + programLength(re.Sub[0])
	case syntax.OpRepeat:
		// x{2,4} is xx(x(x)?)?, x{2,} is xx+, x{0,} is x*.
		sub := programLength(re.Sub[0])
		if re.Max < 0 {
			n = sub*max(1, re.Min) + 2
		} else {
			n = max(1, sub*re.Max+re.Max-re.Min)
		}
	case syntax.OpConcat, syntax.OpAlternate:
		n = 0
		for _, s := range re.Sub {
			n = min(enough, n+programLength(s))
		}
		if re.Op == syntax.OpAlternate {
			n += len(re.Sub) - 1
		}
		n = max(1, n)
	}
	return min(enough, n)
}

// RequiredLiteral returns a string that occurs in every match of expr, or "" if
// none is found. A caller that tests many texts searches for it first, which is
// far cheaper than running the expression.
func RequiredLiteral(expr string) string {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return ""
	}
	return requiredLiteral(tree)
}

func requiredLiteral(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		// The replacement character also matches an invalid byte, so a literal
		// that contains it need not occur in the text.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min >= 1 {
			return requiredLiteral(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, s := range re.Sub {
			if l := requiredLiteral(s); len(l) > len(best) {
				best = l
			}
		}
		return best
	}
	return ""
}
