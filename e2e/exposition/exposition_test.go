package exposition

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func write(t *testing.T, f render.Format, st *store.Store, o render.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	w := map[render.Format]func(io.Writer, *store.Store, render.Options) error{
		render.FormatText: render.Exposition, render.FormatOpenMetrics: render.OpenMetrics, render.FormatProtobuf: render.Protobuf, render.FormatText1: render.Exposition,
	}[f]
	if err := w(&b, st, o); err != nil {
		t.Fatal(err)
	}
	checkLint(t, b.String(), f, o.Escaping)
	return b.Bytes()
}

// checkAll writes a store in all formats and compares the parsed results.
//
// A family keeps its suffix after the family that had the name first is gone, and a
// later family of the same kind gets the plain name. Then one group can be two
// series, and only the sums are compared.
func checkAll(t *testing.T, st *store.Store, stable bool) {
	t.Helper()
	want := groups(st, false)
	check := check
	if !stable {
		check = checkSums
	}
	for _, buckets := range []render.Buckets{render.Default, render.Summary} {
		o := render.Options{TextReadouts: true, Buckets: buckets, Hidden: render.HiddenInclude}
		summary := buckets == render.Summary

		text := write(t, render.FormatText, st, o)
		check(t, parse(t, text, render.FormatText.ContentType()), want, text, false, summary)
		checkExpfmt(t, text)

		om := write(t, render.FormatOpenMetrics, st, o)
		check(t, parse(t, om, render.FormatOpenMetrics.ContentType()), want, om, true, summary)

		pb := write(t, render.FormatProtobuf, st, o)
		s := parse(t, pb, render.FormatProtobuf.ContentType())
		check(t, s, want, text, false, summary)
		checkDelimited(t, pb)
		if !summary && stable {
			checkNative(t, s, want)
		}
	}
	checkEscaped(t, st, check)
}

// checkEscaped writes a store with all escapings.
func checkEscaped(t *testing.T, st *store.Store, check func(*testing.T, *scrape, []*group, []byte, bool, bool)) {
	t.Helper()
	write := func(f render.Format, e render.Escaping) (*scrape, []byte) {
		body := write(t, f, st, render.Options{TextReadouts: true, Hidden: render.HiddenInclude, Escaping: e})
		return parse(t, body, f.ContentType()+e.Parameter()), body
	}
	want := groups(st, true)
	for _, f := range []render.Format{render.FormatText, render.FormatText1, render.FormatOpenMetrics, render.FormatProtobuf} {
		s, body := write(f, render.AllowUTF8)
		if f == render.FormatProtobuf {
			checkDelimited(t, body)
			body = nil
		}
		check(t, s, want, body, f == render.FormatOpenMetrics, false)
		// Escaping by value is reversible; with dots, names collide as with
		// underscores.
		values, _ := write(f, render.EscapeValues)
		back := map[string]bool{}
		for name := range values.types {
			back[model.UnescapeName(name, model.ValueEncodingEscaping)] = true
		}
		for name := range s.types {
			if !back[name] && !strings.HasSuffix(name, "_total") && f != render.FormatOpenMetrics {
				t.Fatalf("no type of %q among those of values: %v", name, values.types)
			}
		}
		dots, _ := write(f, render.EscapeDots)
		for name := range s.types {
			if !isASCII(name) || name[0] <= '9' || f == render.FormatOpenMetrics {
				continue
			}
			if escaped := model.EscapeName(name, model.DotsEscaping); dots.types[escaped] == "" {
				t.Fatalf("no type of %q, which is %q with dots, among %v", name, escaped, dots.types)
			}
		}
		checkSums(t, values, want, nil, f == render.FormatOpenMetrics, false)
		checkSums(t, dots, want, nil, f == render.FormatOpenMetrics, false)
	}
	text := write004(t, st, render.AllowUTF8)
	p := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := p.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
		t.Fatalf("expfmt: %v\n%s", err, text)
	}
}

