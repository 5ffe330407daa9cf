package render

import (
	"strconv"
	"unicode/utf8"
)

// Escaping is the treatment of characters other than letters, digits and
// underscores in names. The text formats before those with UTF-8 do not allow
// them. Only received names contain such characters.
type Escaping uint8

// The escapings. Names that differ under EscapeUnderscores differ under all of
// them, so none writes a series twice.
const (
	EscapingDefault   Escaping = iota // as EscapeUnderscores, and not named in the content type
	EscapeUnderscores                 // each byte becomes an underscore
	AllowUTF8                         // none: names are quoted where necessary
	EscapeDots                        // a dot becomes _dot_, an underscore two, each other byte two
	EscapeValues                      // prefix U__, and code points between underscores
)

// escapings are the values of the parameter that asks for an Escaping.
var escapings = [...]string{"", "underscores", "allow-utf-8", "dots", "values"}

// String returns the value of the parameter "escaping" of a media range,
// "" for EscapingDefault.
func (e Escaping) String() string { return escapings[e] }

// Parameter returns the parameter of a content type for e, such as ";
// escaping=dots", or "".
func (e Escaping) Parameter() string {
	if e == EscapingDefault {
		return ""
	}
	return "; escaping=" + e.String()
}

// parseEscaping returns the escaping for the value of a parameter,
// EscapingDefault if it is unknown.
func parseEscaping(s string) Escaping {
	for e, name := range escapings {
		if name == s {
			return Escaping(e)
		}
	}
	return EscapingDefault
}

// legacy reports whether e replaces all characters outside the old alphabet
// with underscores.
func (e Escaping) legacy() bool { return e <= EscapeUnderscores }

// appendName appends the name of a metric with arbitrary characters, escaped by e. It
// must not be called if e.legacy().
func (e Escaping) appendName(dst, name []byte) []byte { return e.escape(dst, name, legacyByte) }

// appendLabel does the same for the name of a label, where colons were not allowed.
func (e Escaping) appendLabel(dst, name []byte) []byte { return e.escape(dst, name, labelByte) }

func (e Escaping) escape(dst, name []byte, allowed func(byte) bool) []byte {
	switch e {
	case EscapeDots:
		return appendDots(dst, name, allowed)
	case EscapeValues:
		return appendValues(dst, name, allowed)
	default:
		return append(dst, name...)
	}
}

// appendDots keeps names distinct that EscapeUnderscores keeps distinct;
// therefore it works on bytes and keeps a leading digit.
func appendDots(dst, name []byte, allowed func(byte) bool) []byte {
	for i, c := range name {
		switch {
		case i == 0 && '0' <= c && c <= '9':
			dst = append(dst, '_', '_', c)
		case c == '.':
			dst = append(dst, "_dot_"...)
		case allowed(c) && c != '_':
			dst = append(dst, c)
		default:
			dst = append(dst, '_', '_')
		}
	}
	return dst
}

// escapedValue is the prefix of names that EscapeValues changed.
const escapedValue = "U__"

func appendValues(dst, name []byte, allowed func(byte) bool) []byte {
	if legacy(name, allowed) && (len(name) < len(escapedValue) || string(name[:len(escapedValue)]) != escapedValue) {
		return append(dst, name...)
	}
	dst = append(dst, escapedValue...)
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRune(name[i:])
		switch {
		case r == '_':
			dst = append(dst, '_', '_')
		case r < utf8.RuneSelf && allowed(byte(r)) && (i > 0 || r < '0' || r > '9'):
			dst = append(dst, byte(r))
		default:
			dst = append(dst, '_')
			dst = strconv.AppendUint(dst, uint64(r), 16)
			dst = append(dst, '_')
		}
		i += n
	}
	return dst
}

// legacyByte reports whether c was always allowed in metric names after the
// first byte.
func legacyByte(c byte) bool {
	return c == '_' || c == ':' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// labelByte reports whether c was always allowed in names of labels after the first byte.
func labelByte(c byte) bool { return c != ':' && legacyByte(c) }

// legacy reports whether name has only allowed bytes, and no digit in front.
func legacy(name []byte, allowed func(byte) bool) bool {
	for i, c := range name {
		if !allowed(c) || i == 0 && '0' <= c && c <= '9' {
			return false
		}
	}
	return len(name) > 0
}

// legacyName reports whether name was always allowed for a metric.
func legacyName(name []byte) bool { return legacy(name, legacyByte) }

// legacyLabel reports whether name was always allowed for a label.
func legacyLabel(name []byte) bool { return legacy(name, labelByte) }

func appendQuoted(dst, s []byte) []byte {
	dst = appendLabelValue(append(dst, '"'), s)
	return append(dst, '"')
}
