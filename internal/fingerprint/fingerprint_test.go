package fingerprint

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// sbox returns the AES substitution (FIPS 197, 5.1.1) of x: its inverse in the field
// of 256 elements, then an affine map.
func sbox(x byte) byte {
	var inverse byte
	for y := range 256 {
		if times(x, byte(y)) == 1 {
			inverse = byte(y)
		}
	}
	out := byte(0x63)
	for i := range 5 {
		out ^= bits.RotateLeft8(inverse, i)
	}
	return out
}

// times multiplies in the AES field of 256 elements.
func times(x, y byte) (product byte) {
	for ; y != 0; y >>= 1 {
		if y&1 != 0 {
			product ^= x
		}
		x = x<<1 ^ x>>7*0x1b
	}
	return product
}

// reference computes [aes] from the text of the standard.
type reference struct{ sub [256]byte }

func newReference() *reference {
	r := new(reference)
	for i := range r.sub {
		r.sub[i] = sbox(byte(i))
	}
	return r
}

// round is SubBytes, ShiftRows, MixColumns and AddRoundKey.
func (r *reference) round(state, key [16]byte) (out [16]byte) {
	for c := range 4 {
		var column [4]byte
		for row := range 4 {
			column[row] = r.sub[state[(c+row)%4*4+row]]
		}
		for row := range 4 {
			out[c*4+row] = times(column[row], 2) ^ times(column[(row+1)%4], 3) ^
				column[(row+2)%4] ^ column[(row+3)%4] ^ key[c*4+row]
		}
	}
	return out
}

func xor(a, b [16]byte) (out [16]byte) {
	for i := range a {
		out[i] = a[i] ^ b[i]
	}
	return out
}

func (r *reference) of(keys *[9][16]byte, text []byte) (lo, hi uint64) {
	n := len(text)
	var lanes [4][16]byte
	copy(lanes[:], keys[:4])
	rounds := func(lane [16]byte) [16]byte {
		for _, k := range keys[4:8] {
			lane = r.round(lane, k)
		}
		return lane
	}
	absorb := func(blocks ...[]byte) {
		for i, b := range blocks {
			lanes[i] = rounds(xor(lanes[i], [16]byte(b)))
		}
	}
	used := 4
	switch {
	case n == 0:
		used = 1
		absorb(make([]byte, 16))
	case n < 4:
		used = 1
		absorb(append([]byte{text[0], text[n/2], text[n-1]}, make([]byte, 13)...))
	case n < 8:
		used = 1
		absorb(append(append(bytes.Clone(text[:4]), text[n-4:]...), make([]byte, 8)...))
	case n <= 16:
		used = 1
		absorb(append(bytes.Clone(text[:8]), text[n-8:]...))
	case n <= 32:
		used = 2
		absorb(text[:16], text[n-16:])
	case n <= 64:
		absorb(text[:16], text[16:32], text[n-32:n-16], text[n-16:])
	default:
		rest := text
		for ; len(rest) > 64; rest = rest[64:] {
			absorb(rest[:16], rest[16:32], rest[32:48], rest[48:64])
		}
		end := text[n-64:]
		absorb(end[:16], end[16:32], end[32:48], end[48:])
	}
	var length [16]byte
	binary.LittleEndian.PutUint64(length[:], uint64(n))
	sum := rounds(xor(keys[8], length))
	for _, l := range lanes[:used] {
		sum = xor(sum, l)
	}
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
}

// TestReferenceIsAES checks the reference with the example of FIPS 197, appendix B,
// rounds 1 and 2.
func TestReferenceIsAES(t *testing.T) {
	r := newReference()
	block := func(s string) (b [16]byte) {
		if n, err := hex.Decode(b[:], []byte(s)); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		return b
	}
	state := block("193de3bea0f4e22b9ac68d2ae9f84808")
	state = r.round(state, block("a0fafe1788542cb123a339392a6c7605"))
	if want := block("a49c7ff2689f352b6b5bea43026a5049"); state != want {
		t.Fatalf("after round 1: %x, want %x", state, want)
	}
	state = r.round(state, block("f2c295f27a96b9435935807a7359f67f"))
	if want := block("aa8f5f0361dde3ef82d24ad26832469a"); state != want {
		t.Fatalf("after round 2: %x, want %x", state, want)
	}
}

func fastKeys(t testing.TB) *Keys {
	k := NewKeys()
	if !k.fast {
		t.Log("no instructions for AES: the portable twin is tested alone")
	}
	return &k
}

