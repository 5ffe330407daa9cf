package histogram

import (
	"math/bits"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// shard is one set of counters. Every used histogram has a shard that all
// goroutines change with atomics; a hot histogram can have more, each owned by
// one scheduler slot (see record_fast.go). The counts of a histogram are the
// sums over its shards.
//
// All counters only ever grow. A recorder changes, in this order, a bin or a
// split, the sum, the extremes, and then touched: a reader that finds touched
// unset has seen everything before.
type shard struct {
	narrow  sparse[narrowPage]
	wide    sparse[widePage]
	touched atomic.Uint32
	heat    uint32          // records since the last merge, see record_fast.go
	splits  []atomic.Uint64 // one for each split of the layout
	carry   atomic.Uint64   // fractions of weights, in units of 2^-32; shared shard only
	sums    [2]sum          // of the values at and above 0, and of the negated ones below

	// ends holds the extremes of the running interval in the element that the
	// histogram's epoch selects. The reader switches the epoch, then takes what
	// is in the other element.
	ends [2]extremes
}

// sum is a total of 128 bits. A recorder changes low first; a reader that meets
// it in between sees a total that shrank and knows that a carry is under way.
type sum struct{ low, high atomic.Uint64 }

// extremes are the extreme values as keys that only grow; 0 means none.
type extremes struct{ least, greatest atomic.Uint64 }

// endKey maps values above -2^63 to keys above 0 in the same order. Negating a
// key, in 64 bits, reverses the order.
func endKey(v int64) uint64   { return uint64(v) ^ 1<<63 }
func endValue(k uint64) int64 { return int64(k ^ 1<<63) }

func newShard(l *Layout) *shard {
	s := new(shard)
	if len(l.splits) > 0 {
		s.splits = make([]atomic.Uint64, len(l.splits))
	}
	return s
}

// need is the memory that is missing for a count.
type need uint8

const (
	nothing need = iota
	narrowNeeded
	wideNeeded
)

// count adds n to bin i. If memory is missing, it changes nothing.
func (s *shard) count(i int, n uint64) need {
	if n >= laneLimit {
		high := s.wide.page(pageOf(i))
		if high == nil {
			return wideNeeded
		}
		high[i&(pageBins-1)].Add(n)
		return nothing
	}
	pg := s.narrow.page(pageOf(i))
	if pg == nil {
		return narrowNeeded
	}
	w, shift := &pg[i&(pageBins-1)/4], uint(i&3)*laneBits
	for {
		old := w.Load()
		schedule.Point()
		if old>>shift&laneMask+n < laneLimit {
			if w.CompareAndSwap(old, old+n<<shift) {
				return nothing
			}
			continue
		}
		high := s.wide.page(pageOf(i))
		if high == nil {
			return wideNeeded
		}
		if w.CompareAndSwap(old, old+n<<shift-laneLimit<<shift) {
			schedule.Point()
			high[i&(pageBins-1)].Add(laneLimit)
			return nothing
		}
	}
}

// addPage adds the counts of page n to counts and reports whether the page
// exists. It can miss counts that are moving from a narrow to a wide counter
// and never counts them twice: the wide counter is written last and read first.
func (s *shard) addPage(n int, counts *[pageBins]uint64) bool {
	high, pg := s.wide.page(n), (*narrowPage)(nil)
	if high != nil {
		for i := range high {
			counts[i] += high[i].Load()
		}
	}
	schedule.Point()
	if pg = s.narrow.page(n); pg == nil {
		return high != nil
	}
	for i := range pg {
		if w := pg[i].Load(); w != 0 {
			schedule.Point()
			c := counts[4*i : 4*i+4 : 4*i+4]
			c[0] += w & laneMask
			c[1] += w >> laneBits & laneMask
			c[2] += w >> (2 * laneBits) & laneMask
			c[3] += w >> (3 * laneBits)
		}
	}
	return true
}

// add adds n times the magnitude v to the sum.
func (s *sum) add(v, n uint64) {
	high, low := bits.Mul64(v, n)
	if low != 0 && s.low.Add(low) < low {
		high++
	}
	schedule.Point()
	if high != 0 {
		s.high.Add(high)
	}
}

func (e *extremes) include(key uint64) {
	raise(&e.greatest, key)
	raise(&e.least, -key)
}

func raise(w *atomic.Uint64, key uint64) {
	for old := w.Load(); key > old; old = w.Load() {
		if schedule.Enabled { // a call, even of nothing, would cost the inlining
			schedule.Point()
		}
		if w.CompareAndSwap(old, key) {
			return
		}
	}
}

// take empties e and returns its previous keys.
func (e *extremes) take() (least, greatest uint64) {
	if e.greatest.Load() == 0 && e.least.Load() == 0 {
		return 0, 0
	}
	least = e.least.Swap(0)
	schedule.Point()
	return least, e.greatest.Swap(0)
}

// touch marks s as changed, at the end of a record.
func (s *shard) touch() {
	if s.touched.Load() == 0 {
		schedule.Point()
		s.touched.Store(1)
	}
}
