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
		b.data = append(b.data[:0], b.Head...)
	}
	b.data = append(b.data, line...)
	b.lines++
}

// End queues the packet, unless it has no lines.
func (b *Batch) End() {
	if b.lines > 0 {
		b.Queue.Add(append([]byte(nil), b.data...), b.lines)
		b.data, b.lines = b.data[:0], 0
	}
}
