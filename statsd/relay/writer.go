package relay

import (
	"bytes"
	"sync"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// Writer packs the lines of one reader. Callers hold the lock that it was created with.
type Writer struct {
	relay   *Relay
	mu      sync.Locker
	scratch []byte
	packers []packer // by target.index
}

// packer is the packet of a target that is being filled, and the counts not published
// yet, in lines.
type packer struct {
	buf                     []byte // lines with their line feeds
	lines                   int
	accepted, in, out, long uint64
}

// NewWriter returns a writer. The relay locks mu to send packets that are not
// filled in time.
func (r *Relay) NewWriter(mu sync.Locker) *Writer {
	w := &Writer{relay: r, mu: mu, packers: make([]packer, len(r.targets))}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writers = append(r.writers, w)
	return w
}

// Add relays a line that the parser accepted. If [Relay.NeedsName] returns true, a
// metric must have been identified.
func (w *Writer) Add(l *line.Line) {
	for _, rt := range w.relay.routes {
		if !rt.takes(l) {
			continue
		}
		if rt.Hash != None {
			w.place(rt, rt.key(l, &w.scratch), l.Text)
			continue
		}
		w.copy(rt, l.Text)
	}
}

// AddInvalid relays a line that the parser rejected, on the routes for such lines.
func (w *Writer) AddInvalid(text []byte) {
	for _, rt := range w.relay.routes {
		switch {
		case !rt.Invalid || len(text) == 0 || !rt.begins(text):
		case rt.Hash != None:
			w.place(rt, invalidKey(text), text)
		default:
			w.copy(rt, text)
		}
	}
}

// copy adds a line to the packets of all targets.
func (w *Writer) copy(rt *route, text []byte) {
	for _, t := range rt.targets {
		w.packers[t.index].accepted++
		w.put(t, text)
	}
}

// place adds a line to the packet of the target that the key selects.
func (w *Writer) place(rt *route, key uint64, text []byte) {
	owner, t := rt.pick(key)
	w.packers[owner.index].accepted++
	if t != owner {
		w.packers[owner.index].out++
		w.packers[t.index].in++
	}
	w.put(t, text)
}

// put adds a line to the packet of t, which is queued first if the line does not fit.
func (w *Writer) put(t *target, text []byte) {
	p := &w.packers[t.index]
	if len(text) > t.longest {
		p.long++
		return
	}
	if len(p.buf) > 0 && len(p.buf)+len(text)+t.overhead > t.cfg.PacketBytes {
		p.send(t)
	}
	p.buf = append(append(p.buf, text...), '\n')
	p.lines++
}

// send queues the packet and publishes the counts.
func (p *packer) send(t *target) {
	t.accepted.Add(p.accepted)
	t.movedIn.Add(p.in)
	t.movedOut.Add(p.out)
	t.long.Add(p.long)
	p.accepted, p.in, p.out, p.long = 0, 0, 0, 0
	if p.lines == 0 {
		return
	}
	data := p.buf
	if t.overhead == 0 {
		data = data[:len(data)-1] // datagrams have no line feed at the end
	}
	t.queue.Add(bytes.Clone(data), p.lines)
	p.buf, p.lines = p.buf[:0], 0
	if cap(p.buf) > 2*t.cfg.PacketBytes {
		p.buf = nil // a long line was sent alone
	}
}

// flush locks w and queues all packets.
func (w *Writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.packers {
		w.packers[i].send(w.relay.targets[i])
	}
}
