package remotewrite

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/exponential"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// The types of metrics in metadata.
const (
	typeCounter   = 1
	typeGauge     = 2
	typeHistogram = 3
)

// metadata describes the series of a family. Version 1.0 sends none.
type metadata struct {
	typ        uint64
	help, unit string
}

// sample is a value at a time, in Unix milliseconds. start is when it was 0, or 0 if
// that is unknown or does not apply.
type sample struct {
	value     float64
	at, start int64
}

// batch collects the series of a request. Version 2.0 has a table of strings, version
// 1.0 repeats them.
type batch struct {
	version Version
	since   int64 // when the report before was; see add
	number  uint64
	samples int // histograms included

	symbols symbols // version 2.0
	series  []byte  // encoded series
	start   int     // of the last one

	packed []byte
	room   []byte
	sparse exponential.Histogram
}

// reset empties the batch. seed is that of the hashes of labels.
func (b *batch) reset(v Version, since int64, seed maphash.Seed) {
	b.version, b.since, b.samples = v, since, 0
	b.number++
	b.series = b.series[:0]
	if v == Version2 {
		b.symbols.reset(seed)
	}
}

// The places of texts in a series for [symbols.lasting].
const (
	placeHelp = iota
	placeUnit
	placeLabels // two for each label
)

// begin starts a series with its labels.
func (b *batch) begin(labels []label) {
	if b.version != Version2 {
		b.series, b.start = protobuf.Open(b.series, 1)
		for i := range labels {
			b.series = protobuf.AppendPair(b.series, 1, labels[i].name, labels[i].value)
		}
		return
	}
	b.series, b.start = protobuf.Open(b.series, 5)
	dst, refs := protobuf.Open(b.series, 1)
	for i := range labels {
		l, place := &labels[i], placeLabels+2*i
		dst = binary.AppendUvarint(dst, b.symbols.lasting(place, l.name))
		if l.lasting {
			dst = binary.AppendUvarint(dst, b.symbols.lasting(place+1, l.value))
		} else {
			dst = binary.AppendUvarint(dst, b.symbols.ref(l.value, l.hash))
		}
	}
	b.series = protobuf.Close(dst, refs)
}

// end completes the series.
func (b *batch) end(m metadata) {
	b.series = protobuf.Close(b.metadata(b.series, m), b.start)
}

// metadata appends the metadata of a series.
func (b *batch) metadata(dst []byte, m metadata) []byte {
	if b.version != Version2 {
		return dst
	}
	dst, start := protobuf.Open(dst, 5)
	dst = protobuf.AppendUint(dst, 1, m.typ)
	if m.help != "" {
		dst = protobuf.AppendUint(dst, 3, b.symbols.lastingString(placeHelp, m.help))
	}
	if m.unit != "" {
		dst = protobuf.AppendUint(dst, 4, b.symbols.lastingString(placeUnit, m.unit))
	}
	return protobuf.Close(dst, start)
}

func (b *batch) add(labels []label, m metadata, s sample) {
	b.begin(labels)
	b.sample(s)
	b.end(m)
}

// addPattern adds a series with one sample and the labels of m. It keeps the parts that
// do not change in e.
func (b *batch) addPattern(m *pattern, e *encoded, s sample) {
	if e.batch != b.number {
		b.prepare(m, e)
	}
	field := 1
	if b.version == Version2 {
		field = 5
	}
	b.series, b.start = protobuf.Open(b.series, field)
	dst, refs, part := b.series, 0, 0
	if b.version == Version2 {
		dst, refs = protobuf.Open(dst, 1)
	}
	for i, tag := range m.tags {
		if tag < 0 {
			continue
		}
		l := &m.labels[i]
		dst = append(dst, e.parts.at(part)...)
		part++
		if b.version == Version2 {
			dst = binary.AppendUvarint(dst, b.symbols.ref(l.value, l.hash))
		} else {
			dst = protobuf.AppendPair(dst, 1, l.name, l.value)
		}
	}
	dst = append(dst, e.parts.at(part)...)
	if b.version == Version2 {
		dst = protobuf.Close(dst, refs)
	}
	b.series = dst
	b.sample(s)
	b.series = protobuf.Close(append(b.series, e.parts.at(part+1)...), b.start)
}

