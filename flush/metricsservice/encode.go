package metricsservice

import (
	"bytes"
	"math"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

// The types of families, values of io.prometheus.client.MetricType.
const (
	typeCounter   = 0
	typeGauge     = 1
	typeSummary   = 2
	typeHistogram = 4
)

// The fields of io.prometheus.client.Metric that hold the value of a type.
const (
	fieldGauge     = 2
	fieldCounter   = 3
	fieldSummary   = 4
	fieldHistogram = 7
)

// fieldFamilies is the field of StreamMetricsMessage with the families.
const fieldFamilies = 2

// batch collects families. Metrics of the same name and type that follow each other
// share a family.
type batch struct {
	families []byte // encoded
	metrics  int

	name []byte // of the open family, empty if none is
	typ  uint64
	data []byte // its metrics

	metric, value, part []byte
	counts              []uint64
	quantiles           []float64
}

// open makes a family the open one.
func (b *batch) open(name []byte, typ uint64) {
	if b.typ == typ && bytes.Equal(b.name, name) {
		return
	}
	b.close()
	b.name, b.typ = append(b.name[:0], name...), typ
}

// close adds the open family.
func (b *batch) close() {
	if len(b.data) == 0 {
		return
	}
	b.part = protobuf.AppendBytes(b.part[:0], 1, b.name)
	b.part = append(b.part, 3<<3, byte(b.typ)) // also the type 0
	b.part = append(b.part, b.data...)
	b.families = protobuf.AppendBytes(b.families, fieldFamilies, b.part)
	b.name, b.data = b.name[:0], b.data[:0]
}

// packet returns the families and empties the batch.
func (b *batch) packet() []byte {
	b.close()
	p := append([]byte(nil), b.families...)
	b.families, b.metrics = b.families[:0], 0
	return p
}

// add adds a metric with b.value in a field.
func (b *batch) add(labels []byte, field int, at int64) {
	b.metric = protobuf.AppendBytes(append(b.metric[:0], labels...), field, b.value)
	b.metric = protobuf.AppendInt(b.metric, 6, at) // timestamp_ms
	b.data = protobuf.AppendBytes(b.data, 4, b.metric)
	b.metrics++
}

// scalar adds a counter or a gauge.
func (b *batch) scalar(labels []byte, x float64, at int64) {
	b.value = protobuf.AppendDouble(b.value[:0], 1, x)
	field := fieldGauge
	if b.typ == typeCounter {
		field = fieldCounter
	}
	b.add(labels, field, at)
}

func (b *batch) summary(labels []byte, h *histogram.Stats, at int64) {
	b.value = protobuf.AppendUint(b.value[:0], 1, h.Count())
	b.value = protobuf.AppendDouble(b.value, 2, h.Sum())
	quantiles := []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}
	b.quantiles = h.Quantiles(b.quantiles[:0], quantiles)
	for i, x := range b.quantiles {
		b.part = protobuf.AppendDouble(b.part[:0], 1, quantiles[i])
		b.part = protobuf.AppendDouble(b.part, 2, x)
		b.value = protobuf.AppendBytes(b.value, 3, b.part)
	}
	b.add(labels, fieldSummary, at)
}

func (b *batch) histogram(labels []byte, h *histogram.Stats, at int64) {
	b.value = protobuf.AppendUint(b.value[:0], 1, h.Count())
	b.value = protobuf.AppendDouble(b.value, 2, h.Sum())
	b.counts = h.AppendCumulative(b.counts[:0])
	for i, bound := range h.Layout().Bounds() {
		b.part = protobuf.AppendUint(b.part[:0], 1, b.counts[i])
		b.part = protobuf.AppendDouble(b.part, 2, bound)
		b.value = protobuf.AppendBytes(b.value, 3, b.part)
	}
	b.add(labels, fieldHistogram, at)
}

// metric is a decoded metric of a packet.
type metric struct {
	labels []byte  // encoded
	value  float64 // of a counter or gauge
	count  uint64  // of a summary or histogram
}

// visit calls yield for the metrics of a packet, with the name and the type of their
// family.
func visit(packet []byte, yield func(name []byte, typ uint64, m metric)) {
	protobuf.Fields(packet, func(f protobuf.Field) {
		if f.Number != fieldFamilies {
			return
		}
		var name []byte
		var typ uint64
		protobuf.Fields(f.Bytes, func(f protobuf.Field) {
			switch f.Number {
			case 1:
				name = f.Bytes
			case 3:
				typ = f.Value
			case 4:
				yield(name, typ, decode(f.Bytes))
			}
		})
	})
}

func decode(msg []byte) (m metric) {
	protobuf.Fields(msg, func(f protobuf.Field) {
		switch f.Number {
		case 1:
			m.labels = protobuf.AppendBytes(m.labels, 1, f.Bytes)
		case fieldGauge, fieldCounter:
			protobuf.Fields(f.Bytes, func(f protobuf.Field) { m.value = math.Float64frombits(f.Value) })
		case fieldSummary, fieldHistogram:
			protobuf.Fields(f.Bytes, func(f protobuf.Field) {
				if f.Number == 1 {
					m.count = f.Value
				}
			})
		}
	})
	return m
}

// increments calls yield for each increment in a packet.
func increments(packet []byte, yield func(key []byte, n uint64)) {
	var key []byte
	visit(packet, func(name []byte, typ uint64, m metric) {
		if typ == typeCounter && m.value > 0 {
			key = append(append(append(key[:0], name...), 0), m.labels...)
			yield(key, uint64(m.value))
		}
	})
}
