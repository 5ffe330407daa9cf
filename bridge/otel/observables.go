package otel

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"

	"github.com/statsd-admin/statsd-admin/store"
)

// observable is implemented by the observable instruments of this package.
type observable interface{ writer() writer }

type (
	intObservable struct {
		metric.Int64Observable
		embedded.Int64ObservableCounter
		embedded.Int64ObservableUpDownCounter
		embedded.Int64ObservableGauge
		write writer
	}
	floatObservable struct {
		metric.Float64Observable
		embedded.Float64ObservableCounter
		embedded.Float64ObservableUpDownCounter
		embedded.Float64ObservableGauge
		write writer
	}
)

func (i intObservable) writer() writer   { return i.write }
func (i floatObservable) writer() writer { return i.write }

// observing is what the callbacks of one instrument get.
type observing[N number] struct {
	embedded.Int64Observer
	embedded.Float64Observer
	write writer
}

func (o observing[N]) Observe(n N, opts ...metric.ObserveOption) {
	o.write(float64(n), metric.NewObserveConfig(opts).Attributes())
}

func (m meter) readInts(w writer, callbacks []metric.Int64Callback) writer {
	for _, read := range callbacks {
		m.p.register(func(ctx context.Context) error { return read(ctx, observing[int64]{write: w}) })
	}
	return w
}

func (m meter) readFloats(w writer, callbacks []metric.Float64Callback) writer {
	for _, read := range callbacks {
		m.p.register(func(ctx context.Context) error { return read(ctx, observing[float64]{write: w}) })
	}
	return w
}

func (m meter) Int64ObservableCounter(name string, o ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	c := metric.NewInt64ObservableCounterConfig(o...)
	return intObservable{write: m.readInts(m.total(name, c), c.Callbacks())}, nil
}

func (m meter) Int64ObservableUpDownCounter(name string, o ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	c := metric.NewInt64ObservableUpDownCounterConfig(o...)
	return intObservable{write: m.readInts(m.gauge(name, c, (*store.FloatGauge).Set), c.Callbacks())}, nil
}

func (m meter) Int64ObservableGauge(name string, o ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	c := metric.NewInt64ObservableGaugeConfig(o...)
	return intObservable{write: m.readInts(m.gauge(name, c, (*store.FloatGauge).Set), c.Callbacks())}, nil
}

func (m meter) Float64ObservableCounter(name string, o ...metric.Float64ObservableCounterOption) (metric.Float64ObservableCounter, error) {
	c := metric.NewFloat64ObservableCounterConfig(o...)
	return floatObservable{write: m.readFloats(m.total(name, c), c.Callbacks())}, nil
}

func (m meter) Float64ObservableUpDownCounter(name string, o ...metric.Float64ObservableUpDownCounterOption) (metric.Float64ObservableUpDownCounter, error) {
	c := metric.NewFloat64ObservableUpDownCounterConfig(o...)
	return floatObservable{write: m.readFloats(m.gauge(name, c, (*store.FloatGauge).Set), c.Callbacks())}, nil
}

func (m meter) Float64ObservableGauge(name string, o ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	c := metric.NewFloat64ObservableGaugeConfig(o...)
	return floatObservable{write: m.readFloats(m.gauge(name, c, (*store.FloatGauge).Set), c.Callbacks())}, nil
}

// observer is what a callback of several instruments gets. Instruments that are not of
// this package are ignored.
type observer struct{ embedded.Observer }

func (observer) ObserveInt64(i metric.Int64Observable, n int64, opts ...metric.ObserveOption) {
	if i, ok := i.(observable); ok {
		i.writer()(float64(n), metric.NewObserveConfig(opts).Attributes())
	}
}

func (observer) ObserveFloat64(i metric.Float64Observable, x float64, opts ...metric.ObserveOption) {
	if i, ok := i.(observable); ok {
		i.writer()(x, metric.NewObserveConfig(opts).Attributes())
	}
}

// registration removes a callback.
type registration struct {
	embedded.Registration
	remove func()
}

func (r registration) Unregister() error {
	r.remove()
	return nil
}

// RegisterCallback implements [metric.Meter].
func (m meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	return registration{remove: m.p.register(func(ctx context.Context) error { return f(ctx, observer{}) })}, nil
}