// prepare sets e for m and the batch.
func (b *batch) prepare(m *pattern, e *encoded) {
	e.batch = b.number
	e.parts.all, e.parts.ends = e.parts.all[:0], e.parts.ends[:0]
	from := 0
	labels := func(to int) {
		e.parts.add(func(dst []byte) []byte {
			for i := from; i < min(to+1, len(m.labels)); i++ {
				l := &m.labels[i]
				switch known := i < to; {
				case b.version == Version2:
					dst = binary.AppendUvarint(dst, b.symbols.lasting(placeLabels+2*i, l.name))
					if known {
						dst = binary.AppendUvarint(dst, b.symbols.ref(l.value, l.hash))
					}
				case known:
					dst = protobuf.AppendPair(dst, 1, l.name, l.value)
				}
			}
			return dst
		})
		from = to + 1
	}
	for i, tag := range m.tags {
		if tag >= 0 {
			labels(i)
		}
	}
	labels(len(m.labels))
	e.parts.add(func(dst []byte) []byte { return b.metadata(dst, m.meta) })
}

// sample adds a sample to the series. A request of version 1.0 has no start
// times, so there a 0 precedes the first sample of a series that began after the
// report before.
func (b *batch) sample(s sample) {
	if b.version == Version1 {
		if start := s.start; start > b.since && start < s.at {
			b.sample(sample{at: start})
		}
		s.start = 0
	}
	dst, start := protobuf.Open(b.series, 2)
	dst = protobuf.AppendInt(protobuf.AppendDouble(dst, 1, s.value), 2, s.at)
	if s.start != 0 {
		dst = protobuf.AppendInt(dst, 3, s.start)
	}
	b.series = protobuf.Close(dst, start)
	b.samples++
}

// addNative adds a series with one native histogram: st with its values divided by
// unit, or a stale marker if st is nil.
func (b *batch) addNative(labels []label, m metadata, st *histogram.Stats, unit float64, at, start int64) {
	b.begin(labels)
	field := 4
	if b.version == Version2 {
		field = 3
	}
	h, msg := protobuf.Open(b.series, field)
	if st == nil {
		h = protobuf.AppendUint(h, 1, 0)
		h = protobuf.AppendDouble(h, 3, staleMarker())
	} else {
		b.sparse.Fill(st, unit)
		h = protobuf.AppendUint(h, 1, st.Count())
		h = protobuf.AppendDouble(h, 3, st.Sum()/unit)
		h = protobuf.AppendSint(h, 4, int64(b.sparse.Schema))
		h = protobuf.AppendDouble(h, 5, exponential.ZeroThreshold)
		h = protobuf.AppendUint(h, 6, b.sparse.Zero)
		h = b.side(h, 8, b.sparse.Negative)
		h = b.side(h, 11, b.sparse.Positive)
	}
	h = protobuf.AppendInt(h, 15, at)
	if b.version == Version2 && start != 0 && st != nil {
		h = protobuf.AppendInt(h, 17, start)
	}
	b.series = protobuf.Close(h, msg)
	b.samples++
	b.end(m)
}

// side appends the buckets of one sign: field has the spans, the next one the
// differences of the counts.
func (b *batch) side(dst []byte, field int, buckets []exponential.Bucket) []byte {
	if len(buckets) == 0 {
		return dst
	}
	b.packed = b.packed[:0]
	exponential.Spans(buckets, func(offset int32, length uint32) {
		var span [2 + 2*binary.MaxVarintLen64]byte
		s := protobuf.AppendSint(span[:0], 1, int64(offset))
		dst = protobuf.AppendBytes(dst, field, protobuf.AppendUint(s, 2, uint64(length)))
	}, func(delta int64) { b.packed = binary.AppendVarint(b.packed, delta) })
	return protobuf.AppendBytes(dst, field+1, b.packed)
}

