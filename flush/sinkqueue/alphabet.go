package sinkqueue

import (
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
)

// Alphabet maps each byte that a line format does not allow to its replacement,
// and all other bytes to themselves.
type Alphabet struct {
	slot  int // of cleaned names; negative: they are not cached
	bytes [256]byte
}

func newAlphabet(slot int, replacement func(c byte) byte) *Alphabet {
	a := &Alphabet{slot: slot}
	for i := range a.bytes {
		a.bytes[i] = replacement(byte(i))
	}
	return a
}

// GraphiteAlphabet returns the alphabet of paths, tags and values of tags in Graphite.
func GraphiteAlphabet() *Alphabet {
	return newAlphabet(naming.SlotGraphite, func(c byte) byte {
		switch {
		case c == '/':
			return '-'
		case c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.':
			return c
		}
		return '_'
	})
}

// without returns an alphabet without control characters and some others.
func without(reserved string, slot int) *Alphabet {
	return newAlphabet(slot, func(c byte) byte {
		if c < ' ' || c == 0x7f || strings.IndexByte(reserved, c) >= 0 {
			return '_'
		}
		return c
	})
}

// StatsDAlphabet returns the alphabet of names and tags in lines of StatsD.
func StatsDAlphabet() *Alphabet { return without(":|@#,", naming.SlotStatsD) }

// LabelAlphabet returns the alphabet of names, tags and values of tags in lines of StatsD
// whose tags are name=value pairs in the name.
func LabelAlphabet() *Alphabet { return without(":|@#,=[]", -1) }

// ValueAlphabet returns the alphabet of the values of tags in lines of DogStatsD.
func ValueAlphabet() *Alphabet { return without("|,", -1) }

// Append appends text in the alphabet.
func (a *Alphabet) Append(dst, text []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(text))[:n+len(text)]
	cleaned := dst[n:]
	for i, c := range text {
		cleaned[i] = a.bytes[c]
	}
	return dst
}

// Clean replaces bytes of text.
func (a *Alphabet) Clean(text []byte) {
	for i, c := range text {
		text[i] = a.bytes[c]
	}
}

// Name returns a name of the store in the alphabet. It must not be modified.
func (a *Alphabet) Name(n *store.Name) []byte {
	if a.slot < 0 {
		return a.Append(nil, []byte(n.String()))
	}
	return n.Derived(a.slot, func(n *store.Name) []byte { return a.Append(nil, []byte(n.String())) })
}
