package store

import (
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/directory"
	"github.com/statsd-admin/statsd-admin/internal/shrinkmap"
	"github.com/statsd-admin/statsd-admin/render/naming"
)

// Name is a name that stats share: a tag-extracted name, whose stats form a
// family, or the name of a tag.
type Name struct {
	key     nameKey
	num     uint32
	holders int   // uses in records of stats; guarded by nameTable.mu
	listed  uint8 // bit set of the kinds in the series index; guarded by seriesIndex.mu
	shapes  shapes

	special atomic.Uint32 // bit set of the kinds that can have a Series

	derived [naming.Slots]atomic.Pointer[[]byte]
}

type nameKey struct {
	network bool
	text    string
}

// String returns the name as configured or received.
func (n *Name) String() string { return n.key.text }

// Network reports whether the name is from network input.
func (n *Name) Network() bool { return n.key.network }

// Derived returns a value that is cached with n: the bytes that make returned
// at the first call for that slot of package naming. Renderers use it for
// sanitized forms of a name, and share the slots. The bytes must not be
// modified.
func (n *Name) Derived(slot int, make func(*Name) []byte) []byte {
	if b := n.derived[slot].Load(); b != nil {
		return *b
	}
	b := make(n)
	n.derived[slot].Store(&b)
	return b
}

// nameTable numbers names. Names are looked up by number without a lock. Its
// zero value is an empty table.
type nameTable struct {
	mu    sync.Mutex
	byKey shrinkmap.Map[nameKey, *Name]
	free  []uint32
	n     uint32 // numbers handed out so far, free ones included

	list directory.Directory[Name] // by number
}

// hold returns the number of the name and adds a holder.
func (t *nameTable) hold(k nameKey) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byKey.At(k); n != nil {
		n.holders++
		return n.num
	}
	n := &Name{key: k, holders: 1}
	if last := len(t.free) - 1; last >= 0 {
		n.num, t.free = t.free[last], t.free[:last]
	} else {
		n.num = t.n
		t.n++
	}
	t.list.Put(int(n.num), n)
	t.byKey.Set(k, n)
	return n.num
}

// release removes a holder of the name with the number num and returns the name
// if that was the last one. The caller passes it to forget before it holds others.
func (t *nameTable) release(num uint32) *Name {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.at(num)
	if n.holders--; n.holders > 0 {
		return nil
	}
	return n
}

// forget drops a name without holders.
func (t *nameTable) forget(n *Name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey.Delete(n.key)
	t.list.Put(int(n.num), nil)
	t.free = append(t.free, n.num)
}

// trim drops the numbers at the end of the table if most of them have no name.
func (t *nameTable) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n < 1024 || t.byKey.Len() > int(t.n)/8 {
		return
	}
	list := t.list.All()
	end := t.n
	for end > 0 && list[end-1].Load() == nil {
		end--
	}
	if end > t.n/2 {
		return
	}
	t.n = end
	kept := make([]uint32, 0, int(end)-t.byKey.Len())
	for _, num := range t.free {
		if num < end {
			kept = append(kept, num)
		}
	}
	t.free = kept
	t.list.Resize(int(end) + 64)
}

// byText returns the name k, nil if it has no holders.
func (t *nameTable) byText(k nameKey) *Name {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey.At(k)
}

// at returns the name with the number num, nil if there has been none.
func (t *nameTable) at(num uint32) *Name { return t.list.Find(int(num)) }
