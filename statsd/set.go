package statsd

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// set counts the different members of the current interval and of a window:
// exactly while the window has up to setExact of them, then with HyperLogLog
// (Flajolet, Fusy, Gandouet, Meunier 2007, with linear counting for small numbers)
// in 2^14 registers, whose standard error is 0.8 %. It takes at most 80 KiB, or
// 16 KiB for the interval and for each step of the window once it estimates.
// Members are kept as 64-bit seeded hashes.
type set struct {
	gauge  *store.FloatGauge // the count of the window, as of the last flush
	last   atomic.Uint64     // bits of the count of the last finished interval
	memory *memory
	window setWindow

	mu      sync.Mutex // guards the rest
	charged int        // bytes, beyond setReserve
	step    int64      // number of the newest step
	hashes  []uint64   // open addressing table; 0 is empty
	seen    []uint16   // by hash: when it was added last, as stepMask bits of the step, or inInterval
	n       int        // of hashes in use
	fresh   int        // of hashes that are inInterval

	registers []uint8   // of the interval; nil while counting exactly
	dirty     bool      // registers are not all 0
	steps     []setStep // of the window while estimating, the oldest first
	estimated float64   // the members of steps
}

// setWindow is the time that the shown count of a set covers, in steps. Without
// steps it is the last interval.
type setWindow struct {
	step  time.Duration
	steps int
}

// setStep estimates the members of a step of a window.
type setStep struct {
	number    int64 // of the step, counted from the Unix epoch
	registers []uint8
}

const (
	setExact    = 4096
	setBits     = 14
	setFirst    = 16
	setMaxSlots = 2 * setExact
	slotBytes   = 10 // of hashes and seen

	stepMask   = 1<<15 - 1
	inInterval = 1 << 15
)

// newSetWindow returns the window for a time in a number of steps, which are
// whole seconds. Zeros stand for the default, and a negative time for no window.
func newSetWindow(all time.Duration, steps int) setWindow {
	if all < 0 {
		return setWindow{}
	}
	w := setWindow{steps: cmp.Or(steps, defaultSteps)}
	w.step = max(cmp.Or(all, defaultWindow)/time.Duration(w.steps), time.Second)
	return w
}

func (s *set) add(seed maphash.Seed, member []byte) {
	h := mix(maphash.Bytes(seed, member))
	if h == 0 {
		h = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registers == nil && !s.has(h) && !s.makeRoom() {
		s.startEstimating()
	}
	if s.registers != nil {
		estimate(s.registers, h)
		s.dirty = true
		return
	}
	i, known := s.slot(h)
	if !known {
		s.hashes[i] = h
		s.n++
	} else if s.seen[i] == inInterval {
		return
	}
	s.seen[i] = inInterval
	s.fresh++
}

// makeRoom makes room for one more member. It reports false if s must estimate to count
// it: s holds setExact members, or a larger table would exceed the memory budget.
func (s *set) makeRoom() bool {
	if s.n == setExact {
		return false
	}
	if 2*s.n < len(s.hashes) || len(s.hashes) == setMaxSlots {
		return true
	}
	slots := max(setFirst, 2*len(s.hashes))
	if !s.charge(slotBytes * slots) {
		return false
	}
	s.rebuild(slots, func(uint16) bool { return true })
	return true
}

// charge sets the bytes that s is charged for. It reports false if the budget
// does not allow it.
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
	if len(s.hashes) == 0 {
		return false
	}
	_, known := s.slot(h)
	return known
}

// slot returns where h is, or belongs.
func (s *set) slot(h uint64) (i int, known bool) {
	mask := uint64(len(s.hashes) - 1)
	x := h & mask
	for ; s.hashes[x] != 0; x = (x + 1) & mask {
		if s.hashes[x] == h {
			return int(x), true
		}
	}
	return int(x), false
}

// rebuild gives s a table with that many slots and the members that keep wants.
func (s *set) rebuild(slots int, keep func(seen uint16) bool) {
	hashes, seen := s.hashes, s.seen
	s.hashes, s.seen, s.n = make([]uint64, slots), make([]uint16, slots), 0
	for i, h := range hashes {
		if h != 0 && keep(seen[i]) {
			at, _ := s.slot(h)
			s.hashes[at], s.seen[at] = h, seen[i]
			s.n++
		}
	}
}

