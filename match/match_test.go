package match

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"
)

func mustNew(t testing.TB, kind Kind, pattern string, ignoreCase bool) Matcher {
	t.Helper()
	m, err := New(kind, pattern, ignoreCase)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMatch(t *testing.T) {
	tests := []struct {
		kind       Kind
		pattern    string
		ignoreCase bool
		yes, no    []string
	}{
		{KindExact, "cluster.a", false, []string{"cluster.a"}, []string{"", "cluster.", "cluster.ab", "xcluster.a", "Cluster.a"}},
		{KindExact, "", false, []string{""}, []string{"a"}},
		{KindExact, "Cluster.A", true, []string{"cluster.a", "CLUSTER.A", "cLuster.a"}, []string{"", "cluster.b", "cluster.aa"}},
		{KindExact, "k[", true, []string{"K[", "k["}, []string{"\u212a[", "k{", "K{"}}, // neither Kelvin nor { folds
		{KindPrefix, "cluster.", false, []string{"cluster.", "cluster.a"}, []string{"", "cluster", "Cluster.a", "a.cluster."}},
		{KindPrefix, "CLUSTER.", true, []string{"cluster.", "Cluster.a"}, []string{"", "cluster", "a.cluster."}},
		{KindSuffix, "_total", false, []string{"_total", "a_total"}, []string{"", "total", "a_Total", "_total."}},
		{KindSuffix, "_Total", true, []string{"_total", "a_TOTAL"}, []string{"", "total", "_total."}},
		{KindContains, "rq", false, []string{"rq", "a_rq", "rq_a", "a_rq_b"}, []string{"", "r", "RQ", "r.q"}},
		{KindContains, "rQ", true, []string{"rq", "a_RQ", "Rq_a", "a_rq_b"}, []string{"", "r", "r.q"}},
		{KindRegex, `cluster\..*_rq`, false, []string{"cluster._rq", "cluster.a_rq"}, []string{"", "xcluster.a_rq", "cluster.a_rq_200", "Cluster.a_rq"}},
		{KindRegex, `a|ab`, false, []string{"a", "ab"}, []string{"", "b", "abb", "aab"}}, // the whole text, not the first alternative
		{KindRegex, `(?i)abc`, false, []string{"abc", "ABC"}, []string{"ab", "abcd"}},
		{KindRegex, `^abc$`, false, []string{"abc"}, []string{"abcd", "abc\n"}},
		{KindRegex, `(?m)^abc$`, false, []string{"abc"}, []string{"abc\nabc"}},
		{KindRegex, `a.c`, false, []string{"abc"}, []string{"a\nc"}},
		{KindRegex, `\Qa.b`, false, []string{"a.b"}, []string{"axb", "a.b)"}},
		{KindRegex, `x*`, false, []string{"", "xxx"}, []string{"y", "xy"}},
		{KindRegex, `a` + "\ufffd", false, []string{"a\ufffd", "a\xff"}, []string{"a"}},
	}
	for _, tt := range tests {
		m := mustNew(t, tt.kind, tt.pattern, tt.ignoreCase)
		for _, s := range tt.yes {
			if !m.Match(s) {
				t.Errorf("%s %q, ignoring case %t: does not match %q", tt.kind, tt.pattern, tt.ignoreCase, s)
			}
		}
		for _, s := range tt.no {
			if m.Match(s) {
				t.Errorf("%s %q, ignoring case %t: matches %q", tt.kind, tt.pattern, tt.ignoreCase, s)
			}
		}
	}
}

func TestConstructorsAgreeWithNew(t *testing.T) {
	regex, err := Regex("a.*b")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind    Kind
		pattern string
		got     Matcher
	}{
		{KindExact, "ab", Exact("ab")}, {KindPrefix, "ab", Prefix("ab")}, {KindSuffix, "ab", Suffix("ab")},
		{KindContains, "ab", Contains("ab")}, {KindRegex, "a.*b", regex},
	} {
		want := mustNew(t, tt.kind, tt.pattern, false)
		for _, s := range []string{"", "ab", "abc", "cab", "cabc", "axb", "ba"} {
			if got, want := tt.got.Match(s), want.Match(s); got != want {
				t.Errorf("%s %q: Match(%q) = %t, New says %t", tt.kind, tt.pattern, s, got, want)
			}
		}
	}
	if _, err := Regex("("); err == nil {
		t.Error("Regex accepts an invalid expression")
	}
}

