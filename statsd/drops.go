package statsd

import "sync"

// dropCount follows the kernel's count of datagrams dropped on a socket. The
// kernel's counter has 32 bits, wraps, and is told by two ways that may
// overtake each other.
type dropCount struct {
	mu   sync.Mutex
	last uint32
}

// observe takes a reading and returns how many drops it is the first to tell.
func (d *dropCount) observe(v uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := int32(v - d.last)
	if n <= 0 {
		return 0 // an older reading
	}
	d.last = v
	return uint64(n)
}