// startEstimating puts registers in place of the table.
func (s *set) startEstimating() {
	hashes, seen := s.hashes, s.seen
	s.registers, s.dirty = make([]uint8, 1<<setBits), s.fresh > 0
	s.hashes, s.seen, s.n, s.fresh = nil, nil, 0, 0
	s.charge(len(s.registers))
	var older []int64 // steps that have members
	for i, h := range hashes {
		if h == 0 {
			continue
		}
		if seen[i] == inInterval {
			estimate(s.registers, h)
		} else if n := s.step - s.age(seen[i]); !slices.Contains(older, n) {
			older = append(older, n)
		}
	}
	slices.Sort(older)
	for _, n := range older {
		registers := s.stepRegisters(n)
		for i, h := range hashes {
			if h != 0 && seen[i] != inInterval && s.step-s.age(seen[i]) == n && registers != nil {
				estimate(registers, h)
			}
		}
	}
}

// age returns how many steps ago a member was added last.
func (s *set) age(seen uint16) int64 { return (s.step - int64(seen)) & stepMask }

// stepRegisters returns the registers of the newest step, number n. Without memory
// for more it is also the step before, or nil if there is none.
func (s *set) stepRegisters(n int64) []uint8 {
	last := len(s.steps) - 1
	switch {
	case last >= 0 && s.steps[last].number == n:
	case s.charge((len(s.steps) + 2) << setBits):
		s.steps = append(s.steps, setStep{n, make([]uint8, 1<<setBits)})
		last++
	case last < 0:
		return nil
	default:
		s.steps[last].number = n
	}
	return s.steps[last].registers
}

func estimate(registers []uint8, h uint64) {
	r := &registers[h>>(64-setBits)]
	*r = max(*r, rank(h<<setBits))
}

// rank returns the position of the highest bit of h, counted from 1 at the top.
func rank(h uint64) uint8 { return uint8(min(bits.LeadingZeros64(h)+1, 50)) }

// flush ends the interval at the time now. It returns its number of members, and the
// number of members of the window.
func (s *set) flush(now time.Time) (interval, window float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := false
	if s.window.steps > 0 {
		// A clock that was set back adds to the newest step.
		n := max(s.step, now.Unix()/int64(s.window.step/time.Second))
		moved, s.step = n != s.step, n
	}
	if s.registers != nil {
		return s.flushEstimate(moved)
	}
	interval, window = float64(s.fresh), float64(s.n)
	if s.fresh == 0 && !moved && s.window.steps > 0 {
		return interval, window
	}
	s.fresh = 0
	left := 0
	for i, seen := range s.seen {
		if seen == inInterval {
			s.seen[i] = uint16(s.step & stepMask)
		}
		if s.hashes[i] != 0 && s.age(s.seen[i]) < int64(s.window.steps) {
			left++
		}
	}
	if s.window.steps > 0 {
		window = float64(left)
	} else {
		window = interval
	}
	switch large := len(s.hashes) > 4*max(setFirst, s.n); {
	case left == 0 && large: // it had more members before
		s.hashes, s.seen, s.n = nil, nil, 0
		s.charge(0)
	case left == 0:
		clear(s.hashes)
		s.n = 0
	case left < s.n || large:
		slots := setFirst
		for slots < 2*left {
			slots *= 2
		}
		s.rebuild(min(slots, setMaxSlots), func(seen uint16) bool { return s.age(seen) < int64(s.window.steps) })
		s.charge(slotBytes * len(s.hashes))
	}
	return interval, window
}

// flushEstimate is flush for a set that estimates.
func (s *set) flushEstimate(moved bool) (interval, window float64) {
	if s.dirty {
		interval = math.Round(cardinality(s.registers))
	}
	first := 0
	for first < len(s.steps) && s.steps[first].number <= s.step-int64(s.window.steps) {
		first++
	}
	s.steps = slices.Delete(s.steps, 0, first)
	var newest []uint8
	if s.window.steps > 0 && s.dirty {
		newest = s.stepRegisters(s.step)
	}
	if len(s.steps) == 0 { // nothing to keep, or no memory for it
		s.registers, s.dirty, s.estimated = nil, false, 0
		s.charge(0)
		return interval, interval
	}
	if !s.dirty && !moved {
		return 0, s.estimated
	}
	for i := range newest {
		newest[i] = max(newest[i], s.registers[i])
	}
	clear(s.registers)
	s.dirty = false
	s.charge((len(s.steps) + 1) << setBits)
	all := slices.Clone(s.steps[0].registers)
	for _, step := range s.steps[1:] {
		for i, r := range step.registers {
			all[i] = max(all[i], r)
		}
	}
	s.estimated = math.Round(cardinality(all))
	return interval, s.estimated
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