// packet returns the batch as a packet of the queue: the version, the number of samples
// and the time of the report before, as varints, and the compressed request.
func (b *batch) packet() []byte {
	body := b.series
	if b.version == Version2 {
		body = append(b.symbols.table, b.series...) // behind the symbols, which reset shortens
		b.symbols.table = body
	}
	data := append(b.room[:0], byte(b.version))
	data = binary.AppendVarint(binary.AppendUvarint(data, uint64(b.samples)), b.since)
	data = slices.Grow(data, s2.MaxEncodedLen(len(body)))
	n := len(s2.EncodeSnappy(data[len(data):cap(data)], body))
	b.room = data
	return append([]byte(nil), data[:len(data)+n]...) // the queue counts what it holds
}

var errPacket = errors.New("remotewrite: malformed packet")

// packet is a packet of the queue in parts.
type packet struct {
	version Version
	samples int
	since   int64
	body    []byte // compressed
}

func unpack(data []byte) (p packet, err error) {
	if len(data) == 0 {
		return p, errPacket
	}
	samples, n := binary.Uvarint(data[1:])
	if n <= 0 {
		return p, errPacket
	}
	since, w := binary.Varint(data[1+n:])
	if w <= 0 {
		return p, errPacket
	}
	return packet{Version(data[0]), int(samples), since, data[1+n+w:]}, nil
}

// downgrade converts a request of version 2.0 to version 1.0, without metadata and
// without native histograms unless native is set.
func downgrade(p packet, native bool) (packet, error) {
	body, err := s2.Decode(nil, p.body)
	if err != nil {
		return p, err
	}
	var symbols [][]byte
	var b batch
	b.reset(Version1, p.since, maphash.Seed{})
	for len(body) > 0 {
		f, rest, err := protobuf.Next(body)
		if err != nil {
			return p, err
		}
		body = rest
		switch f.Number {
		case 4:
			symbols = append(symbols, f.Bytes)
		case 5:
			if err := b.downgradeSeries(f.Bytes, symbols, native); err != nil {
				return p, err
			}
		}
	}
	return unpack(b.packet())
}

func (b *batch) downgradeSeries(msg []byte, symbols [][]byte, native bool) error {
	before, at := b.samples, len(b.series)
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		if err != nil {
			return err
		}
		msg = rest
		switch {
		case f.Number == 1:
			labels, err := resolve(f.Bytes, symbols)
			if err != nil {
				return err
			}
			if len(b.series) != at {
				return errPacket
			}
			b.begin(labels)
		case len(b.series) == at:
			return errPacket // the labels come first
		case f.Number == 2:
			s, err := parseSample(f.Bytes)
			if err != nil {
				return err
			}
			b.sample(s)
		case f.Number == 3 && native: // the start time is a field that version 1.0 skips
			b.series = protobuf.AppendBytes(b.series, 4, f.Bytes)
			b.samples++
		}
	}
	if b.samples > before {
		b.end(metadata{})
	} else {
		b.series = b.series[:at]
	}
	return nil
}

// resolve returns the labels for a list of references to symbols.
func resolve(refs []byte, symbols [][]byte) (labels []label, err error) {
	for len(refs) > 0 {
		name, n := binary.Uvarint(refs)
		if n <= 0 {
			return nil, errPacket
		}
		value, w := binary.Uvarint(refs[n:])
		if w <= 0 || name >= uint64(len(symbols)) || value >= uint64(len(symbols)) {
			return nil, errPacket
		}
		refs = refs[n+w:]
		labels = append(labels, label{name: symbols[name], value: symbols[value]})
	}
	return labels, nil
}

func parseSample(msg []byte) (s sample, err error) {
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		if err != nil {
			return s, err
		}
		msg = rest
		switch f.Number {
		case 1:
			s.value = math.Float64frombits(f.Value)
		case 2:
			s.at = int64(f.Value)
		case 3:
			s.start = int64(f.Value)
		}
	}
	return s, nil
}

// kindType returns the type of a stat in metadata.
func kindType(k store.Kind, d store.Description) uint64 {
	switch {
	case k == store.KindCounter || d.Counter:
		return typeCounter
	case k == store.KindHistogram:
		return typeHistogram
	}
	return typeGauge
}
