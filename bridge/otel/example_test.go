package otel_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"go.opentelemetry.io/otel/attribute"

	"github.com/statsd-admin/statsd-admin/bridge/otel"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// The stats of a store, exported by a reader of the SDK.
func ExampleNewProducer() {
	st := store.New(store.Options{})
	st.Scope("app").Counter("requests").Add(3)

	reader := sdk.NewManualReader(sdk.WithProducer(otel.NewProducer(st, time.Now())))
	_ = sdk.NewMeterProvider(sdk.WithReader(reader))

	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		fmt.Println(err)
	}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	}
	// Output:
	// app.requests 3
}

// Instrumented code that writes to a store.
func ExampleNewMeterProvider() {
	st := store.New(store.Options{})
	meter := otel.NewMeterProvider(st).Meter("shop")

	orders, err := meter.Int64Counter("orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	orders.Add(context.Background(), 2, metric.WithAttributes(attribute.String("region", "eu")))

	_ = render.Text(os.Stdout, st, render.Options{UsedOnly: true})
	// Output:
	// orders.region.eu: 2
}
