package sinks

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// ticking returns a store whose clock goes on with each use.
func ticking() *store.Store {
	var ticks atomic.Int64
	return store.New(store.Options{Now: func() time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(ticks.Add(1)) * time.Millisecond)
	}})
}

// state is what a store has: counters, gauges and values of histograms by name.
type state struct {
	counters map[string]uint64
	gauges   map[string]float64
	values   map[string][]float64
}

// fill writes random stats of the program.
func fill(st *store.Store, r *rand.Rand) state {
	s := state{map[string]uint64{}, map[string]float64{}, map[string][]float64{}}
	for i := range r.IntN(30) + 3 {
		name := fmt.Sprint("n", i)
		n := r.Uint64N(1<<40) + 1
		st.Root().Counter("c"+name, tags.Tag{Name: "zone", Value: fmt.Sprint("zöne\"", i)}).Add(n)
		s.counters["c"+name] = n
		x := r.NormFloat64() * 1e6
		_ = st.Root().FloatGauge("g" + name).Set(x)
		s.gauges["g"+name] = x
		h := st.Root().Histogram("h"+name, store.Milliseconds)
		for range r.IntN(200) + 1 {
			v := uint64(math.Exp(r.Float64() * 14))
			h.Record(v)
			s.values["h"+name] = append(s.values["h"+name], float64(v))
		}
	}
	return s
}

