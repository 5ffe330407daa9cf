package statsd

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"

	"github.com/statsd-admin/statsd-admin/store"
)

// set counts the different members of the current interval: exactly up to
// setExact of them, then with HyperLogLog (Flajolet, Fusy, Gandouet, Meunier
// 2007, with linear counting for small numbers) in 2^14 registers, whose
// standard error is 0.8 %. It takes at most 64 KiB, or 16 KiB once it
// estimates. Members are kept as 64-bit seeded hashes.
type set struct {
	gauge  *store.FloatGauge // the count of the last finished interval
	memory *memory

	mu        sync.Mutex // guards the rest
	charged   int        // bytes, beyond setReserve
	hashes    []uint64   // open addressing table; 0 is empty
	n         int        // of hashes in use
	registers []uint8    // nil while counting exactly
}

const (
	setExact    = 4096
	setBits     = 14
	setFirst    = 16
	setMaxSlots = 2 * setExact
)

// add adds a member to s.
func (s *set) add(seed maphash.Seed, member []byte) {
	h := mix(maphash.Bytes(seed, member))
	if h == 0 {
		h = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registers != nil {
		s.estimate(h)
		return
	}
	if s.full() {
		if s.has(h) {
			return
		}
		s.registers = make([]uint8, 1<<setBits)
		for _, old := range s.hashes {
			if old != 0 {
				s.estimate(old)
			}
		}
		s.hashes = nil
		s.charge(0)
		s.estimate(h)
		return
	}
	if 2*s.n >= len(s.hashes) && len(s.hashes) < setMaxSlots {
		old := s.hashes
		s.hashes = make([]uint64, max(setFirst, 2*len(old)))
		s.n = 0
		for _, o := range old {
			if o != 0 {
				s.insert(o)
			}
		}
	}
	s.insert(h)
}

// full reports whether s must estimate to count one more member: it holds
// setExact members, or a larger table would exceed the memory budget.
func (s *set) full() bool {
	if s.n == setExact {
		return true
	}
	if 2*s.n < len(s.hashes) || len(s.hashes) == setMaxSlots {
		return false
	}
	return !s.charge(8 * max(setFirst, 2*len(s.hashes)))
}

// charge sets the size of the table that s is charged for. It reports false if
// the budget does not allow it.
func (s *set) charge(bytes int) bool {
	more := max(bytes-setReserve, 0) - s.charged
	if more > 0 && !s.memory.reserve(more) {
		return false
	}
	if more < 0 {
		s.memory.charge(more)
	}
	s.charged += more
	return true
}

// release returns what s was charged beyond its reserve.
func (s *set) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(0)
}

func (s *set) has(h uint64) bool {
	mask := uint64(len(s.hashes) - 1)
	for i := h & mask; s.hashes[i] != 0; i = (i + 1) & mask {
		if s.hashes[i] == h {
			return true
		}
	}
	return false
}

func (s *set) insert(h uint64) {
	mask := uint64(len(s.hashes) - 1)
	i := h & mask
	for ; s.hashes[i] != 0; i = (i + 1) & mask {
		if s.hashes[i] == h {
			return
		}
	}
	s.hashes[i] = h
	s.n++
}

func (s *set) estimate(h uint64) {
	r := &s.registers[h>>(64-setBits)]
	*r = max(*r, rank(h<<setBits))
}

// rank returns the position of the highest bit of h, counted from 1 at the top.
func rank(h uint64) uint8 { return uint8(min(bits.LeadingZeros64(h)+1, 50)) }

// flush ends the interval: it returns the number of members and empties s.
func (s *set) flush() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registers == nil {
		n := s.n
		if len(s.hashes) > 4*max(setFirst, n) {
			s.hashes = nil // it was larger in an earlier interval
			s.charge(0)
		}
		clear(s.hashes)
		s.n = 0
		return float64(n)
	}
	n := cardinality(s.registers)
	s.registers, s.n = nil, 0
	return math.Round(n)
}

// cardinality returns the HyperLogLog estimate.
func cardinality(registers []uint8) float64 {
	m := float64(len(registers))
	sum, zeros := 0.0, 0
	for _, r := range registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zeros++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zeros > 0 {
		return m * math.Log(m/float64(zeros))
	}
	return e
}

// mix spreads the bits of h (the finalizer of splitmix64): the registers need
// all of them.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
