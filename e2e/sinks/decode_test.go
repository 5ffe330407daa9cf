package sinks

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// ticking returns a store whose clock advances with each use.
func ticking() *store.Store {
	var ticks atomic.Int64
	return store.New(store.Options{Now: func() time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(ticks.Add(1)) * time.Millisecond)
	}})
}

// stat is a stat of a store with its value.
type stat struct {
	name    string
	kind    byte // of counters, gauges and histograms: c, g, h
	counter uint64
	gauge   float64
	values  []float64
}

// fill creates random stats with a name and a tag in them. The tag "id" tells them apart.
func fill(st *store.Store, r *rand.Rand, name, key, value string) map[string]stat {
	all := map[string]stat{}
	for i := range r.IntN(90) + 9 {
		s := stat{kind: "cgh"[i%3]}
		s.name = fmt.Sprint(string(s.kind), name, r.IntN(9))
		id := fmt.Sprint("i", i)
		tgs := []tags.Tag{{Name: "id", Value: id}, {Name: "k" + key, Value: value}}
		switch s.kind {
		case 'c':
			s.counter = r.Uint64N(1<<40) + 1
			st.Root().Counter(s.name, tgs...).Add(s.counter)
		case 'g':
			s.gauge = r.NormFloat64() * 1e6
			_ = st.Root().FloatGauge(s.name, tgs...).Set(s.gauge)
		default:
			h := st.Root().Histogram(s.name, store.Milliseconds, tgs...)
			for range r.IntN(200) + 1 {
				v := uint64(math.Exp(r.Float64() * 14))
				h.Record(v)
				s.values = append(s.values, float64(v))
			}
		}
		all[id] = s
	}
	return all
}

// texts are names, and names and values of tags, that a format may not be able to hold.
var texts = [][3]string{
	{"n", "zone", "zöne\""}, {"a.b", "", ""}, {"9 é~", "__name__", "x\ny"}, {".", "le", "\x00"}, {"\xff", "\xff", "\xff"}, {"_total", ";=", "a|b"}, {"", "Ω", "\\"},
}

func addSeeds(f *testing.F) {
	for seed := range uint64(20) {
		text := texts[seed%uint64(len(texts))]
		f.Add(seed, text[0], text[1], text[2])
	}
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

// FuzzRemoteWrite reads requests with Prometheus' own messages: version 2.0, and with odd
// seeds 1.0.
func FuzzRemoteWrite(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, name, key, value string) {
		st := ticking()
		want := fill(st, rand.New(rand.NewPCG(seed, 1)), name, key, value)
		version := remotewrite.Version2
		if seed%2 == 1 {
			version = remotewrite.Version1
		}
		for _, body := range bodies(t, st, func(url string) (flush.Sink, error) {
			return remotewrite.New(remotewrite.Config{
				Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, HTTP: sinkhttp.Config{URL: url}, Version: version, Shards: 1, Batch: 20,
			})
		}) {
			raw, err := snappy.Decode(nil, body)
			if err != nil {
				t.Fatal(err)
			}
			var b labels.ScratchBuilder
			if version == remotewrite.Version1 {
				var req prompb.WriteRequest
				if err := req.Unmarshal(raw); err != nil {
					t.Fatal(err)
				}
				for _, ts := range req.Timeseries {
					checkSeries(t, ts.ToLabels(&b, nil), value, want, func(s stat, name string) bool {
						return slices.ContainsFunc(ts.Samples, func(x prompb.Sample) bool {
							return s.kind == 'h' && strings.HasSuffix(name, "_count") && x.Value == float64(len(s.values)) ||
								s.kind == 'c' && x.Value == float64(s.counter) || s.kind == 'g' && x.Value == s.gauge
						})
					})
				}
				continue
			}
			var req writev2.Request
			if err := req.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			for _, ts := range req.Timeseries {
				ls, err := ts.ToLabels(&b, req.Symbols)
				if err != nil {
					t.Fatal(err)
				}
				checkSeries(t, ls, value, want, func(s stat, _ string) bool {
					types := map[byte]writev2.Metadata_MetricType{'c': writev2.Metadata_METRIC_TYPE_COUNTER, 'g': writev2.Metadata_METRIC_TYPE_GAUGE, 'h': writev2.Metadata_METRIC_TYPE_HISTOGRAM}
					if ts.Metadata.Type != types[s.kind] {
						t.Errorf("%s is a %s", ls, ts.Metadata.Type)
					}
					return slices.ContainsFunc(ts.Histograms, func(h writev2.Histogram) bool { return s.kind == 'h' && checkNative(t, ls.String(), h, s.values) }) ||
						slices.ContainsFunc(ts.Samples, func(x writev2.Sample) bool {
							return s.kind == 'c' && x.Value == float64(s.counter) || s.kind == 'g' && x.Value == s.gauge
						})
				})
			}
		}
		if len(want) != 0 {
			t.Errorf("missing %v", want)
		}
	})
}

