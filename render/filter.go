package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// Engine is a regular expression engine.
type Engine uint8

// The engines of filters.
const (
	RE2        Engine = iota // linear time
	ECMAScript               // backtracking, with the syntax of ECMAScript
)

// FilterLimits bound the cost of a filter. A zero field means its default.
type FilterLimits struct {
	Length  int           // of the pattern, in bytes: 1,024
	Program int           // instructions of the compiled pattern: 10,000
	Budget  time.Duration // of one walk, matching and all: 2 s
	Match   time.Duration // of one name, ECMAScript only: 50 ms
	Stack   int           // backtracking slots, ECMAScript only: 100,000
	// Now is the clock for Budget. Nil means time.Now.
	Now func() time.Time
}

func (l FilterLimits) withDefaults() FilterLimits {
	l.Length = cmp.Or(l.Length, 1024)
	l.Program = cmp.Or(l.Program, 10_000)
	l.Budget = cmp.Or(l.Budget, 2*time.Second)
	l.Match = cmp.Or(l.Match, 50*time.Millisecond)
	l.Stack = cmp.Or(l.Stack, 100_000)
	if l.Now == nil {
		l.Now = time.Now
	}
	return l
}

// Errors of filters.
var (
	// ErrSyntax is wrapped when a pattern does not compile.
	ErrSyntax = errors.New("render: invalid regular expression")
	// ErrTooComplex is wrapped when a pattern is over a limit.
	ErrTooComplex = errors.New("render: regular expression over the limit")
	// ErrTooExpensive ends a walk that exceeded the budget of its filter. It is wrapped
	// in a [*NameCostError] if a single name exceeded a limit.
	ErrTooExpensive = errors.New("render: filter too expensive")
)

// A NameCostError ends a walk at a name that exceeded a limit of
// [FilterLimits] for single names. It wraps [ErrTooExpensive].
type NameCostError struct {
	Match time.Duration
	Stack int
}

func (e *NameCostError) Error() string {
	return fmt.Sprintf("%v: a name took more than %v or %d backtracking slots", ErrTooExpensive, e.Match, e.Stack)
}

// Unwrap returns [ErrTooExpensive].
func (e *NameCostError) Unwrap() error { return ErrTooExpensive }

// Filter selects stats whose full name a regular expression matches, anywhere
// in the name unless it is anchored. It caches its results for the names of one
// store, so a reused filter tests only new names. A filter must be used with
// one store only and is safe for concurrent use.
type Filter struct {
	limits  FilterLimits
	invert  bool
	match   func(name []byte) (bool, error)
	perLook int          // names between two looks at the clock, at most
	prog    *syntax.Prog // of an RE2 pattern that an automaton can decide, else nil
	size    int          // estimated bytes of all but found
	found   store.Selection
}

// NewFilter compiles a pattern. The error wraps [ErrTooComplex] or [ErrSyntax], the latter
// mostly as a [*SyntaxError].
func NewFilter(e Engine, pattern string, l FilterLimits) (*Filter, error) {
	f := &Filter{limits: l.withDefaults(), perLook: namesPerLook}
	if len(pattern) > f.limits.Length {
		return nil, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooComplex, len(pattern), f.limits.Length)
	}
	compile := f.compileRE2
	if e == ECMAScript {
		compile, f.perLook = f.compileECMAScript, 1
	}
	if err := compile(pattern); err != nil {
		return nil, err
	}
	return f, nil
}

// Bytes estimates the memory that f keeps, cached results included.
func (f *Filter) Bytes() int { return f.size + f.found.Bytes() }

// Estimated sizes of compiled patterns, in bytes: an instruction takes about 50 in
// each of the two programs of an RE2 pattern, and a bound of a class 4.
const (
	filterBytes      = 4 << 10
	instructionBytes = 100
	classBytes       = 8
	backtrackBytes   = 400 // of ECMAScript, for each byte of the pattern
)

func (f *Filter) compileRE2(pattern string) error {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return re2Error(pattern, err)
	}
	tree = trimDotStar(tree)
	if n := match.ProgramLength(tree); n > f.limits.Program {
		return fmt.Errorf("%w: %d instructions, %d are allowed", ErrTooComplex, n, f.limits.Program)
	}
	if n := classRunes(tree); n > maxClassRunes {
		return fmt.Errorf("%w: character classes with %d bounds, %d are allowed", ErrTooComplex, n, maxClassRunes)
	}
	f.size = filterBytes + instructionBytes*match.ProgramLength(tree) + classBytes*classRunes(tree)
	text := tree.String()
	if len(text) > maxPrinted {
		text = pattern
	}
	tree = tree.Simplify() // writes repetitions out, so it is not to be printed
	prog, err := syntax.Compile(tree)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrSyntax, err)
	}
	if tokenwise(prog) {
		f.prog = prog
	}
	if m := literalMatch(tree); m != nil {
		f.match = m
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrSyntax, err)
	}
	must := []byte(match.RequiredLiteral(text))
	f.match = func(name []byte) (bool, error) {
		if !bytes.Contains(name, must) {
			return false, nil
		}
		return re.Match(name), nil
	}
	return nil
}

