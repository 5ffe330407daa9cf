//go:build schedule && amd64 && !race && !msan && !asan && !purego

package histogram

func ownSlot(h *Histogram, slot int) { h.ownSlot(slot) }
