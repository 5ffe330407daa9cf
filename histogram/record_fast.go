//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package histogram

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// This file and record_portable.go are alternatives that add a value to a
// shard.
//
// A histogram starts with one shard that all goroutines change with atomics,
// which takes the least memory. Once it gets many values between two merges,
// the scheduler slots ("Ps") that record them get their own shards, one by one,
// and change them without atomics while nothing else can run on the slot. Only the owner
// writes an owned shard, except that pages are added under Histogram.mu and
// that Merge takes touched and ends.
//
// Merge reads owned shards with atomic loads. Stores become visible in program
// order, so the order that shard demands holds here, too.

const (
	// hotRecords in the shared shard between two merges make a histogram hot:
	// the slot of the last of them gets a shard of its own.
	hotRecords = 1 << 18

	// warmRecords do the same for further slots of a hot histogram.
	warmRecords = 1 << 13
)

// owners holds the owned shards by slot. n is written after slots, so a reader
// that sees n sees slots.
type owners struct {
	slots unsafe.Pointer // *[n]unsafe.Pointer, each nil or *ownedShard
	n     int
}

// ownedShard keeps its cache lines to itself.
type ownedShard struct {
	shard
	_ [128 - unsafe.Sizeof(shard{})]byte
}

func (o *owners) at(slot int) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(o.slots, uintptr(slot)*unsafe.Sizeof(o.slots)))
}

func (o *owners) appendTo(dst []*shard) []*shard {
	for i := range o.n {
		if s := (*shard)(atomic.LoadPointer(o.at(i))); s != nil {
			dst = append(dst, s)
		}
	}
	return dst
}

// record counts v once. Between Hold and Release everything is inlined, so that the
// goroutine keeps its slot.
//
//go:nosplit
func (h *Histogram) record(v int64) {
	slot := percpu.Hold()
	if uint(slot) < uint(h.owned.n) && v >= 0 {
		if s := (*shard)(*h.owned.at(slot)); s != nil {
			l := h.layout
			i, split, counted := l.bin(uint64(v)), -1, true
			if l.straddles(i) {
				split = l.splitOf(i, uint64(v))
			}
			if uint(split) < uint(len(s.splits)) {
				*plain(&s.splits[split])++
			} else if pg := s.narrow.page(pageOf(i)); pg == nil || *pg.lane(i) >= laneLimit-1 {
				counted = false // memory must be made first, or the lane is full
			} else {
				*pg.lane(i)++
			}
			if counted {
				point()
				s.sums[0].ownAdd(0, uint64(v))
				s.touchEnds(h, endKey(v))
				percpu.Release()
				return
			}
		}
	}
	percpu.Release()
	h.recordMany(v, 1)
}

// lane returns the counter of bin i, which must be on pg, for the owner of pg.
func (pg *narrowPage) lane(i int) *uint16 {
	return &(*[pageBins]uint16)(unsafe.Pointer(pg))[i&(pageBins-1)]
}

// touchEnds includes key in the extremes and notes that s was touched.
func (s *shard) touchEnds(h *Histogram, key uint64) {
	point()
	e := &s.ends[h.epoch.Load()&1]
	point()
	if g := plain(&e.greatest); key > *g {
		point()
		*g = key
	}
	point()
	if g := plain(&e.least); -key > *g {
		point()
		*g = -key
	}
	point()
	*(*uint32)(unsafe.Pointer(&s.touched)) = 1
}

// point is schedule.Point, whose calls would keep functions from being inlined.
func point() {
	if schedule.Enabled {
		schedule.Point()
	}
}

// plain lets the owner of w change it without an atomic operation.
func plain(w *atomic.Uint64) *uint64 { return (*uint64)(unsafe.Pointer(w)) }

// recordMany counts v, n times.
func (h *Histogram) recordMany(v int64, n uint64) {
	var slot int
	for {
		slot = percpu.Pin()
		if slot >= h.owned.n {
			break
		}
		s := (*shard)(*h.owned.at(slot))
		if s == nil {
			break
		}
		i, what := s.ownMany(h, v, n)
		percpu.Unpin()
		if what == nothing {
			return
		}
		h.makePage(s, i, what)
	}
	percpu.Unpin()
	s := h.recordShared(v, n)
	// Racy on purpose: heat only steers.
	s.heat++
	if s.heat >= warmRecords && (s.heat >= hotRecords || h.owned.n > 0) {
		s.heat = 0
		h.ownSlot(slot)
	}
}

// ownMany counts v, n times, in s, which the caller owns. Unless it returns
// nothing, it did nothing, and bin i needs memory.
func (s *shard) ownMany(h *Histogram, v int64, n uint64) (i int, what need) {
	magnitude, side := uint64(v), 0
	if v < 0 {
		magnitude, side = uint64(-v), 1
	}
	i = h.layout.bin(magnitude)
	slot := -1
	if side == 0 {
		slot = h.layout.slot(i, magnitude)
	} else {
		i = -i
	}
	if uint(slot) < uint(len(s.splits)) {
		*plain(&s.splits[slot]) += n
	} else if what = s.ownCount(i, n); what != nothing {
		return i, what
	}
	schedule.Point()
	s.sums[side].ownAdd(bits.Mul64(magnitude, n))
	s.touchEnds(h, endKey(v))
	return i, nothing
}

// ownCount is count for the owner of s.
func (s *shard) ownCount(i int, n uint64) need {
	if n < laneLimit {
		pg := s.narrow.page(pageOf(i))
		if pg == nil {
			return narrowNeeded
		}
		lane := pg.lane(i)
		if sum := uint64(*lane) + n; sum < laneLimit {
			*lane = uint16(sum)
			return nothing
		} else if s.wide.page(pageOf(i)) != nil {
			*lane = uint16(sum - laneLimit)
			schedule.Point()
			n = laneLimit
		}
	}
	high := s.wide.page(pageOf(i))
	if high == nil {
		return wideNeeded
	}
	*plain(&high[i&(pageBins-1)]) += n
	return nothing
}

// ownAdd is add for the owner of s.
func (s *sum) ownAdd(high, low uint64) {
	w := plain(&s.low)
	*w += low
	if *w < low {
		high++
	}
	point()
	if high != 0 {
		*plain(&s.high) += high
	}
}

// ownSlot gives the slot its own shard.
func (h *Histogram) ownSlot(slot int) {
	if !percpu.CanHold() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owned.n == 0 {
		n := max(runtime.GOMAXPROCS(0), slot+1)
		table := make([]unsafe.Pointer, n)
		atomic.StorePointer(&h.owned.slots, unsafe.Pointer(unsafe.SliceData(table)))
		schedule.Point()
		h.owned.n = n
	}
	if slot >= h.owned.n {
		return // GOMAXPROCS grew since: this slot stays with the shared shard
	}
	if at := h.owned.at(slot); atomic.LoadPointer(at) == nil {
		s := new(ownedShard)
		if n := len(h.layout.splits); n > 0 {
			s.splits = make([]atomic.Uint64, (n+7)&^7)[:n] // whole cache lines
		}
		h.layout.made.Add(int64(s.bytes()))
		atomic.StorePointer(at, unsafe.Pointer(&s.shard))
	}
}

// cool restarts the measurement of heat.
func (s *shard) cool() { s.heat = 0 }