// Limits on the cost of compiling besides the program: a class like \pL takes
// three bytes in a pattern, but has more than a thousand bounds and prints as a
// page of text.
const (
	maxClassRunes = 64 << 10
	maxPrinted    = 16 << 10 // bytes; longer patterns keep the text they came in
)

// classRunes returns the number of range bounds in the character classes of a
// tree.
func classRunes(re *syntax.Regexp) int {
	n := 0
	if re.Op == syntax.OpCharClass {
		n = len(re.Rune)
	}
	for _, s := range re.Sub {
		n += classRunes(s)
	}
	return n
}

// maxNested is the maximum nesting depth of groups for the backtracking engine,
// whose compile time grows with its cube.
const maxNested = 100

// groups returns the nesting depth of the groups of a pattern, and the positions of the
// parentheses that are not closed.
func groups(pattern string) (deepest int, open []int) {
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			open = append(open, i)
			deepest = max(deepest, len(open))
		case c == ')' && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	return deepest, open
}

func (f *Filter) compileECMAScript(pattern string) error {
	if n, _ := groups(pattern); n > maxNested {
		return fmt.Errorf("%w: groups nested %d deep, %d are allowed", ErrTooComplex, n, maxNested)
	}
	f.size = filterBytes + backtrackBytes*len(pattern)
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript, regexp2.OptionMaxBacktrackingStackSize(f.limits.Stack))
	if err != nil {
		return &SyntaxError{Why: strings.TrimPrefix(err.Error(), "error parsing regexp: "), err: err}
	}
	re.MatchTimeout = f.limits.Match
	f.match = func(name []byte) (bool, error) {
		ok, err := re.MatchString(string(name))
		if err != nil {
			return false, &NameCostError{f.limits.Match, f.limits.Stack}
		}
		return ok, nil
	}
	return nil
}

// NewInvertedFilter is [NewFilter] for a filter that selects all other stats.
func NewInvertedFilter(e Engine, pattern string, l FilterLimits) (*Filter, error) {
	f, err := NewFilter(e, pattern, l)
	if err == nil {
		f.invert = true
	}
	return f, err
}

// Match reports whether the filter selects a name, without caching the result.
func (f *Filter) Match(name string) (bool, error) { return f.selects([]byte(name)) }

func (f *Filter) selects(name []byte) (bool, error) {
	hit, err := f.match(name)
	return hit != f.invert && err == nil, err
}

// filterRun is the state of a filter during one call of a renderer.
type filterRun struct {
	f      *Filter
	until  time.Time
	looked time.Time // when the clock was looked at last
	every  int       // names between two looks, at most f.perLook
	due    int       // number of names at which the next look is
	n      int       // names judged
	auto   *automaton
	plain  bool // the automaton does not pay
	name   []byte
}

// run begins a call. It returns nil for a nil filter, which matches all.
func (f *Filter) run() *filterRun {
	if f == nil {
		return nil
	}
	now := f.limits.Now()
	return &filterRun{
		f: f, until: now.Add(f.limits.Budget), plain: f.prog == nil,
		looked: now, every: 1, due: 1,
	}
}

// A backtracking engine can use its whole time limit for any name, so the clock
// is read after each. RE2 takes about the same time for every name: there the
// clock is read after the first name, then after twice as many names as before,
// up to namesPerLook, as long as the names between take less than half of
// slowLook, and after fewer if they take more than slowLook.
const (
	namesPerLook = 256
	slowLook     = 20 * time.Millisecond
)

// look reads the clock.
func (r *filterRun) look() error {
	now := r.f.limits.Now()
	if now.After(r.until) {
		return ErrTooExpensive
	}
	switch took := now.Sub(r.looked); {
	case took > slowLook:
		r.every = max(1, r.every/16)
	case took < slowLook/2:
		r.every = min(r.f.perLook, 2*r.every)
	}
	r.looked, r.due = now, r.n+r.every
	return nil
}

// judgeName reports whether the filter matches a name that is not under a
// cursor.
func (r *filterRun) judgeName(name []byte) (bool, error) {
	if r.n++; r.n == r.due {
		if err := r.look(); err != nil {
			return false, err
		}
	}
	r.name = name
	return r.f.selects(name)
}

// judge reports whether the filter matches the name of the stat under c.
func (r *filterRun) judge(c *store.Cursor) (bool, error) {
	if r.n++; r.n == r.due {
		if err := r.look(); err != nil {
			return false, err
		}
		// An automaton pays off for many names with recurring tokens.
		if r.auto == nil && !r.plain && r.n >= namesPerLook {
			r.auto = newAutomaton(r.f.prog)
		} else if r.auto != nil && r.auto.misses > r.n {
			r.auto, r.plain = nil, true
		}
	}
	if r.auto != nil {
		if hit, ok := r.auto.match(c); ok {
			return hit != r.f.invert, nil
		}
		r.auto, r.plain = nil, true
	}
	r.name = c.AppendName(r.name[:0])
	return r.f.selects(r.name)
}
