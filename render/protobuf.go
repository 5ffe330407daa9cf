package render

import (
	"encoding/binary"
	"io"
	"math"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/exponential"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// Protobuf writes the protobuf exposition format: io.prometheus.client's
// MetricFamily messages, each preceded by its length as a varint, with the
// content of [Exposition].
//
// Histograms have their bounds as buckets and a native histogram; with
// Options.Buckets Native only the latter, with Cumulative only the former.
//
// Each message follows its length, so it must be complete in memory. To bound
// it, a large family is written as several messages with the same name and
// type.
func Protobuf(w io.Writer, st *store.Store, o Options) error {
	return exposition(w, st, o, dialectProtobuf)
}

// protoPiece is the size of metrics from which a message is complete.
const protoPiece = 256 << 10

// The values of MetricType.
const (
	protoCounter   = 0
	protoGauge     = 1
	protoSummary   = 2
	protoHistogram = 4
)

func (e *exposer) protoType(k store.Kind) byte {
	switch k {
	case store.KindCounter:
		return protoCounter
	case store.KindHistogram:
		if e.summaries {
			return protoSummary
		}
		return protoHistogram
	default:
		return protoGauge
	}
}

// protoFamily is the MetricFamily that is being written.
type protoFamily struct {
	typ     byte
	head    []byte // its fields other than metrics
	metrics []byte
	seconds inSeconds // the unit of the histogram that is written

	since int64  // the time that was encoded last, Unix time in milliseconds
	stamp []byte // since as a Timestamp

	value  []byte // scratch: the value of a metric
	part   []byte // scratch: a message in it
	counts []uint64
	sparse exponential.Histogram
}

// begin ends the previous message and starts a new one.
func (p *protoFamily) begin(out *output, name []byte, typ byte, help, unit string) {
	p.emit(out)
	p.typ = typ
	p.head = protobuf.AppendBytes(p.head[:0], 1, name)
	if help != "" {
		p.head = protobuf.AppendBytes(p.head, 2, []byte(help))
	}
	p.head = append(p.head, 3<<3, typ)
	if unit != "" {
		p.head = protobuf.AppendBytes(p.head, 5, []byte(unit))
	}
}

// emit writes the message, if it has metrics.
func (p *protoFamily) emit(out *output) {
	if len(p.metrics) > 0 {
		out.buf = binary.AppendUvarint(out.buf, uint64(len(p.head)+len(p.metrics)))
		out.buf = append(out.buf, p.head...)
		out.write(p.metrics)
	}
	p.metrics = p.metrics[:0]
}

// metric adds a metric with its value, p.value, as field of Metric.
func (p *protoFamily) metric(out *output, labels []byte, field int) {
	n := len(labels) + 1 + protobuf.UvarintLen(len(p.value)) + len(p.value)
	p.metrics = append(p.metrics, 4<<3|2)
	p.metrics = binary.AppendUvarint(p.metrics, uint64(n))
	p.metrics = append(p.metrics, labels...)
	p.metrics = protobuf.AppendBytes(p.metrics, field, p.value)
	if len(p.metrics) >= protoPiece {
		p.emit(out)
	}
}

// scalar adds a counter, with the time since when it counts, or a gauge.
func (p *protoFamily) scalar(out *output, labels []byte, x float64, since int64) {
	p.value = protobuf.AppendDouble(p.value[:0], 1, x)
	field := 2
	if p.typ == protoCounter {
		field = 3
		p.created(3, since)
	}
	p.metric(out, labels, field)
}

// summary adds a summary with quantiles of st, and the sum and count of totals.
func (p *protoFamily) summary(out *output, labels []byte, quantiles []float64, st, totals *histogram.Stats, since int64) {
	p.countAndSum(totals)
	var room [len(summaryQuantiles)]float64
	for i, x := range st.Quantiles(room[:0], quantiles) {
		p.part = protobuf.AppendDouble(p.part[:0], 1, quantiles[i])
		p.part = protobuf.AppendDouble(p.part, 2, p.seconds.shown(x))
		p.value = protobuf.AppendBytes(p.value, 3, p.part)
	}
	p.created(4, since)
	p.metric(out, labels, 4)
}

func (p *protoFamily) countAndSum(st *histogram.Stats) {
	p.value = protobuf.AppendUint(p.value[:0], 1, st.Count())
	p.value = protobuf.AppendDouble(p.value, 2, p.seconds.shown(st.Sum()))
}

func (p *protoFamily) histogram(out *output, labels []byte, l *histogram.Layout, st *histogram.Stats, form Buckets, since int64) {
	p.countAndSum(st)
	if form != Native {
		p.counts = st.AppendCumulative(p.counts[:0])
		for i, bound := range l.Bounds() {
			p.bucket(p.counts[i], p.seconds.shown(bound))
		}
		p.bucket(st.Count(), math.Inf(1))
	}
	if form != Cumulative {
		p.native(st)
	}
	p.created(15, since)
	p.metric(out, labels, 7)
}

func (p *protoFamily) bucket(count uint64, bound float64) {
	p.part = protobuf.AppendUint(p.part[:0], 1, count)
	p.part = protobuf.AppendDouble(p.part, 2, bound)
	p.value = protobuf.AppendBytes(p.value, 3, p.part)
}

// native adds the fields of a native histogram to p.value.
func (p *protoFamily) native(st *histogram.Stats) {
	unit := 1.0
	if p.seconds {
		unit = 1000
	}
	p.sparse.Fill(st, unit)
	p.value = protobuf.AppendSint(p.value, 5, int64(p.sparse.Schema))
	p.value = protobuf.AppendDouble(p.value, 6, exponential.ZeroThreshold)
	p.value = protobuf.AppendUint(p.value, 7, p.sparse.Zero)
	p.side(9, p.sparse.Negative)
	p.side(12, p.sparse.Positive)
}

// side adds the buckets of one sign: field has the spans, the next one the
// differences of the counts.
func (p *protoFamily) side(field int, buckets []exponential.Bucket) {
	if len(buckets) == 0 {
		return
	}
	p.part = p.part[:0] // the differences
	exponential.Spans(buckets, func(offset int32, length uint32) {
		var span [2 + 2*binary.MaxVarintLen64]byte
		s := protobuf.AppendSint(span[:0], 1, int64(offset))
		p.value = protobuf.AppendBytes(p.value, field, protobuf.AppendUint(s, 2, uint64(length)))
	}, func(delta int64) { p.part = binary.AppendVarint(p.part, delta) })
	p.value = protobuf.AppendBytes(p.value, field+1, p.part)
}

// appendProtoLabel appends a label as a field of Metric.
func appendProtoLabel[N, V string | []byte](dst []byte, name N, value V) []byte {
	size := len(value)
	valid := utf8.ValidString(string(value))
	if !valid {
		size = len(appendValidUTF8(nil, value))
	}
	n := 1 + protobuf.UvarintLen(len(name)) + len(name) + 1 + protobuf.UvarintLen(size) + size
	dst = binary.AppendUvarint(append(dst, 1<<3|2), uint64(n))
	dst = protobuf.AppendBytes(dst, 1, name)
	if valid {
		return protobuf.AppendBytes(dst, 2, value)
	}
	dst = binary.AppendUvarint(append(dst, 2<<3|2), uint64(size))
	return appendValidUTF8(dst, value)
}

// appendValidUTF8 appends s with each byte that is no UTF-8 as U+FFFD.
func appendValidUTF8[T string | []byte](dst []byte, s T) []byte {
	for _, r := range string(s) {
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