// checkSeries checks the labels of a series, and removes the stat that has found its value
// in it.
func checkSeries(t *testing.T, ls labels.Labels, value string, want map[string]stat, has func(s stat, name string) bool) {
	t.Helper()
	if dup, twice := ls.HasDuplicateLabelNames(); twice || !ls.IsValid(model.LegacyValidation) {
		t.Errorf("the labels %s are not valid, %q comes twice", ls, dup)
	}
	id, found := ls.Get("id"), value == "" || !utf8.ValidString(value)
	ls.Range(func(l labels.Label) { found = found || l.Value == value })
	if !found {
		t.Errorf("no %q in %s", value, ls)
	}
	if s, ok := want[id]; ok && has(s, ls.Get("__name__")) {
		delete(want, id)
	}
}

// checkNative compares a native histogram with values and reports whether it is one, not
// the end of its series.
func checkNative(t *testing.T, name string, h writev2.Histogram, values []float64) bool {
	t.Helper()
	if math.IsNaN(h.Sum) {
		return false
	}
	ih := h.ToIntHistogram()
	if err := ih.Validate(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	buckets := map[float64]uint64{}
	for it := ih.ToFloat(nil).PositiveBucketIterator(); it.Next(); {
		bucket := it.At()
		buckets[math.Sqrt(bucket.Lower*bucket.Upper)] += uint64(bucket.Count)
	}
	checkBuckets(t, name, values, buckets, ih.ZeroCount)
	return true
}

// FuzzOTLP reads requests with the Collector's decoder, and looks for unknown fields with
// the messages of OpenTelemetry.
func FuzzOTLP(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, seed uint64, name, key, value string) {
		st := ticking()
		want := fill(st, rand.New(rand.NewPCG(seed, 2)), name, key, value)
		for _, body := range bodies(t, st, func(url string) (flush.Sink, error) {
			return otlp.New(otlp.Config{
				Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn(), Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, HTTP: sinkhttp.Config{URL: url},
				Explicit: seed%2 == 1, Delta: seed%4 >= 2, Batch: 20,
			})
		}) {
			var direct, req collector.ExportMetricsServiceRequest
			if err := proto.Unmarshal(body, &direct); err != nil {
				t.Fatal(err)
			}
			for _, m := range direct.ResourceMetrics[0].ScopeMetrics[0].Metrics {
				if len(m.ProtoReflect().GetUnknown()) > 0 {
					t.Errorf("unknown fields in %v", m)
				}
			}
			points := pmetricotlp.NewExportRequest()
			if err := points.UnmarshalProto(body); err != nil {
				t.Fatal(err)
			}
			decoded, err := points.MarshalProto()
			if err != nil {
				t.Fatal(err)
			}
			if err := proto.Unmarshal(decoded, &req); err != nil {
				t.Fatal(err)
			}
			rm := req.ResourceMetrics[0]
			if a := rm.Resource.Attributes[0]; a.Key != "service.name" || a.Value.GetStringValue() != "proxy" {
				t.Errorf("resource %v", rm.Resource)
			}
			for _, m := range rm.ScopeMetrics[0].Metrics {
				checkMetric(t, m, func(attributes []*common.KeyValue) (id string, s stat) {
					found := value == "" || !utf8.ValidString(value)
					for _, a := range attributes {
						if a.Key == "id" {
							id = a.Value.GetStringValue()
						}
						found = found || a.Key == "k"+key && a.Value.GetStringValue() == value || !utf8.ValidString(key)
					}
					s = want[id]
					if !found || m.Name != s.name && oneline.Clean(s.name) == s.name {
						t.Errorf("%q%v is not %q with %q %q", m.Name, attributes, s.name, key, value)
					}
					delete(want, id)
					return id, s
				})
			}
		}
		if len(want) != 0 {
			t.Errorf("missing %v", want)
		}
	})
}

// checkMetric compares the points of m with the stats that take returns for their
// attributes. A point may only end a series.
func checkMetric(t *testing.T, m *metrics.Metric, take func([]*common.KeyValue) (string, stat)) {
	t.Helper()
	const ended = uint32(metrics.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	for _, p := range m.GetSum().GetDataPoints() {
		if p.Flags&ended != 0 {
			continue
		}
		if id, s := take(p.Attributes); s.kind != 'c' || !m.GetSum().IsMonotonic || p.GetAsInt() != int64(s.counter) || p.StartTimeUnixNano == 0 || p.StartTimeUnixNano > p.TimeUnixNano {
			t.Errorf("%s: %v, want %v", id, p, s)
		}
	}
	for _, p := range m.GetGauge().GetDataPoints() {
		if p.Flags&ended != 0 {
			continue
		}
		if id, s := take(p.Attributes); s.kind != 'g' || p.GetAsDouble() != s.gauge {
			t.Errorf("%s: %v, want %v", id, p, s)
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
		if id, s := take(p.Attributes); s.kind != 'h' || len(p.BucketCounts) != len(p.ExplicitBounds)+1 || total != p.Count || int(p.Count) != len(s.values) || m.Unit != "ms" {
			t.Errorf("%s: %v, want %v", id, p, s)
		}
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
		id, s := take(p.Attributes)
		checkBuckets(t, id, s.values, buckets, p.ZeroCount)
	}
}
