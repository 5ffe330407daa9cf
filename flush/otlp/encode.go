package otlp

import (
	"encoding/binary"
	"math"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/exponential"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// The fields of Metric that hold the points of a type.
const (
	fieldGauge       = 5
	fieldSum         = 7
	fieldHistogram   = 9
	fieldExponential = 10
)

// batch collects the points of a request. Points of the same metric that follow each
// other share a Metric message.
type batch struct {
	head    []byte // encoded field of ResourceMetrics: its resource
	scope   []byte // encoded field of ScopeMetrics: its scope
	delta   bool   // temporality of sums and histograms
	metrics []byte // encoded Metric messages
	points  int

	family     *store.Name // of the open metric, nil if it has none
	name       []byte      // of the open metric
	field      int         // its type; 0: none is open
	start      int         // of the message of the open metric in metrics
	data       int         // of the message with its points
	point      int         // of the message of the last point
	part, room []byte
	counts     []uint64
	sparse     exponential.Histogram
}

func attributeKey(n *store.Name) []byte {
	return protobuf.AppendBytes(nil, 1, protobuf.Text([]byte(n.String())))
}

// attribute appends a KeyValue, whose key is encoded, as a field.
func attribute(dst []byte, field int, key, value []byte) []byte {
	if len(value) == 0 {
		value = []byte("true")
	}
	inner := protobuf.BytesLen(len(value))
	dst = protobuf.AppendTag(dst, field, protobuf.Bytes)
	dst = binary.AppendUvarint(dst, uint64(len(key)+protobuf.BytesLen(inner)))
	dst = binary.AppendUvarint(append(append(dst, key...), 2<<3|protobuf.Bytes), uint64(inner))
	return protobuf.AppendBytes(dst, 1, value)
}

// fixed returns a tag that all points have as an encoded attribute.
func fixed(field int, t tags.Tag) []byte {
	key := protobuf.AppendBytes(nil, 1, protobuf.Text([]byte(t.Name)))
	return attribute(nil, field, key, protobuf.Text([]byte(t.Value)))
}

// metric is the encoded start of a Metric message: name, description and unit.
type metric struct {
	fields []byte
	name   []byte // in fields
}

func (m *metric) set(name []byte, d store.Description) {
	m.fields = protobuf.AppendBytes(m.fields[:0], 1, name)
	m.name = m.fields[len(m.fields)-len(name):]
	if d.Help != "" {
		m.fields = protobuf.AppendBytes(m.fields, 2, d.Help)
	}
	if d.Unit != "" {
		m.fields = protobuf.AppendBytes(m.fields, 3, d.Unit)
	}
}

// open makes a metric of a type the open one.
func (b *batch) open(family *store.Name, m *metric, field int) {
	if b.field == field && string(b.name) == string(m.name) {
		return
	}
	b.close()
	b.family, b.name, b.field = family, append(b.name[:0], m.name...), field
	b.metrics, b.start = protobuf.Open(b.metrics, 2)
	b.metrics = append(b.metrics, m.fields...)
	b.metrics, b.data = protobuf.Open(b.metrics, field)
}

// close completes the open metric.
func (b *batch) close() {
	if b.field == 0 {
		return
	}
	if b.field != fieldGauge {
		temporality := uint64(2)
		if b.delta {
			temporality = 1
		}
		b.metrics = protobuf.AppendUint(b.metrics, 2, temporality)
	}
	if b.field == fieldSum {
		b.metrics = protobuf.AppendUint(b.metrics, 3, 1) // is_monotonic
	}
	b.metrics = protobuf.Close(protobuf.Close(b.metrics, b.data), b.start)
	b.field, b.family = 0, nil
}

// request returns the request and empties the batch.
func (b *batch) request() []byte {
	b.close()
	scope := len(b.scope) + len(b.metrics)
	resource := len(b.head) + protobuf.BytesLen(scope)
	dst := make([]byte, 0, protobuf.BytesLen(resource))
	dst = binary.AppendUvarint(append(dst, 1<<3|protobuf.Bytes), uint64(resource))
	dst = binary.AppendUvarint(append(append(dst, b.head...), 2<<3|protobuf.Bytes), uint64(scope))
	dst = append(append(dst, b.scope...), b.metrics...)
	b.metrics, b.points = b.metrics[:0], 0
	return dst
}

// begin starts a point of the open metric; its attributes come first.
func (b *batch) begin() { b.metrics, b.point = protobuf.Open(b.metrics, 1) }

// end completes the point.
func (b *batch) end(p []byte) {
	b.metrics = protobuf.Close(p, b.point)
	b.points++
}

// times appends the start, if known, and the time of a point in Unix milliseconds.
func times(dst []byte, start, at int64) []byte {
	if start > 0 {
		dst = protobuf.AppendFixed64(dst, 2, uint64(start)*1e6)
	}
	return protobuf.AppendFixed64(dst, 3, uint64(at)*1e6)
}

// noValue is the flag of a point that ends a series.
const noValue = 1

// whole completes a point with a value, as an integer if it fits.
func (b *batch) whole(start, at int64, n uint64) {
	if n > math.MaxInt64 {
		b.double(start, at, float64(n))
		return
	}
	b.end(protobuf.AppendFixed64(times(b.metrics, start, at), 6, n))
}

// double completes a point with a value.
func (b *batch) double(start, at int64, x float64) {
	b.end(protobuf.AppendDouble(times(b.metrics, start, at), 4, x))
}

// exponential completes a point of an exponential histogram, which ends the series if st
// is nil.
func (b *batch) exponential(st *histogram.Stats, start, at int64) {
	p := times(b.metrics, start, at)
	if st == nil {
		p = protobuf.AppendUint(p, 10, noValue)
	} else {
		b.sparse.Fill(st, 1)
		for width(b.sparse.Positive) > maxBuckets || width(b.sparse.Negative) > maxBuckets {
			b.sparse.Halve()
		}
		p = protobuf.AppendFixed64(p, 4, st.Count())
		if monotonic(st) {
			p = protobuf.AppendDouble(p, 5, st.Sum())
		}
		p = protobuf.AppendSint(p, 6, int64(b.sparse.Schema))
		p = protobuf.AppendFixed64(p, 7, b.sparse.Zero)
		p = b.buckets(p, 8, b.sparse.Positive)
		p = b.buckets(p, 9, b.sparse.Negative)
		p = protobuf.AppendDouble(p, 12, st.Min())
		p = protobuf.AppendDouble(p, 13, st.Max())
		p = protobuf.AppendDouble(p, 14, exponential.ZeroThreshold)
	}
	b.end(p)
}

// maxBuckets limits the buckets of one sign, empty ones included.
const maxBuckets = 4096

func width(buckets []exponential.Bucket) int {
	if len(buckets) == 0 {
		return 0
	}
	return int(buckets[len(buckets)-1].Index-buckets[0].Index) + 1
}

// monotonic reports whether the sum of st only rises.
func monotonic(st *histogram.Stats) bool { return !(st.Min() < 0) }

// buckets appends the buckets of one sign. A bucket of OTLP has the index of its lower
// bound, one less than that of its upper bound.
func (b *batch) buckets(dst []byte, field int, list []exponential.Bucket) []byte {
	if len(list) == 0 {
		return dst
	}
	counts := b.room[:0]
	at := list[0].Index
	for _, x := range list {
		for ; at < x.Index; at++ {
			counts = append(counts, 0)
		}
		counts = binary.AppendUvarint(counts, x.Count)
		at++
	}
	b.room = counts
	b.part = protobuf.AppendSint(b.part[:0], 1, int64(list[0].Index)-1)
	b.part = protobuf.AppendBytes(b.part, 2, counts)
	return protobuf.AppendBytes(dst, field, b.part)
}

// explicit completes a point of a histogram with the bounds of its layout; see
// exponential.
func (b *batch) explicit(st *histogram.Stats, start, at int64) {
	p := times(b.metrics, start, at)
	if st == nil {
		p = protobuf.AppendUint(p, 10, noValue)
	} else {
		p = protobuf.AppendFixed64(p, 4, st.Count())
		if monotonic(st) {
			p = protobuf.AppendDouble(p, 5, st.Sum())
		}
		b.counts = append(st.AppendCumulative(b.counts[:0]), st.Count())
		b.part = b.part[:0]
		before := uint64(0)
		for _, n := range b.counts {
			b.part = binary.LittleEndian.AppendUint64(b.part, n-before)
			before = n
		}
		p = protobuf.AppendBytes(p, 6, b.part)
		b.part = b.part[:0]
		for _, bound := range st.Layout().Bounds() {
			b.part = binary.LittleEndian.AppendUint64(b.part, math.Float64bits(bound))
		}
		p = protobuf.AppendBytes(p, 7, b.part)
		p = protobuf.AppendDouble(p, 11, st.Min())
		p = protobuf.AppendDouble(p, 12, st.Max())
	}
	b.end(p)
}

// visit calls number for each point of the sums of a request, with the name of the
// metric, the encoded attributes and the value, and values for each point of a
// histogram with its count.
func visit(request []byte, number func(name, attrs []byte, n uint64), values func(count uint64)) {
	each(request, 1, func(rm []byte) {
		each(rm, 2, func(sm []byte) {
			each(sm, 2, func(m []byte) {
				var name []byte
				each(m, 1, func(b []byte) { name = b })
				each(m, fieldSum, func(sum []byte) {
					each(sum, 1, func(p []byte) { numberPoint(name, p, number) })
				})
				for _, field := range []int{fieldHistogram, fieldExponential} {
					each(m, field, func(h []byte) {
						each(h, 1, func(p []byte) {
							protobuf.Fields(p, func(f protobuf.Field) {
								if f.Number == 4 {
									values(f.Value)
								}
							})
						})
					})
				}
			})
		})
	})
}

func numberPoint(name, point []byte, number func(name, attrs []byte, n uint64)) {
	var attrs []byte
	var n uint64
	protobuf.Fields(point, func(f protobuf.Field) {
		switch f.Number {
		case 4:
			n = uint64(math.Float64frombits(f.Value))
		case 6:
			n = f.Value
		case 7:
			attrs = protobuf.AppendBytes(attrs, 7, f.Bytes)
		}
	})
	number(name, attrs, n)
}

// each calls f for each field of a message with a number.
func each(msg []byte, number int, f func([]byte)) {
	protobuf.Fields(msg, func(x protobuf.Field) {
		if x.Number == number {
			f(x.Bytes)
		}
	})
}
