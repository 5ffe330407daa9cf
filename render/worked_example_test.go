package render

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
)

// workedExample is a small server with one stat of every sort.
func workedExample(t testing.TB) *store.Store {
	t.Helper()
	st := newStore(store.Options{Histograms: []store.HistogramSetting{
		{Match: func(n string) bool { return strings.HasPrefix(n, "cluster.checkout.") }, Buckets: []float64{5, 50, 500, 5000}},
		{Match: func(n string) bool { return strings.HasPrefix(n, "listener.") }, Buckets: []float64{1, 1000}},
	}})
	r := st.Root()
	r.Text("edge.release").Set(`r42 "beta"`)
	r.Counter("cluster.checkout.upstream_rq_200").Add(1190)
	r.Counter("cluster.checkout.upstream_rq_503").Add(17)
	r.Counter("edge.restarts")
	r.GaugeWithMode("cluster.checkout.membership_healthy", store.NeverImport).Set(3)
	r.GaugeWithMode("edge.shadow", store.HiddenAccumulate).Set(9)
	rt := r.Histogram("cluster.checkout.upstream_rq_time", store.Milliseconds)
	cx := r.Histogram("cluster.checkout.upstream_cx_length_ms", store.Milliseconds)
	r.Histogram("listener.0.0.0.0_8443.downstream_cx_length_ms", store.Milliseconds)
	cx.Record(910)
	for _, v := range []uint64{3, 7, 12, 12, 48} {
		rt.Record(v)
	}
	st.Flush(store.FlushOptions{}).Close()
	rt.Record(150)
	rt.Record(2300)
	st.Flush(store.FlushOptions{}).Close()
	return st
}

func TestWorkedExample(t *testing.T) {
	st := workedExample(t)
	rq := func(o Options, pattern string) Options {
		f, err := NewFilter(RE2, pattern, FilterLimits{})
		if err != nil {
			t.Fatal(err)
		}
		o.Filter = f
		return o
	}
	type write = func(io.Writer, *store.Store, Options) error
	for _, tt := range []struct {
		name  string
		write write
		o     Options
	}{
		{"text", Text, Options{}},
		{"text-hidden-include", Text, Options{Hidden: HiddenInclude}},
		{"text-hidden-only", Text, Options{Hidden: HiddenOnly}},
		{"text-usedonly", Text, Options{UsedOnly: true}},
		{"text-counters", Text, Options{Type: Counters}},
		{"text-gauges", Text, Options{Type: Gauges}},
		{"text-readouts", Text, Options{Type: TextReadouts}},
		{"text-histograms", Text, Options{Type: Histograms}},
		{"text-nothing", Text, rq(Options{}, "^no such stat$")},
		{"text-cumulative", Text, rq(Options{UsedOnly: true, Buckets: Cumulative}, "upstream_(rq_time|cx_length)")},
		{"text-disjoint", Text, rq(Options{UsedOnly: true, Buckets: Disjoint}, "upstream_(rq_time|cx_length)")},
		{"text-detailed", Text, rq(Options{Buckets: Detailed}, "rq_time")},
		{"text-detailed-empty", Text, rq(Options{Buckets: Detailed}, "cx_length_ms$")},
		{"text-summary", Text, rq(Options{Buckets: Summary}, "rq_time")},
		{"text-default-bounds", Text, Options{Type: Histograms, Buckets: Cumulative}},
		{"json", JSON, Options{}},
		{"json-nothing", JSON, rq(Options{}, "^no such stat$")},
		{"json-histograms-only", JSON, Options{Type: Histograms, UsedOnly: true}},
		{"json-cumulative", JSON, rq(Options{Buckets: Cumulative}, "cluster.*upstream_")},
		{"json-cumulative-one", JSON, rq(Options{Buckets: Cumulative}, "rq_time")},
		{"json-disjoint", JSON, rq(Options{Buckets: Disjoint, Type: Histograms}, "rq_time")},
		{"json-detailed-empty", JSON, rq(Options{Buckets: Detailed}, "checkout.*cx_length_ms$")},
		{"json-detailed", JSON, rq(Options{Buckets: Detailed, Type: Histograms}, "rq_time")},
		{"exposition", Exposition, Options{}},
		{"exposition-readouts", Exposition, Options{TextReadouts: true}},
		{"exposition-hidden-only", Exposition, Options{Hidden: HiddenOnly, TextReadouts: true}},
		{"exposition-usedonly", Exposition, Options{UsedOnly: true}},
		{"exposition-summary", Exposition, Options{Buckets: Summary}},
		{"openmetrics", OpenMetrics, Options{TextReadouts: true}},
		{"openmetrics-summary", OpenMetrics, Options{Buckets: Summary}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.write(&b, st, tt.o); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.name, b.Bytes())
		})
	}
}
