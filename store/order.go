package store

import (
	"bytes"
	"container/heap"
	"slices"
	"sort"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// order keeps ids of stats sorted by a key. New ids wait in pending and are
// merged into their chunks at the next lookup. Chunks are immutable, so a view
// keeps its slice of chunks while the order changes.
type order struct {
	key func(s *Store, dst []byte, x id) []byte

	sorting schedule.Mutex // held while names are sorted
	pending []id           // guarded by Store.mu
	chunks  [][]id         // none empty; guarded by Store.orderMu
	asked   bool           // the order has been used; guarded by Store.mu
}

// chunkSize is the maximum number of ids in a chunk; new chunks have half of it.
const chunkSize = 1024

// runSize is the number of ids that are sorted with their keys in memory.
const runSize = 16384

// textKey is the key of byte order by full name.
func textKey(s *Store, dst []byte, x id) []byte {
	b, i := s.at(x)
	name, _ := splitRecord(b.record(i))
	dst = s.symbols.AppendText(dst, name)
	return originKey(dst, b)
}

// familyTextKey is the key of the exposition's order: by tag-extracted name,
// own before network stats, then by full name. Names are compared token by
// token: the dot sorts before any other byte.
func familyTextKey(s *Store, dst []byte, x id) []byte {
	b, i := s.at(x)
	name, rest := splitRecord(b.record(i))
	at := len(dst)
	dst = s.appendFamily(dst, b, i, name, rest)
	dst = tokenOrder(dst, at)
	dst = append(dst, 1)
	dst = originKey(dst, b) // the families of both are not mixed
	at = len(dst)
	dst = s.symbols.AppendText(dst, name)
	return tokenOrder(dst, at)
}

// appendFamily appends the name by which the family of a stat is ordered.
func (s *Store) appendFamily(dst []byte, b *block, i int, name, rest []byte) []byte {
	if sp := s.seriesOf(b, i, rest); sp != nil && sp.Merged {
		return append(dst, sp.lead...)
	}
	if f := s.recordFamily(rest); f != nil {
		return append(dst, f.String()...)
	}
	return s.symbols.AppendText(dst, name)
}

// originKey makes the keys of equal names differ: own stats before network ones.
func originKey(dst []byte, b *block) []byte {
	if b.cls.network {
		return append(dst, 0, 1)
	}
	return append(dst, 0, 0)
}

// tokenOrder rewrites dst[at:] so that comparing bytes compares tokens: the
// dot becomes 2, below everything but the end of the name (1, see
// familyTextKey). Bytes up to 3 are escaped by a 3 to make room.
func tokenOrder(dst []byte, at int) []byte {
	for i := at; i < len(dst); i++ {
		switch c := dst[i]; {
		case c == '.':
			dst[i] = 2
		case c <= 3:
			dst = slices.Insert(dst, i, 3)
			i++
		}
	}
	return dst
}

// update merges pending ids, which the caller took from o, into the chunks.
// Store.orderMu must be held.
func (o *order) update(s *Store, ids []id) {
	if len(ids) == 0 {
		return
	}
	var sorted []id
	if len(ids) <= runSize {
		sorted = o.sortRun(s, ids)
	} else {
		sorted = o.sortRuns(s, ids)
	}
	if len(o.chunks) == 0 {
		o.chunks = appendChunks(nil, sorted)
		return
	}
	o.insert(s, sorted)
}

// sortRun returns ids sorted.
func (o *order) sortRun(s *Store, ids []id) []id {
	keys := make([]byte, 0, 64*len(ids))
	type span struct {
		from, to uint32
		x        id
	}
	spans := make([]span, len(ids))
	for i, x := range ids {
		from := len(keys)
		keys = o.key(s, keys, x)
		spans[i] = span{uint32(from), uint32(len(keys)), x}
	}
	slices.SortFunc(spans, func(a, b span) int {
		return bytes.Compare(keys[a.from:a.to], keys[b.from:b.to])
	})
	sorted := make([]id, len(ids))
	for i, sp := range spans {
		sorted[i] = sp.x
	}
	return sorted
}

// sortRuns is sortRun for many ids, in bounded memory: sorted runs, merged.
func (o *order) sortRuns(s *Store, ids []id) []id {
	var runs runHeap
	for part := range slices.Chunk(ids, runSize) {
		r := &run{ids: o.sortRun(s, part)}
		r.key = o.key(s, nil, r.ids[0])
		runs = append(runs, r)
	}
	heap.Init(&runs)
	sorted := make([]id, 0, len(ids))
	for len(runs) > 0 {
		r := runs[0]
		sorted = append(sorted, r.ids[0])
		if r.ids = r.ids[1:]; len(r.ids) == 0 {
			heap.Pop(&runs)
			continue
		}
		r.key = o.key(s, r.key[:0], r.ids[0])
		heap.Fix(&runs, 0)
	}
	return sorted
}

// run is a sorted run and the key of its first id.
type run struct {
	ids []id
	key []byte
}

type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	*h = old[:len(old)-1]
	return r
}

