package peers

import (
	"context"
	"errors"
	"io"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

// errCannot is the error of a function that a library lacks.
var errCannot = errors.New("peers: the library cannot do this")

type otelReader struct {
	*sdk.ManualReader
	counter metric.Int64Counter
}

func (otelReader) write(io.Writer) error { return errCannot }

func newOtel(selector sdk.TemporalitySelector) (*sdk.ManualReader, metric.Meter) {
	r := sdk.NewManualReader(sdk.WithTemporalitySelector(selector))
	return r, sdk.NewMeterProvider(sdk.WithReader(r), sdk.WithCardinalityLimit(0)).Meter("m")
}

// must panics on errors of a setup that cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func otelSDK() library {
	ctx := context.Background()
	return library{
		name: "otel",
		counter: func() loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			c := must(m.Int64Counter("c"))
			return func(_, n int) {
				for range n {
					c.Add(ctx, 1)
				}
			}
		},
		gaugeSet: func() loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			g := must(m.Int64Gauge("g"))
			return func(_, n int) {
				for i := range n {
					g.Record(ctx, int64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			g := must(m.Int64UpDownCounter("g"))
			return func(_, n int) {
				for range n {
					g.Add(ctx, 1)
				}
			}
		},
		record: func(vals []uint64) loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			h := must(m.Int64Histogram("h"))
			return func(_, n int) {
				for i := range n {
					h.Record(ctx, int64(vals[i%len(vals)]))
				}
			}
		},
		byName: func(names []string) loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			c := must(m.Int64Counter("c"))
			return func(core, n int) {
				i := core * 97
				for range n {
					c.Add(ctx, 1, metric.WithAttributes(attribute.String("name", names[i])))
					i = workload.Next(i, len(names))
				}
			}
		},
		byTags: func(es []workload.Endpoint) loop {
			_, m := newOtel(sdk.DefaultTemporalitySelector)
			c := must(m.Int64Counter("requests"))
			return func(core, n int) {
				i := core * 97
				for range n {
					e := &es[i]
					c.Add(ctx, 1, metric.WithAttributes(attribute.String("region", e.Region),
						attribute.String("service", e.Service), attribute.String("status", e.Status)))
					i = workload.Next(i, len(es))
				}
			}
		},
		create: func(names []string) population {
			r, m := newOtel(sdk.DefaultTemporalitySelector)
			c := must(m.Int64Counter("c"))
			for _, n := range names {
				c.Add(ctx, 1, metric.WithAttributes(attribute.String("name", n)))
			}
			return otelReader{r, c}
		},
		flush: func(names []string) (func(), func()) {
			r, m := newOtel(sdk.DeltaTemporalitySelector)
			c := must(m.Int64Counter("c"))
			sets := make([]metric.AddOption, 0, len(names)/100)
			for i := 0; i < len(names); i += 100 {
				sets = append(sets, metric.WithAttributeSet(attribute.NewSet(attribute.String("name", names[i]))))
			}
			for _, n := range names {
				c.Add(ctx, 1, metric.WithAttributes(attribute.String("name", n)))
			}
			var rm metricdata.ResourceMetrics
			if err := r.Collect(ctx, &rm); err != nil {
				panic(err)
			}
			return func() {
					for _, s := range sets {
						c.Add(ctx, 1, s)
					}
				}, func() {
					if err := r.Collect(ctx, &rm); err != nil {
						panic(err)
					}
				}
		},
	}
}
