package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// newFilter limits the time of one name only where l does: on a busy machine a short
// match can take longer than the default.
func newFilter(t testing.TB, e Engine, pattern string, l FilterLimits) *Filter {
	t.Helper()
	l.Match = cmp.Or(l.Match, time.Hour)
	f, err := NewFilter(e, pattern, l)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFilterErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		engine  Engine
		pattern string
		limits  FilterLimits
		want    error // nil: it compiles
	}{
		{"empty", RE2, "", FilterLimits{}, nil},
		{"syntax", RE2, "a(", FilterLimits{}, ErrSyntax},
		{"syntax-backreference", RE2, `(a)\1`, FilterLimits{}, ErrSyntax},
		{"syntax-repeat", RE2, "a{1001}", FilterLimits{}, ErrSyntax},
		{"syntax-ecmascript", ECMAScript, "a(", FilterLimits{}, ErrSyntax},
		{"backreference-ecmascript", ECMAScript, `(a)\1`, FilterLimits{}, nil},
		{"length", RE2, strings.Repeat("a", 1024), FilterLimits{}, nil},
		{"too-long", RE2, strings.Repeat("a", 1025), FilterLimits{}, ErrTooComplex},
		{"too-long-ecmascript", ECMAScript, strings.Repeat("a", 1025), FilterLimits{}, ErrTooComplex},
		{"too-long-setting", RE2, "abcd", FilterLimits{Length: 3}, ErrTooComplex},
		{"program", RE2, strings.Repeat("a{1000}", 9), FilterLimits{}, nil},
		{"classes", RE2, strings.Repeat(`\pL`, 40), FilterLimits{}, nil},
		{"many-classes", RE2, strings.Repeat(`\pL`, 300), FilterLimits{}, ErrTooComplex},
		{"nested", ECMAScript, strings.Repeat(`(\([(]`, maxNested) + strings.Repeat(")*", maxNested), FilterLimits{}, nil},
		{"nested-deep", ECMAScript, strings.Repeat("(", maxNested+1) + "a" + strings.Repeat(")*", maxNested+1), FilterLimits{}, ErrTooComplex},
		{"nested-deep-behind-a-class", ECMAScript, "[a]" + strings.Repeat("(", maxNested+1) + "a" + strings.Repeat(")*", maxNested+1), FilterLimits{}, ErrTooComplex},
		{"large-program", RE2, strings.Repeat("a{1000}", 11), FilterLimits{}, ErrTooComplex},
		{"large-program-setting", RE2, "a{40}", FilterLimits{Program: 30}, ErrTooComplex},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewFilter(tt.engine, tt.pattern, tt.limits)
			if !errors.Is(err, tt.want) {
				t.Errorf("NewFilter(%.40q): %v, want %v", tt.pattern, err, tt.want)
			}
			if err == nil && f == nil || err != nil && f != nil {
				t.Errorf("NewFilter(%.40q) = %v and %v", tt.pattern, f, err)
			}
		})
	}
}

// TestSyntaxErrors expects the position of the error.
func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct {
		engine  Engine
		pattern string
		at      int
		why     string
	}{
		{RE2, "a(b", 1, "missing closing )"},
		{RE2, "[a](b", 3, "missing closing )"},
		{RE2, "[(][)](b[)]", 6, "missing closing )"},
		{RE2, "(a)(b(c)", 3, "missing closing )"},
		{RE2, `\((a[)]`, 2, "missing closing )"},
		{RE2, "(a)b)c", 4, "unexpected )"},
		{RE2, "[a][b", 3, "missing closing ]"},
		{RE2, "a*|*b", 3, "missing argument to repetition operator"},
		{RE2, "x**", 1, "invalid nested repetition operator"},
		{RE2, "a{1001}", 1, "invalid repeat count"},
		{RE2, `a\qb`, 1, "invalid escape sequence"},
		{RE2, "ab\\", 2, "trailing backslash at end of expression"},
		{RE2, "[b-a]", 1, "invalid character class range"},
		{RE2, `\pL[b-a]`, 4, "invalid character class range"},
		{RE2, "x(?=a)", 1, "invalid or unsupported Perl syntax"},
		{RE2, strings.Repeat("a", maxLocated) + "(", -1, "missing closing )"},
		{ECMAScript, "a(b", -1, "missing closing )"},
	} {
		_, err := NewFilter(tt.engine, tt.pattern, FilterLimits{})
		var e *SyntaxError
		if !errors.As(err, &e) || !errors.Is(err, ErrSyntax) {
			t.Fatalf("%q: %v", tt.pattern, err)
		}
		if text := err.Error(); !strings.HasPrefix(text, ErrSyntax.Error()+": ") || !strings.Contains(text, tt.why) {
			t.Errorf("%q: the error says %q", tt.pattern, text)
		}
		if got := e.At(); got != tt.at || !strings.Contains(e.Why, tt.why) {
			t.Errorf("%q: %q at %d, want %q at %d", tt.pattern, e.Why, got, tt.why, tt.at)
		}
	}
}

