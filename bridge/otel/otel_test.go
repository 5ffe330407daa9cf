package otel

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestProducerExportsThroughTheSDK collects the stats of a store with a reader of the SDK.
func TestProducerExportsThroughTheSDK(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return start }})
	sc := st.Scope("app")
	sc.Counter("requests", tags.Tag{Name: "code", Value: "200"}).Add(3)
	sc.Counter("requests", tags.Tag{Name: "code", Value: "500"}).Add(1)
	sc.Counter("idle")
	_ = sc.FloatGauge("load").Set(-1.5)
	h := sc.Histogram("latency", store.Milliseconds)
	h.Record(12)
	h.Record(40)
	st.Flush(store.FlushOptions{}).Close()

	reader := sdk.NewManualReader(sdk.WithProducer(NewProducer(st, start)))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	if len(rm.ScopeMetrics) != 1 {
		t.Fatalf("%d scopes", len(rm.ScopeMetrics))
	}
	got := map[string]metricdata.Metrics{}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	code := func(v string) attribute.Set { return attribute.NewSet(attribute.String("code", v)) }
	metricdatatest.AssertEqual(t, metricdata.Metrics{Name: "app.requests", Data: metricdata.Sum[int64]{
		Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
		DataPoints: []metricdata.DataPoint[int64]{{Attributes: code("200"), StartTime: start, Value: 3}, {Attributes: code("500"), StartTime: start, Value: 1}},
	}}, got["app.requests"], metricdatatest.IgnoreTimestamp())
	metricdatatest.AssertEqual(t, metricdata.Metrics{Name: "app.load", Data: metricdata.Gauge[float64]{
		DataPoints: []metricdata.DataPoint[float64]{{Value: -1.5}},
	}}, got["app.load"], metricdatatest.IgnoreTimestamp())
	latency, ok := got["app.latency"].Data.(metricdata.Histogram[float64])
	if !ok || got["app.latency"].Unit != "ms" || len(latency.DataPoints) != 1 {
		t.Fatalf("latency: %+v", got["app.latency"])
	}
	p := latency.DataPoints[0]
	sum := uint64(0)
	for i, n := range p.BucketCounts {
		sum += n
		if i < len(p.Bounds) && p.Bounds[i] == 25 && sum != 1 {
			t.Errorf("%d values at or below 25, want 1", sum)
		}
	}
	low, _ := p.Min.Value()
	high, _ := p.Max.Value()
	if p.Count != 2 || p.Sum != 52 || low != 12 || high != 40 || sum != 2 || len(p.BucketCounts) != len(p.Bounds)+1 || !p.StartTime.Equal(start) {
		t.Errorf("latency: %+v", p)
	}
	if _, ok := got["app.idle"]; ok {
		t.Error("an unused counter is exported")
	}
}

// TestProducerSaysSinceWhen: the value of a stat that returned, or was reset, began to count
// later than the store.
func TestProducerSaysSinceWhen(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now := start
	st := store.New(store.Options{Now: func() time.Time { return now }})
	st.Root().Counter("old").Inc()
	now = now.Add(time.Hour)
	st.Root().Counter("new").Inc()
	st.Root().Histogram("values", store.Unspecified).Record(1)
	st.Flush(store.FlushOptions{}).Close()
	scopes, err := NewProducer(st, start).Produce(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range scopes[0].Metrics {
		var since time.Time
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			since = data.DataPoints[0].StartTime
		case metricdata.Histogram[float64]:
			since = data.DataPoints[0].StartTime
		}
		want := now
		if m.Name == "old" {
			want = start
		}
		if !since.Equal(want) {
			t.Errorf("%s: since %s, want %s", m.Name, since.UTC(), want.UTC())
		}
	}
}

