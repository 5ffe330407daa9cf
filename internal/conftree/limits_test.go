package conftree

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestDepthAtTheLimit nests lists up to the limit and one level deeper, written out,
// behind an alias, and in JSON.
func TestDepthAtTheLimit(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, tt := range map[string]struct {
		format Format
		text   func(depth int) string
	}{
		"yaml": {YAML, nested},
		"json": {JSON, nested},
		"alias": {YAML, func(depth int) string {
			return "a: &x " + nested(50) + "\nb: " + strings.Repeat("[", depth-51) + "*x" + strings.Repeat("]", depth-51)
		}},
	} {
		if _, errs := Parse([]byte(tt.text(MaxDepth)), tt.format); len(errs) > 0 {
			t.Errorf("%s: %d levels: %v", name, MaxDepth, errs)
		}
		root, errs := Parse([]byte(tt.text(MaxDepth+1)), tt.format)
		if root != nil || len(errs) != 1 || errs[0].Message != "nested deeper than 100 levels" {
			t.Errorf("%s: %d levels: %v", name, MaxDepth+1, errs)
		}
	}
}

// TestValuesAtTheLimit has a text with 10 values of its own, 6 behind each alias, and some
// more. Texts of up to 100 bytes may stand for 1,000 values.
func TestValuesAtTheLimit(t *testing.T) {
	for extra, ok := range map[int]bool{0: true, 1: false} {
		text := "a: &x [1, 2, 3, 4, 5]\nb: [" + strings.Repeat("*x, ", 160) + strings.Repeat("0, ", 30+extra) + "]\n"
		root, errs := Resolve(mustLoad(t, []byte(text)), 100)
		if (len(errs) == 0) != ok || (root != nil) != ok {
			t.Errorf("%d values: %v", minNodeBudget+extra, errs)
		}
		if _, errs := Resolve(mustLoad(t, []byte(text)), 101); len(errs) > 0 {
			t.Errorf("%d values in a text of 101 bytes: %v", minNodeBudget+extra, errs)
		}
	}
}

