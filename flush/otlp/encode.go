package otlp

import (
	"encoding/binary"
	"math"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/exponential"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
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
	head    []byte // of ResourceMetrics: its resource
	scope   []byte // of ScopeMetrics: its scope
	delta   bool   // temporality of sums and histograms
	metrics []byte // encoded Metric messages
	points  int

	name, help, unit string // of the open metric
	field            int    // its type; 0: none is open
	data             []byte // its points

	point, part, room []byte
	counts            []uint64
	sparse            exponential.Histogram
}

// attribute appends a KeyValue as a field.
func attribute(dst []byte, field int, key, value []byte) []byte {
	if len(value) == 0 {
		value = []byte("true")
	}
	inner := 1 + protobuf.UvarintLen(len(value)) + len(value)
	n := 1 + protobuf.UvarintLen(len(key)) + len(key) + 1 + protobuf.UvarintLen(inner) + inner
	dst = binary.AppendUvarint(protobuf.AppendTag(dst, field, protobuf.Bytes), uint64(n))
	dst = protobuf.AppendBytes(dst, 1, key)
	dst = binary.AppendUvarint(protobuf.AppendTag(dst, 2, protobuf.Bytes), uint64(inner))
	return protobuf.AppendBytes(dst, 1, value)
}

// resource returns the encoded Resource.
func resource(attributes []tags.Tag) (dst []byte) {
	for _, t := range attributes {
		dst = attribute(dst, 1, protobuf.Text([]byte(t.Name)), protobuf.Text([]byte(t.Value)))
	}
	return dst
}

// open makes a metric of a type the open one.
func (b *batch) open(name []byte, help, unit string, field int) {
	if b.field == field && b.name == string(name) {
		return
	}
	b.close()
	b.name, b.help, b.unit, b.field = string(name), help, unit, field
}

// close adds the open metric.
func (b *batch) close() {
	if b.field == 0 {
		return
	}
	if b.field != fieldGauge {
		temporality := uint64(2)
		if b.delta {
			temporality = 1
		}
		b.data = protobuf.AppendUint(b.data, 2, temporality)
	}
	if b.field == fieldSum {
		b.data = protobuf.AppendUint(b.data, 3, 1) // is_monotonic
	}
	m := protobuf.AppendBytes(b.room[:0], 1, b.name)
	if b.help != "" {
		m = protobuf.AppendBytes(m, 2, b.help)
	}
	if b.unit != "" {
		m = protobuf.AppendBytes(m, 3, b.unit)
	}
	m = protobuf.AppendBytes(m, b.field, b.data)
	b.metrics = protobuf.AppendBytes(b.metrics, 2, m)
	b.room, b.data, b.field = m, b.data[:0], 0
}

// size returns the bytes of the request so far.
func (b *batch) size() int { return len(b.metrics) + len(b.data) }

// request returns the request and empties the batch.
func (b *batch) request() []byte {
	b.close()
	scope := append(protobuf.AppendBytes(nil, 1, b.scope), b.metrics...)
	rm := protobuf.AppendBytes(protobuf.AppendBytes(nil, 1, b.head), 2, scope)
	b.metrics, b.points = b.metrics[:0], 0
	return protobuf.AppendBytes(nil, 1, rm)
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

// number adds a point of a sum or gauge. attrs are encoded attributes in field 7.
func (b *batch) number(attrs []byte, start, at int64, appendValue func([]byte) []byte) {
	p := append(b.point[:0], attrs...)
	p = times(p, start, at)
	p = appendValue(p)
	b.point = p
	b.data = protobuf.AppendBytes(b.data, 1, p)
	b.points++
}

// whole appends a value as an integer if it fits.
func whole(dst []byte, n uint64) []byte {
	if n > math.MaxInt64 {
		return protobuf.AppendDouble(dst, 4, float64(n))
	}
	return protobuf.AppendFixed64(dst, 6, n)
}

func double(dst []byte, x float64) []byte { return protobuf.AppendDouble(dst, 4, x) }

func nothing(dst []byte) []byte { return protobuf.AppendUint(dst, 8, noValue) }

// exponential adds a point of an exponential histogram, which ends the series if st is
// nil. attrs are encoded attributes in field 1.
func (b *batch) exponential(attrs []byte, st *histogram.Stats, start, at int64) {
	p := append(b.point[:0], attrs...)
	p = times(p, start, at)
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
	b.point = p
	b.data = protobuf.AppendBytes(b.data, 1, p)
	b.points++
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

// explicit adds a point of a histogram with the bounds of its layout; see exponential.
// attrs are encoded attributes in field 9.
func (b *batch) explicit(attrs []byte, st *histogram.Stats, start, at int64) {
	p := append(b.point[:0], attrs...)
	p = times(p, start, at)
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
	b.point = p
	b.data = protobuf.AppendBytes(b.data, 1, p)
	b.points++
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
