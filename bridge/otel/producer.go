package otel

import (
	"context"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Producer presents the stats of a store as OpenTelemetry metrics: counters as
// monotonic cumulative sums, gauges as gauges, and histograms, as of the last flush, as
// cumulative histograms whose counts are exact at every bound. Tags are attributes.
// Unused and hidden stats are left out, and so are text readouts. A Producer is safe for
// concurrent use.
type Producer struct {
	st    *store.Store
	start time.Time
}

var _ metric.Producer = (*Producer)(nil)

// NewProducer returns a producer for the stats of st, whose counts began at start, or later
// if a stat was created or reset later.
func NewProducer(st *store.Store, start time.Time) *Producer { return &Producer{st, start} }

// Produce implements [metric.Producer].
func (p *Producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	v := p.st.View()
	defer v.Close()
	var all []metricdata.Metrics
	for _, kind := range []store.Kind{store.KindCounter, store.KindGauge, store.KindHistogram} {
		c := v.ByFamily(kind) // one for all steps, since it is on the heap
		for c.Next() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !c.Used() || c.Hidden() {
				continue
			}
			name := c.Name()
			if f := c.Family(); f != nil {
				name = f.String()
			}
			if n := len(all); n == 0 || all[n-1].Name != name || kindOf(all[n-1].Data) != kind {
				d := p.st.DescriptionOf(&c)
				all = append(all, metricdata.Metrics{Name: name, Description: d.Help, Unit: ucum(d.Unit), Data: empty(kind)})
			}
			p.add(&all[len(all)-1], &c, now)
		}
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: "github.com/statsd-admin/statsd-admin/store"},
		Metrics: all,
	}}, nil
}

// empty returns the data of a family of a kind, without points.
func empty(kind store.Kind) metricdata.Aggregation {
	switch kind {
	case store.KindCounter:
		return metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	case store.KindGauge:
		return metricdata.Gauge[float64]{}
	default:
		return metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	}
}

// kindOf is the reverse of empty.
func kindOf(data metricdata.Aggregation) store.Kind {
	switch data.(type) {
	case metricdata.Sum[int64]:
		return store.KindCounter
	case metricdata.Gauge[float64]:
		return store.KindGauge
	default:
		return store.KindHistogram
	}
}

// add adds the stat under c to its family.
func (p *Producer) add(m *metricdata.Metrics, c *store.Cursor, now time.Time) {
	attributes := attributesOf(c)
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{
			Attributes: attributes, StartTime: p.since(c), Time: now, Value: int64(min(c.Uint(), math.MaxInt64)),
		})
		m.Data = data
	case metricdata.Gauge[float64]:
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[float64]{Attributes: attributes, Time: now, Value: c.Float()})
		m.Data = data
	case metricdata.Histogram[float64]:
		data.DataPoints = append(data.DataPoints, histogramPoint(c.Histogram().Snapshot().Cumulative, attributes, p.since(c), now))
		m.Data = data
		if u := unit(c.Histogram().Layout().Unit()); u != "" {
			m.Unit = u
		}
	}
}

// since returns when the value under c began to count: a stat can be newer than the store,
// because it can end and return, and a counter can be reset.
func (p *Producer) since(c *store.Cursor) time.Time {
	if t := c.Since(); t.After(p.start) {
		return t
	}
	return p.start
}

func histogramPoint(s *histogram.Stats, attributes attribute.Set, since, now time.Time) metricdata.HistogramDataPoint[float64] {
	counts := append(s.AppendCumulative(nil), s.Count())
	for i := len(counts) - 1; i > 0; i-- {
		counts[i] -= counts[i-1]
	}
	return metricdata.HistogramDataPoint[float64]{
		Attributes: attributes, StartTime: since, Time: now,
		Count: s.Count(), Sum: s.Sum(), Min: metricdata.NewExtrema(s.Min()), Max: metricdata.NewExtrema(s.Max()),
		Bounds: slices.Clone(s.Layout().Bounds()), BucketCounts: counts,
	}
}

func attributesOf(c *store.Cursor) attribute.Set {
	var all []attribute.KeyValue
	for _, l := range c.Labels() {
		all = append(all, attribute.String(l.Name.String(), string(l.Value)))
	}
	return attribute.NewSet(all...)
}

// ucum returns the UCUM code of the unit of a description, or the unit itself.
func ucum(unit string) string {
	for code, word := range units() {
		if word == unit {
			return code
		}
	}
	return unit
}

// unit returns the UCUM code of a unit.
func unit(u histogram.Unit) string {
	switch u {
	case histogram.Bytes:
		return "By"
	case histogram.Microseconds:
		return "us"
	case histogram.Milliseconds:
		return "ms"
	case histogram.Percent:
		return "1"
	case histogram.Seconds:
		return "s"
	}
	return ""
}
