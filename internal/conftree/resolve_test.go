package conftree

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// flat writes a tree on one line.
func flat(n *yaml.Node) string {
	var b strings.Builder
	switch n.Kind {
	case yaml.MappingNode:
		for key, value := range Pairs(n) {
			fmt.Fprintf(&b, "%s:%s ", key.Value, flat(value))
		}
		return "{" + strings.TrimSpace(b.String()) + "}"
	case yaml.SequenceNode:
		for _, child := range n.Content {
			b.WriteString(flat(child) + " ")
		}
		return "[" + strings.TrimSpace(b.String()) + "]"
	case yaml.ScalarNode:
		return n.Value
	}
	return fmt.Sprint("kind ", n.Kind)
}

func TestResolve(t *testing.T) {
	for text, want := range map[string]string{
		"a: &x {b: 1}\nc: *x":                         "{a:{b:1} c:{b:1}}",
		"a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}":       "{a:{b:1 c:2} d:{c:3 b:1}}",
		"a: &x {b: 1}\nd: {<<: [*x, {b: 2, c: 3}]}":   "{a:{b:1} d:{b:1 c:3}}",
		"a: &x {b: 1}\nc: &y {<<: *x, d: 2}\ne: [*y]": "{a:{b:1} c:{d:2 b:1} e:[{d:2 b:1}]}",
		"? &k a\n: 1\nb: {*k : 2}":                    "{a:1 b:{a:2}}",
		"a: '<<'":                                     "{a:<<}",
	} {
		root, errs := Parse([]byte(text), YAML)
		if len(errs) > 0 || flat(root) != want {
			t.Errorf("%q: %s, %v, want %s", text, flat(root), errs, want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	const secret = "admin: {tokens: [{%s}]}"
	for text, want := range map[string]string{
		"a: {b: 1, b: 2}":               `1:11 a.b: duplicate key "b", first used in line 1`,
		"a: [{b: 1}, {? [c] : 1}]":      "1:16 a[1]: a key must be text, not a list or a mapping",
		"a: &x {b: [*x]}":               `1:12 a.b[0]: alias "x" contains itself`,
		"a: &x {<<: *x}":                `1:12 a.<<: alias "x" contains itself|1:12 a: a merge key (<<) needs a mapping or a list of mappings`,
		"a: !mine b":                    `1:4 a: tag "!mine" is not supported; values have no tags here`,
		"{\"a\": 1, \"a\": 2}":          `1:10 a: duplicate key "a", first used in line 1`,
		fmt.Sprintf(secret, "h: !h a"):  "1:22 admin.tokens[0].[redacted]: tag [redacted] is not supported; values have no tags here",
		fmt.Sprintf(secret, "h: , h: "): "1:24 admin.tokens[0].[redacted]: duplicate key [redacted], first used in line 1",
	} {
		_, errs := Parse([]byte(text), Detect)
		var got []string
		for _, e := range errs {
			got = append(got, fmt.Sprintf("%d:%d %s: %s", e.Line, e.Column, e.Field, e.Message))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, strings.Join(got, "|"), want)
		}
	}
}

// TestResolveIsBounded uses texts that aliases and merge keys make large or deep.
func TestResolveIsBounded(t *testing.T) {
	bomb := "x0: &a0 {k: 1}\n"
	deep := "x0: &a0 [1]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("x%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
		deep += fmt.Sprintf("x%d: &a%d [[[[*a%d]]]]\n", i+1, i+1, i)
	}
	merges := "a: &a {" + strings.Repeat("k%d: 1, ", 1000) + "}\nb: [" + strings.Repeat("{<<: *a}, ", 1000) + "]\n"
	for i := range 1000 {
		merges = strings.Replace(merges, "%d", fmt.Sprint(i), 1)
	}
	for text, want := range map[string]string{bomb: "values once aliases are written out", merges: "values once aliases are written out", deep: "nested deeper than 100 levels"} {
		root, errs := Parse([]byte(text), YAML)
		if root != nil || len(errs) != 1 || !strings.Contains(errs[0].Message, want) {
			t.Errorf("%.20q: %d errors, %v", text, len(errs), errs)
		}
	}
}

// TestResolveDoesNotChangeItsArgument resolves a tree twice.
func TestResolveDoesNotChangeItsArgument(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Load([]byte("a: &x {b: 1}\nc: {<<: *x}\nd: *x\ne: !t [1]\n"), &doc); err != nil {
		t.Fatal(err)
	}
	root := doc.Content[0]
	first, errs := Resolve(root, MaxBytes)
	if len(errs) != 1 || flat(first) != "{a:{b:1} c:{b:1} d:{b:1} e:[1]}" {
		t.Errorf("%s, %v", flat(first), errs)
	}
	if root.Content[5].Kind != yaml.AliasNode || root.Content[3].Content[0].Value != "<<" || root.Content[7].Tag != "!t" {
		t.Error("the argument was changed")
	}
	if again, errs := Resolve(first, MaxBytes); again != first || len(errs) > 0 {
		t.Errorf("a resolved tree became another one: %v", errs)
	}
}

func TestShow(t *testing.T) {
	long := strings.Repeat("a", 79) + "é"
	for _, tt := range []struct{ got, want string }{
		{Quote("a\nb", false), `"a\nb"`}, {Quote("a", true), "[redacted]"}, {Quote("eyJ.a.b", false), "[redacted]"},
		{Quote(long, false), `"` + strings.Repeat("a", 79) + `"…`},
		{Key("a", false), "a"}, {Key("a\nb", false), `"a\nb"`}, {Key("a", true), "[redacted]"}, {Key("eyJ.a.b", false), "[redacted]"},
		{Key("a b_token:c d", false), "a b_token:[redacted]"}, {Key("a=b:Cookies=c", false), "a=b:Cookies=[redacted]"}, {Key("a token", false), "a token"}, {Key("a:b", false), "a:b"},
		{SnakeCase("connectTimeout"), "connect_timeout"}, {SnakeCase("a_b"), "a_b"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

// FuzzParse checks that whatever is accepted has neither aliases nor repeated keys and
// is within the limits.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: &x {b: 1}\nc: *x", "{\"a\": [1, {}]}", "a: {<<: [{b: 1}]}", "&a [*a]", "? [a]\n: b", "!t a"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, errs := Parse(text, Detect)
		if len(errs) > 0 {
			return
		}
		nodes := 0
		var check func(n *yaml.Node, depth int)
		check = func(n *yaml.Node, depth int) {
			if nodes++; nodes > nodeBudget(len(text)) || depth > MaxDepth || n.Kind == yaml.AliasNode {
				t.Fatalf("%q: %d values, depth %d, kind %d", text, nodes, depth, n.Kind)
			}
			seen := make(map[string]bool)
			for i, child := range n.Content {
				check(child, depth+1)
				if n.Kind == yaml.MappingNode && i%2 == 0 {
					if seen[child.Value] || child.Kind != yaml.ScalarNode || child.ShortTag() == "!!merge" {
						t.Fatalf("%q: key %q", text, child.Value)
					}
					seen[child.Value] = true
				}
			}
		}
		check(root, 1)
	})
}

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "plain": "plain", "snake_case": "snake_case", "lbPolicy": "lb_policy", "aZ": "a_z", "zA": "z_a", "a1B": "a1_b", "Name": "_name", "a[@": "a[@", "é": "é",
	} {
		if got := SnakeCase(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