// appendChunks splits ids into chunks that have room to grow.
func appendChunks(chunks [][]id, ids []id) [][]id {
	for len(ids) > chunkSize {
		chunks = append(chunks, ids[:chunkSize/2:chunkSize/2])
		ids = ids[chunkSize/2:]
	}
	return append(chunks, ids[:len(ids):len(ids)])
}

// insert merges sorted ids into the chunks, replacing the chunks it changes.
func (o *order) insert(s *Store, ids []id) {
	var buf, key []byte
	less := func(x id) bool { // key < key of x
		buf = o.key(s, buf[:0], x)
		return bytes.Compare(key, buf) < 0
	}
	out := make([][]id, 0, len(o.chunks)+len(ids)/chunkSize+1)
	rest := o.chunks
	for len(ids) > 0 {
		key = o.key(s, key[:0], ids[0])
		// The chunk for an id is the last one whose first id is not greater.
		n := sort.Search(len(rest), func(i int) bool { return less(rest[i][0]) })
		if n > 0 {
			n--
		}
		out = append(out, rest[:n]...)
		old := rest[n]
		rest = rest[n+1:]
		merged := make([]id, 0, len(old)+8)
		for len(ids) > 0 {
			key = o.key(s, key[:0], ids[0])
			if len(rest) > 0 && !less(rest[0][0]) {
				break // belongs to a later chunk
			}
			i := sort.Search(len(old), func(i int) bool { return less(old[i]) })
			merged = append(merged, old[:i]...)
			merged = append(merged, ids[0])
			old, ids = old[i:], ids[1:]
		}
		merged = append(merged, old...)
		out = appendChunks(out, merged)
	}
	o.chunks = append(out, rest...)
}

// remove removes the ids in gone, n of which are in the chunks. dead is true for them.
// It looks for them one by one, unless there are so many that a walk over all ids is
// faster. Store.orderMu must be held, and the ids not be released.
func (o *order) remove(s *Store, gone []id, n int, dead func(id) bool) {
	if len(gone) >= len(o.chunks) || o.dropEach(s, gone) < n {
		o.drop(dead)
	}
}

// drop removes the ids for which dead is true. Store.orderMu must be held.
func (o *order) drop(dead func(id) bool) {
	out := o.chunks[:0:0]
	for _, c := range o.chunks {
		if c = without(c, dead); len(c) > 0 {
			out = append(out, c)
		}
	}
	o.chunks = out
}

// without returns the ids of a chunk for which dead is false: the chunk itself if none
// is dead.
func without(c []id, dead func(id) bool) []id {
	i := slices.IndexFunc(c, dead)
	if i < 0 {
		return c
	}
	kept := slices.Clone(c[:i])
	for _, x := range c[i:] {
		if !dead(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// dropEach is drop for few ids, which it looks up by their keys. It returns how many
// it has removed.
func (o *order) dropEach(s *Store, gone []id) (n int) {
	var buf, key []byte
	chunks := slices.Clone(o.chunks)
	for _, x := range gone {
		key = o.key(s, key[:0], x)
		i := sort.Search(len(chunks), func(i int) bool {
			buf = o.key(s, buf[:0], chunks[i][0])
			return bytes.Compare(key, buf) < 0
		}) - 1
		if i < 0 {
			continue
		}
		kept := without(chunks[i], func(y id) bool { return x == y })
		n += len(chunks[i]) - len(kept)
		if chunks[i] = kept; len(kept) == 0 {
			chunks = slices.Delete(chunks, i, i+1)
		}
	}
	o.chunks = chunks
	return n
}

// dropPending is drop for pending ids, and returns how many there were. Store.mu must
// be held.
func (o *order) dropPending(dead func(id) bool) int {
	n := len(o.pending)
	o.pending = slices.DeleteFunc(o.pending, dead)
	return n - len(o.pending)
}
