package prometheus

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// sample returns a store with stats of all kinds.
func sample() *store.Store {
	st := store.New(store.Options{})
	sc := st.Scope("app")
	sc.Counter("requests", tags.Tag{Name: "code", Value: "200"}).Add(3)
	sc.Counter("requests", tags.Tag{Name: "code", Value: `5"\`}).Add(1)
	_ = sc.FloatGauge("load").Set(-1.5)
	sc.Histogram("latency", store.Milliseconds).Record(12)
	st.Flush(store.FlushOptions{}).Close()
	return st
}

// TestCollectorGathersTheExposition compares a registry that has the collector with
// the store's own exposition.
func TestCollectorGathersTheExposition(t *testing.T) {
	st := sample()
	registry := client.NewPedanticRegistry()
	registry.MustRegister(NewCollector(st))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&got, f); err != nil {
			t.Fatal(err)
		}
	}
	var own bytes.Buffer
	if err := render.Exposition(&own, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := series(got.String()), series(own.String()); got != want {
		t.Errorf("registry:\n%s\nstore:\n%s", got, want)
	}
	if n := testutil.CollectAndCount(NewCollector(st), "proxy_app_requests"); n != 2 {
		t.Errorf("%d series of proxy_app_requests, want 2", n)
	}
}

// series returns the samples of a text exposition, one a line, in a common form.
func series(text string) string {
	var all []string
	numbers := strings.NewReplacer("1.8e+06", "1800000", "3.6e+06", "3600000", "{}", "")
	for line := range strings.SplitSeq(numbers.Replace(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, `le="+Inf"`) && !strings.HasPrefix(line, "proxy_server_") {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestLargeFamilyIsOne: a family that comes in several messages is one family.
func TestLargeFamilyIsOne(t *testing.T) {
	st := store.New(store.Options{})
	const n = 20_000
	for i := range n {
		st.Scope("app").Counter("c", tags.Tag{Name: "i", Value: strings.Repeat("x", 20) + string(rune('a'+i%26)) + time.Duration(i).String()}).Inc()
	}
	registry := client.NewRegistry()
	registry.MustRegister(NewCollector(st))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "proxy_app_c" && len(f.Metric) != n {
			t.Errorf("%d series, want %d", len(f.Metric), n)
		}
	}
}

// TestImporter follows a registry through two refreshes.
func TestImporter(t *testing.T) {
	registry := client.NewRegistry()
	requests := client.NewCounterVec(client.CounterOpts{Name: "requests"}, []string{"code"})
	load := client.NewGauge(client.GaugeOpts{Name: "load"})
	latency := client.NewHistogram(client.HistogramOpts{Name: "latency", Buckets: []float64{1, 10}})
	size := client.NewSummary(client.SummaryOpts{Name: "size", Objectives: map[float64]float64{0.5: 0.01}})
	registry.MustRegister(requests, load, latency, size)

	st := store.New(store.Options{})
	im := NewImporter(registry, st.Scope("app"))
	requests.WithLabelValues("200").Add(2.75)
	load.Set(-1.5)
	im.Refresh(time.Time{})
	requests.WithLabelValues("200").Add(1.5)
	latency.Observe(5)
	size.Observe(7)
	im.Refresh(time.Time{})
	load.Set(math.NaN())
	im.Refresh(time.Time{})
	if err := im.Err(); err != nil {
		t.Error(err)
	}
	var got bytes.Buffer
	if err := render.Text(&got, st, render.Options{Type: render.Counters}); err != nil {
		t.Fatal(err)
	}
	if err := render.Text(&got, st, render.Options{Type: render.Gauges}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"app.requests.code.200: 4\n", "app.load: -1.5\n",
		"app.latency_bucket.le.1: 0\n", "app.latency_bucket.le.10: 1\n", "app.latency_count: 1\n", "app.latency_sum: 5\n",
		"app.size.quantile.0.5: 7\n", "app.size_count: 1\n", "app.size_sum: 7\n",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing in\n%s", want, got.String())
		}
	}
}

// TestImporterSurvivesRestartsAndErrors: a counter that falls has started again, and
// families that come with an error count.
func TestImporterSurvivesRestartsAndErrors(t *testing.T) {
	value, failed := 5.0, errors.New("half of it")
	name, typ := "jobs", dto.MetricType_COUNTER
	gather := client.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{Name: &name, Type: &typ, Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &value}}}}}, failed
	})
	st := store.New(store.Options{})
	im := NewImporter(gather, st.Root())
	for _, v := range []float64{5, 2, math.NaN(), -1, 4} {
		value = v
		im.Refresh(time.Time{})
	}
	if got := st.Root().Counter("jobs").Value(); got != 9 { // 5, then 2 and 2 more
		t.Errorf("jobs: %d, want 9", got)
	}
	if !errors.Is(im.Err(), failed) {
		t.Errorf("error %v", im.Err())
	}
}
