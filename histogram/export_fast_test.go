//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package histogram

import "runtime"

// OwnAll gives every scheduler slot a shard of its own, as if h were hot.
func OwnAll(h *Histogram) {
	h.makeShared()
	for slot := range runtime.GOMAXPROCS(0) {
		h.ownSlot(slot)
	}
}

// OwnNone gives no scheduler slot a shard of its own, but room for them.
func OwnNone(h *Histogram) {
	h.makeShared()
	h.ownSlot(1 << 20) // no such slot
}

// Owned returns how many shards are owned by scheduler slots.
func Owned(h *Histogram) int { return len(h.owned.appendTo(nil)) }

// HotRecords is how many records make a histogram hot.
const HotRecords = hotRecords
