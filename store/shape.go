package store

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

// Two stats of one family are the same series if their labels are equal. Usually
// they differ, since tags are part of the full name. They can be equal if tag
// names map to the same label names (a-b and a_b), values are replaced (a bare
// tag by "true", invalid UTF-8), a tag is dropped (an empty value), tags are in
// another order, or a name with explicit tags equals one from which tag rules
// extract the same tags.
//
// The shape of a stat is the part of its tags that matters for this. A family
// keeps the shapes of its stats and the label names of each. Two shapes with the
// same label names make the family a merged one.

// shapes holds the shapes of one family. Guarded by seriesIndex.mu.
type shapes struct {
	last  [kinds]uint64 // the last shape added
	first shapeLabels
	more  map[shapeKey]uint64 // once there are two
}

// shapeLabels is a shape and a hash of its label names.
type shapeLabels struct {
	kind          Kind
	shape, labels uint64
}

// shapeKey is a shape, with value 1, or a set of label names, whose value is
// its shape.
type shapeKey struct {
	kind   Kind
	labels bool
	hash   uint64
}

// add adds a shape. It reports whether another shape has the same labels.
func (sh *shapes) add(x shapeLabels) (again bool) {
	if sh.first.shape == 0 {
		sh.first = x
		return false
	}
	if sh.more == nil {
		sh.more = make(map[shapeKey]uint64)
		sh.put(sh.first)
	}
	return sh.put(x)
}

func (sh *shapes) put(x shapeLabels) (again bool) {
	sh.more[shapeKey{x.kind, false, x.shape}] = 1
	of := shapeKey{x.kind, true, x.labels}
	if have, ok := sh.more[of]; ok && have != x.shape {
		return true
	}
	sh.more[of] = x.shape
	return false
}

func (sh *shapes) knows(k Kind, shape uint64) bool {
	return sh.first.shape == shape && sh.first.kind == k || sh.more[shapeKey{k, false, shape}] != 0
}

// Effects of a tag's value on a series.
const (
	valueKept  = iota
	valueEmpty // a bare tag if from network input
	valueChanged
)

// noteShape adds the shape of a stat of block b to family n. Its record is the
// name, enc, and rest. seriesIndex.mu must be held.
func (s *Store) noteShape(b *block, enc, rest []byte, n *Name) {
	k := b.variant.kind()
	var buf [16]shapedTag
	tags := s.appendShape(buf[:0], enc, rest)
	shape := hashShape(s.series.seed, tags, rest[0]&flagExplicit != 0)
	if n.shapes.last[k] == shape {
		return
	}
	n.shapes.last[k] = shape
	if n.shapes.knows(k, shape) {
		return
	}
	var labels [][]byte
	if k == KindText {
		labels = append(labels, []byte(naming.TextLabel))
	}
	changed := false
	for _, t := range tags {
		changed = changed || t.value == valueChanged
		if t.value == valueEmpty && !b.cls.network {
			continue
		}
		name := s.opts.Naming.AppendLabel(nil, s.names.at(t.name).String())
		labels = append(labels, naming.DistinctLabel(name, labels))
	}
	slices.SortFunc(labels, bytes.Compare)
	var h maphash.Hash
	h.SetSeed(s.series.seed)
	for _, l := range labels {
		h.Write(l)
		h.WriteByte(0)
	}
	again := n.shapes.add(shapeLabels{k, shape, h.Sum64()})
	if again || changed || len(labels) == 0 {
		f := family{n.key.network, k, n.key.text}
		sp := Series{lead: f.name}
		if old := s.series.of(f); old != nil {
			sp = *old
		}
		sp.Merged = true
		s.noteSpecial(f, sp)
	}
}

// shapedTag is a tag's contribution to a shape: the number of its name and the
// effect of its value.
type shapedTag struct {
	name  uint32
	value byte
}

// appendShape appends the tags of a record, which is the name, enc, and rest.
func (s *Store) appendShape(tags []shapedTag, enc, rest []byte) []shapedTag {
	uvarint := func() uint64 {
		v, w := binary.Uvarint(rest)
		rest = rest[w:]
		return v
	}
	odd := rest[0]&flagOdd != 0
	rest = rest[1:]
	uvarint() // family
	for range uvarint() {
		t := shapedTag{name: uint32(uvarint())}
		var value []byte
		if seg := uvarint(); seg == 0 {
			n := uvarint()
			value, rest = rest[:n], rest[n:]
		} else if odd {
			value = s.segment(enc, int(seg)-1)
		}
		if odd && len(value) == 0 {
			t.value = valueEmpty
		} else if odd && !utf8.Valid(value) {
			t.value = valueChanged
		}
		tags = append(tags, t)
	}
	return tags
}

// hashShape returns the shape of tags, which is never 0. explicit is false if
// rules extracted them from the name.
func hashShape(seed maphash.Seed, tags []shapedTag, explicit bool) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if explicit {
		h.WriteByte(1)
	}
	var b [5]byte
	for _, t := range tags {
		binary.LittleEndian.PutUint32(b[:], t.name)
		b[4] = t.value
		h.Write(b[:])
	}
	return max(h.Sum64(), 1)
}
