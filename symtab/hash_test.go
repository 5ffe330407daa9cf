//go:build !race

package symtab

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// Constants of xxHash64.
const (
	prime1 = 11400714785074694791
	prime2 = 14029467366897019727
	prime4 = 9650029242287828579
	prime5 = 2870177450012600261
)

// inverse returns the multiplicative inverse of odd p.
func inverse(p uint64) uint64 {
	x := p
	for range 6 {
		x *= 2 - p*x
	}
	return x
}

// xxRound prepares a word of a short input as xxHash64 does; unRound inverts
// it.
func xxRound(w uint64) uint64 { return bits.RotateLeft64(w*prime2, 31) * prime1 }
func unRound(k uint64) uint64 {
	return bits.RotateLeft64(k*inverse(prime1), -31) * inverse(prime2)
}

// afterFirst is the state of xxHash64 after the first word of a 16-byte input.
func afterFirst(seed, w uint64) uint64 {
	return bits.RotateLeft64((seed+prime5+16)^xxRound(w), 27)*prime1 + prime4
}

// solvedNames returns 16-byte names without dots that all have one hash under
// unseeded xxHash64: the second word makes up for the first.
func solvedNames(n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := make([]string, 0, n)
	for len(names) < n {
		w := rnd.Uint64()
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], w)
		binary.LittleEndian.PutUint64(b[8:], unRound(afterFirst(0, w)^0x123456789abcdef))
		if s := string(b[:]); !strings.Contains(s, ".") {
			names = append(names, s)
		}
	}
	return names
}

// seedlessPairs returns pairs of 16-byte names that collide under xxHash64
// with any seed: the first word flips the top bit of the state, the second
// flips it back.
func seedlessPairs(n int) [][2]string {
	rnd := rand.New(rand.NewPCG(3, 4))
	pairs := make([][2]string, n)
	for i := range pairs {
		w1, w2 := rnd.Uint64(), rnd.Uint64()
		var a, b [16]byte
		binary.LittleEndian.PutUint64(a[:], w1)
		binary.LittleEndian.PutUint64(a[8:], w2)
		binary.LittleEndian.PutUint64(b[:], unRound(xxRound(w1)^1<<(63-27)))
		binary.LittleEndian.PutUint64(b[8:], unRound(xxRound(w2)^1<<63))
		pairs[i] = [2]string{string(a[:]), string(b[:])}
	}
	return pairs
}

// longNames returns 2^n names of 16 n bytes without dots that all collide under
// unseeded xxHash64 and in large groups under any seed: n times, a change of
// one word of a stripe is made up for in the next stripe.
func longNames(n int) []string {
	rnd := rand.New(rand.NewPCG(5, 6))
	stripes := (n + 3) / 4 * 2
	base := make([]uint64, stripes*4)
	// The sign of the difference depends on the state of each lane.
	step := func(v, w uint64) uint64 { return bits.RotateLeft64(v+w*prime2, 31) * prime1 }
	p1, p2 := uint64(prime1), uint64(prime2)
	lanes := [4]uint64{p1 + p2, p2, 0, -p1}
	alternative := make([]uint64, len(base))
	for i := 0; i < len(base); i += 8 {
		for lane := 0; lane < 4; {
			v := lanes[lane]
			first, second := rnd.Uint64(), rnd.Uint64()
			flipped := first ^ 1<<63
			diff := step(v, flipped) - step(v, first)
			repaired := second - diff*inverse(prime2)
			if hasDot(first) || hasDot(second) || hasDot(flipped) || hasDot(repaired) {
				continue
			}
			base[i+lane], base[i+4+lane] = first, second
			alternative[i+lane], alternative[i+4+lane] = flipped, repaired
			lanes[lane] = step(step(v, first), second)
			lane++
		}
	}
	names := make([]string, 1<<n)
	b := make([]byte, len(base)*8)
	for choice := range names {
		for i := range base {
			w := base[i]
			if change := i/8*4 + i%4; change < n && choice>>change&1 != 0 {
				w = alternative[i]
			}
			binary.LittleEndian.PutUint64(b[i*8:], w)
		}
		names[choice] = string(b)
	}
	return names
}

func hasDot(w uint64) bool {
	for ; w != 0; w >>= 8 {
		if byte(w) == '.' {
			return true
		}
	}
	return false
}

func randomNames(n, length int) []string {
	rnd := rand.New(rand.NewPCG(7, 8))
	names := make([]string, n)
	b := make([]byte, length)
	for i := range names {
		for j := range b {
			b[j] = byte('a' + rnd.IntN(26))
		}
		names[i] = string(b)
	}
	return names
}

// seededXX is plain seeded xxHash64.
func seededXX(seed uint64, s string) uint64 {
	d := xxhash.NewWithSeed(seed)
	d.WriteString(s)
	return d.Sum64()
}

