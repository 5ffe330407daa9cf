package tags

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/regexp"
)

// oracle is a default rule in its plain form: a regular expression for every
// rule, token patterns included.
type oracle struct {
	rule rule
	re   *regexp.Regexp
}

func oracles() []oracle {
	rules := defaultRules(DefaultProduct)
	var all []oracle
	for i, row := range defaultTable() {
		expr := row.regex
		if row.tokens != "" {
			expr = patternExpression(row.tokens)
		}
		all = append(all, oracle{rules[i], regexp.MustCompile(expr)})
	}
	return all
}

// patternExpression says what a token pattern with a value that is not its
// last token means, as a regular expression. Names are seen with a dot added
// at the end, so that each token is followed by one.
func patternExpression(tokens string) string {
	var b strings.Builder
	b.WriteString("^")
	parts := strings.Split(tokens, ".")
	for i, part := range parts {
		switch {
		case part == "*":
			b.WriteString(`[^.]*\.`)
		case part == "$":
			b.WriteString(`(([^.]+)\.)`)
		case part == "**" && i == len(parts)-1:
			b.WriteString(`(?:[^.]*\.)+`)
		case part == "**":
			b.WriteString(`(?:[^.]*\.)*`)
		default:
			b.WriteString(regexp.QuoteMeta(part) + `\.`)
		}
	}
	return b.String() + "$"
}

// check compares one rule with its oracle on name.
func (o oracle) check(t *testing.T, name string) {
	t.Helper()
	var bounds [boundsOnStack]int32
	n := tokenized{name, appendBounds(bounds[:0], name)}
	got := o.rule.find(name, n)
	text := name
	if o.rule.kind == tokenSearch {
		text += "."
	}
	if want := findExpression(o.re, text); got != want {
		t.Errorf("%s on %q: found %v, expression %s finds %v", o.rule.tag, name, got, o.re, want)
	}
	if got != (found{}) && !o.rule.guard().pass(n) {
		t.Errorf("%s matches %q, but its guard %+v does not let it pass", o.rule.tag, name, o.rule.guard())
	}
	if first, _, dotted := strings.Cut(name, "."); got != (found{}) {
		if o.rule.first != "" && (o.rule.first != first || !dotted) {
			t.Errorf("%s matches %q, but is tied to names that begin with %q", o.rule.tag, name, o.rule.first)
		}
		if !o.rule.possible(first) {
			t.Errorf("%s matches %q, but is listed for %q only", o.rule.tag, name, o.rule.firsts)
		}
	}
}

// slowExtract is the extraction said in the plainest way: all rules in order,
// each byte of the name marked when it is removed.
func slowExtract(rules []oracle, name string) (string, []Tag) {
	first, _, dotted := strings.Cut(name, ".")
	var tags []Tag
	removed := make([]bool, len(name))
	set := map[string]bool{}
	for _, tied := range []bool{false, true} {
		for _, o := range rules {
			if (o.rule.first != "") != tied || tied && (!dotted || o.rule.first != first) || set[o.rule.tag] {
				continue
			}
			text := name
			if o.rule.kind == tokenSearch {
				text += "."
			}
			m := findExpression(o.re, text)
			if m == (found{}) || name[m.value.start:m.value.end] == o.rule.forbidden {
				continue
			}
			set[o.rule.tag] = true
			tags = append(tags, Tag{o.rule.tag, name[m.value.start:m.value.end]})
			for i := m.cut.start; i < m.cut.end; i++ {
				removed[i] = true
			}
		}
	}
	var base strings.Builder
	for i := range removed {
		if !removed[i] {
			base.WriteByte(name[i])
		}
	}
	return base.String(), tags
}

// vocabulary holds what the names of the default table are made of, and what
// nearly looks like it.
func vocabulary() []string {
	words := []string{
		"", "a", "b-c", "x/y", "10", "192", "1_80", "254_9", "1_", "1_8x", "1234", "[fe80__1]_80", "[fe80__1]", "[]_1", "admin", "policy", "p q", "line\nbreak",
		"\xff", "ä", "TLSv1", "TLSv12", "3", "v2", "v22", "vx", "worker_3", "worker_", "worker_3x", "__partition_id=0f3a9zz", "__partition_id=0f3a9z",
		"upstream_rq_404", "upstream_rq_4xx", "_rq_200", "_rq_2xx", "rq_200", "_rq_20x", "_rq_x04", "_rq_xx", "dynamodb\nx", "dynamodbä", "dynamodbx", "dynamodboperation",
		"ssl", "ciphers", "curves", "AES128-SHA", "P-256", "bad cipher", "total",
	}
	for _, row := range defaultTable() {
		words = append(words, row.first)
		words = append(words, row.firsts...)
		for _, w := range strings.Split(row.tokens, ".") {
			if !strings.ContainsAny(w, "*$") {
				words = append(words, w)
			}
		}
		words = append(words, regexp.MustCompile(`[a-z]\w{2,}`).FindAllString(row.regex, -1)...)
	}
	return words
}

