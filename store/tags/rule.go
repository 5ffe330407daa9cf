package tags

import (
	"slices"
	"strings"

	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"
	"github.com/statsd-admin/statsd-admin/match"
)

// ruleKind is the way a rule finds its match.
type ruleKind uint8

const (
	fixed       ruleKind = iota // no match needed: always the same value
	expression                  // a configured regular expression
	tokenSearch                 // a pattern of tokens
	byHand                      // a default regular expression, matched by code
)

// rule extracts one tag from a name.
type rule struct {
	tag  string
	kind ruleKind

	// first is the token that names must begin with, "" for any. Rules with a
	// first token apply after all others.
	first string

	// firsts lists the first tokens that can match, for rules without a first
	// token; nil for any. It only saves time.
	firsts []string

	shared    bool // other rules yield the same tag
	forbidden string
	value     string // fixed: the tag's value
	text      string // as configured or in the default table: an expression or tokens

	re      *regexp.Regexp // expression
	literal string         // expression: occurs in every match, "" if unknown
	pattern pattern        // tokenSearch
	code    handCode       // byHand
	passes  guard          // byHand
}

// span is a half-open range of bytes of a name.
type span struct{ start, end int }

// found is a match of a rule. An empty cut means no match.
type found struct{ cut, value span }

// possible reports whether r may match names that begin with token.
func (r *rule) possible(token string) bool {
	return r.firsts == nil || slices.Contains(r.firsts, token)
}

// find applies r, which is not a fixed rule, to name, which n holds in tokens.
func (r *rule) find(name string, n tokenized) found {
	switch r.kind {
	case tokenSearch:
		return r.pattern.find(n)
	case byHand:
		return r.code.find(n)
	}
	if r.literal != "" && !strings.Contains(name, r.literal) {
		return found{}
	}
	// Handing n.text over would make all of n, dots included, escape.
	return findExpression(r.re, name)
}

// findExpression searches name and reads the two groups.
func findExpression(re *regexp.Regexp, name string) found {
	at := re.FindStringSubmatchIndex(name)
	if len(at) < 4 || at[2] == at[3] {
		return found{}
	}
	m := found{cut: span{at[2], at[3]}}
	m.value = m.cut
	if len(at) >= 6 && at[4] < at[5] {
		m.value = span{at[4], at[5]}
	}
	return m
}

func fixedRule(tag, value string) rule {
	return rule{tag: tag, kind: fixed, value: value}
}

func tokenRule(tag, pattern string) rule {
	r := rule{tag: tag, kind: tokenSearch, text: pattern, pattern: parsePattern(pattern)}
	if first, _, _ := strings.Cut(pattern, "."); !strings.ContainsAny(first, "*$") {
		r.first = first
	}
	return r
}

func regexRule(tag, expr string) (rule, error) {
	re, err := match.Compile(expr)
	if err != nil {
		return rule{}, err
	}
	return rule{
		tag: tag, kind: expression, text: expr, first: firstToken(expr),
		re: re, literal: match.RequiredLiteral(expr),
	}, nil
}

// firstToken returns the first token of every name that expr matches, as for
// `^cluster\.`, or "" if there is none.
func firstToken(expr string) string {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	text := tree.Sub[1]
	if text.Op != syntax.OpLiteral || text.Flags&syntax.FoldCase != 0 {
		return ""
	}
	first, _, dotted := strings.Cut(string(text.Rune), ".")
	if !dotted {
		return ""
	}
	return first
}

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
