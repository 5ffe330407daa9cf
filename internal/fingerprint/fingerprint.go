// Package fingerprint identifies texts by 128 bits that depend on secret keys, so
// that a table needs neither to store nor to compare its texts.
package fingerprint

import (
	"crypto/rand"
	"hash/maphash"
)

// Keys are random secrets that are never revealed. They are safe for concurrent use.
type Keys struct {
	aes   [9][16]byte // four for the lanes, four for the rounds, one for the length
	fast  bool        // aes is used, not seeds
	seeds [2]maphash.Seed
}

// NewKeys returns new random keys.
func NewKeys() Keys {
	k := Keys{fast: hasAES(), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range k.aes {
		rand.Read(k.aes[i][:])
	}
	return k
}

// Of returns the fingerprint of text under k. It does not allocate and does not
// retain text. Fingerprints under different keys are unrelated.
//
// On processors with AES instructions, up to four lanes of 16 bytes of text, and one
// with its length, go through four rounds each (FIPS 197, 5.1) and are summed. Longer
// texts are absorbed 64 bytes at a time, with four rounds after each. Elsewhere a
// fingerprint consists of two 64-bit hashes of the runtime.
func (k *Keys) Of(text string) (lo, hi uint64) {
	if k.fast {
		return aes(&k.aes, text)
	}
	return k.portable(text)
}

func (k *Keys) portable(text string) (lo, hi uint64) {
	return maphash.String(k.seeds[0], text), maphash.String(k.seeds[1], text)
}