func TestInstructionsDoWhatTheReferenceDoes(t *testing.T) {
	k, r := fastKeys(t), newReference()
	if !k.fast {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(rnd.Uint32())
		}
		lo, hi := k.Of(string(text))
		wantLo, wantHi := r.of(&k.aes, text)
		if lo != wantLo || hi != wantHi {
			t.Fatalf("%d bytes: %x %x, want %x %x", n, lo, hi, wantLo, wantHi)
		}
	}
}

// eachForm calls f with keys for the fast form, if it is available, and for the
// portable one.
func eachForm(t *testing.T, f func(t *testing.T, k *Keys)) {
	t.Run("default", func(t *testing.T) { f(t, fastKeys(t)) })
	t.Run("portable", func(t *testing.T) {
		k := NewKeys()
		k.fast = false
		f(t, &k)
	})
}

// TestTextsDiffer uses texts that differ as little as possible: in a bit, in length,
// in the order of their parts. Both halves must differ.
func TestTextsDiffer(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		var seen [2]map[uint64]string
		seen[0], seen[1] = map[uint64]string{}, map[uint64]string{}
		check := func(text string) {
			lo, hi := k.Of(text)
			for i, half := range [2]uint64{lo, hi} {
				if other, ok := seen[i][half]; ok && other != text {
					t.Fatalf("half %d of %q and of %q is %x", i, text, other, half)
				}
				seen[i][half] = text
			}
		}
		for n := range 260 {
			same := bytes.Repeat([]byte{'a'}, n)
			check(string(same))
			for i := range same {
				same[i] ^= 1 << (i % 8)
				check(string(same))
				same[i] ^= 1 << (i % 8)
			}
			zeros := make([]byte, n)
			check(string(zeros))
		}
		parts := []string{"0123456789abcdef", "ghijklmnopqrstuv", "wxyzABCDEFGHIJKL", "MNOPQRSTUVWXYZ.-", "----------------"}
		for i := range parts {
			for j := range parts {
				for l := range parts {
					for m := range parts {
						check(parts[i] + parts[j] + parts[l] + parts[m])
						check(parts[i] + parts[j] + parts[l] + parts[m] + parts[j] + parts[i])
					}
				}
			}
		}
	})
}

// TestBitsAreEven uses typical names: each bit of a fingerprint is set for half of
// them, within eight standard deviations.
func TestBitsAreEven(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		const names = 1 << 16
		var set [128]int
		for i := range names {
			lo, hi := k.Of(fmt.Sprintf("cluster.service_%d.upstream_rq_%d", i/100, i%100))
			for b := range 64 {
				set[b] += int(lo >> b & 1)
				set[64+b] += int(hi >> b & 1)
			}
		}
		const deviation = 128 // sqrt(names) / 2
		for b, n := range set {
			if n < names/2-8*deviation || n > names/2+8*deviation {
				t.Errorf("bit %d is set for %d of %d names", b, n, names)
			}
		}
	})
}

func TestKeysAreSecret(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		other := NewKeys()
		other.fast = k.fast
		for _, text := range []string{"", "a", "upstream_rq_total", "cluster.service_1.upstream_rq_total.and_more"} {
			lo, hi := k.Of(text)
			if otherLo, otherHi := other.Of(text); lo == otherLo || hi == otherHi {
				t.Errorf("%q has the same fingerprint under other keys", text)
			}
			if againLo, againHi := k.Of(string([]byte(text))); lo != againLo || hi != againHi {
				t.Errorf("%q has two fingerprints under the same keys", text)
			}
		}
	})
}

// text returns the content of buf without a copy.
func text(buf []byte) string { return unsafe.String(&buf[0], len(buf)) }

func TestOfAllocatesNothing(t *testing.T) {
	k := NewKeys()
	buf := []byte("cluster.service_1.upstream_rq_total")
	n := testing.AllocsPerRun(100, func() {
		buf[8]++
		lo, _ := k.Of(text(buf))
		if lo == 0 {
			t.Log("zero")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzOf(f *testing.F) {
	for _, n := range []int{0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 128, 129} {
		f.Add(bytes.Repeat([]byte{'x'}, n))
	}
	k, r := fastKeys(f), newReference()
	f.Fuzz(func(t *testing.T, text []byte) {
		lo, hi := k.Of(string(text))
		wantLo, wantHi := maphash.Bytes(k.seeds[0], text), maphash.Bytes(k.seeds[1], text)
		if k.fast {
			wantLo, wantHi = r.of(&k.aes, text)
		}
		if lo != wantLo || hi != wantHi {
			t.Fatalf("%q: %x %x, want %x %x", text, lo, hi, wantLo, wantHi)
		}
	})
}
