package store

import (
	"encoding/binary"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// A mark is a number that the network input attaches to its stats, so that it
// needs no separate table of names.

// Mark attaches a nonzero mark to the stat of network input called name in sc,
// and reports whether the stat is alive. If so, its end will be reported with
// the mark; see [Store.OnNetworkEnd].
func (sc *Scope) Mark(mark uint32, name string, tgs ...tags.Tag) bool {
	s := sc.store
	var buf [256]byte
	full, _ := sc.compose(buf[:0], sc.prefix, name, tgs)
	h := s.lookup.hash(sc.cls.network, full)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, i, ok := s.find(h, sc.cls.network, full)
	if !ok || b.marks == nil {
		return false
	}
	b.marks[i].Store(mark)
	return true
}

// OnNetworkInterval registers f for gauges of network input that do not show
// the last interval but, for example, the count over a longer time: f returns
// the count of the last interval for the gauge with that mark, if there is one;
// see [Cursor.AppendInterval]. f must be safe for concurrent use and must not
// call the store.
func (s *Store) OnNetworkInterval(f func(mark uint32) (count float64, ok bool)) {
	s.intervals.Store(&f)
}

// AppendInterval is [Cursor.AppendValue] for a gauge in a sink whose receiver
// expects counts of intervals; see [Store.OnNetworkInterval].
func (c *Cursor) AppendInterval(dst []byte) []byte {
	if f := c.s.intervals.Load(); f != nil && c.b.variant == variantFloat && c.b.marks != nil {
		if mark := c.b.marks[c.i].Load(); mark != 0 {
			if x, ok := (*f)(mark); ok {
				return AppendFloat(dst, x)
			}
		}
	}
	return c.AppendValue(dst)
}

// Marked returns the mark of the stat whose full name is that of name and tgs
// in sc, or 0 if there is no such stat or it has no mark. same reports whether
// the stat was created with the same name and tags: if tags contain dots, other
// names and tags can have the same full name.
func (sc *Scope) Marked(name string, tgs ...tags.Tag) (mark uint32, same bool) {
	s := sc.store
	var buf [256]byte
	full, _ := sc.compose(buf[:0], sc.prefix, name, tgs)
	b, i, ok := s.find(s.lookup.hash(sc.cls.network, full), sc.cls.network, full)
	if !ok || b.marks == nil {
		return 0, false
	}
	mark, same = b.marks[i].Load(), s.hasTags(b, i, tgs)
	if !b.alive.has(i) { // its record can be invalid
		return 0, false
	}
	return mark, same
}

// hasTags reports whether stat i was created with tgs. With the full name they determine
// the name before them.
func (s *Store) hasTags(b *block, i int, tgs []tags.Tag) bool {
	enc, rest := splitRecord(b.record(i))
	if explicit := rest[0]&flagExplicit != 0; !explicit || len(tgs) == 0 {
		return !explicit && len(tgs) == 0
	}
	rest = rest[1:]
	uvarint := func() uint64 {
		v, w := binary.Uvarint(rest)
		rest = rest[w:]
		return v
	}
	uvarint() // family
	if uvarint() != uint64(len(tgs)) {
		return false
	}
	of := segmentsOf(enc)
	for _, t := range tgs {
		if n := s.names.at(uint32(uvarint())); n == nil || n.key.text != t.Name {
			return false
		}
		var value []byte
		if seg := uvarint(); seg > 0 {
			value = of.text(s.symbols, int(seg)-1)
		} else {
			n := uvarint()
			value, rest = rest[:n], rest[n:]
		}
		if string(value) != t.Value {
			return false
		}
	}
	return true
}

// Handle is a [*Counter], a [*Gauge] or a [*FloatGauge].
type Handle interface{ home() (*block, int) }

func (c *Counter) home() (*block, int)    { return c.w.home() }
func (g *Gauge) home() (*block, int)      { return g.w.home() }
func (g *FloatGauge) home() (*block, int) { return g.w.home() }

// NameOf returns the name with which a stat was created, without the tags but
// with the prefix of the scope. It returns "" for stats that are null or ended.
// The handle must not be nil.
func (s *Store) NameOf(h Handle) string {
	b, i := h.home()
	if b.null || !b.alive.has(i) {
		return ""
	}
	enc, rest := splitRecord(b.record(i))
	var name string
	if n := s.recordFamily(rest); n != nil && rest[0]&flagExplicit != 0 {
		name = n.key.text
	} else {
		name = string(s.symbols.AppendText(nil, enc))
	}
	if !b.alive.has(i) {
		return ""
	}
	return name
}

// RemoveMarked ends the stats with a mark that satisfies match, and returns their
// number. match must not call the store.
func (s *Store) RemoveMarked(match func(mark uint32) bool) int {
	s.mu.Lock()
	n := s.killWhere(func(b *block, i int) bool {
		if b.marks == nil {
			return false
		}
		mark := b.marks[i].Load()
		return mark != 0 && match(mark)
	})
	s.mu.Unlock()
	s.purge()
	return n
}
