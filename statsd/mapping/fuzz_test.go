package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// naive finds a rule by trying all of them.
func naive(c *Config, name string, k Kind) (rule int, captures []string) {
	type found struct {
		rule     int
		captures []string
		specific string
	}
	var all []found
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Kind != AnyKind && r.Kind != k {
			continue
		}
		if m := globRegexp(r.Match).FindStringSubmatch(name); m != nil {
			all = append(all, found{i, m[1:], specificity(r.Match)})
		}
	}
	if len(all) == 0 {
		return -1, nil
	}
	if c.MostLiteral {
		slices.SortStableFunc(all, func(a, b found) int { return strings.Compare(a.specific, b.specific) })
	}
	return all[0].rule, all[0].captures
}

func globRegexp(glob string) *regexp.Regexp {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(glob), `\*`, `([^.]*?)`)
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}

// specificity sorts literal segments before "*", from left to right.
func specificity(glob string) string {
	var b strings.Builder
	for s := range strings.SplitSeq(glob, ".") {
		if s == "*" {
			b.WriteByte('2')
		} else {
			b.WriteByte('1')
		}
	}
	return b.String()
}

// FuzzFind compares the trie with a search through all rules. The rules are the
// lines of a text of globs, with the first letter of a kind and a space in front
// of some.
func FuzzFind(f *testing.F) {
	f.Add("a.*.c\na.b.*\na.b.c", "a.b.c", byte(1), false)
	f.Add("a.b.*.x\na.*.*.y\n*.b.c.z", "a.b.c.y", byte(2), true)
	f.Add("g a.*\nc *.b\no a.b\na", "a.b", byte(3), false)
	f.Add("a.b.c\na.b\na.*\na.*", "a.b", byte(4), true)
	f.Add("*.*.*\na.*.*\n*.b.*\na.b.*\n*.*.c", "a..c", byte(1), true)
	f.Add("api-*.x\n*-eu.x\na*i*u.x\n*.x\napi-eu.*", "api-eu.x", byte(1), false)
	f.Fuzz(func(t *testing.T, list, name string, kind byte, most bool) {
		cfg := Config{MostLiteral: most}
		for i, glob := range strings.Split(list, "\n") {
			k := AnyKind
			if letter, rest, ok := strings.Cut(glob, " "); ok {
				k, glob = Kind(strings.Index("_cgo", letter)), rest
				if len(letter) != 1 || k > Observer {
					return
				}
			}
			// How literal partial patterns are is not defined as an order.
			if CheckGlob(glob, !most) != nil || i > 50 {
				return
			}
			cfg.Rules = append(cfg.Rules, Rule{Match: glob, Partial: true, Name: fmt.Sprint("r", i), Kind: k})
		}
		k := Kind(kind%4) + 1
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		rule, captures := r.globs.find(name, k)
		wantRule, want := naive(&cfg, name, k)
		if rule != wantRule || !slices.Equal(captures, want) {
			t.Errorf("%q in %q: got rule %d %q, want %d %q", name, list, rule, captures, wantRule, want)
		}
		if by, ok := -1, rule >= 0; ok {
			if by, ok = r.Shadowed(rule); ok {
				t.Errorf("%q in %q: rule %d applies, but is called shadowed by %d", name, list, rule, by)
			}
		}
	})
}

// FuzzTemplate compares templates with a regular expression.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"$1_x", "${1}_x", "a$2b${3}", "$$1", "$", "${", "${}1", "$0-$1", "$01", "${1", "$1}", "é$1", "$a$1"} {
		f.Add(s)
	}
	syntax := regexp.MustCompile(`\$\{?([a-zA-Z0-9_\$]+)\}?`)
	f.Fuzz(func(t *testing.T, text string) {
		values := map[string]string{"0": "<s>", "1": "<a>", "2": "<b>"}
		want := syntax.ReplaceAllStringFunc(text, func(ref string) string {
			name := strings.TrimLeft(syntax.FindStringSubmatch(ref)[1], "0")
			if name == "" {
				name = "0"
			}
			return values[name]
		})
		tmpl, _ := newTemplate(text, 2)
		if got := tmpl.expand("<s>", []string{"<a>", "<b>"}); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}