func TestErrorsNameThePattern(t *testing.T) {
	tests := []struct {
		name       string
		kind       Kind
		pattern    string
		ignoreCase bool
		want       string
	}{
		{"empty-prefix", KindPrefix, "", false, `match: prefix pattern is empty, it would match everything`},
		{"empty-suffix", KindSuffix, "", true, `match: suffix pattern is empty, it would match everything`},
		{"empty-contains", KindContains, "", false, `match: contains pattern is empty, it would match everything`},
		{"empty-regex", KindRegex, "", false, `match: regex is empty`},
		{"regex-ignoring-case", KindRegex, "a+", true, `match: regex "a+": ignore_case is not allowed with a regex, write (?i) in the expression`},
		{"unbalanced", KindRegex, `a)|(b`, false, `match: regex "a)|(b": unexpected )`},
		{"part-named", KindRegex, `ab(c`, false, `match: regex "ab(c": missing closing )`},
		{"lookahead", KindRegex, `a(?=b)`, false, `match: regex "a(?=b)": invalid or unsupported Perl syntax: "(?="`},
		{"repeat", KindRegex, `a{1001}`, false, `match: regex "a{1001}": invalid repeat count: "{1001}"`},
		{"too-long", KindRegex, strings.Repeat("a", 1025), false, `match: regex "` + strings.Repeat("a", 32) + `"… has 1025 bytes, at most 1024 are allowed`},
		{"too-large", KindRegex, strings.Repeat("a{1000}", 10), false, `match: regex "` + strings.Repeat("a{1000}", 10) + `" compiles to more than 10000 instructions`},
		{"unknown-kind", Kind(9), "a", false, `match: pattern "a": kind 9 unknown, allowed are exact, prefix, suffix, contains, regex`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.kind, tt.pattern, tt.ignoreCase)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error = %v\nwant    %s", err, tt.want)
			}
		})
	}
}

func TestLimitsAreReachable(t *testing.T) {
	for _, expr := range []string{strings.Repeat("a", 1024), strings.Repeat("a{1000}", 9)} {
		if _, err := Compile(expr); err != nil {
			t.Errorf("Compile of %d bytes: %v", len(expr), err)
		}
	}
}

func TestListMatchesAny(t *testing.T) {
	l := List{Prefix("cluster."), Suffix("_total"), mustNew(t, KindRegex, `a+`, false)}
	for s, want := range map[string]bool{"cluster.x": true, "x_total": true, "aaa": true, "x": false, "": false} {
		if got := l.Match(s); got != want {
			t.Errorf("Match(%q) = %t, want %t", s, got, want)
		}
	}
	if (List{}).Match("") || List(nil).Match("a") {
		t.Error("an empty list matches")
	}
}

func TestZeroMatcherMatchesTheEmptyText(t *testing.T) {
	var m Matcher
	if !m.Match("") || m.Match("a") {
		t.Error("the zero matcher does not match exactly the empty text")
	}
}

// randomExpr returns an expression over a small alphabet, so that matches are
// frequent.
func randomExpr(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return []string{"a", "b", "ab", ".", `\.`, "[ab]", "(?i:a)", "", "^", "$", `\b`, `(?i)b`, `\Qab\E`}[r.IntN(13)]
	}
	x, y := randomExpr(r, depth-1), randomExpr(r, depth-1)
	switch r.IntN(9) {
	case 0:
		return "(" + x + ")*"
	case 1:
		return "(?:" + x + ")+"
	case 2:
		return "(" + x + ")?"
	case 3:
		return "(" + x + "|" + y + ")"
	case 4:
		return "(?:" + x + "){2,3}"
	case 5:
		return "(?:" + x + "){2,}"
	case 6:
		return "(?:" + x + "){0,2}"
	default:
		return x + y
	}
}

