package render

import (
	"slices"
	"unicode/utf8"

	"github.com/grafana/regexp/syntax"

	"github.com/statsd-admin/statsd-admin/store"
)

// automaton matches a pattern token by token. A million names have only some
// thousand tokens, so it caches the next state for each state and token. A step
// costs one lookup in a small table; on a miss the state is computed from the
// bytes of the token, each of which costs one lookup too.
//
// A state is the set of instructions of the compiled pattern that wait for a
// rune, as in the simulation of a nondeterministic automaton (Thompson 1968).
// The search is not anchored, so the start is added to each set. Two states end
// a search: stateYes after a match, stateNo if no match can follow.
//
// An automaton belongs to one walk.
type automaton struct {
	prog   *syntax.Prog
	states []autoState
	index  map[string]uint16 // of states by their set
	table  []uint64          // direct-mapped: symbol, first, state, next state
	first  uint16            // state at the beginning of a name
	misses int               // steps that were not in the table

	syms   []uint32 // of a name
	before []byte   // its segments before the last one
	after  uint16   // state after them
	depth  int      // number of them

	text      []byte   // scratch
	set, next []uint32 // scratch
	stack     []uint32 // scratch
	seen      []uint32 // by instruction: the round that saw it
	round     uint32
	key       []byte
	matched   bool
}

type autoState struct {
	set   []uint32               // instructions that take a rune, or wait for the end
	atEnd bool                   // a name that ends here matches
	after *[utf8.RuneSelf]uint16 // by byte: the next state plus one, 0 where it is unknown
}

const (
	stateNo  = 0
	stateYes = 1

	maxStates = 256

	// byteStates is the number of states from which on there are no more inside of tokens.
	byteStates = maxStates / 2

	tableBits = 14

	// largeProgram is the number of instructions from which computing a step costs
	// too much.
	largeProgram = 500
)

// newAutomaton returns an automaton for prog, or nil if prog is large or has
// assertions other than the ends of a name.
func newAutomaton(prog *syntax.Prog) *automaton {
	if !tokenwise(prog) {
		return nil
	}
	a := &automaton{
		prog:   prog,
		states: []autoState{stateNo: {}, stateYes: {atEnd: true}},
		index:  map[string]uint16{"": stateNo},
		table:  make([]uint64, 1<<tableBits),
		seen:   make([]uint32, len(prog.Inst)),
	}
	a.begin()
	a.add(uint32(prog.Start), syntax.EmptyBeginText)
	a.first, _ = a.state()
	return a
}

// tokenwise reports whether an automaton can be made for prog.
func tokenwise(prog *syntax.Prog) bool {
	if len(prog.Inst) > largeProgram {
		return false
	}
	for i := range prog.Inst {
		if in := &prog.Inst[i]; in.Op == syntax.InstEmptyWidth &&
			syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return false
		}
	}
	return true
}

// match reports whether the name of the stat under c matches. ok is false if
// there are too many states.
func (a *automaton) match(c *store.Cursor) (hit, ok bool) {
	// Neighbours mostly differ in their last segment.
	if sym, ok := c.SymbolAfter(a.before); ok {
		st := a.after
		if st > stateYes {
			if st, ok = a.symbol(st, sym, a.depth, c); !ok {
				return false, false
			}
		}
		return a.states[st].atEnd, true
	}
	var whole bool
	if a.syms, whole = c.AppendSymbols(a.syms[:0]); !whole {
		return a.matchText(c)
	}
	st := a.first
	a.before = c.AppendBeforeLast(a.before[:0])
	for i, sym := range a.syms {
		a.after, a.depth = st, i
		if st > stateYes {
			if st, ok = a.symbol(st, sym, i, c); !ok {
				return false, false
			}
		}
	}
	return a.states[st].atEnd, true
}

// symbol returns the state after the symbol of segment i.
func (a *automaton) symbol(from uint16, sym uint32, i int, c *store.Cursor) (to uint16, ok bool) {
	// 32 bits of symbol, 1 of first, 15 of state; then 16 of the next state.
	key := uint64(sym)<<16 | uint64(from)
	if i == 0 {
		key |= 1 << 15
	}
	e := &a.table[key*0x9e3779b97f4a7c15>>(64-tableBits)]
	if *e>>16 == key {
		return uint16(*e), true
	}
	a.misses++
	seg := c.Segments()
	for range i + 1 {
		seg.Next()
	}
	if to, ok = a.step(from, seg.Text(), i == 0); ok {
		*e = key<<16 | uint64(to)
	}
	return to, ok
}