// randomName makes a name of the vocabulary, often by changing an example, so
// that long patterns are met too.
func randomName(r *rand.Rand, words []string) string {
	var tokens []string
	if r.IntN(3) > 0 {
		tokens = strings.Split(defaultExtractions[r.IntN(len(defaultExtractions))].name, ".")
		for range r.IntN(3) {
			i := r.IntN(len(tokens))
			word := words[r.IntN(len(words))]
			switch r.IntN(3) {
			case 0:
				tokens[i] = word
			case 1:
				tokens = append(tokens[:i], append([]string{word}, tokens[i:]...)...)
			default:
				tokens = append(tokens[:i], tokens[i+1:]...)
			}
			if len(tokens) == 0 {
				break
			}
		}
	} else {
		for range 1 + r.IntN(9) {
			tokens = append(tokens, words[r.IntN(len(words))])
		}
	}
	return strings.Join(tokens, ".")
}

func TestHandWrittenRulesEqualTheirExpressions(t *testing.T) {
	all, words := oracles(), vocabulary()
	e := mustNew(t, Config{UseDefaults: true})
	r := rand.New(rand.NewPCG(1, 2))
	names := 30_000
	if testing.Short() {
		names = 3_000
	}
	matched := map[string]int{}
	for range names {
		name := randomName(r, words)
		for _, o := range all {
			o.check(t, name)
		}
		base, tags := e.Extract(name, nil)
		wantBase, wantTags := slowExtract(all, name)
		if base != wantBase || render(tags, "") != render(wantTags, "") {
			t.Errorf("Extract(%q) = %q, %v; want %q, %v", name, base, tags, wantBase, wantTags)
		}
		if t.Failed() {
			return
		}
		for _, tag := range tags {
			matched[tag.Name]++
		}
	}
	for _, o := range all {
		if matched[o.rule.tag] == 0 {
			t.Errorf("no random name has tag %s: the names do not test its rule", o.rule.tag)
		}
	}
}

// TestNeighborsOfExamples changes each token of each example: names that differ in one
// place from a name with tags are where a rule goes wrong.
func TestNeighborsOfExamples(t *testing.T) {
	all := oracles()
	e := mustNew(t, Config{UseDefaults: true})
	for _, tt := range defaultExtractions {
		tokens := strings.Split(tt.name, ".")
		for i, token := range tokens {
			for _, other := range [][]string{nil, {""}, {"x"}, {"7"}, {"a\nb"}, {"é"}, {token, token}, {token + "x"}, {token[:len(token)/2]}, {"_" + token}} {
				name := strings.Join(slices.Concat(tokens[:i], other, tokens[i+1:]), ".")
				for _, o := range all {
					o.check(t, name)
				}
				base, tags := e.Extract(name, nil)
				if wantBase, wantTags := slowExtract(all, name); base != wantBase || render(tags, "") != render(wantTags, "") {
					t.Errorf("Extract(%q) = %q, %v; want %q, %v", name, base, tags, wantBase, wantTags)
				}
			}
		}
	}
}

// FuzzRules checks for any name that each default rule finds what its
// expression finds, and that the whole extraction equals the plain one.
func FuzzRules(f *testing.F) {
	for _, tt := range defaultExtractions {
		f.Add(tt.name)
	}
	f.Add("listener.a\nb.http.c.d")
	f.Add("http.a.dynamodb\xff.x")
	f.Add(strings.Repeat("a.", 300) + "_rq_404")
	all := oracles()
	e := mustNew(f, Config{UseDefaults: true})
	f.Fuzz(func(t *testing.T, name string) {
		for _, o := range all {
			o.check(t, name)
		}
		base, tags := e.Extract(name, nil)
		wantBase, wantTags := slowExtract(all, name)
		if base != wantBase || render(tags, "") != render(wantTags, "") {
			t.Errorf("Extract(%q) = %q, %v; want %q, %v", name, base, tags, wantBase, wantTags)
		}
		buf, again := e.ExtractInto(name, nil, nil)
		if string(buf) != base || render(again, "") != render(tags, "") {
			t.Errorf("ExtractInto(%q) = %q, %v; Extract gives %q, %v", name, buf, again, base, tags)
		}
	})
}
