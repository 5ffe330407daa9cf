package otlp

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// A shape names the fields of a message of OTLP, as its published definition has them.
type shape map[protowire.Number]field

type field struct {
	name string
	form string // message, text, fixed, double, doubles, uint, sint, uints
	of   shape
}

var (
	value     = shape{1: {name: "string", form: "text"}}
	keyValue  = shape{1: {name: "key", form: "text"}, 2: {"value", "message", value}}
	numbers   = shape{7: {"attributes", "message", keyValue}, 2: {name: "start", form: "fixed"}, 3: {name: "time", form: "fixed"}, 4: {name: "as_double", form: "double"}, 6: {name: "as_int", form: "fixed"}, 8: {name: "flags", form: "uint"}}
	buckets   = shape{1: {name: "offset", form: "sint"}, 2: {name: "bucket_counts", form: "uints"}}
	explicit  = shape{9: {"attributes", "message", keyValue}, 2: {name: "start", form: "fixed"}, 3: {name: "time", form: "fixed"}, 4: {name: "count", form: "fixed"}, 5: {name: "sum", form: "double"}, 6: {name: "bucket_counts", form: "fixeds"}, 7: {name: "explicit_bounds", form: "doubles"}, 10: {name: "flags", form: "uint"}, 11: {name: "min", form: "double"}, 12: {name: "max", form: "double"}}
	exponents = shape{1: {"attributes", "message", keyValue}, 2: {name: "start", form: "fixed"}, 3: {name: "time", form: "fixed"}, 4: {name: "count", form: "fixed"}, 5: {name: "sum", form: "double"}, 6: {name: "scale", form: "sint"}, 7: {name: "zero_count", form: "fixed"}, 8: {"positive", "message", buckets}, 9: {"negative", "message", buckets}, 10: {name: "flags", form: "uint"}, 12: {name: "min", form: "double"}, 13: {name: "max", form: "double"}, 14: {name: "zero_threshold", form: "double"}}
	metrics   = shape{
		1: {name: "name", form: "text"}, 2: {name: "description", form: "text"}, 3: {name: "unit", form: "text"},
		5:  {"gauge", "message", shape{1: {"point", "message", numbers}}},
		7:  {"sum", "message", shape{1: {"point", "message", numbers}, 2: {name: "temporality", form: "uint"}, 3: {name: "monotonic", form: "uint"}}},
		9:  {"histogram", "message", shape{1: {"point", "message", explicit}, 2: {name: "temporality", form: "uint"}}},
		10: {"exponential_histogram", "message", shape{1: {"point", "message", exponents}, 2: {name: "temporality", form: "uint"}}},
	}
	request = shape{1: {"resource_metrics", "message", shape{
		1: {"resource", "message", shape{1: {"attributes", "message", keyValue}}},
		2: {"scope_metrics", "message", shape{1: {"scope", "message", shape{1: {name: "name", form: "text"}}}, 2: {"metric", "message", metrics}}},
	}}}
)

// show writes a message as text.
func show(t *testing.T, b *strings.Builder, indent string, msg []byte, s shape) {
	t.Helper()
	for len(msg) > 0 {
		number, kind, n := protowire.ConsumeTag(msg)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(number, kind, msg[n:])
		}
		f, known := s[number]
		if n < 0 || size < 0 || !known {
			t.Fatalf("field %d, known %t, after\n%s", number, known, b)
		}
		raw := msg[n : n+size]
		msg = msg[n+size:]
		b.WriteString(indent + f.name)
		var list []byte
		if kind == protowire.BytesType {
			list, _ = protowire.ConsumeBytes(raw)
		}
		switch v, _ := protowire.ConsumeVarint(raw); f.form {
		case "message":
			if f.name == "attributes" { // in one line
				var pair strings.Builder
				show(t, &pair, " ", list, f.of)
				b.WriteString(" " + strings.Join(strings.Fields(pair.String()), " ") + "\n")
				continue
			}
			b.WriteString("\n")
			show(t, b, indent+"  ", list, f.of)
			continue
		case "text":
			fmt.Fprintf(b, " %q", list)
		case "uint":
			fmt.Fprintf(b, " %d", v)
		case "sint":
			fmt.Fprintf(b, " %d", protowire.DecodeZigZag(v))
		case "uints":
			for zeros := 0; len(list) > 0; {
				v, n := protowire.ConsumeVarint(list)
				if list = list[n:]; v == 0 {
					zeros++
					continue
				}
				if zeros > 0 {
					fmt.Fprintf(b, " %d×0", zeros)
				}
				fmt.Fprintf(b, " %d", v)
				zeros = 0
			}
		case "fixed", "double":
			v, _ := protowire.ConsumeFixed64(raw)
			if f.form == "double" {
				fmt.Fprintf(b, " %v", math.Float64frombits(v))
			} else {
				fmt.Fprintf(b, " %d", v)
			}
		case "fixeds", "doubles":
			for len(list) > 0 {
				v, n := protowire.ConsumeFixed64(list)
				if list = list[n:]; f.form == "doubles" {
					fmt.Fprintf(b, " %v", math.Float64frombits(v))
				} else {
					fmt.Fprintf(b, " %d", v)
				}
			}
		}
		b.WriteString("\n")
	}
}

