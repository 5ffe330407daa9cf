package mapping

import (
	"math"
	"slices"
	"strings"
)

// trie holds globs by their segments. A name walks it segment by segment and
// can take several edges: the literal one, those whose partial pattern matches,
// and "*". Each node knows the first rule below it, so a walk leaves out what
// cannot beat the rule found so far.
type trie struct {
	root        *node
	mostLiteral bool
}

type node struct {
	literal  map[string]*node
	partial  []*partialEdge
	prefixes map[string][]*partialEdge // partial by the text before the first "*"
	lengths  []int                     // of prefixes, ascending
	star     *node

	rule  [kinds]int32 // of names that end here, by kind; none if there is none
	first [kinds]int32 // the least of rule of this node and all below
}

// partialEdge leads to the node for segments that match a pattern.
type partialEdge struct {
	pattern string
	pieces  []string // between the "*"
	to      *node
}

const none = math.MaxInt32

func newNode() *node {
	n := &node{}
	for k := range n.rule {
		n.rule[k], n.first[k] = none, none
	}
	return n
}

// add adds a glob and returns the number of its captures. Of equal globs the
// first one added stays.
func (t *trie) add(match string, k Kind, rule int) (captures int) {
	n := t.root
	n.lower(k, rule)
	for segment := range strings.SplitSeq(match, ".") {
		n = n.child(segment)
		n.lower(k, rule)
		captures += strings.Count(segment, "*")
	}
	for _, k := range kindsOf(k) {
		n.rule[k] = min(n.rule[k], int32(rule))
	}
	return captures
}

// kindsOf returns the kinds of samples that a rule for k applies to.
func kindsOf(k Kind) []Kind {
	if k == AnyKind {
		return []Kind{Counter, Gauge, Observer, Set}
	}
	return []Kind{k}
}

// lower notes a rule below n.
func (n *node) lower(k Kind, rule int) {
	for _, k := range kindsOf(k) {
		n.first[k] = min(n.first[k], int32(rule))
	}
}

// child returns the node behind a segment of a glob and creates it if need be.
func (n *node) child(segment string) *node {
	switch {
	case segment == "*":
		if n.star == nil {
			n.star = newNode()
		}
		return n.star
	case strings.Contains(segment, "*"):
		if i := slices.IndexFunc(n.partial, func(e *partialEdge) bool { return e.pattern == segment }); i >= 0 {
			return n.partial[i].to
		}
		e := &partialEdge{segment, strings.Split(segment, "*"), newNode()}
		n.partial = append(n.partial, e)
		return e.to
	}
	c := n.literal[segment]
	if c == nil {
		c = newNode()
		if n.literal == nil {
			n.literal = make(map[string]*node)
		}
		n.literal[segment] = c
	}
	return c
}

// finish prepares n for find. No glob can be added afterwards.
func (n *node) finish() {
	for _, c := range n.literal {
		c.finish()
	}
	for _, e := range n.partial {
		if n.prefixes == nil {
			n.prefixes = make(map[string][]*partialEdge)
		}
		prefix := e.pieces[0]
		n.prefixes[prefix] = append(n.prefixes[prefix], e)
		if !slices.Contains(n.lengths, len(prefix)) {
			n.lengths = append(n.lengths, len(prefix))
		}
		e.to.finish()
	}
	slices.Sort(n.lengths)
	if n.star != nil {
		n.star.finish()
	}
}

// search is one walk.
type search struct {
	kind        Kind
	mostLiteral bool
	stack       []string // captures on the way to the current node
	best        int32
	captures    []string // of best
}

// find returns the rule for a name, or -1, and what its "*" matched.
func (t *trie) find(name string, k Kind) (rule int, captures []string) {
	if t.root.first[k] == none {
		return -1, nil
	}
	var room [16]string
	s := search{kind: k, mostLiteral: t.mostLiteral, stack: room[:0], best: none}
	s.walk(t.root, name, true)
	if s.best == none {
		return -1, nil
	}
	return int(s.best), s.captures
}

// walk visits the nodes below n for the rest of a name; more is false at its
// end. It reports whether the search is over.
func (s *search) walk(n *node, rest string, more bool) bool {
	if n.first[s.kind] >= s.best {
		return false
	}
	if !more {
		rule := n.rule[s.kind]
		if rule >= s.best {
			return false
		}
		s.best, s.captures = rule, append(s.captures[:0], s.stack...)
		return s.mostLiteral
	}
	segment, rest, more := strings.Cut(rest, ".")
	if c := n.literal[segment]; c != nil && s.walk(c, rest, more) {
		return true
	}
	depth := len(s.stack)
	for i := len(n.lengths) - 1; i >= 0 && s.best != n.first[s.kind]; i-- {
		if n.lengths[i] > len(segment) {
			continue
		}
		for _, e := range n.prefixes[segment[:n.lengths[i]]] {
			var ok bool
			if s.stack, ok = e.match(segment, s.stack); ok && s.walk(e.to, rest, more) {
				return true
			}
			s.stack = s.stack[:depth]
		}
	}
	if n.star == nil {
		return false
	}
	s.stack = append(s.stack, segment)
	over := s.walk(n.star, rest, more)
	s.stack = s.stack[:depth]
	return over
}

// match reports whether a segment matches the pattern, and appends what each
// "*" matched: as little as possible, from left to right.
func (e *partialEdge) match(segment string, captures []string) ([]string, bool) {
	last := len(e.pieces) - 1
	rest, ok := strings.CutPrefix(segment, e.pieces[0])
	if !ok {
		return captures, false
	}
	for _, piece := range e.pieces[1:last] {
		before, after, ok := strings.Cut(rest, piece)
		if !ok {
			return captures, false
		}
		captures, rest = append(captures, before), after
	}
	end, ok := strings.CutSuffix(rest, e.pieces[last])
	return append(captures, end), ok
}

// covering returns the first earlier rule whose pattern matches every name
// that a glob matches, for all kinds of it. With mostLiteral only an equal glob
// leaves nothing to another one.
func (t *trie) covering(match string, k Kind, rule int) (by int, ok bool) {
	c := cover{kinds: kindsOf(k), equal: t.mostLiteral, best: int32(rule)}
	c.walk(t.root, match, true)
	return int(c.best), c.best < int32(rule)
}

type cover struct {
	kinds []Kind
	equal bool
	best  int32
}

func (c *cover) walk(n *node, rest string, more bool) {
	if c.first(&n.first) >= c.best {
		return
	}
	if !more {
		c.best = min(c.best, c.first(&n.rule))
		return
	}
	segment, rest, more := strings.Cut(rest, ".")
	if to := n.literal[segment]; to != nil {
		c.walk(to, rest, more)
	}
	pattern := strings.Contains(segment, "*")
	for _, e := range n.partial {
		same := e.pattern == segment
		if !same && !pattern && !c.equal {
			_, same = e.match(segment, nil)
		}
		if same {
			c.walk(e.to, rest, more)
		}
	}
	if n.star != nil && (!c.equal || segment == "*") {
		c.walk(n.star, rest, more)
	}
}

// first returns the least rule that holds for all kinds.
func (c *cover) first(rules *[kinds]int32) int32 {
	worst := int32(-1)
	for _, k := range c.kinds {
		worst = max(worst, rules[k])
	}
	return worst
}
