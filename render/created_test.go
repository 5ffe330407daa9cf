package render

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestSuffixesOfTotals: the suffix is cut from names of counters that have more than it.
func TestSuffixesOfTotals(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("", store.ScopeOptions{Network: true})
	sc.Counter("_total").Inc()
	sc.Counter("a_total").Inc()
	sc.Histogram("b_total", store.Bytes).Record(1)
	out := string(write(t, OpenMetrics, st, Options{}))
	for _, want := range []string{"# TYPE _total unknown\n", "# TYPE a counter\n", "\na_total{} 1\n", "\na_created{} ", "# TYPE b_total histogram\n", "\nb_total_created{} "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestCreated: a series says since when it counts, also after a reset, and again after
// it was created once more.
func TestCreated(t *testing.T) {
	now := time.UnixMilli(1000_007)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	sc := st.ScopeWith("", store.ScopeOptions{Network: true})
	st.Root().Counter("own_total").Inc()
	old := sc.Counter("old_total")
	old.Inc()
	sc.Histogram("h", store.Bytes).Record(1)
	sc.Gauge("g_total").Set(1)
	sc.Counter("clash_total").Inc()
	sc.Gauge("clash_created").Set(1)
	sc.Counter("a.b_total").Inc()
	now = time.UnixMilli(2000_050)
	sc.Counter("a-b_total").Inc()
	sc.Counter("reset_total", tags.Tag{Name: "k", Value: "v"}).Inc()
	end := st.ScopeWith("end", store.ScopeOptions{Network: true})
	end.Counter("again_total").Inc()
	end.Close()
	st.Flush(store.FlushOptions{}).Close()
	now = time.UnixMilli(3000_000)
	sc.Counter("end.again_total").Inc()
	v := st.View()
	for c := v.ByFamily(store.KindCounter); c.Next(); {
		if strings.HasPrefix(c.Name(), "reset_total") {
			c.ResetCounter()
		}
	}
	v.Close()
	if err := st.NewImport(nil).Add(&store.ExportedStat{Name: "old_total", Network: true, Settled: 7}); err != nil {
		t.Fatal(err)
	}

	golden.Check(t, "created/openmetrics", write(t, OpenMetrics, st, Options{}))
	for name, o := range map[string]Options{"omitted": {OmitCreated: true}, "interval": {Buckets: Summary}} {
		for line := range strings.Lines(string(write(t, OpenMetrics, st, o))) {
			if strings.HasPrefix(line, "h_created") || name == "omitted" && strings.Contains(line, "_created{") && line != "clash_created{} 1\n" {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	const want = "a_b_total 1000.007, clash_total 1000.007, end_again_total 3000, old_total 0, proxy_own_total 1000.007, reset_total 3000, " +
		"clash_created 0, g_total 0, h 1000.007"
	if got := strings.Join(protoStarts(t, write(t, Protobuf, st, Options{})), ", "); got != want {
		t.Errorf("protobuf: got\n%s\nwant\n%s", got, want)
	}
}

func write(t *testing.T, form func(io.Writer, *store.Store, Options) error, st *store.Store, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := form(&b, st, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// protoStarts returns the metric names of an exposition, each with the start time of
// its last series in seconds.
func protoStarts(t *testing.T, body []byte) (starts []string) {
	t.Helper()
	fields := func(msg []byte, f func(protobuf.Field)) {
		for len(msg) > 0 {
			field, rest, err := protobuf.Next(msg)
			if err != nil {
				t.Fatal(err)
			}
			f(field)
			msg = rest
		}
	}
	timestamp := map[int]int{3: 3, 4: 4, 7: 15} // by the field of the value
	for len(body) > 0 {
		n, w := binary.Uvarint(body)
		name, at := "", 0.0
		fields(body[w:][:n], func(f protobuf.Field) {
			if f.Number == 1 {
				name = string(f.Bytes)
			}
			if f.Number != 4 {
				return
			}
			fields(f.Bytes, func(value protobuf.Field) {
				if timestamp[value.Number] == 0 {
					return
				}
				fields(value.Bytes, func(f protobuf.Field) {
					if f.Number == timestamp[value.Number] {
						fields(f.Bytes, func(f protobuf.Field) { at += float64(f.Value) / []float64{1, 1e9}[f.Number-1] })
					}
				})
			})
		})
		starts = append(starts, fmt.Sprint(name, " ", at))
		body = body[w:][n:]
	}
	return starts
}