// TestInvertedFilters select what the filter leaves out, in all forms, also after a result is
// cached, and return the same errors.
func TestInvertedFilters(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 600 { // more than the names after which an automaton pays
		st.Root().Counter(fmt.Sprintf("%c.n%d", "ab"[i%2], i)).Inc()
	}
	for _, e := range []Engine{RE2, ECMAScript} {
		for _, pattern := range []string{"a", `^a\.n[0-9]+$`, "(a|x)\\.n"} {
			f, err := NewInvertedFilter(e, pattern, FilterLimits{Match: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]bool{"a.n0": false, "b.n1": true} {
				if got, err := f.Match(name); got != want || err != nil {
					t.Errorf("%s: %s is selected: %t, %v", pattern, name, got, err)
				}
			}
			for range 2 {
				for form, write := range forms() {
					var b bytes.Buffer
					if err := write(&b, st, Options{Filter: f}); err != nil {
						t.Fatal(err)
					}
					if a, other := strings.Count(b.String(), "a.n")+strings.Count(b.String(), "_a_n"), strings.Count(b.String(), "b.n")+strings.Count(b.String(), "_b_n"); a != 0 || other < 300 {
						t.Errorf("%s of not %s: %d and %d names", form, pattern, a, other)
					}
				}
			}
		}
		if f, err := NewInvertedFilter(e, "(", FilterLimits{}); !errors.Is(err, ErrSyntax) || f != nil {
			t.Errorf("%v, %v", f, err)
		}
	}
}

func TestDefaultFilterLimits(t *testing.T) {
	l := FilterLimits{}.withDefaults()
	if l.Length != 1024 || l.Program != 10_000 || l.Budget != 2*time.Second || l.Match != 50*time.Millisecond || l.Stack != 100_000 || l.Now == nil {
		t.Errorf("%+v", l)
	}
}

// TestCompilingIsCheap compiles short patterns that expand to large ones or
// that an engine compiles slowly.
func TestCompilingIsCheap(t *testing.T) {
	for _, pattern := range []string{
		strings.Repeat(`\pL{1000}`, 9), strings.Repeat(`(?i:\pL){1000}`, 9), strings.Repeat(`\pL{1000}`, 113), strings.Repeat(`(\pL|\pN){100}`, 20),
		strings.Repeat(`[^\pL\pN]{1000}`, 60), strings.Repeat(`\pL`, 340), ".*" + strings.Repeat(`\PL`, 339), strings.Repeat("((a{10}){10}){10}", 60),
		strings.Repeat("(", 330) + "a" + strings.Repeat(")*", 330), strings.Repeat("(?:(", 130) + "a" + strings.Repeat(")*)+", 120),
	} {
		for _, e := range []Engine{RE2, ECMAScript} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = NewFilter(e, pattern, FilterLimits{})
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("pattern %.20q of %d bytes, engine %d: compiling it takes %d MiB", pattern, len(pattern), e, n>>20)
			}
		}
	}
}

// fakeClock advances with each reading.
type fakeClock struct {
	now   time.Time
	step  time.Duration
	looks int
}

func (c *fakeClock) Now() time.Time {
	c.looks++
	c.now = c.now.Add(c.step)
	return c.now
}