// TestHashFlooding interns names that collide under unseeded xxHash64 and
// checks that they spread like random ones.
func TestHashFlooding(t *testing.T) {
	const n = 200_000
	colliding := solvedNames(n)
	for _, s := range colliding {
		if xxhash.Sum64String(s) != xxhash.Sum64String(colliding[0]) {
			t.Fatalf("%q was meant to collide", s)
		}
	}
	fill := func(names []string) (spread, probes float64) {
		tab := New(Options{Seed: 1})
		for _, s := range names {
			tab.AppendEncode(nil, s)
		}
		most, distance := 0, 0
		for i := range tab.shards {
			s := &tab.shards[i]
			most = max(most, s.used)
			slots := *s.slots.Load()
			for j := range slots {
				if slot := slots[j].Load(); slot != 0 {
					distance += (j - home(uint32(slot>>32), len(slots)) + len(slots)) % len(slots)
				}
			}
		}
		if tab.NumSymbols() != len(names) {
			t.Fatalf("%d names made %d symbols", len(names), tab.NumSymbols())
		}
		return float64(most) * shardCount / float64(len(names)), float64(distance) / float64(len(names))
	}
	_, usual := fill(randomNames(n, 16))
	for name, names := range map[string][]string{"solved": colliding, "long": longNames(17)} {
		spread, probes := fill(names)
		t.Logf("%s: shard fill max/mean %.3f, %.2f probes beyond the first, random names %.2f", name, spread, probes, usual)
		if spread > 1.3 {
			t.Errorf("%s: shard fill max/mean = %.2f, want at most 1.3", name, spread)
		}
		if probes > 2*usual+1 {
			t.Errorf("%s: %.2f probes beyond the first, random names take %.2f", name, probes, usual)
		}
	}
}

// TestSeedIsNotEnough shows the collisions that a seed alone does not prevent,
// and that the keyed hash does.
func TestSeedIsNotEnough(t *testing.T) {
	tab := New(Options{})
	for _, p := range seedlessPairs(1000) {
		for _, seed := range []uint64{0, 1, 0xdeadbeef} {
			if seededXX(seed, p[0]) != seededXX(seed, p[1]) {
				t.Fatalf("%q and %q were meant to collide", p[0], p[1])
			}
		}
		if tab.Hash(p[0]) == tab.Hash(p[1]) {
			t.Errorf("%q and %q collide", p[0], p[1])
		}
	}
	names := longNames(16)
	plain, seeded, keyed := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for _, s := range names {
		plain[xxhash.Sum64String(s)] = true
		seeded[seededXX(42, s)] = true
		keyed[tab.Hash(s)] = true
	}
	if len(plain) != 1 || len(seeded) > len(names)/16 {
		t.Fatalf("%d and %d hashes without and with seed: the names were meant to collide", len(plain), len(seeded))
	}
	if len(keyed) != len(names) {
		t.Errorf("%d names have %d keyed hashes", len(names), len(keyed))
	}
}

func TestHashSeeds(t *testing.T) {
	names := append(randomNames(50, 12), "", "a")
	for _, s := range names {
		if a, b := New(Options{Seed: 5}).Hash(s), New(Options{Seed: 5}).Hash(s); a != b {
			t.Errorf("Hash(%q) with one seed = %x and %x", s, a, b)
		}
		if a, b := New(Options{Seed: 5}).Hash(s), New(Options{Seed: 6}).Hash(s); a == b {
			t.Errorf("Hash(%q) is the same with two seeds", s)
		}
		if a, b := New(Options{}).Hash(s), New(Options{}).Hash(s); a == b {
			t.Errorf("Hash(%q) is the same in two tables with random seeds", s)
		}
	}
}

// TestHashReadsEveryBit flips each bit of inputs of all lengths around the
// block sizes, and shortens and lengthens them.
func TestHashReadsEveryBit(t *testing.T) {
	tab := New(Options{Seed: 9})
	seen := map[uint64]string{}
	add := func(s, what string) {
		h := tab.Hash(s)
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", what, other)
		}
		seen[h] = what
	}
	for n := range 150 {
		b := make([]byte, n)
		add(string(b), fmt.Sprint("zeroes ", n))
		for bit := range n * 8 {
			b[bit/8] ^= 1 << (bit % 8)
			add(string(b), fmt.Sprintf("bit %d of %d", bit, n))
			b[bit/8] = 0
		}
	}
}

// TestSlotBits holds that within a shard the buckets are filled evenly too:
// they are chosen by other bits.
func TestSlotBits(t *testing.T) {
	tab := New(Options{Seed: 3})
	const buckets, perBucket = 64, 100
	var filled [buckets]int
	for i, n := 0, 0; n < buckets*perBucket; i++ {
		h := tab.Hash(fmt.Sprint("name", i))
		if shardOf(h) == 0 {
			filled[home(uint32(h), buckets)]++
			n++
		}
	}
	for i, n := range filled {
		if n < perBucket/2 || n > perBucket*2 {
			t.Errorf("bucket %d has %d names, want about %d", i, n, perBucket)
		}
	}
}
