package upstream

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// roster is the handles that have an active cluster, or those of some such
// clusters. Readers take no lock.
//
// The list in the order of names is made by the first who asks for it after a
// change: keeping it up with every change would copy it whole each time, which
// for n clusters that come one by one is n² pointers.
type roster struct {
	byName  sync.Map // name to *Handle
	changes atomic.Uint64
	sorted  atomic.Pointer[listing] // nil: never asked for
}

// listing is the handles by name as they were after a number of changes. It never
// changes.
type listing struct {
	changes uint64
	handles []*Handle
}

// put adds a handle.
func (r *roster) put(h *Handle) {
	r.byName.Store(h.name, h)
	r.changes.Add(1) // after the change: a list made before it counts as old
}

// drop takes a handle out, if it is there.
func (r *roster) drop(h *Handle) {
	if r.byName.CompareAndDelete(h.name, h) {
		r.changes.Add(1)
	}
}

// find returns the handle of a name, nil if there is none.
func (r *roster) find(name string) *Handle {
	h, _ := r.byName.Load(name)
	hd, _ := h.(*Handle)
	return hd
}

// list returns the handles in the order of names. The slice must not be changed.
func (r *roster) list() []*Handle {
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
