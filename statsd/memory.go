package statsd

import (
	"math"
	"slices"
	"sync/atomic"
)

// memory accounts for the bytes that received series hold. A series is charged
// when it is created and returns the same amount when it ends; sets and
// histograms are charged again as they grow. At the budget they grow no more. What the
// store keeps of ended series counts, too. The charges are estimates that follow the
// heap of the worst known inputs.
type memory struct {
	max     int64 // of used, remains and what histograms have grown
	used    atomic.Int64
	remains func() int64 // of ended series
	caches  cacheBudget

	// Histograms grow between flushes, at which they are charged.
	layouts atomic.Pointer[[]layout] // of all histograms; changed under registry.mu
	charged atomic.Int64             // what they had made at the last flush
}

// layout is a layout of histograms, which counts their allocated bytes.
type layout interface{ Made() int64 }

const (
	minMemory  = 64 << 20 // the smallest default
	cacheShare = 4        // caches get a quarter of the budget
)

// newMemory returns an empty account with a budget of that many bytes, or
// without one if limit is [math.MaxInt].
func newMemory(limit int64, remains func() int64) memory {
	if limit == math.MaxInt {
		limit = math.MaxInt64 / 2
	}
	caches := limit / cacheShare
	return memory{max: limit - caches, remains: remains, caches: cacheBudget{max: caches, fair: caches / 64}}
}

// charge adds n bytes, which are returned by a negative charge.
func (m *memory) charge(n int) { m.used.Add(int64(n)) }

// fits reports whether n more bytes are within the budget.
func (m *memory) fits(n int) bool { return m.series()+int64(n) <= m.max }

// reserve charges n bytes if they are within the budget.
func (m *memory) reserve(n int) bool {
	m.charge(n)
	if m.fits(0) {
		return true
	}
	m.charge(-n)
	return false
}

// made returns how many bytes histograms have allocated so far.
func (m *memory) made() (n int64) {
	if list := m.layouts.Load(); list != nil {
		for _, l := range *list {
			n += l.Made()
		}
	}
	return n
}

// watch accounts for the histograms of a layout. registry.mu must be held.
func (m *memory) watch(l layout) {
	var list []layout
	if p := m.layouts.Load(); p != nil {
		list = *p
	}
	if !slices.Contains(list, l) {
		m.charged.Add(l.Made())
		list = append(slices.Clip(list), l)
		m.layouts.Store(&list)
	}
}

// series returns the bytes in use without caches.
func (m *memory) series() int64 {
	return m.used.Load() + m.remains() + m.made() - m.charged.Load()
}

// limit returns the configured budget, or -1 if there is none.
func (m *memory) limit() int64 {
	if total := m.max + m.caches.max; total < math.MaxInt64/2 {
		return total
	}
	return -1
}

// total returns the bytes in use, caches included.
func (m *memory) total() int64 { return m.series() + m.caches.used.Load() }

// The parts of what a series is charged.
const (
	costUnit     = 32  // charges for a series are rounded up to multiples of it
	cellCost     = 140 // cell, its index entries and the stat
	tokenCost    = 20  // segment of a name, key or value of a tag, on top of its text
	familyCost   = 60
	segmentCost  = 150 // on top of the name
	tagValueCost = 100 // on top of key and value
	rareKeyCost  = 300 // tag key beyond the first maxTagKeys: the store keeps a record of each key
	histogramMin = 1200
	setReserve   = 16 << 10 // as much as the estimate needs, so that a set can always count
)

// cost returns the charge for the series w when it is created: a multiple of
// costUnit that fits into cell.cost.
func (r *registry) cost(w *wanted) int {
	n := cellCost + len(w.name)
	tokens := 1
	for i := range len(w.name) {
		if w.name[i] == '.' {
			tokens++
		}
	}
	for _, t := range w.tags {
		n += len(t.Name) + len(t.Value) + 2
		tokens += 2
		if len(r.tagKeys) >= maxTagKeys && r.tagKeys[t.Name] == nil {
			n += rareKeyCost
		}
		if r.cfg.Limits.ValuesPerTagKey != unlimited {
			n += len(t.Name) + len(t.Value) + tagValueCost
		}
	}
	n += tokens * tokenCost
	switch w.group {
	case histograms:
		n += histogramMin
	case sets:
		n += setReserve
	}
	return min(n/costUnit+1, math.MaxUint16) * costUnit
}
