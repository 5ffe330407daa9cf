package render

import (
	"errors"
	"sort"
	"strings"

	"github.com/grafana/regexp/syntax"
)

// SyntaxError is the error of a pattern that does not compile. It wraps [ErrSyntax].
type SyntaxError struct {
	Why     string // such as "missing closing )"
	pattern string // of RE2
	err     error
}

func (e *SyntaxError) Error() string { return ErrSyntax.Error() + ": " + e.err.Error() }

// Unwrap returns [ErrSyntax].
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// maxLocated is the length of patterns whose errors are located.
const maxLocated = 256

// At returns the byte of the pattern where the error is, -1 if it is unknown, as for
// ECMAScript.
func (e *SyntaxError) At() int {
	var re2 *syntax.Error
	if !errors.As(e.err, &re2) || len(e.pattern) > maxLocated {
		return -1
	}
	switch re2.Code {
	case syntax.ErrMissingParen:
		if _, open := groups(e.pattern); len(open) > 0 {
			return open[len(open)-1]
		}
		return -1
	case syntax.ErrMissingBracket, syntax.ErrTrailingBackslash:
		return max(0, len(e.pattern)-max(1, len(re2.Expr)))
	}
	return firstError(e.pattern, re2)
}

func re2Error(pattern string, err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return &SyntaxError{Why: err.Error(), err: err}
	}
	return &SyntaxError{Why: string(e.Code), pattern: pattern, err: err}
}

// firstError returns the position of what the error is about: the end of the shortest
// beginning of the pattern with the same error, less the text that the error quotes.
// All longer beginnings have it too.
func firstError(pattern string, want *syntax.Error) int {
	var got *syntax.Error
	same := func(n int) bool {
		_, err := syntax.Parse(pattern[:n], syntax.Perl)
		return errors.As(err, &got) && got.Code == want.Code && (got.Expr == want.Expr || got.Expr == pattern[:n])
	}
	n := sort.Search(len(pattern), same)
	switch {
	case !same(n):
		return -1
	case got.Expr != pattern[:n] && strings.HasSuffix(pattern[:n], got.Expr):
		return n - len(got.Expr)
	}
	return n - 1
}
