// Package match decides whether a text fits a pattern from the configuration:
// exact, prefix, suffix, contains or regex.
//
//	m, err := match.New(match.Prefix, "cluster.", false)
//	...
//	m.Match("cluster.checkout.upstream_rq") // true
//
// Matchers are immutable and safe for concurrent use. Match does not allocate.
package match

import (
	"fmt"
	"strings"

	"github.com/grafana/regexp"
)

// Kind says how a pattern is compared.
type Kind uint8

// The kinds. All but Regex can ignore case.
const (
	Exact    Kind = iota // the text equals the pattern
	Prefix               // the text begins with the pattern
	Suffix               // the text ends with the pattern
	Contains             // the pattern occurs anywhere in the text
	Regex                // the whole text matches the RE2 expression
)

// String returns the name of k as error texts write it.
func (k Kind) String() string {
	switch k {
	case Exact:
		return "exact"
	case Prefix:
		return "prefix"
	case Suffix:
		return "suffix"
	case Contains:
		return "contains"
	case Regex:
		return "regex"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Matcher is one pattern, ready to be applied. The zero value matches only the
// empty text. It may be copied.
type Matcher struct {
	kind    Kind
	fold    bool
	pattern string // the text to compare with; lower case when fold is set
	literal string // Regex: must occur in the text, "" when unknown
	re      *regexp.Regexp
}

// New returns the matcher for pattern.
//
// An exact pattern may be empty, every other must not. With ignoreCase, ASCII
// letters are compared without case; a regex says so itself with (?i), so the
// combination is an error. A regex has to match the whole text and is held to
// [MaxPatternBytes] and [MaxProgramLength]. Errors name the pattern.
func New(kind Kind, pattern string, ignoreCase bool) (Matcher, error) {
	switch kind {
	case Exact:
	case Prefix, Suffix, Contains:
		if pattern == "" {
			return Matcher{}, fmt.Errorf("match: %s pattern is empty, it would match everything", kind)
		}
	case Regex:
		if ignoreCase {
			return Matcher{}, fmt.Errorf("match: regex %q: ignore_case is not allowed with a regex, write (?i) in the expression", pattern)
		}
		re, err := compileFull(pattern)
		if err != nil {
			return Matcher{}, err
		}
		return Matcher{kind: Regex, pattern: pattern, re: re, literal: RequiredLiteral(pattern)}, nil
	default:
		return Matcher{}, fmt.Errorf("match: pattern %q: %s unknown, allowed are exact, prefix, suffix, contains, regex", pattern, kind)
	}
	if ignoreCase {
		pattern = lowerASCII(pattern)
	}
	return Matcher{kind: kind, fold: ignoreCase, pattern: pattern}, nil
}

// Match reports whether s fits the pattern.
func (m Matcher) Match(s string) bool {
	if m.fold {
		return m.matchFold(s)
	}
	switch m.kind {
	case Exact:
		return s == m.pattern
	case Prefix:
		return strings.HasPrefix(s, m.pattern)
	case Suffix:
		return strings.HasSuffix(s, m.pattern)
	case Contains:
		return strings.Contains(s, m.pattern)
	default:
		return (m.literal == "" || strings.Contains(s, m.literal)) && m.re.MatchString(s)
	}
}

func (m Matcher) matchFold(s string) bool {
	n := len(m.pattern)
	if len(s) < n {
		return false
	}
	switch m.kind {
	case Exact:
		return len(s) == n && equalFold(s, m.pattern)
	case Prefix:
		return equalFold(s[:n], m.pattern)
	case Suffix:
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

// equalFold compares s with lower, which is as long and in lower case. Only
// ASCII letters are folded: strings.EqualFold would also equate, for example,
// "K" with the Kelvin sign.
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

// List is a set of matchers of which any may match.
type List []Matcher

// Match reports whether any matcher of l fits s. An empty list fits nothing.
func (l List) Match(s string) bool {
	for i := range l {
		if l[i].Match(s) {
			return true
		}
	}
	return false
}
