package lb

import "encoding/binary"

// murmurSeed is the seed that the GNU C++ library hashes strings with.
const murmurSeed = 0xc70f6907

// murmur2 is the 64-bit MurmurHash2 by Austin Appleby in the form of the GNU
// C++ library on 64-bit machines.
func murmur2(b []byte, seed uint64) uint64 {
	const mul = 0xc6a4a7935bd1e995
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	hash := seed ^ uint64(len(b))*mul
	for ; len(b) >= 8; b = b[8:] {
		hash ^= mix(binary.LittleEndian.Uint64(b)*mul) * mul
		hash *= mul
	}
	if len(b) > 0 {
		var tail uint64
		for i, c := range b {
			tail |= uint64(c) << (8 * i)
		}
		hash ^= tail
		hash *= mul
	}
	return mix(mix(hash) * mul)
}