func mustLoad(t *testing.T, data []byte) *yaml.Node {
	t.Helper()
	root, err := parseYAML(data)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestMergedKeysAtTheLimit copies 1,000 keys by merge keys, and one more.
func TestMergedKeysAtTheLimit(t *testing.T) {
	for copies, ok := range map[int]bool{200: true, 201: false} {
		text := "a: &x {k: 1, l: 2, m: 3, n: 4, o: 5}\nb: [" + strings.Repeat("{<<: *x}, ", copies) + "]\n"
		r := resolver{anchors: make(map[*yaml.Node]resolved), merges: minNodeBudget}
		r.resolve(mustLoad(t, []byte(text)), 1)
		if (r.merges >= 0) != ok {
			t.Errorf("%d keys copied: %d left", 5*copies, r.merges)
		}
	}
	text := "a: &x {k: 1, l: 2, m: 3, n: 4, o: 5}\nb: [" + strings.Repeat("{<<: *x}, ", 300) + "]\n"
	for size, ok := range map[int]bool{mergeBytes*1500 - 1: false, mergeBytes * 1500: true} {
		if _, errs := Resolve(mustLoad(t, []byte(text)), size); (len(errs) == 0) != ok {
			t.Errorf("1500 keys copied in a text of %d bytes: %v", size, errs)
		}
	}
}

func TestErrorsAtTheLimit(t *testing.T) {
	for _, n := range []int{maxErrors - 1, maxErrors, maxErrors + 1} {
		_, errs := Parse([]byte("["+strings.Repeat("!x a, ", n)+"]"), YAML)
		if want := min(n, maxErrors); len(errs) != want {
			t.Errorf("%d of %d errors are reported, want %d", len(errs), n, want)
		}
	}
}

// TestBytesAtTheLimit parses texts that are wrong from the first byte on, so that their
// size is all that takes time.
func TestBytesAtTheLimit(t *testing.T) {
	text := make([]byte, MaxBytes+1)
	text[0] = '?'
	if _, errs := Parse(text[:MaxBytes], JSON); len(errs) != 1 || strings.Contains(errs[0].Message, "limit") {
		t.Errorf("%d bytes: %v", MaxBytes, errs)
	}
	root, errs := Parse(text, JSON)
	if root != nil || len(errs) != 1 || errs[0].Message != "67108865 bytes are more than the limit of 67108864" || errs[0].In("f").String() != "f" {
		t.Errorf("%d bytes: %v", MaxBytes+1, errs)
	}
}

// TestFormatsAgree parses each kind of value as JSON and as YAML.
func TestFormatsAgree(t *testing.T) {
	const text = `{"a": true, "b": false, "c": null, "d": -15, "e": 1.5, "f": 1e3, "g": "x", "h": [], "i": {}}`
	show := func(f Format) string {
		root, errs := Parse([]byte(text), f)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var b strings.Builder
		for key, value := range Pairs(root) {
			fmt.Fprintf(&b, "%s %s %s null=%v\n", key.Value, value.ShortTag(), Show(value, false), IsNull(value))
		}
		return b.String()
	}
	const want = `a !!bool "true" null=false
b !!bool "false" null=false
c !!null null null=true
d !!int "-15" null=false
e !!float "1.5" null=false
f !!float "1e3" null=false
g !!str "x" null=false
h !!seq a list null=false
i !!map a mapping null=false
`
	for _, f := range []Format{JSON, YAML, Detect} {
		if got := show(f); got != want {
			t.Errorf("format %d:\n%s\nwant\n%s", f, got, want)
		}
	}
}

// TestDetect uses texts that are valid in one format, or differ between them.
func TestDetect(t *testing.T) {
	for text, want := range map[string]string{
		" \t\r\n{\"a\": \"\\ud83d\\ude00\"}": "{a:😀}", // no escape in YAML
		"{a: 1}":                             "{a:1}", // no JSON
		"":                                   "",
		"{\"a\": 1,}":                        "{a:1}", // no JSON
	} {
		root, errs := Parse([]byte(text), Detect)
		if want == "" {
			if len(errs) != 1 || errs[0].Message != NoDocument {
				t.Errorf("%q: %v", text, errs)
			}
			continue
		}
		if len(errs) > 0 || flat(root) != want {
			t.Errorf("%q: %v, %v, want %s", text, root, errs, want)
		}
	}
}

// TestDetectNeedsBraces has a JSON escape in a list, which is YAML.
func TestDetectNeedsBraces(t *testing.T) {
	if _, errs := Parse([]byte("[\"\\ud83d\\ude00\"]"), Detect); len(errs) != 1 || !strings.Contains(errs[0].Message, "not valid YAML") {
		t.Errorf("%v", errs)
	}
}

// TestNothingBelowTheDepthLimit has a wrong tag that is too deep to be looked at.
func TestNothingBelowTheDepthLimit(t *testing.T) {
	_, errs := Parse([]byte(strings.Repeat("[", MaxDepth+1)+"!x a"+strings.Repeat("]", MaxDepth+1)), YAML)
	if len(errs) != 1 || errs[0].Message != "nested deeper than 100 levels" {
		t.Errorf("%v", errs)
	}
}

// TestShownAtTheLimit shortens texts longer than 80 bytes.
func TestShownAtTheLimit(t *testing.T) {
	long := strings.Repeat("a", maxShown)
	if got := Quote(long, false); got != `"`+long+`"` {
		t.Errorf("%d bytes: %s", maxShown, got)
	}
	if got := Quote(long+"b", false); got != `"`+long+`"…` {
		t.Errorf("%d bytes: %s", maxShown+1, got)
	}
}

// TestUnknownAnchorIsNotShown has a name that could be the rest of a secret.
func TestUnknownAnchorIsNotShown(t *testing.T) {
	_, errs := Parse([]byte("admin: {token: *hush}\n"), YAML)
	if len(errs) != 1 || strings.Contains(errs[0].Message, "hush") || !strings.Contains(errs[0].Message, "unknown anchor") {
		t.Errorf("%v", errs)
	}
}

// TestSecretsOfAnErrorEndWithTheirField has a wrong tag behind a secret field.
func TestSecretsOfAnErrorEndWithTheirField(t *testing.T) {
	_, errs := Parse([]byte("a: {token: !hush b, c: !shown d}"), YAML)
	if len(errs) != 2 || strings.Contains(errs[0].Message, "hush") || !strings.Contains(errs[1].Message, `"!shown"`) || errs[1].Field != "a.c" {
		t.Errorf("%v", errs)
	}
}

// TestMergesBesideOtherErrors has the key that is wrong, merged or repeated first, with
// others behind it.
func TestMergesBesideOtherErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{<<: {a: 1, b: 2}, b: 3, c: 4}":           "{b:3 c:4 a:1}",
		"{<<: [1, {a: 1}], b: 2}":                  "{b:2 a:1}",
		"{? [x] : 1, a: 1, b: 2}":                  "{a:1 b:2}",
		"{a: 1, a: 2, b: 3, <<: {a: 4, d: 5}}":     "{a:1 b:3 d:5}",
		"{<<: {a: 1}, x: 0, <<: {a: 2, b: 2}}":     "{x:0 a:1 b:2}",
		"[{<<: {a: 1}}, {<<: {a: 2}, a: 3}, {}]":   "[{a:1} {a:3} {}]",
		"[!t 1, 2, [!t 3], {a: !t 4, b: 5}, !t 6]": "[1 2 [3] {a:4 b:5} 6]",
	} {
		root, _ := Parse([]byte(text), YAML)
		if root == nil || flat(root) != want {
			t.Errorf("%s: %v, want %s", text, root, want)
		}
	}
}
