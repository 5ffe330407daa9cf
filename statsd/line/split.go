package line

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Trim removes one trailing carriage return from b, then spaces and tabs at
// both ends.
func Trim(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t'); n-- {
		b = b[:n-1]
	}
	return b
}

// Parse parses text, one line without its line feed. A metric is parsed
// completely; for an event or a service check only the kind is determined, see
// [Parser.ParseEvent] and [Parser.ParseServiceCheck].
func (p *Parser) Parse(l *Line, text []byte) Reason {
	if r := p.Split(l, text); r != OK || l.Kind != KindMetric {
		return r
	}
	if r := p.Identify(l); r != OK {
		return r
	}
	return p.Numbers(l)
}

// Split finds the parts of text, which must not contain a line feed. It does
// the steps that do not depend on the name. Errors in the fields of a metric
// are kept in l.Fields, since errors in the name come first; [Parser.Identify]
// returns them.
func (p *Parser) Split(l *Line, text []byte) Reason {
	text = Trim(text)
	l.reset(text)
	if len(text) == 0 {
		return OK
	}
	l.Kind = kindOf(text)
	if len(text) > p.cfg.LineBytes {
		return l.stop(p.cfg.LineBytes, LineTooLong)
	}
	if !ascii(text) && !utf8.Valid(text) {
		return l.stop(firstInvalid(text), InvalidUTF8)
	}
	if l.Kind != KindMetric {
		return OK
	}
	colon := p.sectionEnd(text)
	if colon < 0 {
		return l.stop(len(text), MissingColon)
	}
	pipe := bytes.IndexByte(text, '|')
	if pipe >= 0 && pipe < colon {
		return l.stop(pipe, MissingColon)
	}
	if colon == 0 {
		return l.stop(0, EmptyName)
	}
	l.Section = text[:colon]
	if pipe < 0 {
		return l.stop(len(text), MissingPipe)
	}
	l.Fields = p.fields(l, colon+1, pipe)
	return OK
}

// kindOf returns the kind of a line that is not blank.
func kindOf(text []byte) Kind {
	switch {
	case bytes.HasPrefix(text, eventPrefix):
		return KindEvent
	case bytes.HasPrefix(text, checkPrefix):
		return KindServiceCheck
	}
	return KindMetric
}

// sectionEnd returns the offset of the colon that ends the name section, or -1.
// A colon inside brackets with tags does not end it.
func (p *Parser) sectionEnd(text []byte) int {
	colon := bytes.IndexByte(text, ':')
	if colon < 0 || !p.on(SignalFX) {
		return colon
	}
	open := bytes.IndexByte(text[:colon], '[')
	if open < 0 {
		return colon
	}
	head := text
	if pipe := bytes.IndexByte(text, '|'); pipe >= 0 {
		head = text[:pipe]
	}
	shut := bytes.IndexByte(head, ']')
	if shut < open {
		return colon // none, or in the wrong order
	}
	if i := bytes.IndexByte(text[shut:], ':'); i >= 0 {
		return shut + i
	}
	return -1
}

// fields parses the part after the name section: the first value is
// text[at:pipe], the first field starts after pipe.
func (p *Parser) fields(l *Line, at, pipe int) Reason {
	text := l.Text
	value := text[at:pipe]
	if len(text)-pipe <= len("|ms") { // most lines end with the type
		if t, ok := parseType(text[pipe+1:]); ok {
			l.Samples = append(l.Samples, Sample{Type: t, Rate: 1, Text: value})
			return OK
		}
	}
	wantType := true
	for pipe < len(text) {
		at = pipe + 1
		pipe = len(text)
		if i := bytes.IndexByte(text[at:], '|'); i >= 0 {
			pipe = at + i
		}
		field := text[at:pipe]
		next := -1 // offset in field of the value of another sample
		switch {
		case wantType:
			next = bytes.IndexByte(field, ':')
			word := field
			if next >= 0 {
				word = field[:next]
			}
			t, ok := parseType(word)
			if !ok {
				return l.fieldStop(at, BadType)
			}
			l.Samples = append(l.Samples, Sample{Type: t, Rate: 1, Text: value})
			wantType = false
		case len(field) == 0:
			// An empty option has no meaning.
		case field[0] == '@':
			next = bytes.IndexByte(field, ':')
			word := field[1:]
			if next >= 0 {
				word = field[1:next]
			}
			rate, r := parseNumber(word)
			if r != OK || rate < minRate || rate > 1 {
				return l.fieldStop(at, BadSampleRate)
			}
			l.Samples[len(l.Samples)-1].Rate = rate
		case field[0] == '#' && p.on(DogStatsD):
			l.TagFields = append(l.TagFields, field[1:])
		case len(field) >= 2 && field[0] == 'c' && field[1] == ':':
			if p.cfg.TagContainer {
				l.Container = field[2:]
			}
		case field[0] == 'T' && unixTime(&l.Time, field[1:]):
		case ignored(field):
		default:
			l.Unknown++
		}
		if next >= 0 {
			value = field[next+1:]
			wantType = true
		}
	}
	if wantType {
		return l.fieldStop(len(text), MissingPipe)
	}
	return OK
}

// ignored reports whether a field is known and has no meaning here: external
// data and cardinality, which DogStatsD clients send for origin detection.
func ignored(field []byte) bool {
	return bytes.HasPrefix(field, []byte("e:")) || bytes.HasPrefix(field, []byte("card:"))
}

// minRate is the smallest sample rate.
const minRate = 1e-6

func (l *Line) fieldStop(at int, r Reason) Reason {
	l.fieldsAt = at
	return r
}

// ascii reports whether no byte of b is 0x80 or above.
func ascii(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func firstInvalid(b []byte) int {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at
}