// TestRequests decodes the requests of three flushes, between which stats change, are
// described anew, and end.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name            string
		delta, explicit bool
	}{{"delta-explicit", true, true}, {"delta-exponential", true, false}, {"totals-explicit", false, true}, {"totals-exponential", false, false}} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			st := store.New(store.Options{
				Now:        func() time.Time { return now },
				Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, Buckets: []float64{1, 10, 100}}},
			})
			st.KeepNames()
			s, err := New(Config{
				Options:   sinkqueue.Options{Store: st, Filter: sinktest.NoOwn(), Tags: []tags.Tag{{Name: "zone", Value: "own"}, {Name: "instance", Value: "a"}, {Name: "flag"}}},
				Transport: &receiver{sums: map[string]uint64{}, delta: tt.delta}, Delta: tt.delta, Explicit: tt.explicit,
				Resource: []tags.Tag{{Name: "host.name", Value: "h"}}, Batch: 9,
			})
			if err != nil {
				t.Fatal(err)
			}
			sc := st.Scope("")
			tag := func(name, value string) tags.Tag { return tags.Tag{Name: name, Value: value} }
			hits := []*store.Counter{
				sc.Counter("hits", tag("zone", "x"), tag("code", "1")), sc.Counter("hits", tag("zone", "y"), tag("code", "2")),
				sc.Counter("hits", tag("zone", "z"), tag("code", "3")),
			}
			plain, huge := sc.Counter("plain"), sc.Counter("plain.huge")
			twice := sc.Counter("twice", tag("host", "first"), tag("host", "second"), tag("last", "l"))
			signed, small := sc.FloatGauge("gauge.signed"), sc.Gauge("gauge.small", tag("zone", "g"), tag("zone", "h"), tag("kind", "k"))
			wide, below, vast := sc.Histogram("hist.wide", store.Milliseconds), sc.Histogram("hist.below", store.Bytes), sc.Histogram("hist.vast", store.Unspecified)
			st.Describe("hits", store.Description{Help: "Hits.", Unit: "{hit}"})
			var b strings.Builder
			flush := func(what string) {
				now = now.Add(10 * time.Second)
				snap := st.Flush(store.FlushOptions{Totals: s.NeedsTotals()})
				if err := s.Flush(snap); err != nil {
					t.Error(err)
				}
				snap.Close()
				for i, p := range s.Hold(t.Context()) {
					fmt.Fprintf(&b, "%s, request %d\n", what, i+1)
					show(t, &b, "  ", p.Data, request)
				}
				s.Release(true)
			}
			for i, c := range hits {
				c.Add(uint64(i + 1))
			}
			plain.Add(7)
			huge.Add(math.MaxInt64 + 1)
			twice.Inc()
			_ = signed.Set(-1.5)
			small.Set(3)
			for _, x := range []uint64{0, 1, 2, 50, 50, 1000} {
				wide.Record(x)
			}
			below.RecordFloat(-4, 1)
			below.RecordFloat(4, 1)
			vast.RecordFloat(1e-9, 1)
			vast.RecordFloat(1e12, 1)
			flush("first")
			st.Describe("hits", store.Description{Help: "All hits.", Unit: "1"})
			for _, c := range hits {
				c.Add(5)
			}
			small.Set(4)
			wide.Record(3)
			flush("second")
			sc.Close()
			flush("ended")
			golden.Check(t, "requests/"+tt.name, []byte(b.String()))
			if n := st.OpenViews(); n != 0 {
				t.Errorf("%d views are open", n)
			}
		})
	}
}

// TestPointsWithoutAPattern: stats with bytes that must be replaced share the metric of their
// family like others.
func TestPointsWithoutAPattern(t *testing.T) {
	st := store.New(store.Options{})
	s, err := New(Config{
		Options:   sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()},
		Transport: &receiver{sums: map[string]uint64{}, delta: true}, Delta: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range []string{"\xff", "é", "\"", "plain", "\x00"} {
		st.Root().Counter("odd\x00name", tags.Tag{Name: "k", Value: value}, tags.Tag{Name: "l", Value: "m"}).Add(uint64(i) + 1)
		st.Root().Gauge("odd\x00other", tags.Tag{Name: "k", Value: value}).Set(uint64(i) + 1)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	if err := s.Flush(snap); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range s.Hold(t.Context()) {
		show(t, &b, "", p.Data, request)
	}
	s.Release(true)
	var got []string
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(line); f[0] == "name" || f[0] == "attributes" || f[0] == "as_int" || f[0] == "as_double" {
			got = append(got, strings.TrimPrefix(strings.Join(f, " "), "attributes key "))
		}
	}
	got = got[2:] // the resource and the scope
	var want []string
	for i, name := range []string{"odd_name", "odd_other"} {
		number := []string{"as_int", "as_double"}[i]
		want = append(want, fmt.Sprintf("name %q", name))
		for i, value := range []string{"�", "é", "\"", "plain", "\x00"} {
			want = append(want, fmt.Sprintf(`"k" value string %q`, value))
			if name == "odd_name" {
				want = append(want, `"l" value string "m"`)
			}
			want = append(want, fmt.Sprint(number, " ", i+1))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
