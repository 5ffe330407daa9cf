package symtab

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// keyedHash is xxHash64 over words that a secret key has scrambled first.
//
// Giving xxHash64 a seed is not enough against chosen names: flipping the top
// bit of a word so that it lands in the top bit of the state, and again in the
// next word, yields pairs that collide under every seed, and n such pairs of
// words yield 2^n colliding names. Such tricks need to know the difference
// that enters the function, so each word is multiplied by a secret number
// first, high and low half of the product folded together.
type keyedHash struct{ add, mul, start uint64 }

func newKeyedHash(seed uint64) keyedHash {
	// SplitMix64 (Steele, Lea, Flood 2014) spreads the seed over the keys.
	word := func() uint64 {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	return keyedHash{add: word(), mul: word() | 1, start: word()}
}

// sum hashes s. The buffer holds the state so far and up to eight words.
func (k *keyedHash) sum(s string) uint64 {
	var buf [72]byte
	state := k.start + uint64(len(s))
	for {
		binary.LittleEndian.PutUint64(buf[:], state)
		n := 8
		for n < len(buf) && len(s) >= 8 {
			binary.LittleEndian.PutUint64(buf[n:], k.scramble(word(s)))
			s = s[8:]
			n += 8
		}
		if n < len(buf) && len(s) > 0 {
			var tail uint64
			for i := len(s) - 1; i >= 0; i-- {
				tail = tail<<8 | uint64(s[i])
			}
			binary.LittleEndian.PutUint64(buf[n:], k.scramble(tail))
			s = ""
			n += 8
		}
		state = xxhash.Sum64(buf[:n])
		if s == "" {
			return state
		}
	}
}

func (k *keyedHash) scramble(w uint64) uint64 {
	hi, lo := bits.Mul64(w^k.add, k.mul)
	return hi ^ lo
}

// word reads the first eight bytes of s; the compiler makes it one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
