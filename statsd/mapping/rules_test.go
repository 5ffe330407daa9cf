package mapping

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// globs returns rules named r0, r1 and so on for globs.
func globs(matches ...string) []Rule {
	var rules []Rule
	for i, m := range matches {
		rules = append(rules, Rule{Match: m, Name: fmt.Sprint("r", i)})
	}
	return rules
}

func compileRules(t testing.TB, c Config) *Rules {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text returns the outcome of a name: name{label="value",...}, or "-".
func text(r *Rules, name string, k Kind) string {
	m, ok := r.Find(name, k)
	if !ok {
		return "-"
	}
	out := m.Name()
	for i, l := range m.Rule().Labels {
		out += fmt.Sprintf(" %s=%q", l.Name, m.Label(i))
	}
	return out
}

func TestFind(t *testing.T) {
	label := func(values ...string) (ls []Label) {
		for i, v := range values {
			ls = append(ls, Label{fmt.Sprint("l", i), v})
		}
		return ls
	}
	tests := []struct {
		name  string
		cfg   Config
		names map[string]string
	}{
		{"first-in-file", Config{Rules: globs("a.*.c", "a.b.*", "a.b.c")}, map[string]string{
			"a.b.c": "r0", "a.b.d": "r1", "a.x.c": "r0", "a.x.d": "-", "a.b": "-", "a.b.c.d": "-",
		}},
		{"backtracking", Config{Rules: globs("a.b.*.x", "a.*.*.y", "*.b.c.z")}, map[string]string{
			"a.b.c.x": "r0", "a.b.c.y": "r1", "a.b.c.z": "r2", "a.b.c.w": "-",
		}},
		{"most-literal", Config{MostLiteral: true, Rules: globs("a.*.c", "a.b.*", "a.b.c")}, map[string]string{
			"a.b.c": "r2", "a.b.d": "r1", "a.x.c": "r0",
		}},
		{"most-literal-backtracks", Config{MostLiteral: true, Rules: globs("a.b.c", "*.*.d")}, map[string]string{"a.b.d": "r1"}},
		{"most-literal-partial", Config{MostLiteral: true, Rules: []Rule{
			{Match: "*.x", Name: "star"}, {Match: "ab*.x", Partial: true, Name: "long"}, {Match: "a*.x", Partial: true, Name: "short"}, {Match: "abc.x", Name: "literal"},
		}}, map[string]string{"abc.x": "literal", "abd.x": "long", "ad.x": "short", "b.x": "star"}},
		{"prefix-of-longer", Config{Rules: globs("a.b.c", "a.b")}, map[string]string{"a.b": "r1", "a.b.c": "r0"}},
		{"twice", Config{Rules: globs("a.*", "b", "a.*")}, map[string]string{"a.x": "r0"}},
		{"empty-segment", Config{Rules: globs("a.*.b")}, map[string]string{"a..b": "r0", "a.*.b": "r0", "a.b": "-"}},
		{"kind", Config{Rules: []Rule{
			{Match: "a.*", Name: "timer", Kind: Observer}, {Match: "a.*", Name: "count", Kind: Counter}, {Match: "b.*", Name: "any"},
		}}, map[string]string{"a.x": "count", "observer:a.x": "timer", "gauge:a.x": "-", "set:a.x": "-", "set:b.x": "any"}},
		{"globs-before-regexes", Config{Rules: []Rule{
			{Match: `^a\.(.*)`, Regex: true, Name: "re_${1}", Labels: label("$1", "$2", "$1_x")}, {Match: "a.b", Name: "glob"},
			{Match: `c`, Regex: true, Name: "unanchored"},
		}}, map[string]string{"a.b": "glob", "a.c": `re_c l0="c" l1="" l2=""`, "b.cc": "unanchored", "b": "-"}},
		{"regex-kind", Config{Rules: []Rule{
			{Match: `a`, Regex: true, Name: "g", Kind: Gauge}, {Match: `(?P<all>.*)`, Regex: true, Name: "rest", Labels: label("${all}", "$0")},
		}}, map[string]string{"a": `rest l0="a" l1="a"`, "gauge:a": "g"}},
		{"templates", Config{Rules: []Rule{
			{Match: "a.*.*", Name: "x_$2_${1}", Labels: label("$1", "${2}x", "$1_x", "$3", "$0", "$", "a$1b$2", "$1.$2", "100%$1", "$.$1")},
		}}, map[string]string{
			"a.b.c": `x_{1} l0="b" l1="cx" l2="" l3="" l4="a.b.c" l5="$" l6="a" l7="b.c" l8="100%b" l9="$.b"`,
		}},
		{"partial", Config{Rules: []Rule{
			{Match: "api-*.count", Partial: true, Name: "api", Labels: label("$1")},
			{Match: "*-eu.*_ms", Partial: true, Name: "eu", Labels: label("$1", "$2")},
			{Match: "a*b*c", Partial: true, Name: "abc", Labels: label("$1", "$2")},
			{Match: "*.count", Name: "other", Labels: label("$1")},
		}}, map[string]string{
			"api-shop.count": `api l0="shop"`, "api-.count": `api l0=""`, "api.count": `other l0="api"`, "x-eu.y_ms": `eu l0="x" l1="y"`,
			"axbybzc": `abc l0="x" l1="ybz"`, "ac": "-", "abc": `abc l0="" l1=""`, "a.b.c": "-",
		}},
		{"partial-shared", Config{Rules: []Rule{
			{Match: "a*.*z.x", Partial: true, Name: "first"}, {Match: "a*.*z.y", Partial: true, Name: "second"}, {Match: "a*.b", Partial: true, Name: "third"},
		}}, map[string]string{"a.z.x": "first", "ab.cz.y": "second", "a1.b": "third", "a.b.x": "-", "a.z": "-"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compileRules(t, tt.cfg)
			for name, want := range tt.names {
				k := Counter
				for _, o := range []Kind{Observer, Gauge, Set} {
					if rest, ok := strings.CutPrefix(name, o.String()+":"); ok {
						k, name = o, rest
					}
				}
				if got := text(r, name, k); got != want {
					t.Errorf("%s %q: got %s, want %s", k, name, got, want)
				}
			}
		})
	}
}

func TestShadowed(t *testing.T) {
	tests := []struct {
		name  string
		rules []Rule
		most  bool
		want  map[int]int
	}{
		{"wider-glob-first", globs("a.*", "a.b", "*.b", "*.*", "x.y"), false, map[int]int{1: 0, 4: 3}},
		{"wider-glob-later", globs("a.b", "a.*"), false, nil},
		{"most-literal", globs("a.*", "a.b", "a.*"), true, map[int]int{2: 0}},
		{"kinds", []Rule{{Match: "a", Name: "x", Kind: Counter}, {Match: "a", Name: "x"}, {Match: "a", Name: "x", Kind: Gauge}}, false, map[int]int{2: 1}},
		{"regexes", []Rule{{Match: "a", Regex: true, Name: "x"}, {Match: "a", Regex: true, Name: "y", Kind: Gauge}, {Match: "b", Regex: true, Name: "z"}}, false, map[int]int{1: 0}},
		{"regex-kinds", []Rule{
			{Match: "a", Regex: true, Name: "x", Kind: Gauge}, {Match: "a", Regex: true, Name: "y"},
			{Match: "a", Regex: true, Name: "z", Kind: Gauge}, {Match: "a", Regex: true, Name: "z", Kind: Set},
			{Match: "a", Regex: true, Name: "z"},
		}, false, map[int]int{2: 0, 3: 1, 4: 1}},
		{"partial", []Rule{{Match: "a*", Partial: true, Name: "x"}, {Match: "ab", Name: "y"}, {Match: "ab*", Partial: true, Name: "z"}, {Match: "*", Name: "z"}, {Match: "c*d", Partial: true, Name: "w"}}, false, map[int]int{1: 0, 4: 3}},
		{"partial-differs", []Rule{
			{Match: "a*m*z", Partial: true, Name: "x"}, {Match: "bmz", Name: "no_start"}, {Match: "abz", Name: "no_middle"},
			{Match: "amb", Name: "no_end"}, {Match: "az", Name: "short"}, {Match: "abmcz", Name: "y"},
		}, false, map[int]int{5: 0}},
		{"partial-again", []Rule{{Match: "a*.x", Partial: true, Name: "x"}, {Match: "a*.y", Partial: true, Name: "y"}, {Match: "a*.x", Partial: true, Name: "z"}}, false, map[int]int{2: 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compileRules(t, Config{Rules: tt.rules, MostLiteral: tt.most})
			for i := range r.Len() {
				by, ok := r.Shadowed(i)
				want, wanted := tt.want[i]
				if ok != wanted || ok && by != want {
					t.Errorf("rule %d %q: shadowed by %d, %t; want %d, %t", i, r.Rule(i).Match, by, ok, want, wanted)
				}
			}
		})
	}
}

// TestCharactersOfSegments has the ends of each range of characters, and their neighbors,
// at the start of a glob, behind it, and in the middle of a segment.
func TestCharactersOfSegments(t *testing.T) {
	const letters, digits, signs = "azAZ_", "09", "-"
	for _, tt := range []struct{ form, ok, bad string }{
		{"%sb.c", letters, digits + signs + "`{@[/:.^ é"}, {"b.%sc", letters + digits, signs + "`{@[/:^ é"}, {"b%sc.d", letters + digits + signs + ".", "`{@[/:^ é"},
	} {
		for _, c := range tt.ok {
			if err := CheckGlob(fmt.Sprintf(tt.form, string(c)), false); err != nil {
				t.Error(err)
			}
		}
		for _, c := range tt.bad {
			if match := fmt.Sprintf(tt.form, string(c)); CheckGlob(match, false) == nil {
				t.Errorf("%q is accepted", match)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := map[string]Rule{
		`mapping: rule 1: name: is empty; a rule needs a name, even if its action is drop`:                                                               {Match: "a"},
		`mapping: rule 1: name: "a b" is not a metric name; allowed are letters, digits, underscores and references such as ${1}, and no digit in front`: {Match: "a", Name: "a b"},
		`mapping: rule 1: match: is empty`: {Name: "a"},
		`mapping: rule 1: match: "a.b*" is not a glob: segment "b*" has * beside other characters; * is a whole segment unless x-statsd-admin: {partial_globs: true} is set; or use match_type: regex`: {Match: "a.b*", Name: "a"},
		`mapping: rule 1: match: "1.b" is not a glob: segment "1" begins with a digit, which the first segment cannot; use match_type: regex`:                                                          {Match: "1.b", Name: "a"},
		`mapping: rule 1: match: "a.-b" is not a glob: segment "-b" begins with a hyphen; use match_type: regex`:                                                                                       {Match: "a.-b", Name: "a"},
		`mapping: rule 1: match: "a..b" is not a glob: segment "" is empty`:                                                                                                                            {Match: "a..b", Name: "a"},
		`mapping: rule 1: match: "a**" is not a glob: segment "a**" has two * side by side`:                                                                                                            {Match: "a**", Name: "a", Partial: true},
		`mapping: rule 1: match: "a.b:c" is not a glob: segment "b:c" has the character ':'; allowed are letters, digits, underscores and hyphens; use match_type: regex for others`:                   {Match: "a.b:c", Name: "a"},
		"mapping: rule 1: match: error parsing regexp: missing closing ): `(`":                                                                                                                         {Match: "(", Regex: true, Name: "a"},
		`mapping: rule 1: labels: "1a" is not a label name; allowed are letters, digits and underscores, and no digit in front`:                                                                        {Match: "a", Name: "a", Labels: []Label{{"1a", "x"}}},
		"mapping: rule 1: scale: NaN is not a finite number":                                                                                                                                           {Match: "a", Name: "a", Scale: math.NaN()},
		"mapping: rule 1: scale: -Inf is not a finite number":                                                                                                                                          {Match: "a", Name: "a", Scale: math.Inf(-1)},
	}
	for want, rule := range tests {
		if _, err := New(Config{Rules: []Rule{rule}}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	want := "mapping: 65533 rules are more than the limit of 65532"
	if _, err := New(Config{Rules: make([]Rule, MaxRules+1)}); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestScaled(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want float64
		is   bool
	}{{Rule{}, 5, false}, {Rule{Scale: 0.5}, 2.5, true}, {Rule{Zero: true}, 0, true}, {Rule{Scale: 1}, 5, false}} {
		if got := tt.rule.Scaled(5); got != tt.want || tt.rule.Scales() != tt.is {
			t.Errorf("%+v: got %v, %t, want %v, %t", tt.rule, got, tt.rule.Scales(), tt.want, tt.is)
		}
	}
}
