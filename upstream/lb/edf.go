package lb

import (
	"cmp"
	"runtime"
	"sync"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

// edf is an earliest-deadline-first schedule over items 0 to n-1. It picks the item
// with the smallest deadline, or among equal ones the first inserted, and inserts it
// again 1/weight after the current time. Over time each item is picked in proportion to
// its weight.
type edf struct {
	heap []slot
	now  float64
	seq  uint64
}

type slot struct {
	deadline float64
	seq      uint64
	item     uint32
}

func (a slot) before(b slot) bool {
	return a.deadline < b.deadline || a.deadline == b.deadline && a.seq < b.seq
}

// newEDF inserts n items at time 0 in order, except items without weight.
func newEDF(n int, weight func(item uint32) float64) *edf {
	e := &edf{heap: make([]slot, 0, n)}
	for i := range n {
		if w := weight(uint32(i)); w > 0 {
			e.heap = append(e.heap, slot{1 / w, e.seq, uint32(i)})
			e.seq++
		}
	}
	for i := len(e.heap)/2 - 1; i >= 0; i-- {
		e.down(i)
	}
	return e
}

func (e *edf) clone() *edf {
	c := *e
	c.heap = append([]slot(nil), e.heap...)
	return &c
}

// next returns the next item. The schedule must not be empty.
func (e *edf) next(weight func(item uint32) float64) uint32 {
	top := &e.heap[0]
	item := top.item
	e.now = top.deadline
	top.deadline = e.now + 1/weight(item)
	top.seq = e.seq
	e.seq++
	e.down(0)
	return item
}

func (e *edf) down(i int) {
	h := e.heap
	moving := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(moving) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = moving
}

// schedule is an edf for concurrent use. Every scheduler slot has its own copy, so that
// a pick takes no lock and shares no memory. Slots that were added later share one copy
// behind a lock, and so do all slots on platforms without pinning.
type schedule struct {
	// weight is called while pinned: it must not block or panic. Numbers that others
	// provide are readings.
	weight func(item uint32) float64
	owned  []paddedEDF // touched only while pinned to that slot

	mu     sync.Mutex
	shared *edf // guarded by mu
}

type paddedEDF struct {
	edf
	_ [64]byte // the schedule of the next slot changes all the time
}

// newSchedule returns a schedule over the n items, nil if none has weight. The first
// copy skips skip picks and each further copy one more, so that they do not run in
// step.
func newSchedule(n int, weight func(item uint32) float64, slots int, skip uint64) *schedule {
	first := newEDF(n, weight)
	if len(first.heap) == 0 {
		return nil
	}
	for range skip % uint64(4*len(first.heap)) {
		first.next(weight)
	}
	s := &schedule{weight: weight, shared: first.clone()}
	slots = cmp.Or(slots, runtime.GOMAXPROCS(0))
	if percpu.Enabled && slots > 0 {
		s.owned = make([]paddedEDF, slots)
		for i := range s.owned {
			s.owned[i].edf = *first.clone()
			first.next(weight)
		}
	}
	return s
}

func (s *schedule) next() uint32 {
	if percpu.Enabled {
		if p := percpu.Pin(); p < len(s.owned) {
			item := s.owned[p].next(s.weight)
			percpu.Unpin()
			return item
		}
		percpu.Unpin()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.next(s.weight)
}
