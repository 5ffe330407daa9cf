// Package symtab turns dotted stat names into short byte strings of shared
// numbers, and back.
//
// A name is split at its dots. Each token ("cluster", "upstream_rq") is stored
// once and identified by a [Symbol], a small reference-counted number. It is
// stable while references exist and reused for another token afterwards. An
// encoded name is
//
//	varint(length of the rest) varint(symbol) varint(symbol) ...
//
// with varints of 7-bit groups, least significant first. Symbol 0 is never
// issued; in an encoding it starts a literal segment, which carries its own
// bytes: 0, varint(length), bytes. Literal segments may contain dots. They are
// not shared, take no lock and hold no reference. Functions that take an encoded
// name read no further, so a name can be followed by other bytes.
//
// # Concurrency
//
// All methods may be called from any goroutine. Encoding a name whose tokens
// are known takes no lock. Reading (Token, AppendText, EqualText, Compare,
// HasPrefix, Segments) and joining never do. A new token, or the last
// reference to one going away, takes the lock of one shard and a short lock
// of the allocator.
//
// # Memory
//
// Tokens live in large blocks of bytes, their numbers in pages of plain words,
// and the index in flat arrays, so the garbage collector sees only a few
// objects. Memory of released tokens is reclaimed: live tokens of a mostly dead
// block move into the current block, unused pages are dropped, and index arrays
// shrink.
package symtab

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
)

// Symbol is the number of a token. 0 is never issued: in an encoded name it
// marks a literal segment.
type Symbol uint32

// Options configures a Table. The zero value means all defaults.
type Options struct {
	// Seed keys the hash, so that clients cannot choose names that collide. 0
	// selects a random seed.
	Seed uint64

	// Fake disables the list of recent lookups permanently: enabling, disabling
	// and clearing it have no effect, and the total stays 0.
	Fake bool
}

// Table is a symbol table. Use New; the zero value does not work.
type Table struct {
	hash   keyedHash
	shards [shardCount]shard
	tokens tokens
	recent recent
}

// New returns an empty table.
func New(o Options) *Table {
	seed := o.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	t := &Table{hash: newKeyedHash(seed)}
	t.tokens.init()
	t.recent.init(o.Fake)
	return t
}

// Hash returns the table's keyed hash of the bytes of s, for indexes over whole
// names. It resists collision attacks as the table itself does. The value
// differs between tables with different seeds and must not leave the process.
func (t *Table) Hash(s string) uint64 { return t.hash.sum(s) }

// NumSymbols returns the number of distinct tokens in the table.
func (t *Table) NumSymbols() int { return int(t.tokens.live.Load()) }

// AppendEncode appends the encoding of name to dst and takes one reference per
// token; return them with Release. Trailing dots are dropped, empty tokens
// elsewhere are kept, and a name of only dots is the empty name. Names can have
// any length and any bytes. The call does not count as a lookup.
func (t *Table) AppendEncode(dst []byte, name string) []byte {
	name = strings.TrimRight(name, ".")
	start := len(dst)
	dst = append(dst, 0) // room for the length, right for all but long names
	if name == "" {
		return dst
	}
	for {
		dot := strings.IndexByte(name, '.')
		token := name
		if dot >= 0 {
			token = name[:dot]
		}
		if sym := t.intern(token); sym != 0 {
			dst = binary.AppendUvarint(dst, uint64(sym))
		} else {
			dst = appendLiteralSegment(dst, token)
		}
		if dot < 0 {
			return setLength(dst, start)
		}
		name = name[dot+1:]
	}
}

// AppendEncodeBytes is like AppendEncode for a name in bytes. It does not
// retain name.
func (t *Table) AppendEncodeBytes(dst, name []byte) []byte {
	return t.AppendEncode(dst, view(name))
}

// Retain takes another reference to each token of enc, which must be held. A
// joined name that outlives its parts needs it.
func (t *Table) Retain(enc []byte) {
	for rest := payload(enc); len(rest) > 0; {
		var sym Symbol
		if sym, _, rest = segment(rest); sym != 0 {
			t.tokens.tryRetain(sym)
		}
	}
}

// Release returns the references that AppendEncode or Retain took for enc.
// Releasing a name that is not held corrupts the counts of other holders.
func (t *Table) Release(enc []byte) {
	for rest := payload(enc); len(rest) > 0; {
		var sym Symbol
		if sym, _, rest = segment(rest); sym != 0 {
			t.release(sym)
		}
	}
}

// intern takes a reference to token and returns its symbol, or 0 if no numbers
// are left and the token must be stored as a literal.
func (t *Table) intern(token string) Symbol {
	h := t.hash.sum(token)
	s := &t.shards[shardOf(h)]
	if table := s.slots.Load(); table != nil {
		tag := uint32(h)
		i := home(tag, len(*table))
		for range *table {
			slot := (*table)[i].Load()
			if slot == 0 {
				break
			}
			if uint32(slot>>32) == tag {
				// The number may have been freed and given to another
				// token since the slot was read. Holding a reference stops
				// that, so look at the bytes only then.
				sym := Symbol(slot)
				if t.tokens.tryRetain(sym) {
					if string(t.tokens.get(sym)) == token {
						return sym
					}
					t.release(sym)
				}
			}
			if i++; i == len(*table) {
				i = 0
			}
		}
	}
	return t.internSlow(s, h, token)
}

// internSlow is intern under the lock of the shard, where the index is exact.
func (t *Table) internSlow(s *shard, h uint64, token string) Symbol {
	s.mu.Lock()
	defer s.mu.Unlock()
	sym := s.findLocked(uint32(h), func(sym Symbol) bool {
		return string(t.tokens.get(sym)) == token
	})
	if sym != 0 {
		t.tokens.retain(sym)
		return sym
	}
	if sym = t.tokens.create(token); sym != 0 {
		s.insertLocked(uint32(h), sym)
	}
	return sym
}

// release gives back one reference and removes the token if it was the last.
func (t *Table) release(sym Symbol) {
	if !t.tokens.drop(sym) {
		return
	}
	// Until the lock is held, another goroutine can revive the token, or revive
	// and remove it so that its number is reused. The goroutine that drops the
	// last reference arrives here after that, so if the number is absent or in
	// use, there is nothing left to do.
	h := t.hash.sum(view(t.tokens.get(sym)))
	s := &t.shards[shardOf(h)]
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.findLocked(uint32(h), func(found Symbol) bool { return found == sym })
	if found != 0 && !t.tokens.held(sym) {
		s.removeLocked(uint32(h), sym)
		t.tokens.destroy(sym)
	}
}
