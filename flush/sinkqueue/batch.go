package sinkqueue

// Batch collects lines into packets of a queue. One goroutine uses it.
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

// Add adds a line. It queues the packet before if the line does not fit in it.
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

// End queues the packet, unless it has no lines.
func (b *Batch) End() {
	if b.lines > 0 {
		var packet []byte
		packet, b.data = Detach(b.data, b.Limit)
		b.Queue.Add(packet, b.lines)
		b.lines = 0
	}
}

// Detach returns the packet in buf for a queue, which keeps it, and the buffer of the next
// packet. A packet that fills less than half of buf is copied if buf has no room for
// another packet of limit bytes. Packets that share a buffer leave a queue one after
// another, so besides the first and the last buffer, a queue holds at most twice the
// memory that it counts.
func Detach(buf []byte, limit int) (packet, rest []byte) {
	n := len(buf)
	if cap(buf)-n < limit && n < cap(buf)/2 {
		return append([]byte(nil), buf...), buf[:0]
	}
	return buf[:n:n], buf[n:]
}
