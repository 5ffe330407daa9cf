// Package fingerprint tells texts apart by 128 bits that depend on secret keys,
// so that a table needs neither keep nor compare the texts that it knows.
package fingerprint

import (
	"crypto/rand"
	"hash/maphash"
)

// Keys are secrets that nobody knows, not even the one who uses them. They are
// safe for concurrent use.
type Keys struct {
	aes   [9][16]byte // four for the lanes, four for the rounds, one for the length
	fast  bool        // aes is used, not seeds
	seeds [2]maphash.Seed
}

// NewKeys returns keys of their own.
func NewKeys() Keys {
	k := Keys{fast: hasAES(), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range k.aes {
		rand.Read(k.aes[i][:])
	}
	return k
}

// Of returns the fingerprint of text under k. It allocates nothing and keeps
// nothing of text. Under other keys the fingerprint is another one.
//
// Where the processor has instructions for AES, up to four lanes of 16 bytes of
// text and one of its length go through four rounds each of it (FIPS 197, 5.1)
// and are added up. Longer texts are absorbed by the lanes 64 bytes at a time,
// with four rounds after each. Elsewhere a fingerprint is two hashes of 64 bits
// of the runtime.
func (k *Keys) Of(text string) (lo, hi uint64) {
	if k.fast {
		return aes(&k.aes, text)
	}
	return k.portable(text)
}

func (k *Keys) portable(text string) (lo, hi uint64) {
	return maphash.String(k.seeds[0], text), maphash.String(k.seeds[1], text)
}
