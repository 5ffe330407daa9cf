package symtab

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/directory"
)

const (
	blockSize = 1 << 16
	// bigToken is the length from which a token gets a separate chunk.
	bigToken = blockSize / 4
	// sparse is the number of live bytes below which a full block is emptied.
	sparse = blockSize / 4

	chunksPerGroup = 256
)

// place is the location of a token's bytes: chunk number, offset in the chunk's
// block, length. The length alone identifies a chunk with one big token.
type place uint64

const wholeChunk = math.MaxUint16

func placeAt(chunk uint32, offset, length int) place {
	return place(uint64(chunk)<<32 | uint64(offset)<<16 | uint64(length))
}

func (p place) chunk() uint32 { return uint32(p >> 32) }
func (p place) offset() int   { return int(p >> 16 & math.MaxUint16) }
func (p place) length() int   { return int(p & math.MaxUint16) }

// arena keeps the bytes of tokens in numbered chunks. Bytes are written once,
// before their place is published, and chunk numbers are not reused, so a
// reader with an outdated place finds either the old bytes or no chunk.
//
// In a block, each token follows its symbol and its length as varints, so the
// live tokens of a block can be found and moved.
type arena struct {
	groups directory.Directory[chunkGroup] // changed under tokens.mu

	// Guarded by tokens.mu.
	last    uint32 // number of the newest chunk; 0 is no chunk
	current uint32 // the chunk with the block that is being filled, or 0
	filled  int    // bytes of it in use
}

// block is the usual chunk.
type block [blockSize]byte

// chunkGroup is a page of the directory of chunks.
type chunkGroup struct {
	blocks [chunksPerGroup]atomic.Pointer[block]
	big    [chunksPerGroup]atomic.Pointer[[]byte]

	// Guarded by tokens.mu.
	live   [chunksPerGroup]int32 // bytes of living tokens in a block, headers included
	chunks int                   // chunks of the group that are there
}

// bytes returns the bytes at a place; ok is false if the chunk is gone.
func (a *arena) bytes(at place) (b []byte, ok bool) {
	g := a.group(at.chunk())
	if g == nil {
		return nil, false
	}
	i := at.chunk() % chunksPerGroup
	if at.length() == wholeChunk {
		b := g.big[i].Load()
		if b == nil {
			return nil, false
		}
		return *b, true
	}
	blk := g.blocks[i].Load()
	if blk == nil {
		return nil, false
	}
	end := at.offset() + at.length()
	return blk[at.offset():end:end], true
}

func (a *arena) group(chunk uint32) *chunkGroup {
	return a.groups.Find(int(chunk / chunksPerGroup))
}

// newChunk takes the next chunk number. tokens.mu must be held.
func (a *arena) newChunk() (chunk uint32, g *chunkGroup) {
	a.last++
	i := int(a.last / chunksPerGroup)
	g = a.groups.Find(i)
	if g == nil {
		if i > 0 {
			a.dropGroupIfEmpty(i - 1)
		}
		g = new(chunkGroup)
		a.groups.Put(i, g)
	}
	g.chunks++
	return a.last, g
}

// dropChunk releases a chunk to the collector. tokens.mu must be held.
func (a *arena) dropChunk(chunk uint32) {
	g := a.group(chunk)
	g.blocks[chunk%chunksPerGroup].Store(nil)
	g.big[chunk%chunksPerGroup].Store(nil)
	g.chunks--
	if chunk/chunksPerGroup != a.last/chunksPerGroup {
		a.dropGroupIfEmpty(int(chunk / chunksPerGroup))
	}
}

// dropGroupIfEmpty releases an empty group that gets no more chunks. tokens.mu
// must be held.
func (a *arena) dropGroupIfEmpty(i int) {
	if g := a.groups.Find(i); g != nil && g.chunks == 0 {
		a.groups.Put(i, nil)
	}
}

// add stores the bytes of a token. k.mu must be held.
func (k *tokens) add(sym Symbol, token string) place {
	a := &k.arena
	if len(token) >= bigToken {
		chunk, g := a.newChunk()
		b := []byte(token)
		g.big[chunk%chunksPerGroup].Store(&b)
		return placeAt(chunk, 0, wholeChunk)
	}
	var header [2 * binary.MaxVarintLen32]byte
	h := appendHeader(header[:0], sym, len(token))
	n := len(h) + len(token)
	if a.current == 0 || a.filled+n >= blockSize { // the offset of an empty token is less than blockSize too
		full := a.current
		chunk, g := a.newChunk()
		g.blocks[chunk%chunksPerGroup].Store(new(block))
		a.current, a.filled = chunk, 0
		if full != 0 {
			k.emptyIfSparse(full)
		}
	}
	g, i := a.group(a.current), a.current%chunksPerGroup
	blk := g.blocks[i].Load()
	copy(blk[a.filled:], h)
	offset := a.filled + len(h)
	copy(blk[offset:], token)
	a.filled += n
	g.live[i] += int32(n)
	return placeAt(a.current, offset, len(token))
}

// remove frees the bytes of a token whose place is no longer published. k.mu
// must be held.
func (k *tokens) remove(sym Symbol, at place) {
	chunk := at.chunk()
	if at.length() == wholeChunk {
		k.arena.dropChunk(chunk)
		return
	}
	var header [2 * binary.MaxVarintLen32]byte
	n := len(appendHeader(header[:0], sym, at.length())) + at.length()
	k.arena.group(chunk).live[chunk%chunksPerGroup] -= int32(n)
	if chunk != k.arena.current {
		k.emptyIfSparse(chunk)
	}
}

// emptyIfSparse moves the tokens of a full but mostly dead block to the current
// one and drops the block. k.mu must be held.
func (k *tokens) emptyIfSparse(chunk uint32) {
	g, i := k.arena.group(chunk), chunk%chunksPerGroup
	if g.live[i] >= sparse {
		return
	}
	blk := g.blocks[i].Load()
	for pos := 0; g.live[i] > 0; {
		sym, w := binary.Uvarint(blk[pos:])
		length, v := binary.Uvarint(blk[pos+w:])
		offset := pos + w + v
		end := offset + int(length)
		where := k.whereOf(Symbol(sym))
		if where != nil && where.Load() == uint64(placeAt(chunk, offset, int(length))) {
			where.Store(uint64(k.add(Symbol(sym), view(blk[offset:end]))))
			g.live[i] -= int32(end - pos)
		}
		pos = end
	}
	k.arena.dropChunk(chunk)
}

// whereOf returns the word with the location of a symbol's bytes, or nil if its
// page is gone.
func (k *tokens) whereOf(sym Symbol) *atomic.Uint64 {
	if p := k.page(sym); p != nil {
		return &p.where[sym%pageSize]
	}
	return nil
}

func appendHeader(dst []byte, sym Symbol, length int) []byte {
	dst = binary.AppendUvarint(dst, uint64(sym))
	return binary.AppendUvarint(dst, uint64(length))
}