// TestProducerStopsWithItsContext does not walk a store for a request that is gone.
func TestProducerStopsWithItsContext(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a").Inc()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewProducer(st, time.Now()).Produce(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func text(t *testing.T, st *store.Store) string {
	t.Helper()
	st.Flush(store.FlushOptions{}).Close()
	var out bytes.Buffer
	if err := render.Text(&out, st, render.Options{UsedOnly: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// must takes an instrument out of the result of its constructor.
func must[I any](i I, err error) I {
	if err != nil {
		panic(err)
	}
	return i
}

// TestInstrumentsWriteToTheStore uses every kind of instrument.
func TestInstrumentsWriteToTheStore(t *testing.T) {
	st := store.New(store.Options{})
	p := NewMeterProvider(st)
	m, ctx := p.Meter("test"), context.Background()
	get := metric.WithAttributes(attribute.String("method", "GET"), attribute.Int("code", 200))

	requests := must(m.Int64Counter("requests"))
	requests.Add(ctx, 2, get)
	requests.Add(ctx, 3, metric.WithAttributes(attribute.Int("code", 200), attribute.String("method", "GET")))
	requests.Add(ctx, -7, get)
	bytesSent := must(m.Float64Counter("sent"))
	for _, x := range []float64{0.5, 0.75, 0.75, math.NaN(), math.Inf(1), -1} {
		bytesSent.Add(ctx, x)
	}
	active := must(m.Int64UpDownCounter("active"))
	active.Add(ctx, 3)
	active.Add(ctx, -5)
	must(m.Float64UpDownCounter("weight")).Add(ctx, -0.5)
	must(m.Int64Gauge("size")).Record(ctx, 9)
	must(m.Float64Gauge("load")).Record(ctx, 0.25)
	must(m.Float64Histogram("duration")).Record(ctx, 0.125)
	must(m.Int64Histogram("length")).Record(ctx, 12)

	observed := 5.0
	must(m.Float64ObservableCounter("seen", metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(observed, get)
		return nil
	})))
	must(m.Int64ObservableCounter("ticks", metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(observed))
		return nil
	})))
	temperature := must(m.Float64ObservableGauge("temperature"))
	depth := must(m.Int64ObservableUpDownCounter("depth"))
	queue := must(m.Int64ObservableGauge("queue"))
	drift := must(m.Float64ObservableUpDownCounter("drift"))
	failed := errors.New("sensor")
	reg := must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveFloat64(temperature, 20+observed)
		o.ObserveFloat64(drift, -observed)
		o.ObserveInt64(depth, -3)
		o.ObserveInt64(queue, 4)
		return failed
	}, temperature, depth, queue, drift))
	for _, observed = range []float64{5, math.NaN(), 8, math.Inf(1), -4, 2} { // the totals start again
		p.Refresh(time.Time{})
	}
	if !errors.Is(p.Err(), failed) {
		t.Errorf("error %v", p.Err())
	}
	if err := reg.Unregister(); err != nil {
		t.Fatal(err)
	}
	observed = 4
	p.Refresh(time.Time{})
	if p.Err() != nil {
		t.Errorf("a callback that was removed runs: %v", p.Err())
	}

	got := text(t, st)
	for _, want := range []string{
		"requests.code.200.method.GET: 5\n", "sent: 2\n", "active: -2\n", "weight: -0.5\n", "size: 9\n", "load: 0.25\n",
		"duration: P0(0.125,0.125)", "length: P0(12,12)", "seen.code.200.method.GET: 12\n", "ticks: 12\n",
		"temperature: 22\n", "drift: -2\n", "depth: -3\n", "queue: 4\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	var exposition bytes.Buffer
	if err := render.Exposition(&exposition, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if want := `requests{code="200",method="GET"} 5`; !strings.Contains(exposition.String(), "\n"+want) {
		t.Errorf("%q is missing in\n%s", want, exposition.String())
	}
}

// TestInstrumentsDescribeTheirStats: descriptions, units and boundaries of instruments
// reach the exposition, and a reader of the SDK.
func TestInstrumentsDescribeTheirStats(t *testing.T) {
	st := store.New(store.Options{})
	m, ctx := NewMeterProvider(st).Meter("test"), context.Background()
	seconds, what := metric.WithUnit("s"), metric.WithDescription("What it is.")
	must(m.Int64Counter("a", what)).Add(ctx, 1)
	must(m.Float64Counter("b", what)).Add(ctx, 1)
	must(m.Int64UpDownCounter("c", what)).Add(ctx, 1)
	must(m.Float64UpDownCounter("d", what)).Add(ctx, 1)
	must(m.Int64Gauge("e", what)).Record(ctx, 1)
	must(m.Float64Gauge("f", what)).Record(ctx, 1)
	must(m.Int64Histogram("g", what, metric.WithExplicitBucketBoundaries(0, 2))).Record(ctx, 1)
	must(m.Float64Histogram("h", what, seconds, metric.WithExplicitBucketBoundaries(0.005, 2))).Record(ctx, 0.25)
	must(m.Float64Histogram("i", what)).Record(ctx, 1)
	p := NewMeterProvider(st)
	om := p.Meter("observed")
	ints := metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(1); return nil })
	floats := metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error { o.Observe(1); return nil })
	must(om.Int64ObservableCounter("j", what, ints))
	must(om.Float64ObservableCounter("k", what, floats))
	must(om.Int64ObservableUpDownCounter("l", what, ints))
	must(om.Float64ObservableUpDownCounter("m", what, floats))
	must(om.Int64ObservableGauge("n", what, ints))
	must(om.Float64ObservableGauge("o", what, floats))
	p.Refresh(time.Time{})
	st.Flush(store.FlushOptions{}).Close()

	var got bytes.Buffer
	if err := render.Exposition(&got, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split("abcdefghijklmno", "") {
		if want := "# HELP " + name + " What it is.\n"; !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, want := range []string{
		"# TYPE g histogram\ng_bucket{le=\"2\"} 1\ng_bucket{le=\"+Inf\"} 1\n",
		"h_bucket{le=\"2\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum{} 0.25\n",
		"i_bucket{le=\"3600000\"} 1\n",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing in\n%s", want, got.String())
		}
	}
	scopes, err := NewProducer(st, time.Now()).Produce(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range scopes[0].Metrics {
		want := ""
		if m.Name == "h" {
			want = "s"
		}
		if m.Description != "What it is." || m.Unit != want {
			t.Errorf("%s: description %q, unit %q", m.Name, m.Description, m.Unit)
		}
	}
}

// TestNothingIsLostBetweenGoroutines adds fractions from several goroutines.
func TestNothingIsLostBetweenGoroutines(t *testing.T) {
	st := store.New(store.Options{})
	m := NewMeterProvider(st).Meter("test")
	const each = 4000
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c := must(m.Float64Counter("sum"))
			for range each {
				c.Add(context.Background(), 0.25, metric.WithAttributes(attribute.Bool("x", true)))
			}
		})
	}
	all.Wait()
	if got := text(t, st); !strings.Contains(got, "sum.x.true: 4000\n") {
		t.Errorf("got %s", got)
	}
}