func write004(t *testing.T, st *store.Store, e render.Escaping) []byte {
	t.Helper()
	return write(t, render.FormatText, st, render.Options{TextReadouts: true, Escaping: e})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// checkExpfmt parses the text with the client libraries.
func checkExpfmt(t *testing.T, text []byte) {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := p.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
		t.Fatalf("expfmt: %v\n%s", err, text)
	}
}

// checkDelimited decodes the messages with the protobuf library.
func checkDelimited(t *testing.T, pb []byte) {
	t.Helper()
	d := expfmt.NewDecoder(bytes.NewReader(pb), expfmt.Format(render.FormatProtobuf.ContentType()+render.AllowUTF8.Parameter()))
	seen := map[string]bool{}
	for {
		var mf dto.MetricFamily
		err := d.Decode(&mf)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("expfmt: %v", err)
		}
		if seen[mf.GetName()] || len(mf.GetMetric()) == 0 || len(mf.ProtoReflect().GetUnknown()) != 0 {
			t.Fatalf("bad family %v", &mf)
		}
		seen[mf.GetName()] = true
	}
}

// checkNative compares native histograms with the counts of the bins.
func checkNative(t *testing.T, s *scrape, want []*group) {
	t.Helper()
	n := 0
	for _, g := range want {
		if g.kind == store.KindHistogram {
			n++
		}
	}
	if len(s.native) != n {
		t.Fatalf("%d native histograms, want %d", len(s.native), n)
	}
	for _, g := range want {
		if len(g.hists) != 1 {
			continue
		}
		st := g.hists[0].Snapshot().Cumulative
		found := false
		for id, h := range s.native {
			ls := s.sets[id]
			if !g.names(ls.Get("__name__")) || h.Count != st.Count() || h.Sum != st.Sum() {
				continue
			}
			found = true
		}
		if !found {
			t.Fatalf("no native histogram for %q with count %d and sum %v", g.stats, st.Count(), st.Sum())
		}
	}
}

func TestRandomStoresParse(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	for seed := range uint64(n) {
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			st, stable := randomStore(t, seed)
			checkAll(t, st, stable)
		}) {
			return
		}
	}
}

// FuzzExposition puts arbitrary text into names, tags and values.
func FuzzExposition(f *testing.F) {
	f.Add(uint64(1), "a.b", "a-b")
	f.Add(uint64(2), "__name__", "\"\n\\")
	f.Fuzz(func(t *testing.T, seed uint64, a, b string) {
		st, stable := randomStore(t, seed, a, b, a+"."+b)
		checkAll(t, st, stable)
	})
}

// TestNativeBuckets checks that a value lies within the bounds that Prometheus
// assigns to its bucket, give or take the width of a bin.
func TestNativeBuckets(t *testing.T) {
	for digits := 1; digits <= 5; digits++ {
		for _, x := range []float64{1, 2, 3, 4, 7, 8, 100, 128, 1000, 65536, 1e6, 123456789} {
			st := store.New(store.Options{Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, SignificantDigits: digits}}})
			st.Root().Histogram("h", store.Bytes).Record(uint64(x))
			st.Root().Histogram("z", store.Bytes).Record(0)
			n := st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("n", store.Bytes)
			n.RecordFloat(-x, 1)
			st.Flush(store.FlushOptions{}).Close()
			s := parse(t, write(t, render.FormatProtobuf, st, render.Options{Buckets: render.Native}), render.FormatProtobuf.ContentType())
			if len(s.native) != 3 || len(s.values) != 0 {
				t.Fatalf("got %d native histograms and %d other series", len(s.native), len(s.values))
			}
			for id, h := range s.native {
				if err := h.Validate(); err != nil {
					t.Fatal(err)
				}
				precision := math.Pow10(-digits)
				if growth := math.Exp2(math.Exp2(-float64(h.Schema))); growth-1 > precision && h.Schema < 8 {
					t.Errorf("schema %d for %d digits", h.Schema, digits)
				}
				if s.sets[id].Get("__name__") == "proxy_z" {
					if h.ZeroCount != 1 {
						t.Errorf("zero is not in the zero bucket: %v", h)
					}
					continue
				}
				it := h.PositiveBucketIterator()
				if s.sets[id].Get("__name__") == "n" {
					it = h.NegativeBucketIterator()
				}
				if !it.Next() {
					t.Fatalf("%s has no bucket", id)
				}
				b := it.At()
				lo, hi := min(math.Abs(b.Lower), math.Abs(b.Upper)), max(math.Abs(b.Lower), math.Abs(b.Upper))
				if slack := x * precision; b.Count != 1 || x <= lo-slack || x > hi+slack || (x <= 128 && digits > 1 && b.Lower > 0 && (x <= lo || x > hi)) {
					t.Errorf("digits %d: %v is in bucket %v", digits, x, b)
				}
			}
		}
	}
}

