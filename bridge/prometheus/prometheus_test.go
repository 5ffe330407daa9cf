package prometheus

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	busy := client.NewCounter(client.CounterOpts{Name: "busy_seconds_total", Help: "Time at work."})
	registry.MustRegister(requests, load, latency, size, busy)

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
	busy.Add(0.25)
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
		"app.size.quantile.0.5: 7\n", "app.size_count: 1\n", "app.size_sum: 7\n",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing in\n%s", want, got.String())
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	got.Reset()
	if err := render.Exposition(&got, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# HELP proxy_app_busy_seconds_total Time at work.\n# TYPE proxy_app_busy_seconds_total counter\nproxy_app_busy_seconds_total{} 0.25\n",
		"# TYPE proxy_app_latency histogram\nproxy_app_latency_bucket{le=\"1\"} 0\nproxy_app_latency_bucket{le=\"10\"} 1\n" +
			"proxy_app_latency_bucket{le=\"+Inf\"} 1\nproxy_app_latency_sum{} 5\nproxy_app_latency_count{} 1\n",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing in\n%s", want, got.String())
		}
	}
}

// TestImportedHistogramHasTheCountsAndTheSum compares histograms with the ones they follow.
func TestImportedHistogramHasTheCountsAndTheSum(t *testing.T) {
	for name, bounds := range map[string][]float64{
		"seconds":  client.DefBuckets,
		"negative": {-2, 0, 2},
		"one":      {5},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			from := client.NewHistogram(client.HistogramOpts{Name: "h", Buckets: bounds})
			registry := client.NewRegistry()
			registry.MustRegister(from)
			st := store.New(store.Options{})
			im := NewImporter(registry, st.Root())
			for range 20 {
				for range r.IntN(50) {
					from.Observe(r.ExpFloat64() * bounds[len(bounds)-1] / 3)
				}
				im.Refresh(time.Time{})
				st.Flush(store.FlushOptions{}).Close()
			}
			var want dto.Metric
			if err := from.Write(&want); err != nil {
				t.Fatal(err)
			}
			got, err := NewCollector(st).Gather()
			if err != nil || len(got) != 1 {
				t.Fatalf("%d families, error %v", len(got), err)
			}
			h := got[0].Metric[0].Histogram
			if h.GetSampleCount() != want.Histogram.GetSampleCount() || math.Abs(h.GetSampleSum()-want.Histogram.GetSampleSum()) > 1e-3 {
				t.Errorf("count %d, sum %v, want %d, %v", h.GetSampleCount(), h.GetSampleSum(), want.Histogram.GetSampleCount(), want.Histogram.GetSampleSum())
			}
			counts := map[float64]uint64{}
			for _, b := range h.Bucket {
				counts[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			for _, b := range want.Histogram.Bucket {
				if b.GetUpperBound() > 0 && counts[b.GetUpperBound()] != b.GetCumulativeCount() {
					t.Errorf("%d values up to %v, want %d", counts[b.GetUpperBound()], b.GetUpperBound(), b.GetCumulativeCount())
				}
			}
		})
	}
}

// TestImportedHistogramRestarts counts a histogram that fell from zero.
func TestImportedHistogramRestarts(t *testing.T) {
	n, sum, bound := uint64(4), 8.0, 5.0
	name, typ := "h", dto.MetricType_HISTOGRAM
	gather := client.GathererFunc(func() ([]*dto.MetricFamily, error) {
		h := &dto.Histogram{SampleCount: &n, SampleSum: &sum, Bucket: []*dto.Bucket{{UpperBound: &bound, CumulativeCount: &n}}}
		return []*dto.MetricFamily{{Name: &name, Type: &typ, Metric: []*dto.Metric{{Histogram: h}}}}, nil
	})
	st := store.New(store.Options{})
	im := NewImporter(gather, st.Root())
	im.Refresh(time.Time{})
	n, sum = 1, 3
	im.Refresh(time.Time{})
	st.Flush(store.FlushOptions{}).Close()
	if s := st.Root().Histogram("h", store.Unspecified).Snapshot().Cumulative; s.Count() != 5 || s.Sum() != 11 {
		t.Errorf("%d values with the sum %v, want 5 and 11", s.Count(), s.Sum())
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

// TestImporterOutlivesStats: a scope may end stats that did not change. What their
// metrics gain later must count.
func TestImporterOutlivesStats(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	ttl := store.TTL{Counter: time.Minute, Histogram: time.Minute}
	registry := client.NewRegistry()
	jobs := client.NewCounter(client.CounterOpts{Name: "jobs"})
	latency := client.NewHistogram(client.HistogramOpts{Name: "latency", Buckets: []float64{1, 10}})
	registry.MustRegister(jobs, latency)
	im := NewImporter(registry, st.ScopeWith("app", store.ScopeOptions{TTL: ttl}))
	for range 2 {
		jobs.Add(3)
		latency.Observe(5)
		im.Refresh(now)
		for range 3 {
			st.Flush(store.FlushOptions{}).Close()
			st.Sweep(false)
			now = now.Add(2 * time.Minute)
		}
		im.Refresh(now) // the same values
		if n := st.Len(store.KindCounter) + st.Len(store.KindHistogram); n != 0 {
			t.Errorf("%d stats are back although nothing changed", n)
		}
	}
	jobs.Add(2)
	latency.Observe(0.5)
	im.Refresh(now)
	st.Flush(store.FlushOptions{}).Close()
	var got bytes.Buffer
	if err := render.Exposition(&got, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"proxy_app_jobs{} 2\n", `proxy_app_latency_bucket{le="10"} 1` + "\n"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is missing in\n%s", want, got.String())
		}
	}
}

// TestRefreshesDoNotOverlap: a value that was gathered before another and copied after it
// would look like a restart.
func TestRefreshesDoNotOverlap(t *testing.T) {
	var total atomic.Uint64
	name, typ := "jobs", dto.MetricType_COUNTER
	gather := client.GathererFunc(func() ([]*dto.MetricFamily, error) {
		value := float64(total.Add(1))
		runtime.Gosched()
		return []*dto.MetricFamily{{Name: &name, Type: &typ, Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &value}}}}}, nil
	})
	st := store.New(store.Options{})
	im := NewImporter(gather, st.Root())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				im.Refresh(time.Time{})
			}
		})
	}
	all.Wait()
	if got := st.Root().Counter("jobs").Value(); got != 1600 {
		t.Errorf("jobs: %d, want 1600", got)
	}
}
