package render

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Protobuf writes the protobuf exposition format: io.prometheus.client's
// MetricFamily messages, each behind its length as a varint, with the content
// of [Exposition].
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
	unit    float64 // of the histogram in the exposition, in its own

	value  []byte // scratch: the value of a metric
	part   []byte // scratch: a message in it
	counts []uint64
	sparse sparse
}

// begin ends the previous message and starts a new one.
func (p *protoFamily) begin(out *output, name []byte, typ byte, help, unit string) {
	p.emit(out)
	p.typ = typ
	p.head = appendProtoBytes(p.head[:0], 1, name)
	if help != "" {
		p.head = appendProtoBytes(p.head, 2, []byte(help))
	}
	p.head = append(p.head, 3<<3, typ)
	if unit != "" {
		p.head = appendProtoBytes(p.head, 5, []byte(unit))
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
	n := len(labels) + 1 + uvarintLen(len(p.value)) + len(p.value)
	p.metrics = append(p.metrics, 4<<3|2)
	p.metrics = binary.AppendUvarint(p.metrics, uint64(n))
	p.metrics = append(p.metrics, labels...)
	p.metrics = appendProtoBytes(p.metrics, field, p.value)
	if len(p.metrics) >= protoPiece {
		p.emit(out)
	}
}

// scalar adds a counter or a gauge.
func (p *protoFamily) scalar(out *output, labels []byte, x float64) {
	p.value = appendProtoDouble(p.value[:0], 1, x)
	field := 2
	if p.typ == protoCounter {
		field = 3
	}
	p.metric(out, labels, field)
}

// summary adds a summary with quantiles of st, and the sum and count of totals.
func (p *protoFamily) summary(out *output, labels []byte, quantiles []float64, st, totals *histogram.Stats) {
	p.countAndSum(totals)
	var room [len(summaryQuantiles)]float64
	for i, x := range st.Quantiles(room[:0], quantiles) {
		p.part = appendProtoDouble(p.part[:0], 1, quantiles[i])
		p.part = appendProtoDouble(p.part, 2, x/p.unit)
		p.value = appendProtoBytes(p.value, 3, p.part)
	}
	p.metric(out, labels, 4)
}

func (p *protoFamily) countAndSum(st *histogram.Stats) {
	p.value = appendProtoUint(p.value[:0], 1, st.Count())
	p.value = appendProtoDouble(p.value, 2, st.Sum()/p.unit)
}

// histogram adds a histogram.
func (p *protoFamily) histogram(out *output, labels []byte, l *histogram.Layout, st *histogram.Stats, form Buckets) {
	p.countAndSum(st)
	if form != Native {
		p.counts = st.AppendCumulative(p.counts[:0])
		for i, bound := range l.Bounds() {
			p.bucket(p.counts[i], bound/p.unit)
		}
		p.bucket(st.Count(), math.Inf(1))
	}
	if form != Cumulative {
		p.native(l, st)
	}
	p.metric(out, labels, 7)
}

func (p *protoFamily) bucket(count uint64, bound float64) {
	p.part = appendProtoUint(p.part[:0], 1, count)
	p.part = appendProtoDouble(p.part, 2, bound)
	p.value = appendProtoBytes(p.value, 3, p.part)
}

// native adds the fields of a native histogram to p.value.
func (p *protoFamily) native(l *histogram.Layout, st *histogram.Stats) {
	schema, most, ok := l.NativeSchema()
	if !ok {
		schema = nativeSchema(l.SignificantDigits())
	}
	p.sparse.fill(st, schema, p.unit)
	for ; most > 0 && len(p.sparse.negative)+len(p.sparse.positive) > most && schema > minNativeSchema; schema-- {
		p.sparse.fill(st, schema-1, p.unit)
	}
	p.value = appendProtoSint(p.value, 5, int64(schema))
	p.value = appendProtoDouble(p.value, 6, zeroThreshold)
	p.value = appendProtoUint(p.value, 7, p.sparse.zero)
	p.side(9, p.sparse.negative)
	p.side(12, p.sparse.positive)
}

// side adds the buckets of one sign: field has the spans, the next one the
// differences of the counts.
func (p *protoFamily) side(field int, buckets []nativeBucket) {
	if len(buckets) == 0 {
		return
	}
	p.part = p.part[:0] // the differences
	next := int32(0)    // index behind the span before
	before := int64(0)
	for i := 0; i < len(buckets); {
		// A span goes on over gaps that are cheaper to fill than to skip.
		end := i + 1
		for end < len(buckets) && buckets[end].index-buckets[end-1].index <= maxFilledGap+1 {
			end++
		}
		from, to := buckets[i].index, buckets[end-1].index
		var span [2 + 2*binary.MaxVarintLen64]byte
		s := appendProtoSint(span[:0], 1, int64(from)-int64(next))
		s = appendProtoUint(s, 2, uint64(to-from+1))
		p.value = appendProtoBytes(p.value, field, s)
		next = to + 1
		at := from
		for ; i < end; i++ {
			for ; at < buckets[i].index; at++ {
				p.part = binary.AppendVarint(p.part, -before)
				before = 0
			}
			count := int64(buckets[i].count)
			p.part = binary.AppendVarint(p.part, count-before)
			before = count
			at++
		}
	}
	p.value = appendProtoBytes(p.value, field+1, p.part)
}

// maxFilledGap empty buckets are written rather than a new span begun.
const maxFilledGap = 2

// The messages are written by hand: field number and wire type, then a varint,
// eight bytes, or a length and bytes.

func appendProtoUint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(append(dst, byte(field<<3)), v)
}

