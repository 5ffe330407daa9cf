package symtab

import (
	"cmp"
	"container/list"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

// recentCapacity is the number of distinct names in the list of recent lookups.
const recentCapacity = 100

// Lookup is one row of the list of recent lookups.
type Lookup struct {
	Name  string
	Count uint64 // lookups since the name entered the list
}

// recent counts lookups and, while enabled, records their names.
type recent struct {
	mode    atomic.Uint32
	stripes []stripe // fixed by init
	late    *uint64  // counts for scheduler slots without a stripe, on a cache line of its own

	mu     sync.Mutex
	base   uint64                   // sum of the stripes when they were last cleared
	byName map[string]*list.Element // nil while off
	order  *list.List               // of *Lookup, most recently looked up first
}

const (
	recentOff uint32 = iota
	recentOn
	recentFake
)

// stripe is a counter that only ever grows. Where pinning works, each
// scheduler slot owns one and adds to it plainly.
type stripe struct {
	n uint64
	_ [56]byte // keeps the next stripe off this cache line
}

func (r *recent) init(fake bool) {
	n := runtime.GOMAXPROCS(0)
	if percpu.Enabled && !percpu.CanHold() {
		n = 0
	}
	all := make([]stripe, n+1)
	r.stripes, r.late = all[:n], &all[n].n
	if fake {
		r.mode.Store(recentFake)
	}
}

// CountLookup records a lookup of name: it adds one to the total and, while
// tracking is on, enters the name in the list. Trailing dots do not count as
// part of the name, and the empty name is not counted. While tracking is off it
// costs one addition to memory of the current scheduler slot.
func (t *Table) CountLookup(name string) {
	if name == "" || name[len(name)-1] == '.' {
		if name = strings.TrimRight(name, "."); name == "" {
			return
		}
	}
	switch t.recent.mode.Load() {
	case recentOff:
		t.recent.add()
	case recentOn:
		t.recent.add()
		t.recent.note(name)
	}
}

// CountUntracked counts a lookup of a non-empty name if tracking is off and
// reports whether it did. If it did not, call [Table.CountLookup].
func (t *Table) CountUntracked() bool {
	if t.recent.mode.Load() != recentOff {
		return false
	}
	t.recent.add()
	return true
}

// add counts a lookup. It calls nothing between Hold and Release.
//
//go:nosplit
func (r *recent) add() {
	if !percpu.Enabled {
		atomic.AddUint64(&r.stripes[rand.IntN(len(r.stripes))].n, 1)
		return
	}
	p := percpu.Hold()
	if uint(p) < uint(len(r.stripes)) {
		r.stripes[p].n++
		percpu.Release()
		return
	}
	percpu.Release()
	atomic.AddUint64(r.late, 1)
}

func (r *recent) sum() uint64 {
	n := atomic.LoadUint64(r.late)
	for i := range r.stripes {
		n += atomic.LoadUint64(&r.stripes[i].n)
	}
	return n
}

// note enters name in the list. It copies the name if it keeps it.
func (r *recent) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		return // disabled since the caller looked
	}
	if e, ok := r.byName[name]; ok {
		e.Value.(*Lookup).Count++
		r.order.MoveToFront(e)
		return
	}
	if r.order.Len() == recentCapacity {
		oldest := r.order.Remove(r.order.Back()).(*Lookup)
		delete(r.byName, oldest.Name)
	}
	l := &Lookup{Name: strings.Clone(name), Count: 1}
	r.byName[l.Name] = r.order.PushFront(l)
}

// EnableRecent starts keeping the list. An existing list and the total stay.
func (t *Table) EnableRecent() {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode.CompareAndSwap(recentOff, recentOn) {
		r.emptyLocked()
	}
}

// DisableRecent drops the list. The total stays and keeps growing.
func (t *Table) DisableRecent() {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode.CompareAndSwap(recentOn, recentOff) {
		r.byName, r.order = nil, nil
	}
}

// ClearRecent empties the list and sets the total to 0.
func (t *Table) ClearRecent() {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = r.sum()
	if r.mode.Load() == recentOn {
		r.emptyLocked()
	}
}

// emptyLocked starts an empty list. r.mu must be held.
func (r *recent) emptyLocked() {
	r.byName, r.order = make(map[string]*list.Element, recentCapacity), list.New()
}

// RecentEnabled reports whether the list is kept.
func (t *Table) RecentEnabled() bool { return t.recent.mode.Load() == recentOn }

// Fake reports whether [Options.Fake] disables the list.
func (t *Table) Fake() bool { return t.recent.mode.Load() == recentFake }

// RecentTotal returns the number of lookups since the start or since
// ClearRecent, whether or not the list was kept.
func (t *Table) RecentTotal() uint64 {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum() - r.base
}

// Recent returns the list, ascending by count and then by name. It holds the
// 100 names looked up last and is empty while tracking is off.
func (t *Table) Recent() []Lookup {
	r := &t.recent
	r.mu.Lock()
	rows := make([]Lookup, 0, len(r.byName))
	for _, e := range r.byName {
		rows = append(rows, *e.Value.(*Lookup))
	}
	r.mu.Unlock()
	slices.SortFunc(rows, func(a, b Lookup) int {
		return cmp.Or(cmp.Compare(a.Count, b.Count), strings.Compare(a.Name, b.Name))
	})
	return rows
}
