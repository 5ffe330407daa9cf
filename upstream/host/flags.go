package host

import (
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// activeHCFlags are the flags that active checks own. A replacement of a host
// inherits them.
const activeHCFlags = status.FailedActiveHC | status.DegradedActiveHC | status.PendingActiveHC | status.ActiveHCTimeout

// flagWord holds the current flags of a host.
type flagWord struct{ w atomic.Uint32 }

func (f *flagWord) load() status.Flags                { return status.Flags(f.w.Load()) }
func (f *flagWord) set(b status.Flags) status.Flags   { return status.Flags(f.w.Or(uint32(b))) }
func (f *flagWord) clear(b status.Flags) status.Flags { return status.Flags(f.w.And(^uint32(b))) }
func (f *flagWord) put(mask, bits status.Flags) status.Flags {
	for {
		old := f.w.Load()
		if f.w.CompareAndSwap(old, old&^uint32(mask)|uint32(bits&mask)) {
			return status.Flags(old)
		}
	}
}
