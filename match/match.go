// Package match tests strings against patterns: exact, prefix, suffix, contains
// or regex.
//
//	m := match.Prefix("cluster.")
//	m.Match("cluster.checkout.upstream_rq") // true
//
// [New] compiles a pattern whose kind comes from configuration. Matchers are
// immutable and safe for concurrent use, and Match does not allocate.
package match

import (
	"fmt"
	"strings"

	"github.com/grafana/regexp"
)

// Kind selects how a pattern is compared.
type Kind uint8

// The kinds. All but KindRegex can ignore case.
const (
	KindExact    Kind = iota // the text equals the pattern
	KindPrefix               // the text begins with the pattern
	KindSuffix               // the text ends with the pattern
	KindContains             // the pattern occurs anywhere in the text
	KindRegex                // the RE2 expression matches the whole text
)

// String returns the name of k as it appears in error messages.
func (k Kind) String() string {
	switch k {
	case KindExact:
		return "exact"
	case KindPrefix:
		return "prefix"
	case KindSuffix:
		return "suffix"
	case KindContains:
		return "contains"
	case KindRegex:
		return "regex"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Matcher is a compiled pattern. The zero value matches only the empty string.
// A Matcher may be copied.
type Matcher struct {
	kind    Kind
	fold    bool
	pattern string // lower case if fold is set
	literal string // KindRegex: occurs in every matching text; "" if unknown
	re      *regexp.Regexp
}

// Exact returns a matcher for the text s alone.
func Exact(s string) Matcher { return Matcher{kind: KindExact, pattern: s} }

// Prefix returns a matcher for texts that begin with s. An empty s matches
// every text.
func Prefix(s string) Matcher { return Matcher{kind: KindPrefix, pattern: s} }

// Suffix returns a matcher for texts that end with s. An empty s matches every
// text.
func Suffix(s string) Matcher { return Matcher{kind: KindSuffix, pattern: s} }

// Contains returns a matcher for texts in which s occurs. An empty s matches
// every text.
func Contains(s string) Matcher { return Matcher{kind: KindContains, pattern: s} }

// Regex returns a matcher for texts that the RE2 expression expr matches as a
// whole. The expression must stay within [MaxPatternBytes] and
// [MaxProgramLength]. Errors name the expression.
func Regex(expr string) (Matcher, error) {
	re, err := compileFull(expr)
	if err != nil {
		return Matcher{}, err
	}
	return Matcher{kind: KindRegex, pattern: expr, re: re, literal: RequiredLiteral(expr)}, nil
}

// New returns the matcher for a pattern from configuration.
//
// Only an exact pattern may be empty. With ignoreCase, ASCII letters are
// compared without case; combined with a regex this is an error, because the
// expression can contain (?i). Errors name the pattern.
func New(kind Kind, pattern string, ignoreCase bool) (Matcher, error) {
	switch kind {
	case KindExact:
	case KindPrefix, KindSuffix, KindContains:
		if pattern == "" {
			return Matcher{}, fmt.Errorf("match: %s pattern is empty, it would match everything", kind)
		}
	case KindRegex:
		if ignoreCase {
			return Matcher{}, fmt.Errorf("match: regex %q: ignore_case is not allowed with a regex, write (?i) in the expression", pattern)
		}
		return Regex(pattern)
	default:
		return Matcher{}, fmt.Errorf("match: pattern %q: %s unknown, allowed are exact, prefix, suffix, contains, regex", pattern, kind)
	}
	if ignoreCase {
		pattern = lowerASCII(pattern)
	}
	return Matcher{kind: kind, fold: ignoreCase, pattern: pattern}, nil
}

// Match reports whether s matches the pattern.
func (m Matcher) Match(s string) bool {
	if m.fold {
		return m.matchFold(s)
	}
	switch m.kind {
	case KindExact:
		return s == m.pattern
	case KindPrefix:
		return strings.HasPrefix(s, m.pattern)
	case KindSuffix:
		return strings.HasSuffix(s, m.pattern)
	case KindContains:
		return strings.Contains(s, m.pattern)
	default:
		return strings.Contains(s, m.literal) && m.re.MatchString(s)
	}
}

func (m Matcher) matchFold(s string) bool {
	n := len(m.pattern)
	if len(s) < n {
		return false
	}
	switch m.kind {
	case KindExact:
		return len(s) == n && equalFold(s, m.pattern)
	case KindPrefix:
		return equalFold(s[:n], m.pattern)
	case KindSuffix:
		return equalFold(s[len(s)-n:], m.pattern)
	default: // Contains
		for i := 0; i+n <= len(s); i++ {
			if equalFold(s[i:i+n], m.pattern) {
				return true
			}
		}
		return false
	}
}

// equalFold reports whether s equals lower apart from case. Both have the same
// length and lower is in lower case. Only ASCII letters are folded;
// strings.EqualFold would also equate "K" with the Kelvin sign, for example.
func equalFold(s, lower string) bool {
	for i := 0; i < len(s); i++ {
		if lowerByte(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lowerByte(c)
	}
	return string(b)
}

// List is a list of alternatives.
type List []Matcher

// Match reports whether any matcher of l matches s. An empty list matches
// nothing.
func (l List) Match(s string) bool {
	for i := range l {
		if l[i].Match(s) {
			return true
		}
	}
	return false
}
