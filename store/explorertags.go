package store

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
)

// tagSums are the sums of a chunk for a tag.
type tagSums struct {
	num    uint32 // of the name
	n      int    // stats
	hashes []uint32
	cut    bool // there are values with greater hashes
}

// chunkValues is how many values of a tag are kept for a chunk, by their hashes: the
// smallest, in order.
const chunkValues = 128

// eachTag calls f with the tags of a stat.
func (x *Explorer) eachTag(c *Cursor, one id, f func(l Label)) {
	b, slot := x.s.at(one)
	c.step = &c.next[0]
	c.b, c.i, c.x, c.rec = b, slot, one, b.record(slot)
	c.label = lastName{} // the number can have another name by now
	n, w := uvarint(c.rec)
	c.cut = uint32(w) + uint32(n)
	rest, tags := c.tags()
	of := segmentsOf(c.enc())
	for range tags {
		var l Label
		if rest = c.tag(&l, rest, &of); l.Name != nil {
			f(l)
		}
	}
}

func (x *Explorer) hash(value []byte) uint32 { return uint32(maphash.Bytes(x.seed, value)) }

func (c *chunkSums) addTag(x *Explorer, l Label) {
	i := slices.IndexFunc(c.tags, func(t tagSums) bool { return t.num == l.Name.num })
	if i < 0 {
		i = len(c.tags)
		c.tags = append(c.tags, tagSums{num: l.Name.num})
	}
	t := &c.tags[i]
	t.n++
	h := x.hash(l.Value)
	at, known := slices.BinarySearch(t.hashes, h)
	if known {
		return
	}
	if len(t.hashes) == chunkValues {
		t.cut = true
		if at == chunkValues {
			return
		}
		t.hashes = t.hashes[:chunkValues-1]
	}
	t.hashes = slices.Insert(t.hashes, at, h)
}

// carryTags takes the tags of old, which has all ids but the added ones, and reads theirs.
func (c *chunkSums) carryTags(x *Explorer, old *chunkSums, added []int) {
	if !old.known {
		return
	}
	for _, t := range old.tags {
		t.hashes = slices.Clone(t.hashes)
		c.tags = append(c.tags, t)
	}
	c.known = true
	walk := &Cursor{s: x.s}
	for _, i := range added {
		x.eachTag(walk, c.ids[i], func(l Label) { c.addTag(x, l) })
	}
}

// tagTotal sums up a tag.
type tagTotal struct {
	series int
	hashes map[uint32]struct{} // up to most
	most   uint32
}

// totalValues is how many hashes of values are kept to estimate how many there are.
const totalValues = 1024

func (t *tagTotal) add(h uint32) {
	if h > t.most {
		return
	}
	t.hashes[h] = struct{}{}
	for len(t.hashes) > totalValues {
		t.lower(t.most / 2)
	}
}

// lower forgets the hashes above most.
func (t *tagTotal) lower(most uint32) {
	if most >= t.most {
		return
	}
	t.most = most
	for h := range t.hashes {
		if h > most {
			delete(t.hashes, h)
		}
	}
}