// checkExpr compares the full match of expr with a leftmost-longest search, the
// required literal with the match, and the program length with its bound.
func checkExpr(t *testing.T, expr, s string) {
	m, err := New(KindRegex, expr, false)
	if err != nil {
		return
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		t.Fatalf("New accepts %q, but it does not parse: %v", expr, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatalf("New accepts %q, but it does not compile: %v", expr, err)
	}
	if n := len(prog.Inst); n > MaxProgramLength {
		t.Errorf("New accepts %q with %d instructions", expr, n)
	}
	tree, _ = syntax.Parse(expr, syntax.Perl)
	if bound := programLength(tree) + 2; len(prog.Inst) > bound {
		t.Errorf("%q has %d instructions, bound says %d", expr, len(prog.Inst), bound)
	}
	longest := regexp.MustCompile(expr)
	longest.Longest()
	at := longest.FindStringIndex(s)
	if want := slices.Equal(at, []int{0, len(s)}); m.Match(s) != want {
		t.Errorf("full match of %q on %q = %t, want %t", expr, s, m.Match(s), want)
	}
	if lit := RequiredLiteral(expr); at != nil && !strings.Contains(s, lit) {
		t.Errorf("%q matches %q without the required literal %q", expr, s, lit)
	}
}

func randomText(r *rand.Rand) string {
	b := make([]byte, r.IntN(7))
	for i := range b {
		b[i] = "abAB.\n"[r.IntN(6)]
	}
	return string(b)
}

// TestProgramLength has expressions whose bound is their length. A star counts one more.
func TestProgramLength(t *testing.T) {
	for _, expr := range []string{"abc", "ab+c", "ab?c", "a(b)c", "a[b-d]e.", "(?:ab|cd.|e+)", "a{3}", "^a$"} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ProgramLength(tree), len(prog.Inst); got != want {
			t.Errorf("%s: %d, want %d", expr, got, want)
		}
	}
}

func TestRegexAgreesWithTheLongestMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		expr := randomExpr(r, 4)
		for range 5 {
			checkExpr(t, expr, randomText(r))
		}
	}
}

// FuzzRegex checks the limits, the full match and the required literal of every
// accepted expression.
func FuzzRegex(f *testing.F) {
	f.Add(`cluster\..*_rq`, "cluster.a_rq")
	f.Add(`a|ab`, "ab")
	f.Add(`\Qa.b`, "a.b")
	f.Add(`(?:a{10}){10}`, "aaa")
	f.Add("\ufffd", "\xff")
	f.Add(`\pp`, "-") // only one of the two parsers accepts lower-case classes
	f.Fuzz(func(t *testing.T, expr, s string) { checkExpr(t, expr, s) })
}

func TestRequiredLiteral(t *testing.T) {
	tests := []struct{ expr, want string }{
		{`\.tier_((\w+)\.)`, ".tier_"},
		{`^cluster\.(x+)_rq_total$`, "_rq_total"},
		{`(abc)+d`, "abc"},
		{`(abc)*d`, "d"},
		{`(abc)?`, ""},
		{`(?:abc){2}`, "abc"},
		{`(?:abc){0,2}`, ""},
		{`abc|abd`, "ab"},
		{`abc|xyz`, ""},
		{`(?i)abc`, ""},
		{`[ab]+`, ""},
		{`(`, ""},
	}
	for _, tt := range tests {
		if got := RequiredLiteral(tt.expr); got != tt.want {
			t.Errorf("RequiredLiteral(%s) = %q, want %q", tt.expr, got, tt.want)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	const name = "cluster.service_17.upstream_cx_connect_timeout"
	for _, tt := range []struct {
		name    string
		kind    Kind
		pattern string
		fold    bool
	}{
		{"kind=prefix/fold=false", KindPrefix, "cluster.service_18", false},
		{"kind=prefix/fold=true", KindPrefix, "cluster.service_18", true},
		{"kind=contains/fold=false", KindContains, "upstream_rq", false},
		{"kind=contains/fold=true", KindContains, "upstream_rq", true},
		{"kind=regex/literal=missing", KindRegex, `cluster\..*_rq_total`, false},
		{"kind=regex/literal=present", KindRegex, `cluster\..*_cx_.*`, false},
	} {
		m := mustNew(b, tt.kind, tt.pattern, tt.fold)
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Match(name)
			}
		})
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{
		KindExact: "exact", KindPrefix: "prefix", KindSuffix: "suffix", KindContains: "contains", KindRegex: "regex", 9: "kind 9",
	} {
		if got := k.String(); got != want {
			t.Errorf("kind %d is called %q, want %q", uint8(k), got, want)
		}
	}
}
