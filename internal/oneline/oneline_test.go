package oneline

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		"größe \"a\\b\" <&> 日本":    "größe \"a\\b\" <&> 日本",
		"a\nb: 1\r\n":              "a_b: 1__",
		"\x00\x1b[31m\x7f":         "__[31m_",
		"\u0085\u009b2J":           "__2J",
		"a\u2028b: 1\u2029c\u2027": "a_b: 1_c\u2027",
		"cut \xe6\x97, \xff\ufffd": "cut __, _\ufffd",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzClean checks that Clean returns one line of valid UTF-8, changes no such
// line and is idempotent.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\nb", "\xff\ufffd\u0085", "日本\xe6\x97"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		fit := func(s string) bool {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) && !strings.ContainsAny(s, "\u2028\u2029")
		}
		if !fit(got) || Clean(got) != got || fit(text) && got != text {
			t.Errorf("Clean(%q) = %q", text, got)
		}
	})
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", `"a" 'b'`: `"a" 'b'`, "größe 漢": "größe 漢", `a\b`: `a\\b`,
		"a\n\x1b[2J\x7f": `a\n\x1b[2J\x7f`, "a\u202eb\u2028": `a\u202eb\u2028`, "\xff": `\xff`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}
