package render

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestMixedFormsOfAFamily: all histograms of a family are summaries if the first one is,
// and without a list of quantiles, the defaults are shown.
func TestMixedFormsOfAFamily(t *testing.T) {
	st := store.New(store.Options{})
	for i, f := range []*store.HistogramForm{{Quantiles: []float64{0.3}}, {}} {
		st.ScopeWith("", store.ScopeOptions{Network: true, Histograms: f}).Histogram("rt", store.Unspecified, tags.Tag{Name: "by", Value: string(rune('a' + i))}).Record(1)
	}
	st.Flush(store.FlushOptions{}).Close()
	out := string(write(t, Exposition, st, Options{}))
	for _, want := range []string{`rt{by="a",quantile="0.3"} `, `rt{by="b",quantile="0.5"} `} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestForms shows histograms of scopes with forms: summaries over a window with
// their own quantiles, buckets, native histograms with fewer buckets, and help
// texts of network input.
func TestForms(t *testing.T) {
	now := time.Unix(1_700_000_400, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }, Naming: naming.Rules{NetworkSeconds: true}})
	st.DescribeNetwork(func(family string) store.Description {
		if family == "rt" {
			return store.Description{Help: "Time until the\nanswer."}
		}
		return store.Description{}
	})
	scope := func(f *store.HistogramForm) *store.Scope {
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		return st.ScopeWith("", store.ScopeOptions{Network: true, Histograms: f})
	}
	summary := scope(&store.HistogramForm{Quantiles: []float64{0.5, 0.99}, Window: 10 * time.Minute})
	rt := []*store.Histogram{summary.Histogram("rt", store.Milliseconds), summary.Histogram("a.b", store.Unspecified), summary.Histogram("a-b", store.Unspecified)}
	size := scope(&store.HistogramForm{Buckets: []float64{100, 200}, NativeFactor: 4, NativeBuckets: 3}).Histogram("size", store.Unspecified)
	scope(&store.HistogramForm{Quantiles: []float64{0.5}}).Histogram("idle", store.Unspecified)
	for interval := range 3 {
		for v := range uint64(10) {
			for _, h := range rt {
				h.Record(1000*uint64(interval) + v)
			}
			size.Record(7 * v * v * v)
		}
		st.Flush(store.FlushOptions{}).Close()
		now = now.Add(6 * time.Minute)
	}
	st.Flush(store.FlushOptions{}).Close() // 6 minutes after the last values
	for name, form := range map[string]Buckets{"default": Default, "summary": Summary} {
		for _, write := range []struct {
			name string
			f    func(io.Writer, *store.Store, Options) error
		}{{"exposition", Exposition}, {"openmetrics", OpenMetrics}, {"text", Text}} {
			t.Run(name+"/"+write.name, func(t *testing.T) {
				var b bytes.Buffer
				if err := write.f(&b, st, Options{Buckets: form}); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, "forms/"+name+"/"+write.name, b.Bytes())
			})
		}
	}
	var p protoFamily
	p.native(size.Snapshot().Cumulative)
	// 7 to 5103 are 6 buckets whose bounds grow by 4, 4 by 16, and 2 by 256.
	if got := len(p.sparse.Positive); got != 2 || p.sparse.Zero != 3 {
		t.Errorf("native histogram: %d buckets and %d zeros, want 2 and 3", got, p.sparse.Zero)
	}
}
