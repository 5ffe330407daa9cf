package admin

import (
	"strconv"
	"strings"
	"testing"
)

var quotedSeeds = map[string]string{
	"": `""`, "plain text": "plain text", `rt{a="b"}`: `rt{a="b"}`, `"a"`: `"\"a\""`, " a": `" a"`, "a ": `"a "`, "a\nb": `"a\nb"`,
	"a\x1b[1m": `"a\x1b[1m"`, "\u202eabc": `"\u202eabc"`, "a\xff": `"a\xff"`, "é": "é", "\ufffd": `"�"`, "a\u00a0": `"a\u00a0"`, `a\n`: `a\n`,
}

func TestQuoted(t *testing.T) {
	for in, want := range quotedSeeds {
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzQuoted checks that any text becomes one line of printable text that can be
// unquoted.
func FuzzQuoted(f *testing.F) {
	for in := range quotedSeeds {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := quoted(s)
		if strings.ContainsFunc(out, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("quoted(%q) = %q is not printable", s, out)
		}
		back := out
		if strings.HasPrefix(out, `"`) {
			var err error
			if back, err = strconv.Unquote(out); err != nil {
				t.Fatalf("quoted(%q) = %q: %v", s, out, err)
			}
		}
		if back != s {
			t.Errorf("quoted(%q) reads back as %q", s, back)
		}
	})
}