func TestFilterBudgetIsForTheWholeCall(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 1000 {
		st.Root().Counter(fmt.Sprintf("c%d", i))
		st.Root().Histogram(fmt.Sprintf("h%d", i), store.Bytes)
		st.Root().Text(fmt.Sprintf("t%d", i)).Set("x")
	}
	for name, write := range map[string]func(io.Writer, *store.Store, Options) error{
		"text": Text, "json": JSON, "html": HTMLLines, "exposition": Exposition, "openmetrics": OpenMetrics, "protobuf": Protobuf,
	} {
		// 3,000 names are 18 looks at the clock with the doubling steps of RE2.
		for e, looks := range map[Engine]int{RE2: 18, ECMAScript: 3000} {
			t.Run(fmt.Sprintf("%s-%d", name, e), func(t *testing.T) {
				o := Options{TextReadouts: true}
				clock := &fakeClock{step: time.Millisecond}
				o.Filter = newFilter(t, e, "^.5", FilterLimits{Now: clock.Now, Budget: time.Duration(looks) * time.Millisecond})
				if err := write(io.Discard, st, o); err != nil {
					t.Errorf("within the budget: %v", err)
				}
				if clock.looks != 1+looks {
					t.Errorf("%d looks at the clock, want one at the beginning and %d", clock.looks, looks)
				}
				clock = &fakeClock{step: time.Millisecond}
				o.Filter = newFilter(t, e, "^.5", FilterLimits{Now: clock.Now, Budget: time.Duration(looks-1) * time.Millisecond})
				if err := write(io.Discard, st, o); !errors.Is(err, ErrTooExpensive) {
					t.Errorf("over the budget: %v", err)
				}
			})
		}
	}
}

func TestFilterRepeatedIsFree(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 1000 {
		st.Root().Counter(fmt.Sprintf("c%d", i))
	}
	clock := &fakeClock{step: time.Millisecond}
	o := Options{Filter: newFilter(t, ECMAScript, "5", FilterLimits{Now: clock.Now, Budget: time.Hour})}
	for i, want := range []int{1001, 1, 1} {
		clock.looks = 0
		if err := Text(io.Discard, st, o); err != nil {
			t.Fatal(err)
		}
		if clock.looks != want {
			t.Errorf("call %d looked %d times at the clock, want %d", i, clock.looks, want)
		}
	}
}

// TestSlowMatchesEndInTime makes some names much slower than the names before
// them: the walk must end soon after its budget, although the clock is not read
// after each name.
func TestSlowMatchesEndInTime(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 5000 {
		st.Root().Counter(fmt.Sprintf("c%d", i))
	}
	for _, tt := range []struct {
		engine  Engine
		pattern string
		cost    func(i int) time.Duration
		late    time.Duration
	}{
		{RE2, "[0-9]x", func(int) time.Duration { return 3 * time.Millisecond }, slowLook},
		{RE2, "[0-9]x", func(int) time.Duration { return 400 * time.Millisecond }, 800 * time.Millisecond},
		{RE2, "[0-9]x", func(i int) time.Duration { return time.Duration(1+i%10) * time.Millisecond }, 2 * slowLook},
		{ECMAScript, "x", func(int) time.Duration { return 3 * time.Millisecond }, 3 * time.Millisecond},
		{ECMAScript, "x", func(i int) time.Duration { return time.Duration(i/1000) * 49 * time.Millisecond }, 49 * time.Millisecond},
	} {
		clock := &fakeClock{}
		began, n := clock.now, 0
		f := newFilter(t, tt.engine, tt.pattern, FilterLimits{Now: clock.Now})
		f.prog = nil
		f.match = func([]byte) (bool, error) {
			clock.now = clock.now.Add(tt.cost(n))
			n++
			return true, nil
		}
		if err := Text(io.Discard, st, Options{Filter: f}); !errors.Is(err, ErrTooExpensive) {
			t.Errorf("got %v, want %v", err, ErrTooExpensive)
		}
		if late := clock.now.Sub(began) - 2*time.Second; late < 0 || late > tt.late {
			t.Errorf("engine %d, a match of %v: the walk ended %v after its budget, at most %v is allowed", tt.engine, tt.cost(0), late, tt.late)
		}
	}
}

