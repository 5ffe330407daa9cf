package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// meter creates instruments. The embedded noop.Meter has the methods of newer versions of
// the API.
type meter struct {
	noop.Meter
	p *MeterProvider
}

// writer is the part that all instruments have in common: it writes a value for a set of
// attributes.
type writer func(value float64, set attribute.Set)

// config is the part of the configurations of instruments that the bridge uses.
type config interface {
	Description() string
	Unit() string
}

// units maps units of UCUM to the words that end the names of metrics.
func units() map[string]string {
	return map[string]string{"s": "seconds", "ms": "milliseconds", "us": "microseconds", "By": "bytes"}
}

// describe describes the stats of an instrument.
func (m meter) describe(name string, c config) {
	d := store.Description{Help: c.Description(), Unit: units()[c.Unit()]}
	if d != (store.Description{}) {
		m.p.scope.Describe(name, d)
	}
}

func (m meter) counter(name string, c config) writer {
	m.describe(name, c)
	s := &series[*fractional]{limit: m.p.limit, create: func(t ...tags.Tag) *fractional {
		return &fractional{whole: m.p.scope.Counter(name, t...)}
	}}
	return func(v float64, set attribute.Set) { s.of(set).add(v) }
}

func (m meter) gauge(name string, c config, write func(*store.FloatGauge, float64) error) writer {
	m.describe(name, c)
	s := &series[*store.FloatGauge]{limit: m.p.limit, create: func(t ...tags.Tag) *store.FloatGauge {
		return m.p.scope.FloatGauge(name, t...)
	}}
	return func(v float64, set attribute.Set) { _ = write(s.of(set), v) } // it ignores values that are not finite
}

func (m meter) histogram(name string, c config, bounds []float64) writer {
	m.describe(name, c)
	scope := m.p.histograms(bounds)
	s := &series[*store.Histogram]{limit: m.p.limit, create: func(t ...tags.Tag) *store.Histogram {
		return scope.Histogram(name, store.Unspecified, t...)
	}}
	return func(v float64, set attribute.Set) { s.of(set).RecordFloat(v, 1) }
}

// total returns the writer of an observable counter.
func (m meter) total(name string, c config) writer {
	m.describe(name, c)
	s := &series[*follower]{create: func(t ...tags.Tag) *follower {
		return &follower{fractional: fractional{whole: m.p.scope.Counter(name, t...)}}
	}}
	return func(v float64, set attribute.Set) { s.of(set).observe(v) }
}

// number is the type of the values of an instrument.
type number interface{ int64 | float64 }

// Instruments that are written in the same way share a type.
type (
	adder[N number] struct {
		embedded.Int64Counter
		embedded.Int64UpDownCounter
		embedded.Float64Counter
		embedded.Float64UpDownCounter
		write writer
	}
	recorder[N number] struct {
		embedded.Int64Gauge
		embedded.Int64Histogram
		embedded.Float64Gauge
		embedded.Float64Histogram
		write writer
	}
)

func (i *adder[N]) Add(_ context.Context, n N, o ...metric.AddOption) {
	i.write(float64(n), metric.NewAddConfig(o).Attributes())
}

func (i *recorder[N]) Record(_ context.Context, n N, o ...metric.RecordOption) {
	i.write(float64(n), metric.NewRecordConfig(o).Attributes())
}

// Enabled reports whether the instrument records values, which it always does.
func (*adder[N]) Enabled(context.Context) bool    { return true }
func (*recorder[N]) Enabled(context.Context) bool { return true }

func (m meter) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return &adder[int64]{write: m.counter(name, metric.NewInt64CounterConfig(o...))}, nil
}

func (m meter) Int64UpDownCounter(name string, o ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return &adder[int64]{write: m.gauge(name, metric.NewInt64UpDownCounterConfig(o...), (*store.FloatGauge).Add)}, nil
}

func (m meter) Int64Gauge(name string, o ...metric.Int64GaugeOption) (metric.Int64Gauge, error) {
	return &recorder[int64]{write: m.gauge(name, metric.NewInt64GaugeConfig(o...), (*store.FloatGauge).Set)}, nil
}

func (m meter) Int64Histogram(name string, o ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	c := metric.NewInt64HistogramConfig(o...)
	return &recorder[int64]{write: m.histogram(name, c, c.ExplicitBucketBoundaries())}, nil
}

func (m meter) Float64Counter(name string, o ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	return &adder[float64]{write: m.counter(name, metric.NewFloat64CounterConfig(o...))}, nil
}

func (m meter) Float64UpDownCounter(name string, o ...metric.Float64UpDownCounterOption) (metric.Float64UpDownCounter, error) {
	return &adder[float64]{write: m.gauge(name, metric.NewFloat64UpDownCounterConfig(o...), (*store.FloatGauge).Add)}, nil
}

func (m meter) Float64Gauge(name string, o ...metric.Float64GaugeOption) (metric.Float64Gauge, error) {
	return &recorder[float64]{write: m.gauge(name, metric.NewFloat64GaugeConfig(o...), (*store.FloatGauge).Set)}, nil
}

func (m meter) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	c := metric.NewFloat64HistogramConfig(o...)
	return &recorder[float64]{write: m.histogram(name, c, c.ExplicitBucketBoundaries())}, nil
}