func appendProtoSint(dst []byte, field int, v int64) []byte {
	return binary.AppendVarint(append(dst, byte(field<<3)), v)
}

func appendProtoDouble(dst []byte, field int, x float64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, byte(field<<3|1)), math.Float64bits(x))
}

func appendProtoBytes[T string | []byte](dst []byte, field int, b T) []byte {
	dst = binary.AppendUvarint(append(dst, byte(field<<3|2)), uint64(len(b)))
	return append(dst, b...)
}

// appendProtoLabel appends a label as a field of Metric.
func appendProtoLabel[N, V string | []byte](dst []byte, name N, value V) []byte {
	size := len(value)
	valid := utf8.ValidString(string(value))
	if !valid {
		size = len(appendValidUTF8(nil, value))
	}
	n := 1 + uvarintLen(len(name)) + len(name) + 1 + uvarintLen(size) + size
	dst = binary.AppendUvarint(append(dst, 1<<3|2), uint64(n))
	dst = appendProtoBytes(dst, 1, name)
	if valid {
		return appendProtoBytes(dst, 2, value)
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

// uvarintLen returns how many bytes n takes as a varint.
func uvarintLen(n int) int {
	w := 1
	for ; n >= 0x80; n >>= 7 {
		w++
	}
	return w
}

// sparse holds the buckets of a native histogram, by ascending index.
type sparse struct {
	zero               uint64
	negative, positive []nativeBucket
}

type nativeBucket struct {
	index int32
	count uint64
}

// zeroThreshold is the breadth of the bucket around zero.
const zeroThreshold = 0x1p-128

// minNativeSchema is the coarsest schema there is.
const minNativeSchema = -4

// nativeSchema returns the coarsest schema whose buckets are not wider than
// the precision of the bins, at most 8, the finest there is. Bucket i of schema
// s ends at, and includes, 2^(i/2^s).
func nativeSchema(digits int) int {
	precision := math.Pow10(-digits)
	schema := 0
	for schema < 8 && math.Exp2(math.Exp2(-float64(schema)))-1 > precision {
		schema++
	}
	return schema
}

// fill assigns the bins of st to buckets by their lower ends. That is exact for
// bins of one unit; the error of wider bins is at most the precision. Values
// are divided by unit.
func (s *sparse) fill(st *histogram.Stats, schema int, unit float64) {
	s.zero, s.negative, s.positive = 0, s.negative[:0], s.positive[:0]
	st.Bins(func(lower, _ float64, count uint64) bool {
		switch {
		case lower > 0:
			s.positive = addNative(s.positive, nativeIndex(lower/unit, schema), count)
		case lower < 0:
			s.negative = addNative(s.negative, nativeIndex(-lower/unit, schema), count)
		default:
			s.zero += count
		}
		return true
	})
	slices.Reverse(s.negative)
}

func addNative(b []nativeBucket, index int32, count uint64) []nativeBucket {
	if n := len(b); n > 0 && b[n-1].index == index {
		b[n-1].count += count
		return b
	}
	return append(b, nativeBucket{index, count})
}

// nativeIndex returns the bucket that holds x > 0.
func nativeIndex(x float64, schema int) int32 {
	frac, exp := math.Frexp(x)
	if schema < 0 {
		return int32(math.Ceil(math.Ldexp(float64(exp)+math.Log2(frac), schema)))
	}
	return int32(exp<<schema) + int32(math.Ceil(math.Ldexp(math.Log2(frac), schema)))
}