// TestCatastrophicPatternsEnd runs patterns that cost too much, on names made
// for them. They end because each name and the walk have their limits.
func TestCatastrophicPatternsEnd(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 2000 {
		st.Root().Counter(fmt.Sprintf("%s%d!", strings.Repeat("a", 190), i))
	}
	ended := 0
	for _, pattern := range []string{
		"(a+)+$", "(a*)*b", "(a|a)*$", "(a|aa)+$", "(.*a){20}$", "(a?){30}a{30}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x", "(a+a+)+y",
		"((a*)*)*z", "([a-zA-Z]+)*$", "(x+x+)+y|(a+a+)+y", "(.+)+(.+)+(.+)+$", strings.Repeat("(a{1,9})+", 20) + "$",
	} {
		for _, e := range []Engine{RE2, ECMAScript} {
			f, err := NewFilter(e, pattern, FilterLimits{Budget: 50 * time.Millisecond, Match: 5 * time.Millisecond})
			if errors.Is(err, ErrTooComplex) || errors.Is(err, ErrSyntax) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			switch err := Text(io.Discard, st, Options{Filter: f}); {
			case errors.Is(err, ErrTooExpensive):
				ended++
			case err != nil:
				t.Errorf("pattern %q: %v", pattern, err)
			}
		}
	}
	if ended == 0 {
		t.Error("no pattern cost too much")
	}
}

func TestECMAScriptGivesUp(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter(strings.Repeat("a", 200) + "!")
	for _, tt := range []struct {
		name   string
		limits FilterLimits
	}{
		{"stack", FilterLimits{Stack: 50, Match: time.Hour}},
		{"time", FilterLimits{Match: time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFilter(t, ECMAScript, "^(a+)+(b|$)", tt.limits)
			if err := Text(io.Discard, st, Options{Filter: f}); !errors.Is(err, ErrTooExpensive) {
				t.Errorf("got %v, want %v", err, ErrTooExpensive)
			}
			if _, err := f.Match(strings.Repeat("a", 200) + "!"); !errors.Is(err, ErrTooExpensive) {
				t.Errorf("Match: got %v, want %v", err, ErrTooExpensive)
			}
		})
	}
}

func TestFilterMatchesFullNamePartially(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("cluster.checkout.upstream_rq_200").Inc()
	for pattern, want := range map[string]bool{
		"checkout":                true,
		"out.up":                  true,
		"_200$":                   true,
		"^cluster.checkout":       true,
		"^checkout":               false,
		"cluster.upstream_rq":     false, // the tag-extracted name
		"proxy_cluster":           false, // the metric name
		"^cluster..*_rq_2[0-9]+$": true,
		"UPSTREAM":                false,
		"(?i)UPSTREAM":            true,
	} {
		for _, e := range []Engine{RE2, ECMAScript} {
			if e == ECMAScript && strings.HasPrefix(pattern, "(?i)") {
				continue
			}
			for name, write := range map[string]func(io.Writer, *store.Store, Options) error{"text": Text, "json": JSON, "exposition": Exposition, "protobuf": Protobuf} {
				var b bytes.Buffer
				if err := write(&b, st, Options{Filter: newFilter(t, e, pattern, FilterLimits{})}); err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(b.String(), "upstream_rq"); got != want {
					t.Errorf("%s, engine %d, filter %q: shown is %t, want %t", name, e, pattern, got, want)
				}
			}
		}
	}
}

// cases is how many of n random cases are tried.
func cases(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// randomPattern returns a pattern that both engines understand alike.
func randomPattern(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", "1", "_", ".", `\.`, "[a-c]", "[^a]", `\d`, `\w`, "[0-9_]", "ab", "b.c", "a_1", "svc", "^", "$", "(?:)", `\bab`}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		p := atoms[r.IntN(len(atoms))]
		if depth > 0 && r.IntN(4) == 0 {
			p = "(" + randomPattern(r, depth-1) + ")"
		}
		if p != "^" && p != "$" && p != "(?:)" {
			p += []string{"", "", "", "", "*", "+", "?", "*?", "{1,2}", ".*"}[r.IntN(10)]
		}
		b.WriteString(p)
		if r.IntN(6) == 0 {
			b.WriteString("|")
		}
	}
	return []string{"", "", ".*", "^", "^.*"}[r.IntN(5)] + b.String() + []string{"", "", ".*", "$", ".*$"}[r.IntN(5)]
}

func randomName(r *rand.Rand) string {
	tokens := []string{"a", "b", "c", "ab", "a_1", "bc", "svc", "svc_11", "x", "1", "abc", "cab"}
	name := tokens[r.IntN(len(tokens))]
	for range r.IntN(4) {
		name += "." + tokens[r.IntN(len(tokens))]
	}
	return name
}

func TestEnginesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	gaveUp := 0
	for range cases(5000) {
		pattern := randomPattern(r, 2)
		re2, ecma := newFilter(t, RE2, pattern, FilterLimits{}), newFilter(t, ECMAScript, pattern, FilterLimits{Match: 200 * time.Millisecond})
		for range 10 {
			name := randomName(r)
			a, err := re2.Match(name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := ecma.Match(name)
			if errors.Is(err, ErrTooExpensive) {
				gaveUp++
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if a != b {
				t.Fatalf("pattern %q, name %q: RE2 %t, ECMAScript %t", pattern, name, a, b)
			}
		}
	}
	if gaveUp > 100 {
		t.Errorf("the ECMAScript engine gave up on %d of 5,000 patterns", gaveUp)
	}
}

// TestTrim checks that optional text at the ends of a pattern is dropped, which
// often leaves a literal, and that required text is not.
func TestTrim(t *testing.T) {
	for pattern, want := range map[string]string{
		".*ab.*": "ab", ".*ab": "ab", "ab.*": "ab", "(?s).*ab(?s:.*)": "ab", ".*.*ab": "ab", "a.*b": "a.*b",
		".+ab.+": ".+ab.+", "^.*ab": "^.*ab", "ab.*$": "ab.*$", ".?ab": ".?ab", ".*": ".*",
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := syntax.Parse(want, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := trimDotStar(tree); got.String() != plain.String() {
			t.Errorf("%s: %s, want %s", pattern, got, plain)
		}
	}
}

// TestShortcutsChangeNothing compares filters, which trim patterns, compare
// literals and run over tokens, with the regular expression package.
func TestShortcutsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	st := store.New(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	for range 1500 {
		st.Root().Counter(randomName(r))
	}
	for _, p := range nasty() {
		for _, q := range nasty() {
			st.Root().Counter(p + q)
			network.Counter(p+"."+q, tags.Tag{Name: q, Value: p + ".x"}, tags.Tag{Name: p})
		}
	}
	if n := st.Len(store.KindCounter); n < 2*namesPerLook {
		t.Fatalf("only %d names: no automaton is made", n)
	}
	patterns := []string{
		"", "^", "$", "^$", ".", "^.", ".$", ".*", "^.*$", "a*", "^a*$", "(^a|b$)", "(?:^|\\.)ab(?:\\.|$)", "(?i)AB", "(?i)é", "(?i)ſ", "(?s)^.*x$", "(?s).*\n.*",
		"(?m)^b", "(?m)b$", `\bab\b`, `\Bb`, "\\x{fffd}", "\xff", "[\\x{80}-\\x{10ffff}]", "^[^.]*$", `^[^.]*\.[^.]*$`, `a\.b`, `\.`, "^cluster\\.", "_total$", "é$",
		".*ab", "ab.*", ".*a.*b.*", ".+ab", "ab.+", ".+", "(?s).*ab", "^.*ab", "ab.*$",
		"^stat", "stat_count$", "\\.$", "^\\.", "\\.\\.", "x\\z", "\\Ax", "(a|b|ab)(c|bcd)?$", "a{2}", "(?U)a+b", "[[:alpha:]]+_[[:alpha:]]+", "\\pL\\pL", "\\C",
	}
	for range cases(150) {
		patterns = append(patterns, randomPattern(r, 2))
	}
	automata := 0
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			if _, err := NewFilter(RE2, p, FilterLimits{}); !errors.Is(err, ErrSyntax) {
				t.Errorf("pattern %q: %v, want a syntax error", p, err)
			}
			continue
		}
		f := newFilter(t, RE2, p, FilterLimits{Budget: time.Hour})
		run := f.run()
		v := st.View()
		c := v.ByName(store.Scalars)
		for c.Next() {
			name := c.Name()
			want := re.MatchString(name)
			if got, err := f.Match(name); got != want || err != nil {
				t.Errorf("pattern %q, name %q: got %t and %v, want %t", p, name, got, err, want)
			}
			if got, err := run.judge(&c); got != want || err != nil {
				t.Errorf("pattern %q, name %q in a walk: got %t and %v, want %t", p, name, got, err, want)
			}
		}
		v.Close()
		if run.auto != nil {
			automata++
		}
		if t.Failed() {
			return
		}
	}
	if automata < len(patterns)*3/4 {
		t.Errorf("only %d automata for %d patterns", automata, len(patterns))
	}
}

