package symtab

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// keyedHash is xxHash64 over words that secret keys have scrambled first.
//
// A seed does not protect xxHash64 from chosen names. A change of one word that
// flips only the top bit of the state can be undone by the next word,
// independent of the state: short names collide in pairs under every seed, and
// long names with n such positions form groups that grow exponentially with n.
// Such attacks depend on knowing the difference that enters the function.
// Therefore each 16 bytes of input enter as the folded product of two words,
// each masked by a key, and the effect of a change is unpredictable without the
// keys.
type keyedHash struct{ maskA, maskB, start uint64 }

func newKeyedHash(seed uint64) keyedHash {
	// SplitMix64 (Steele, Lea, Flood 2014) spreads the seed over the keys.
	next := func() uint64 {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	return keyedHash{maskA: next(), maskB: next(), start: next()}
}

// hashBlock is the number of input bytes for one call of xxHash64.
const hashBlock = 64

// sum hashes s. Each round hashes the state so far, which begins with the
// length, and the folded products of a block; the last 16 bytes of s form the
// last product, even if they overlap the one before.
func (k *keyedHash) sum(s string) uint64 {
	var buf [8 + hashBlock/2]byte
	state := k.start + uint64(len(s))
	rest := s
	for len(rest) > hashBlock {
		binary.LittleEndian.PutUint64(buf[0:], state)
		binary.LittleEndian.PutUint64(buf[8:], k.fold(word(rest), word(rest[8:])))
		binary.LittleEndian.PutUint64(buf[16:], k.fold(word(rest[16:]), word(rest[24:])))
		binary.LittleEndian.PutUint64(buf[24:], k.fold(word(rest[32:]), word(rest[40:])))
		binary.LittleEndian.PutUint64(buf[32:], k.fold(word(rest[48:]), word(rest[56:])))
		state = xxhash.Sum64(buf[:])
		rest = rest[hashBlock:]
	}
	binary.LittleEndian.PutUint64(buf[:], state)
	n := 8
	for len(rest) > 16 {
		binary.LittleEndian.PutUint64(buf[n:], k.fold(word(rest), word(rest[8:])))
		rest = rest[16:]
		n += 8
	}
	var a, b uint64
	switch {
	case len(s) >= 16:
		last := s[len(s)-16:]
		a, b = word(last), word(last[8:])
	case len(s) >= 8:
		a, b = word(s), word(s[len(s)-8:])
	case len(s) >= 4:
		a, b = half(s), half(s[len(s)-4:])
	case len(s) > 0:
		a, b = uint64(s[0])|uint64(s[len(s)/2])<<8, uint64(s[len(s)-1])
	}
	binary.LittleEndian.PutUint64(buf[n:], k.fold(a, b))
	return xxhash.Sum64(buf[:n+8])
}

func (k *keyedHash) fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^k.maskA, b^k.maskB)
	return hi ^ lo
}

// word reads the first eight bytes of s; the compiler makes it one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// half reads the first four bytes of s.
func half(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}
