// Package otel connects a store with OpenTelemetry metrics, in both directions.
//
// A program with an OpenTelemetry SDK exports the stats of a store through a reader of
// the SDK:
//
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(otel.NewProducer(st, time.Now())))
//
// Instrumented code writes to a store, and so shows on the administration port, through
// a meter provider:
//
//	provider := otel.NewMeterProvider(st)
//	otelapi.SetMeterProvider(provider)
//	flush.Config{Store: st, Before: []func(time.Time){provider.Refresh}}
//
// The package is a separate module, so that users of the store do not depend on the
// SDK.
package otel