// matchText is match for a name with literal segments, from their bytes.
func (a *automaton) matchText(c *store.Cursor) (hit, ok bool) {
	st, first := a.first, true
	for seg := c.Segments(); st > stateYes && seg.Next(); first = false {
		if st, ok = a.step(st, seg.Text(), first); !ok {
			return false, false
		}
	}
	return a.states[st].atEnd, true
}

// step returns the state after a token, in front of which a dot stands unless
// it is the first one.
func (a *automaton) step(from uint16, token []byte, first bool) (to uint16, ok bool) {
	a.text = a.text[:0]
	if !first {
		a.text = append(a.text, '.')
	}
	a.text = append(a.text, token...)
	to, text := from, a.text
	for len(text) > 0 && text[0] < utf8.RuneSelf {
		next, ok := a.byte(to, text[0])
		if !ok {
			break
		}
		if to, text = next, text[1:]; to <= stateYes {
			return to, true
		}
	}
	if len(text) == 0 {
		return to, true
	}
	a.set, a.matched = append(a.set[:0], a.states[to].set...), false
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if a.rune(r) {
			return stateYes, true
		}
	}
	a.next = append(a.next[:0], a.set...)
	return a.state()
}

// byte returns the state after a byte, false if it is unknown and there are many states.
func (a *automaton) byte(from uint16, c byte) (to uint16, ok bool) {
	s := &a.states[from]
	if s.after == nil {
		s.after = new([utf8.RuneSelf]uint16)
	}
	if to := s.after[c]; to > 0 {
		return to - 1, true
	}
	if len(a.states) >= byteStates {
		return 0, false
	}
	after := s.after // a.states can move
	a.set, a.matched = append(a.set[:0], s.set...), false
	if a.rune(rune(c)) {
		to = stateYes
	} else {
		a.next = append(a.next[:0], a.set...)
		to, _ = a.state() // there is space for one
	}
	after[c] = to + 1
	return to, true
}

// rune advances a.set by r and reports whether there is a match.
func (a *automaton) rune(r rune) bool {
	a.begin()
	for _, pc := range a.set {
		in := &a.prog.Inst[pc]
		if in.Op != syntax.InstEmptyWidth && in.MatchRune(r) {
			a.add(in.Out, 0)
		}
	}
	a.add(uint32(a.prog.Start), 0)
	a.set, a.next = a.next, a.set
	return a.matched
}

// begin empties a.next.
func (a *automaton) begin() {
	a.round++
	a.next, a.matched = a.next[:0], false
}

// add adds the instructions reachable from pc without a rune to a.next.
func (a *automaton) add(pc uint32, at syntax.EmptyOp) {
	a.stack = append(a.stack[:0], pc)
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.seen[pc] == a.round {
			continue
		}
		a.seen[pc] = a.round
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, in.Out)
		case syntax.InstEmptyWidth:
			if need := syntax.EmptyOp(in.Arg) &^ at; need == 0 {
				a.stack = append(a.stack, in.Out)
			} else if need == syntax.EmptyEndText {
				a.next = append(a.next, pc)
			}
		case syntax.InstMatch:
			a.matched = true
		case syntax.InstFail:
		default:
			a.next = append(a.next, pc)
		}
	}
}

// state returns the state of a.next, false if there are too many.
func (a *automaton) state() (uint16, bool) {
	if a.matched {
		return stateYes, true
	}
	slices.Sort(a.next)
	a.key = a.key[:0]
	for _, pc := range a.next {
		a.key = append(a.key, byte(pc), byte(pc>>8))
	}
	if st, ok := a.index[string(a.key)]; ok {
		return st, true
	}
	if len(a.states) == maxStates {
		return 0, false
	}
	set := slices.Clone(a.next)
	st := uint16(len(a.states))
	a.states = append(a.states, autoState{set: set, atEnd: a.endMatches(set)})
	a.index[string(a.key)] = st
	return st, true
}

// endMatches reports whether the end of a name completes a match in set.
func (a *automaton) endMatches(set []uint32) bool {
	a.begin()
	for _, pc := range set {
		if in := &a.prog.Inst[pc]; in.Op == syntax.InstEmptyWidth {
			a.add(in.Out, syntax.EmptyEndText)
		}
	}
	return a.matched
}
