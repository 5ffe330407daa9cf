package upstream

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// clusterIndex holds handles of active clusters by name. Readers take no lock.
//
// The sorted list is rebuilt by the first reader after a change. Rebuilding it with
// every change would copy n² pointers for n clusters that are added one by one.
type clusterIndex struct {
	byName  sync.Map // name to *Handle
	changes atomic.Uint64
	sorted  atomic.Pointer[listing] // nil until it is needed
}

// listing is the immutable list of handles, sorted by name, after a number of changes.
type listing struct {
	changes uint64
	handles []*Handle
}

func (r *clusterIndex) put(h *Handle) {
	r.byName.Store(h.name, h)
	r.changes.Add(1) // after the change: a list made before it counts as old
}

// drop removes a handle if it is present.
func (r *clusterIndex) drop(h *Handle) {
	if r.byName.CompareAndDelete(h.name, h) {
		r.changes.Add(1)
	}
}

// find returns the handle of a name, nil if there is none.
func (r *clusterIndex) find(name string) *Handle {
	h, _ := r.byName.Load(name)
	hd, _ := h.(*Handle)
	return hd
}

// list returns the handles sorted by name. The caller must not change the slice.
func (r *clusterIndex) list() []*Handle {
	changes := r.changes.Load()
	old := r.sorted.Load()
	if old != nil && old.changes == changes {
		return old.handles
	}
	var list []*Handle
	if old != nil {
		list = make([]*Handle, 0, len(old.handles)+1)
	}
	r.byName.Range(func(_, h any) bool {
		list = append(list, h.(*Handle))
		return true
	})
	slices.SortFunc(list, func(a, b *Handle) int { return strings.Compare(a.name, b.name) })
	r.sorted.Store(&listing{changes, list})
	return list
}
