package store

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// A record describes one stat:
//
//	name   encoded by symtab (its length comes first)
//	flags  one byte
//	       only with flagTagged:
//	uvarint family, the number of its tag-extracted name
//	uvarint number of tags, then for each tag
//	    uvarint number of the tag's name
//	    uvarint 1 + the index of the name's encoded segment that is the value
//	    or 0, uvarint length, the value
//
// A value that is a whole segment of the name, as most are, costs one byte.
const (
	flagTagged   = 1 << iota // the tag-extracted name differs from the name, or there are tags
	flagEscaped              // the name or the value of a tag has bytes that JSON or a label must escape
	flagExplicit             // the tags were given, not taken out of the name
	flagOdd                  // the name is not valid UTF-8, or a tag has no value
)

// splitRecord splits rec after the name. It returns nil if rec does not hold a
// record, which only readers that race with the end of a stat can see.
func splitRecord(rec []byte) (name, rest []byte) {
	n, w := binary.Uvarint(rec)
	if w <= 0 || n > uint64(len(rec)-w) {
		return nil, nil
	}
	return rec[:w+int(n)], rec[w+int(n):]
}

// uvarint is binary.Uvarint without its check for overflow. It is inlined.
func uvarint(b []byte) (v uint64, n int) {
	var shift uint
	for i, c := range b {
		if c < 0x80 {
			return v | uint64(c)<<(shift&63), i + 1
		}
		v |= uint64(c&0x7f) << (shift & 63)
		shift += 7
	}
	return 0, 0
}

// nameBody appends the symbols of text to body, without a length.
func nameBody(tab *symtab.Table, body []byte, text string) []byte {
	at := len(body)
	body = tab.AppendEncode(body, text)
	n, w := binary.Uvarint(body[at:])
	return append(body[:at], body[at+w:at+w+int(n)]...)
}

// literalBody appends text to body as one literal segment.
func literalBody(body []byte, text string) []byte {
	body = append(body, 0)
	body = binary.AppendUvarint(body, uint64(len(text)))
	return append(body, text...)
}

// plainName reports whether neither JSON nor a label value must escape any
// byte of s.
func plainName(s string) bool {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(b) >= 8; b = b[8:] {
		if !plainWord(binary.LittleEndian.Uint64(b)) {
			return false
		}
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}

// plainWord is plainName for eight bytes at once. Each sum sets the top bits of the
// bytes below 0x80 that a condition holds for, and carries into no other byte.
func plainWord(x uint64) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	low := x &^ top
	control, del := ^(low + (0x80-0x20)*each), low+each
	quote, backslash := ^((low ^ '"'*each) + 0x7f*each), ^((low ^ '\\'*each) + 0x7f*each)
	angle := ^((low&^(2*each) ^ '<'*each) + 0x7f*each) // '<' and '>' differ in one bit
	odd := x | control | del | quote | backslash | angle
	return odd&top == 0
}

// appendRecord appends the record of the stat called full. If explicit is set,
// the caller gave tgs and they follow base in full, as .key.value.
func (s *Store) appendRecord(dst []byte, network bool, full, base string, tgs []tags.Tag, explicit bool) []byte {
	body := make([]byte, 0, 64)
	if explicit {
		body = nameBody(s.symbols, body, base)
		for _, t := range tgs {
			body = s.tagSegment(body, t.Name, false)
			if !bare(t, network) {
				body = s.tagSegment(body, t.Value, network)
			}
		}
	} else {
		body = nameBody(s.symbols, body, full)
	}
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	dst = append(dst, body...)

	var flags byte
	plain := plainName(full)
	if !plain || slices.ContainsFunc(tgs, func(t tags.Tag) bool { return !plainName(t.Value) }) {
		flags |= flagEscaped
	}
	if !plain && !utf8.ValidString(full) || slices.ContainsFunc(tgs, func(t tags.Tag) bool { return t.Value == "" }) {
		flags |= flagOdd
	}
	if explicit {
		flags |= flagExplicit
	}
	if len(tgs) == 0 && base == full {
		return append(dst, flags)
	}
	dst = append(dst, flags|flagTagged)
	dst = binary.AppendUvarint(dst, uint64(s.names.hold(nameKey{network, base})))
	dst = binary.AppendUvarint(dst, uint64(len(tgs)))
	at := 0 // the segment of the next explicit tag in the name
	if base != "" {
		at = strings.Count(base, ".") + 1
	}
	for _, t := range tgs {
		dst = binary.AppendUvarint(dst, uint64(s.names.hold(nameKey{network, t.Name})))
		seg := -1
		switch {
		case !explicit:
			seg = segmentIndex(full, t.Value)
		case !bare(t, network):
			seg = at + 1
			at += 2
		default:
			at++
		}
		if seg >= 0 {
			dst = binary.AppendUvarint(dst, uint64(seg)+1)
			continue
		}
		dst = append(dst, 0)
		dst = binary.AppendUvarint(dst, uint64(len(t.Value)))
		dst = append(dst, t.Value...)
	}
	return dst
}

// bare reports whether t is a tag without a value, which only network input can
// have. Only its key is part of the name.
func bare(t tags.Tag, network bool) bool { return network && t.Value == "" }

// tagSegment appends one part of an explicit tag. Texts with dots, and values
// from the network, are stored as literals.
func (s *Store) tagSegment(body []byte, text string, literal bool) []byte {
	if literal || text == "" || strings.IndexByte(text, '.') >= 0 {
		return literalBody(body, text)
	}
	return nameBody(s.symbols, body, text)
}

// segmentIndex returns the index of the dot-separated segment of name that
// equals value, -1 if there is none.
func segmentIndex(name, value string) int {
	if value == "" || strings.IndexByte(value, '.') >= 0 {
		return -1
	}
	for i := 0; ; i++ {
		seg, rest, more := strings.Cut(name, ".")
		if seg == value {
			return i
		}
		if !more {
			return -1
		}
		name = rest
	}
}
