package logfile

import (
	"unicode/utf8"
)

// MaxLineBytes bounds one line of any log.
const MaxLineBytes = 8 << 10

const hexDigits = "0123456789abcdef"

// AppendEscaped appends untrusted text so that it stays on one line and cannot
// disguise itself: control characters, bytes that are not UTF-8 and characters that
// change the text direction become \xNN or \uNNNN. Quotes and backslashes stay.
func AppendEscaped(dst []byte, text string) []byte { return appendEscaped(dst, text, "") }

// AppendQuoted is like [AppendEscaped] but adds double quotes, and puts a backslash
// before quotes and backslashes in the text.
func AppendQuoted(dst []byte, text string) []byte {
	return append(AppendInQuotes(append(dst, '"'), text), '"')
}

// AppendInQuotes is [AppendQuoted] without the surrounding quotes.
func AppendInQuotes(dst []byte, text string) []byte { return appendEscaped(dst, text, `"\`) }

// appendEscaped also puts a backslash before each byte of special.
func appendEscaped(dst []byte, text, special string) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			switch {
			case c < 0x20 || c == 0x7f:
				dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			case special != "" && (c == special[0] || c == special[1]):
				dst = append(dst, '\\', c)
			default:
				dst = append(dst, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		case deceptive(r):
			dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}

// deceptive reports whether r changes how its neighbors display: C1 controls, line
// and paragraph separators, direction marks, the byte order mark.
func deceptive(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, r == 0x61c, r == 0xfeff,
		r >= 0x200e && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Cut truncates a line to limit bytes at a character boundary and marks it with "…".
// The line must not end in a newline; it is modified in place.
func Cut(line []byte, limit int) []byte {
	const mark = "…"
	if len(line) <= limit {
		return line
	}
	end := max(0, limit-len(mark))
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return append(line[:end], mark...)
}
