package sinkqueue

// Batch collects lines into packets of a queue. Only one goroutine can use it.
type Batch struct {
	// Queue gets the packets, on its first shard. Required.
	Queue *Queue
	// Limit is the size of the longest packet; a longer line is sent alone.
	Limit int
	// Head begins every packet.
	Head string

	data  []byte
	lines int
}

// Add adds a line. If the line does not fit in the current packet, that packet
// is queued first.
func (b *Batch) Add(line []byte) {
	if len(b.data)+len(line) > b.Limit {
		b.End()
	}
	if b.lines == 0 {
		if cap(b.data) < b.Limit {
			b.data = make([]byte, 0, b.Limit)
		}
		b.data = append(b.data[:0], b.Head...)
	}
	b.data = append(b.data, line...)
	b.lines++
}

// End queues the current packet, unless it is empty.
func (b *Batch) End() {
	if b.lines > 0 {
		var packet []byte
		packet, b.data = Detach(b.data, b.Limit)
		b.Queue.Add(packet, b.lines)
		b.lines = 0
	}
}

// Detach returns the packet in buf, for a queue to keep, and a buffer for the
// next packet. A packet that fills less than half of buf is copied if buf has
// no room for another packet of limit bytes. Packets that share a buffer leave
// a queue one after another, so apart from its first and last buffers, a queue
// holds at most twice the memory that it counts.
func Detach(buf []byte, limit int) (packet, rest []byte) {
	n := len(buf)
	if cap(buf)-n < limit && n < cap(buf)/2 {
		return append([]byte(nil), buf...), buf[:0]
	}
	return buf[:n:n], buf[n:]
}