// TestLargeFamilyIsComplete writes a family that is too large for one message.
func TestLargeFamilyIsComplete(t *testing.T) {
	st := store.New(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	const members = 20_000
	for i := range members {
		network.Counter("rq", tags.Tag{Name: "n", Value: strconv.Itoa(i)}).Add(uint64(i))
	}
	network.Gauge("other").Set(1)
	d := expfmt.NewDecoder(bytes.NewReader(write(t, render.FormatProtobuf, st, render.Options{})), expfmt.Format(render.FormatProtobuf.ContentType()))
	pieces, seen := 0, map[string]bool{}
	for {
		var mf dto.MetricFamily
		if err := d.Decode(&mf); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if mf.GetName() != "rq" {
			continue
		}
		pieces++
		if mf.GetType() != dto.MetricType_COUNTER {
			t.Fatalf("a piece of type %s", mf.GetType())
		}
		for _, m := range mf.GetMetric() {
			value := m.GetLabel()[0].GetValue()
			if n, err := strconv.Atoi(value); err != nil || seen[value] || m.GetCounter().GetValue() != float64(n) {
				t.Fatalf("metric %v, seen before: %t", m, seen[value])
			}
			seen[value] = true
		}
	}
	if pieces < 2 || len(seen) != members {
		t.Errorf("%d members in %d pieces, want %d in some", len(seen), pieces, members)
	}
}

// TestHostsOfClusters: parsers accept the statistics of hosts next to stats of the
// store with the same names.
func TestHostsOfClusters(t *testing.T) {
	e, err := tags.New(tags.Config{UseDefaults: true, CommandLine: []tags.Tag{{Name: "proxy.cluster_name", Value: "a \"b\"\n\\"}}})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(store.Options{Tags: e})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	network.Counter("proxy.cluster.endpoint.rq_total").Add(1)
	network.Gauge("proxy_cluster_endpoint_cx").Set(2)
	o := render.Options{Endpoints: func(yield func(*render.Endpoint) bool) {
		for _, address := range []string{"10.0.0.1:80", "[::1]:80", "/run/\"x\"\xff\n"} {
			if !yield(&render.Endpoint{Cluster: "c", Address: address, Stats: []render.EndpointStat{
				{Name: "cx_total", Value: 3}, {Name: "rq_total", Value: 4}, {Name: "cx_active", Gauge: true, Value: 5},
			}}) {
				return
			}
		}
	}}
	for _, f := range []render.Format{render.FormatText, render.FormatOpenMetrics, render.FormatProtobuf} {
		body := write(t, f, st, o)
		s := parse(t, body, f.ContentType())
		sum := 0.0
		for _, v := range s.values {
			sum += v
		}
		if len(s.values) != 2+9 || sum != 1+2+3*(3+4+5) {
			t.Errorf("%s: %d series with the sum %v\n%s", f.ContentType(), len(s.values), sum, body)
		}
	}
	checkExpfmt(t, write(t, render.FormatText, st, o))
	checkDelimited(t, write(t, render.FormatProtobuf, st, o))
}
