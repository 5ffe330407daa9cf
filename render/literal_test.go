package render

import (
	"fmt"
	"testing"

	"github.com/grafana/regexp"
	"github.com/grafana/regexp/syntax"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestLiteralPatterns: the patterns that need no engine, and that these match like the engine.
func TestLiteralPatterns(t *testing.T) {
	names := []string{"", "a", "ab", "abc", "xab", "abx", "xabx", "a.b", "A.B", "AB", "a\nb", "ab\n", "�", "\xff"}
	for pattern, literal := range map[string]bool{
		"": true, "ab": true, "^ab": true, "ab$": true, "^ab$": true, "^": true, "$": true, "^$": true, `a\.b`: true,
		".*ab": true, "ab.*": true, ".*ab.*": true, ".*": false, "a.b": false, "a|b": false, "(?i)ab": false, "(?m)^ab": false,
		"(?m)ab$": false, `ab\z`: false, `\Aab`: true, "[a]b": true, "a*": false, "(ab)": false, "�": false, "^.*ab": false,
		"(?s).*ab(?s).*": true, ".*.*ab": true, "a+": false, `\bab`: false, "a(?:)b": true,
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		m := literalMatch(trimDotStar(tree).Simplify())
		if (m != nil) != literal {
			t.Errorf("%q needs no engine: %t, want %t", pattern, m != nil, literal)
		}
		f, err := NewFilter(RE2, pattern, FilterLimits{})
		if err != nil {
			t.Fatal(err)
		}
		re := regexp.MustCompile(pattern)
		for _, name := range names {
			want := re.MatchString(name)
			if m != nil {
				if got, err := m([]byte(name)); got != want || err != nil {
					t.Errorf("%q matches %q: %t, %v; want %t", pattern, name, got, err, want)
				}
			}
			if got, err := f.match([]byte(name)); got != want || err != nil {
				t.Errorf("the filter %q matches %q: %t, %v; want %t", pattern, name, got, err, want)
			}
		}
	}
}

// TestBytesOfFilters grow with the pattern, the engine's needs and the names that were tested.
func TestBytesOfFilters(t *testing.T) {
	size := func(e Engine, pattern string) int {
		f, err := NewFilter(e, pattern, FilterLimits{})
		if err != nil {
			t.Fatal(err)
		}
		return f.Bytes()
	}
	small := size(RE2, "a")
	if small < filterBytes || small > filterBytes+10*instructionBytes {
		t.Errorf("%d bytes for one literal", small)
	}
	if got := size(RE2, "(a|b.){50}") - small; got < 150*instructionBytes || got > 400*instructionBytes {
		t.Errorf("%d bytes more for a long program", got)
	}
	if got := size(RE2, `\pL`) - small; got < 100*classBytes || got > 2000*classBytes {
		t.Errorf("%d bytes more for a class", got)
	}
	if one, two := size(ECMAScript, "ab"), size(ECMAScript, "abcd"); two-one != 2*backtrackBytes {
		t.Errorf("%d bytes more for two bytes of a pattern", two-one)
	}
	st := store.New(store.Options{})
	const n = 2000
	for i := range n {
		st.Root().Counter(fmt.Sprint("c", i))
	}
	f, err := NewFilter(RE2, "1", FilterLimits{})
	if err != nil {
		t.Fatal(err)
	}
	before := f.Bytes()
	v := st.View()
	defer v.Close()
	for c := v.ByNameIn(store.Scalars, &f.found, func(c *store.Cursor) (bool, error) { return f.match(c.AppendName(nil)) }); c.Next(); {
	}
	if got := f.Bytes() - before; got < 4*n || got > 12*n {
		t.Errorf("%d bytes more for the results of %d names", got, n)
	}
}
