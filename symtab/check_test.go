package symtab

import (
	"iter"
	"testing"
)

// checkTable compares the redundant parts of the table. The table must not be
// in use.
func checkTable(t *testing.T, tab *Table) {
	t.Helper()
	k := &tab.tokens
	indexed := map[Symbol]bool{}
	for i := range tab.shards {
		s := &tab.shards[i]
		slots := s.slots.Load()
		if slots == nil {
			continue
		}
		used := 0
		for j := range *slots {
			slot := (*slots)[j].Load()
			if slot == 0 {
				continue
			}
			used++
			sym, tag := Symbol(slot), uint32(slot>>32)
			token := k.get(sym)
			if h := tab.Hash(string(token)); shardOf(h) != uint64(i) || uint32(h) != tag {
				t.Fatalf("symbol %d (%.20q) is in the wrong place", sym, token)
			}
			if indexed[sym] || !k.held(sym) {
				t.Fatalf("symbol %d (%.20q): indexed twice or without references", sym, token)
			}
			indexed[sym] = true
			found := s.findLocked(tag, func(other Symbol) bool { return other == sym })
			if found != sym {
				t.Fatalf("symbol %d (%.20q) cannot be found from its home", sym, token)
			}
		}
		if used != s.used || used*5 > len(*slots)*4 {
			t.Fatalf("shard %d: %d of %d slots used, believes %d", i, used, len(*slots), s.used)
		}
	}
	if len(indexed) != tab.NumSymbols() {
		t.Fatalf("%d symbols indexed, NumSymbols() = %d", len(indexed), tab.NumSymbols())
	}

	resident := 0
	live := map[uint32]int32{} // bytes per chunk
	chunks := map[uint32]bool{k.arena.current: true}
	for i := range k.begun {
		p := k.pages.Find(i)
		room := k.room[i/64]>>(i%64)&1 != 0
		if p == nil {
			if !room {
				t.Fatalf("page %d is gone, but full", i)
			}
			continue
		}
		resident++
		inUse := 0
		for slot := range uint32(pageSize) {
			sym := Symbol(i<<pageBits) + Symbol(slot)
			at := place(p.where[slot].Load())
			if at.chunk() == 0 {
				if indexed[sym] {
					t.Fatalf("symbol %d is indexed and has no bytes", sym)
				}
				continue
			}
			if !indexed[sym] {
				t.Fatalf("symbol %d has bytes and is not indexed", sym)
			}
			if fast, slow := k.get(sym), k.getSlow(sym); string(fast) != string(slow) || k.whereOf(sym) != &p.where[slot] {
				t.Fatalf("symbol %d is %q, by the slow path %q", sym, fast, slow)
			}
			inUse++
			chunks[at.chunk()] = true
			if at.length() != wholeChunk {
				live[at.chunk()] += int32(len(appendHeader(nil, sym, at.length())) + at.length())
			}
		}
		if inUse != p.live || room != (inUse < pageSize && !(i == 0 && inUse == pageSize-1)) {
			t.Fatalf("page %d: %d in use, believes %d, room %t", i, inUse, p.live, room)
		}
	}
	if resident != k.resident {
		t.Fatalf("%d pages, believes %d", resident, k.resident)
	}
	if free := resident*pageSize - len(indexed); free > 2*pageSize && len(indexed) == 0 {
		t.Fatalf("%d pages kept for nothing", resident)
	}
	there := 0
	for chunk := uint32(1); chunk <= k.arena.last; chunk++ {
		g := k.arena.group(chunk)
		if g == nil {
			continue
		}
		i := chunk % chunksPerGroup
		if g.blocks[i].Load() == nil && g.big[i].Load() == nil {
			continue
		}
		there++
		if !chunks[chunk] {
			t.Fatalf("chunk %d is kept without a symbol in it", chunk)
		}
		if g.blocks[i].Load() != nil && (g.live[i] != live[chunk] || chunk != k.arena.current && g.live[i] < sparse) {
			t.Fatalf("block %d: %d bytes live, believes %d", chunk, live[chunk], g.live[i])
		}
	}
	if delete(chunks, 0); there != len(chunks) {
		t.Fatalf("%d chunks are there, %d in use", there, len(chunks))
	}
}

// slotCount is the size of the index.
func slotCount(tab *Table) (n int) {
	for i := range tab.shards {
		if slots := tab.shards[i].slots.Load(); slots != nil {
			n += len(*slots)
		}
	}
	return n
}

// chunkCount is the number of blocks and big tokens kept.
func chunkCount(tab *Table) (n, groups int) {
	for i := range int(tab.tokens.arena.last)/chunksPerGroup + 1 {
		if g := tab.tokens.arena.groups.Find(i); g != nil {
			n += g.chunks
			groups++
		}
	}
	return n, groups
}

// symbolsOf yields the symbols of enc in order, without literal segments.
func symbolsOf(enc []byte) iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		for c := (Cursor{rest: payload(enc)}); c.Next(); {
			if sym := c.Symbol(); sym != 0 && !yield(sym) {
				return
			}
		}
	}
}

// size returns the number of bytes of the encoded name at the start of b.
func size(b []byte) int {
	n, w := uvarint(b)
	return min(w+int(min(n, uint64(len(b)))), len(b))
}