// tags returns the tags of the stats with the prefix.
func (a *answer) tags(v *View) []TagCount {
	x := a.x
	totals := make(map[string]*tagTotal)
	total := func(name string) *tagTotal {
		t := totals[name]
		if t == nil {
			t = &tagTotal{hashes: make(map[uint32]struct{}), most: math.MaxUint32}
			totals[name] = t
		}
		return t
	}
	walk := v.cursor(nil)
	for i, r := range a.rankings {
		r.eachChunk(a.within[i], func(c *chunkSums, from, to int) {
			if to-from < len(c.ids) {
				for _, one := range c.ids[from:to] {
					x.eachTag(&walk, one, func(l Label) {
						t := total(l.Name.String())
						t.series++
						t.add(x.hash(l.Value))
					})
				}
				return
			}
			if !c.known {
				c.known = true
				for _, one := range c.ids {
					x.eachTag(&walk, one, func(l Label) { c.addTag(x, l) })
				}
			}
			for k := range c.tags {
				sums := &c.tags[k]
				t := total(x.s.names.at(sums.num).String()) // the view keeps the name
				t.series += sums.n
				if sums.cut {
					t.lower(sums.hashes[len(sums.hashes)-1])
				}
				for _, h := range sums.hashes {
					t.add(h)
				}
			}
		})
	}
	list := make([]TagCount, 0, len(totals))
	for name, t := range totals {
		c := TagCount{Name: name, Series: t.series, Values: len(t.hashes), Exact: t.most == math.MaxUint32}
		if !c.Exact {
			c.Values = int(float64(len(t.hashes))/((float64(t.most)+1)/(math.MaxUint32+1)) + 0.5)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b TagCount) int {
		return cmp.Or(cmp.Compare(b.Series, a.Series), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxGroups)]
}

// tagOrder is an order of the stats with a tag by the value.
type tagOrder struct {
	order
	ranking
	name string
}

// keptTags is how many orders by the value of a tag are kept.
const keptTags = 4

// appendValue appends the value of the tag called name, and 0, and reports whether the
// stat has the tag.
func (x *Explorer) appendValue(dst []byte, c *Cursor, one id, name string) (key []byte, ok bool) {
	x.eachTag(c, one, func(l Label) {
		if !ok && l.Name.key.text == name {
			dst, ok = append(append(dst, l.Value...), 0), true
		}
	})
	return dst, ok
}

// tagRanking returns the up-to-date ranking of a tag.
func (x *Explorer) tagRanking(name string) *ranking {
	s := x.s
	n := slices.IndexFunc(x.tags, func(o *tagOrder) bool { return o.name == name })
	if n >= 0 {
		o := x.tags[n]
		x.tags = append(slices.Delete(x.tags, n, n+1), o)
		return x.updateTag(o)
	}
	o := &tagOrder{name: name}
	o.order.asked = true
	walk := &Cursor{s: s}
	o.ranking.key = func(dst []byte, one id) []byte {
		dst, _ = x.appendValue(dst, walk, one, name)
		return dst
	}
	o.order.key = func(_ *Store, dst []byte, one id) []byte { return o.ranking.key(dst, one) }
	s.orderMu.Lock()
	s.mu.Lock()
	ids := s.idsOf(func(Kind) bool { return true })
	if len(x.tags) == keptTags {
		s.byTag = slices.DeleteFunc(slices.Clone(s.byTag), func(other *order) bool { return other == &x.tags[0].order })
		x.tags = slices.Delete(x.tags, 0, 1)
	}
	s.byTag = append(slices.Clone(s.byTag), &o.order)
	s.mu.Unlock()
	s.orderMu.Unlock()
	x.tags = append(x.tags, o)
	s.sortFirst(&o.order, x.tagged(o, ids))
	return x.updateTag(o)
}

// tagged returns the ids whose stats have the tag.
func (x *Explorer) tagged(o *tagOrder, ids []id) []id {
	walk := &Cursor{s: x.s}
	var buf [256]byte
	return slices.DeleteFunc(ids, func(one id) bool {
		_, ok := x.appendValue(buf[:0], walk, one, o.name)
		return !ok
	})
}

// updateTag adds new stats to the order and updates the ranking.
func (x *Explorer) updateTag(o *tagOrder) *ranking {
	s := x.s
	s.orderMu.Lock()
	s.mu.Lock()
	ids := o.order.pending
	o.order.pending = nil
	s.mu.Unlock()
	o.order.update(s, x.tagged(o, ids))
	chunks := o.order.chunks
	s.orderMu.Unlock()
	o.ranking.update(x, chunks)
	o.ranking.refreshSizes(x)
	return &o.ranking
}

// walkTag returns the values of the tag among the stats with the prefix.
func (a *answer) walkTag(v *View) (out Explored, err error) {
	n := 0
	for _, w := range a.within {
		n += w.len()
	}
	if n > walkedSeries {
		return out, ErrTooManySeries
	}
	x, walk := a.x, v.cursor(nil)
	values := make(map[string]*tally)
	var total tally
	var rates [chunkSize]float64
	for i, r := range a.rankings {
		r.eachChunk(a.within[i], func(c *chunkSums, from, to int) {
			clear(rates[:])
			for _, x := range c.rates {
				rates[x.index] = float64(x.rate)
			}
			for at := from; at < to; at++ {
				value, ok := x.appendValue(nil, &walk, c.ids[at], a.q.Tag)
				if !ok {
					continue
				}
				t := values[string(value)]
				if t == nil {
					t = new(tally)
					values[string(value)] = t
				}
				fresh := r.fresh(x, c, &c.runs[c.runAt(at)], at, at+1, false)
				for _, t := range [...]*tally{t, &total} {
					t.addOne(x, c, at)
					t.fresh += fresh
					t.rate += rates[at]
				}
			}
		})
	}
	list := make([]candidate, 0, len(values))
	for key, t := range values {
		list = append(list, candidate{key: key, tally: *t})
	}
	return a.answer(list, total, Explored{Complete: true, Found: len(list)}, nil), nil
}
