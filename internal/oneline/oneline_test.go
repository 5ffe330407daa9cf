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
		"cut \xe6\x97, \xff\ufffd": "cut __, _\ufffd",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzClean checks that what comes out is UTF-8 without control characters, that
// it stays as it is from then on, and that text which is fit stays too.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\nb", "\xff\ufffd\u0085", "日本\xe6\x97"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		fit := func(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }
		if !fit(got) || Clean(got) != got || fit(text) && got != text {
			t.Errorf("Clean(%q) = %q", text, got)
		}
	})
}
