package top

import (
	"strings"
	"unicode/utf8"
)

// Keys other than characters.
const (
	keyUp     = "up"
	keyDown   = "down"
	keyPageUp = "pgup"
	keyPageDn = "pgdn"
	keyHome   = "home"
	keyEnd    = "end"
	keyEnter  = "enter"
	keyEscape = "esc"
	keyBack   = "backspace"
	keyClear  = "clear" // Ctrl-U
	keyQuit   = "quit"  // Ctrl-C
	keyRedraw = "redraw"
)

// sequences are the keys that terminals send as several bytes.
var sequences = [...]struct{ bytes, key string }{
	{"\x1b[A", keyUp}, {"\x1bOA", keyUp}, {"\x1b[B", keyDown}, {"\x1bOB", keyDown},
	{"\x1b[5~", keyPageUp}, {"\x1b[6~", keyPageDn},
	{"\x1b[H", keyHome}, {"\x1bOH", keyHome}, {"\x1b[1~", keyHome}, {"\x1b[F", keyEnd}, {"\x1bOF", keyEnd}, {"\x1b[4~", keyEnd},
}

// single returns the key that is one byte, or "".
func single(c byte) string {
	switch c {
	case '\r', '\n':
		return keyEnter
	case 0x7f, 0x08:
		return keyBack
	case 0x15:
		return keyClear
	case 0x03, 0x04:
		return keyQuit
	case 0x0c:
		return keyRedraw
	case 0x1b:
		return keyEscape
	}
	return ""
}

// decodeKeys splits input into keys: characters and the names above.
// Unknown sequences are left out.
func decodeKeys(in string) (keys []string) {
next:
	for in != "" {
		for _, s := range sequences {
			if rest, ok := strings.CutPrefix(in, s.bytes); ok {
				keys, in = append(keys, s.key), rest
				continue next
			}
		}
		if rest, ok := strings.CutPrefix(in, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			in = rest[end+1:]
			if end < 0 {
				in = ""
			}
			continue
		}
		if key := single(in[0]); key != "" {
			keys, in = append(keys, key), in[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(in)
		if r >= ' ' && utf8.ValidString(in[:size]) {
			keys = append(keys, in[:size])
		}
		in = in[size:]
	}
	return keys
}