// TestKeptFilterEqualsNewOne adds and removes names while filters are reused:
// they must select the same names as new filters.
func TestKeptFilterEqualsNewOne(t *testing.T) {
	for seed := range uint64(cases(3)) {
		r := rand.New(rand.NewPCG(seed, 9))
		st := store.New(store.Options{})
		network := st.ScopeWith("", store.ScopeOptions{Network: true})
		var scopes []*store.Scope
		patterns := []string{"^a", "svc", "b$", "1", "", "no such name", `a.*\.c`}
		kept := make([]*Filter, len(patterns))
		for i, p := range patterns {
			kept[i] = newFilter(t, []Engine{RE2, ECMAScript}[i%2], p, FilterLimits{Budget: time.Hour})
		}
		add := func(sc *store.Scope) {
			name := fmt.Sprintf("%s.%s_%d", randomName(r), randomName(r), r.IntN(50))
			if r.IntN(4) == 0 {
				sc.Histogram(name, store.Bytes)
			} else {
				sc.Counter(name)
			}
		}
		for range 40 {
			switch r.IntN(8) {
			case 0:
				for range r.IntN(3000) {
					add(network)
				}
			case 1:
				sc := st.Scope(randomName(r))
				for range r.IntN(1500) {
					add(sc)
				}
				scopes = append(scopes, sc)
			case 2:
				if len(scopes) > 0 {
					i := r.IntN(len(scopes))
					scopes[i].Close()
					scopes = append(scopes[:i], scopes[i+1:]...)
				}
			case 3:
				st.RemoveNetwork(func(string) bool { return r.IntN(3) == 0 })
			case 4:
				st.RemoveNetwork(func(string) bool { return true })
			default:
				for range r.IntN(4) {
					add(network)
				}
			}
			i := r.IntN(len(patterns))
			for name, write := range map[string]func(io.Writer, *store.Store, Options) error{"text": Text, "exposition": Exposition} {
				fresh := newFilter(t, []Engine{RE2, ECMAScript}[i%2], patterns[i], FilterLimits{Budget: time.Hour})
				var got, want bytes.Buffer
				if err := write(&got, st, Options{Filter: kept[i]}); err != nil {
					t.Fatal(err)
				}
				if err := write(&want, st, Options{Filter: fresh}); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Fatalf("seed %d, %s, filter %q: the kept one shows %d bytes, a new one %d", seed, name, patterns[i], got.Len(), want.Len())
				}
			}
		}
	}
}

func TestFilterIsShared(t *testing.T) {
	st := store.New(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	f := newFilter(t, RE2, "svc.*1$", FilterLimits{Budget: time.Hour})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for round := range 20 {
				for range 200 {
					network.Counter(randomName(r) + "." + randomName(r)).Inc()
				}
				if round%7 == 0 {
					st.RemoveNetwork(func(string) bool { return r.IntN(2) == 0 })
				}
				var b bytes.Buffer
				if err := Text(&b, st, Options{Filter: f}); err != nil {
					t.Error(err)
				}
				for line := range strings.Lines(b.String()) {
					name, _, _ := strings.Cut(line, ":")
					if !strings.Contains(name, "svc") || !strings.HasSuffix(name, "1") {
						t.Errorf("%q does not match", line)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestFilterLimitDefaults: zero limits mean the defaults, others stay.
func TestFilterLimitDefaults(t *testing.T) {
	for _, tt := range []struct{ in, want FilterLimits }{
		{FilterLimits{}, FilterLimits{Length: 1024, Program: 10_000, Budget: 2 * time.Second, Match: 50 * time.Millisecond, Stack: 100_000}},
		{FilterLimits{Length: 1, Program: 2, Budget: 3, Match: 4, Stack: 5}, FilterLimits{Length: 1, Program: 2, Budget: 3, Match: 4, Stack: 5}},
	} {
		got := tt.in.withDefaults()
		if got.Now == nil {
			t.Error("no clock")
		}
		got.Now = nil
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}