// TestCardinalityLimit: attributes beyond the limit share one stat, and nothing is lost.
func TestCardinalityLimit(t *testing.T) {
	st := store.New(store.Options{})
	m, ctx := NewMeterProvider(st, WithCardinalityLimit(3)).Meter("test"), context.Background()
	user := func(n int) metric.MeasurementOption { return metric.WithAttributes(attribute.Int("user", n)) }
	requests, size := must(m.Int64Counter("requests")), must(m.Int64Histogram("size"))
	active, total := must(m.Int64UpDownCounter("active")), must(m.Int64Counter("total"))
	for n := range 10 {
		for range 2 {
			requests.Add(ctx, 1, user(n))
			size.Record(ctx, 1, user(n))
			active.Add(ctx, 1, user(n))
			total.Add(ctx, 1)
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	got := text(t, st)
	for _, want := range []string{
		"active.otel.metric.overflow.true: 16\n", "active.user.0: 2\n", "active.user.1: 2\n",
		"requests.otel.metric.overflow.true: 16\n", "requests.user.0: 2\n", "requests.user.1: 2\n", "total: 20\n",
		"size.otel.metric.overflow.true: P0(", "size.user.0: P0(", "size.user.1: P0(",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(got, "\n"); n != 10 {
		t.Errorf("%d stats, want 10:\n%s", n, got)
	}
	many := must(NewMeterProvider(st, WithCardinalityLimit(0)).Meter("test").Int64Counter("many"))
	some := must(NewMeterProvider(st).Meter("test").Int64Counter("some"))
	for n := range 3000 {
		many.Add(ctx, 1, user(n))
		some.Add(ctx, 1, user(n))
	}
	got = text(t, st)
	if n := strings.Count(got, "many."); n != 3000 {
		t.Errorf("%d stats without a limit", n)
	}
	if n := strings.Count(got, "some."); n != 2000 || !strings.Contains(got, "some.otel.metric.overflow.true: 1001\n") {
		t.Errorf("%d stats with the default limit", n)
	}
}

// TestRefreshesDoNotOverlap: an older total that is observed after a newer one would look
// like a restart.
func TestRefreshesDoNotOverlap(t *testing.T) {
	p := NewMeterProvider(store.New(store.Options{}))
	var running, overlaps atomic.Int64
	must(p.Meter("test").Int64ObservableCounter("n", metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
		if running.Add(1) > 1 {
			overlaps.Add(1)
		}
		runtime.Gosched()
		running.Add(-1)
		return nil
	})))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				p.Refresh(time.Time{})
			}
		})
	}
	all.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d of 1,600 refreshes overlap", n)
	}
}
