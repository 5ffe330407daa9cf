package hotrestart

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// The version of the protocol, and the length of a message's head in bytes. Processes with different versions cannot follow each other.
const (
	protocol  = 3
	headBytes = 20

	magic = 0x68727374 // hrst
)

// Version returns the version of the protocol for display, or "disabled" if the
// system does not support hot restarts.
func Version() string {
	if !available {
		return "disabled"
	}
	return fmt.Sprintf("%d.%d", protocol, headBytes)
}

// kind is the kind of a message.
type kind uint16

const (
	// Asked by the successor.
	askHello kind = iota + 1
	askSockets
	askStats
	askCommit
	askDrain
	askTerminate
	askUsage
	askAlive // instead of a greeting: is there a process?
	tellAck  // has no answer: a batch was applied

	// Answered.
	answerRefused    kind = iota + 100 // a text; the connection ends
	answerHello                        // origin
	answerSocket                       // address, with files
	answerConnection                   // address and bytes, with a file
	answerStats                        // some stats
	answerDone                         // batch and usage: the answer is complete
	answerBye                          // batch and usage: the process ends
	answerParcels                      // some parcels
)

// Limits of a message. A connection comes with the part of a frame that was read.
const (
	maxPayload = 17 << 20
	maxFiles   = 128
	batchPart  = 256 << 10 // from how many bytes on stats and parcels are sent
	maxTags    = 1 << 10
)

var errMalformed = errors.New("hotrestart: malformed message")

// head is the head of a message.
type head struct {
	kind   kind
	length uint32 // of the payload
	files  uint32
	number uint32 // of the message on its link, from 1
}

func (h head) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, magic)
	dst = binary.BigEndian.AppendUint16(dst, protocol)
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.kind))
	dst = binary.BigEndian.AppendUint32(dst, h.length)
	dst = binary.BigEndian.AppendUint32(dst, h.files)
	return binary.BigEndian.AppendUint32(dst, h.number)
}

func parseHead(b []byte) (h head, err error) {
	if len(b) != headBytes || binary.BigEndian.Uint32(b) != magic {
		return h, fmt.Errorf("%w: no head", errMalformed)
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != protocol {
		return h, fmt.Errorf("hotrestart: the other process uses protocol version %d, this one %d", v, protocol)
	}
	h = head{
		kind(binary.BigEndian.Uint16(b[6:])), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:]),
	}
	if h.length > maxPayload || h.files > maxFiles {
		return h, fmt.Errorf("%w: %d bytes and %d files", errMalformed, h.length, h.files)
	}
	return h, nil
}

// reader takes a payload apart. After the first error it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// done returns an error if the payload is malformed or does not end here.
func (r *reader) done() error {
	if r.bad || len(r.b) > 0 {
		return errMalformed
	}
	return nil
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// hello is the first message of a successor.
type hello struct {
	epoch uint64
	stats bool // it wants them
}

func (h hello) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, h.epoch), bit(h.stats))
}

func parseHello(b []byte) (hello, error) {
	r := reader{b: b}
	h := hello{epoch: r.number(), stats: r.number() != 0}
	return h, r.done()
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Origin describes the beginning of a chain of hot restarts.
type Origin struct {
	Start      time.Time // of the first process
	Generation uint64    // of the process that answers
}

func (o Origin) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(o.Start.UnixNano())), o.Generation)
}

func parseOrigin(b []byte) (Origin, error) {
	r := reader{b: b}
	o := Origin{Start: time.Unix(0, int64(r.number())), Generation: r.number()}
	return o, r.done()
}

// Usage is the resource usage of a process.
type Usage struct {
	Memory      uint64 // allocated bytes
	Connections uint64 // open ones
}

func (f Usage) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, f.Memory), f.Connections)
}

func (r *reader) usage() Usage { return Usage{Memory: r.number(), Connections: r.number()} }

// Marks of a stat.
const (
	markGauge = 1 << iota
	markFractional
	markNetwork

	marks = markGauge | markFractional | markNetwork
)

// appendStat appends a counter or gauge.
func appendStat(dst []byte, h *store.ExportedStat) []byte {
	dst = binary.AppendUvarint(dst, bit(h.Kind == store.KindGauge)*markGauge|bit(h.Fractional)*markFractional|bit(h.Network)*markNetwork)
	dst = appendText(dst, h.Name)
	dst = binary.AppendUvarint(dst, uint64(len(h.Tags)))
	for _, t := range h.Tags {
		dst = appendText(appendText(dst, t.Name), t.Value)
	}
	if h.Kind == store.KindGauge {
		return binary.AppendUvarint(dst, h.Value)
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, h.Settled), h.Delta)
	return binary.AppendUvarint(dst, h.Reset)
}

// parseStats visits the stats of a payload. Stats before an error are visited.
func parseStats(b []byte, visit func(*store.ExportedStat)) error {
	r := reader{b: b}
	var h store.ExportedStat
	for len(r.b) > 0 {
		tgs := h.Tags[:0]
		m := r.number()
		h = store.ExportedStat{
			Kind: store.KindCounter, Fractional: m&markFractional != 0, Network: m&markNetwork != 0, Name: r.text(),
		}
		n := r.number()
		if m&^marks != 0 || n > maxTags {
			return errMalformed
		}
		for range n {
			tgs = append(tgs, tags.Tag{Name: r.text(), Value: r.text()})
		}
		h.Tags = tgs
		if m&markGauge != 0 {
			h.Kind, h.Value = store.KindGauge, r.number()
		} else {
			h.Settled, h.Delta, h.Reset = r.number(), r.number(), r.number()
		}
		if r.bad {
			return errMalformed
		}
		visit(&h)
	}
	return r.done()
}

func appendParcel(dst []byte, p *flush.Parcel) []byte {
	dst = appendText(appendText(dst, p.Sink), p.Form)
	for _, n := range []uint64{uint64(p.Shard), uint64(p.Age), uint64(p.Metrics), p.Increments, uint64(len(p.Data))} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(dst, p.Data...)
}

// parseParcels visits the parcels of a payload, whose memory they keep. Parcels before
// an error are visited.
func parseParcels(b []byte, visit func(flush.Parcel)) error {
	r := reader{b: b}
	for len(r.b) > 0 {
		p := flush.Parcel{Sink: r.text(), Form: r.text()}
		shard, age, metrics := r.number(), r.number(), r.number()
		if p.Increments = r.number(); shard > math.MaxInt32 || age > math.MaxInt64 || metrics > math.MaxInt32 {
			return errMalformed
		}
		p.Shard, p.Age, p.Metrics = int(shard), time.Duration(age), int(metrics)
		n := r.number()
		if r.bad || n > uint64(len(r.b)) {
			return errMalformed
		}
		p.Data, r.b = r.b[:n:n], r.b[n:]
		visit(p)
	}
	return nil
}
