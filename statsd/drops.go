package statsd

import "sync"

// dropCount follows the kernel's count of datagrams dropped on a socket. The
// counter has 32 bits, wraps, and is read in two ways whose readings can
// overtake each other.
type dropCount struct {
	mu   sync.Mutex
	last uint32
}

// observe records a reading and returns the number of drops since the newest
// one so far.
func (d *dropCount) observe(v uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := max(int32(v-d.last), 0) // less than 0: older than the last reading
	d.last += uint32(n)
	return uint64(n)
}
