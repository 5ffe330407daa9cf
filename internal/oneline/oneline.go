// Package oneline keeps untrusted names and texts, such as those from a
// configuration or a control plane, on one line of an unescaped output.
//
//	fmt.Fprintf(w, "%s: %d\n", oneline.Clean(name), n)
package oneline

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns text with "_" in place of each control character, line or
// paragraph separator and invalid UTF-8 byte. It allocates only if there is one.
func Clean(text string) string {
	i := dirty(text)
	if i < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for ; i >= 0; i = dirty(text) {
		_, size := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[:i])
		b.WriteByte('_')
		text = text[i+size:]
	}
	b.WriteString(text)
	return b.String()
}

// Escape returns text as one visible line without anything that a terminal could act
// on: backslashes and invisible characters are escaped.
func Escape(text string) string {
	q := strconv.Quote(text)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// dirty returns the index of the first character to replace, -1 if there is none.
func dirty(text string) int {
	for i, r := range text {
		if r >= ' ' && r < 0x7f {
			continue
		}
		if Breaks(r) {
			return i
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// Breaks reports whether r is a control character, or a line or paragraph
// separator, which can end the line or change how a terminal shows it.
func Breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
