package sinkqueue

import (
	"slices"
	"time"
	"unsafe"
)

type packet struct {
	data    []byte
	metrics int
	queued  time.Time
	group   uint64 // of the call of AddAll, or 0
}

// packetCost is the memory that a packet takes in a queue beside its data.
const packetCost = int(unsafe.Sizeof(packet{}))

// fifo holds packets in order. Adding to either end, and removing from the front, take
// constant time on average.
type fifo struct {
	buf  []packet
	head int // index of the first packet in buf
}

// all returns the packets. They are valid until the next change.
func (f *fifo) all() []packet { return f.buf[f.head:] }

func (f *fifo) len() int { return len(f.buf) - f.head }

// push adds a packet at the end.
func (f *fifo) push(p packet) {
	if len(f.buf) == cap(f.buf) && f.head > len(f.buf)/2 {
		n := copy(f.buf, f.all())
		clear(f.buf[n:])
		f.buf, f.head = f.buf[:n], 0
	}
	f.buf = append(f.buf, p)
}

// drop removes the first n packets.
func (f *fifo) drop(n int) {
	clear(f.buf[f.head : f.head+n])
	f.head += n
}

// putBack adds packets in front of the others.
func (f *fifo) putBack(packets ...packet) {
	if f.head < len(packets) {
		f.buf = slices.Insert(f.buf, f.head, packets...)
		return
	}
	f.head -= len(packets)
	copy(f.buf[f.head:], packets)
}

// insert adds a packet in front of the one at index i.
func (f *fifo) insert(i int, p packet) { f.buf = slices.Insert(f.buf, f.head+i, p) }