// bodies runs a sink that create returns for the URL of a receiver, and returns what
// arrived there.
func bodies(t *testing.T, st *store.Store, create func(url string) (flush.Sink, error)) (all [][]byte) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		all = append(all, body)
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
	}))
	defer srv.Close()
	sink, err := create(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := flush.New(flush.Config{Store: st, Sinks: []flush.Sink{sink}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	return all
}

// near reports whether got is at most a part off of want.
func near(got, want, off float64) bool { return math.Abs(got-want) <= off*math.Abs(want) }

// checkBuckets compares the buckets of a histogram with the values: its total, and the
// sum that a reader estimates from the middles.
func checkBuckets(t *testing.T, name string, values []float64, buckets map[float64]uint64, zero uint64) {
	t.Helper()
	total, sum, want := zero, 0.0, 0.0
	for middle, n := range buckets {
		total += n
		sum += middle * float64(n)
	}
	for _, v := range values {
		want += v
	}
	if total != uint64(len(values)) || !near(sum, want, 0.016) {
		t.Errorf("%s: %d values with the sum %v in buckets, want %d and %v", name, total, sum, len(values), want)
	}
}

// TestRemoteWriteDecodes reads requests of version 2.0 with Prometheus' own messages.
func TestRemoteWriteDecodes(t *testing.T) {
	for seed := range uint64(20) {
		st := ticking()
		want := fill(st, rand.New(rand.NewPCG(seed, 1)))
		for _, body := range bodies(t, st, func(url string) (flush.Sink, error) {
			return remotewrite.New(remotewrite.Config{
				Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, HTTP: sinkhttp.Config{URL: url}, Version: remotewrite.Version2, Shards: 1, Batch: 20,
			})
		}) {
			raw, err := snappy.Decode(nil, body)
			if err != nil {
				t.Fatal(err)
			}
			var req writev2.Request
			if err := req.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			for _, ts := range req.Timeseries {
				var b labels.ScratchBuilder
				ls, err := ts.ToLabels(&b, req.Symbols)
				if err != nil {
					t.Fatal(err)
				}
				if dup, has := ls.HasDuplicateLabelNames(); has {
					t.Errorf("label %s comes twice in %s", dup, ls)
				}
				name := ls.Get("__name__")[len("proxy_"):]
				for _, s := range ts.Samples {
					if math.IsNaN(s.Value) {
						continue // the end
					}
					if n, ok := want.counters[name]; ok {
						if s.Value != float64(n) || ts.Metadata.Type != writev2.Metadata_METRIC_TYPE_COUNTER {
							t.Errorf("%s is %v (%s), want %d", ls, s.Value, ts.Metadata.Type, n)
						}
						delete(want.counters, name)
					} else if x := want.gauges[name]; s.Value != x {
						t.Errorf("%s is %v, want %v", ls, s.Value, x)
					} else {
						delete(want.gauges, name)
					}
				}
				for _, h := range ts.Histograms {
					if math.IsNaN(h.Sum) {
						continue
					}
					ih := h.ToIntHistogram()
					if err := ih.Validate(); err != nil {
						t.Errorf("%s: %v", ls, err)
					}
					buckets := map[float64]uint64{}
					for it := ih.ToFloat(nil).PositiveBucketIterator(); it.Next(); {
						bucket := it.At()
						buckets[math.Sqrt(bucket.Lower*bucket.Upper)] += uint64(bucket.Count)
					}
					checkBuckets(t, ls.String(), want.values[name], buckets, ih.ZeroCount)
					delete(want.values, name)
				}
			}
		}
		if len(want.counters)+len(want.gauges)+len(want.values) != 0 {
			t.Errorf("seed %d: missing %v", seed, want)
		}
	}
}

// TestOTLPDecodes reads requests with the messages of OpenTelemetry.
func TestOTLPDecodes(t *testing.T) {
	for seed := range uint64(20) {
		st := ticking()
		want := fill(st, rand.New(rand.NewPCG(seed, 2)))
		explicit := seed%2 == 1
		for _, body := range bodies(t, st, func(url string) (flush.Sink, error) {
			return otlp.New(otlp.Config{
				Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn(), Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, HTTP: sinkhttp.Config{URL: url},
				Explicit: explicit, Delta: seed%4 >= 2, Batch: 20,
			})
		}) {
			var req collector.ExportMetricsServiceRequest
			if err := (proto.UnmarshalOptions{DiscardUnknown: false}).Unmarshal(body, &req); err != nil {
				t.Fatal(err)
			}
			if len(req.ProtoReflect().GetUnknown()) > 0 {
				t.Error("unknown fields")
			}
			rm := req.ResourceMetrics[0]
			if a := rm.Resource.Attributes[0]; a.Key != "service.name" || a.Value.GetStringValue() != "proxy" {
				t.Errorf("resource %v", rm.Resource)
			}
			for _, m := range rm.ScopeMetrics[0].Metrics {
				checkMetric(t, m, want)
			}
		}
		if len(want.counters)+len(want.gauges)+len(want.values) != 0 {
			t.Errorf("seed %d: missing %v", seed, want)
		}
	}
}

// checkMetric compares the points of m. A point may only end a series.
func checkMetric(t *testing.T, m *metrics.Metric, want state) {
	t.Helper()
	const ended = uint32(metrics.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	for _, p := range m.GetSum().GetDataPoints() {
		if p.Flags&ended != 0 {
			continue
		}
		if !m.GetSum().IsMonotonic || p.GetAsInt() != int64(want.counters[m.Name]) || p.StartTimeUnixNano == 0 || p.StartTimeUnixNano > p.TimeUnixNano || len(p.Attributes) != 2 {
			t.Errorf("%s: %v, want %d", m.Name, p, want.counters[m.Name])
		}
		delete(want.counters, m.Name)
	}
	for _, p := range m.GetGauge().GetDataPoints() {
		if p.Flags&ended == 0 {
			if p.GetAsDouble() != want.gauges[m.Name] {
				t.Errorf("%s: %v, want %v", m.Name, p, want.gauges[m.Name])
			}
			delete(want.gauges, m.Name)
		}
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		if p.Flags&ended != 0 {
			continue
		}
		var total uint64
		for _, n := range p.BucketCounts {
			total += n
		}
		if len(p.BucketCounts) != len(p.ExplicitBounds)+1 || total != p.Count || int(p.Count) != len(want.values[m.Name]) || m.Unit != "ms" {
			t.Errorf("%s: %v", m.Name, p)
		}
		delete(want.values, m.Name)
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		if p.Flags&ended != 0 {
			continue
		}
		base := math.Exp2(math.Exp2(-float64(p.Scale)))
		buckets := map[float64]uint64{}
		for i, n := range p.Positive.GetBucketCounts() {
			if n > 0 {
				buckets[math.Pow(base, float64(int(p.Positive.Offset)+i)+0.5)] += n
			}
		}
		checkBuckets(t, m.Name, want.values[m.Name], buckets, p.ZeroCount)
		delete(want.values, m.Name)
	}
}
