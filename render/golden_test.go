package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// newStore returns a store whose clock stands at 0, so that no series has a start time.
func newStore(o store.Options) *store.Store {
	o.Now = func() time.Time { return time.Unix(0, 0) }
	return store.New(o)
}

// forms are all forms of output by the name of their golden files.
func forms() map[string]func(io.Writer, *store.Store, Options) error {
	return map[string]func(io.Writer, *store.Store, Options) error{
		"text": Text, "json": JSON, "html": HTMLLines, "exposition": Exposition, "openmetrics": OpenMetrics, "protobuf": Protobuf,
	}
}

// checkForms compares all forms of st with golden files.
func checkForms(t *testing.T, name string, st *store.Store, o Options) {
	t.Helper()
	for form, write := range forms() {
		t.Run(form, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, st, o); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name+"/"+form, b.Bytes())
			if n := st.OpenViews(); n != 0 {
				t.Errorf("%d views are open", n)
			}
		})
	}
}

// pastOf shows the stats whose names begin with it.
type pastOf string

func (p pastOf) Has(c *store.Cursor) bool                       { return strings.HasPrefix(c.Name(), string(p)) }
func (p pastOf) AppendValue(dst []byte, c *store.Cursor) []byte { return c.AppendValue(dst) }
func (p pastOf) Histogram(c *store.Cursor) *histogram.Snapshot  { return c.Histogram().Snapshot() }

// TestPastLeavesOutTheFirst has stats of each kind without a past before, between and
// behind others.
func TestPastLeavesOutTheFirst(t *testing.T) {
	st := newStore(store.Options{})
	for _, name := range []string{"a", "old.b", "c", "old.d", "e"} {
		st.Root().Counter(name + ".count").Inc()
		st.Root().Gauge(name + ".gauge").Set(1)
		st.Root().Histogram(name+".hist", store.Unspecified).Record(1)
		st.Root().Text(name + ".text").Set("x")
	}
	st.Flush(store.FlushOptions{}).Close()
	for form, write := range map[string]func(io.Writer, *store.Store, Options) error{"text": Text, "json": JSON} {
		for _, buckets := range []Buckets{Default, Detailed} {
			var b bytes.Buffer
			if err := write(&b, st, Options{Past: pastOf("old."), Buckets: buckets}); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"count", "gauge", "hist"} {
				for _, name := range []string{"a.", "old.b.", "c.", "old.d.", "e."} {
					if want := strings.HasPrefix(name, "old"); strings.Contains(b.String(), name+kind) != want {
						t.Errorf("%s: %s%s is shown: %t", form, name, kind, !want)
					}
				}
			}
			if strings.Contains(b.String(), "text") {
				t.Errorf("%s: text readouts have no past:\n%s", form, &b)
			}
		}
	}
}

func TestUnusedHistogram(t *testing.T) {
	for name, form := range map[string]Buckets{
		"default": Default, "cumulative": Cumulative, "disjoint": Disjoint, "detailed": Detailed, "summary": Summary, "native": Native,
	} {
		t.Run(name, func(t *testing.T) {
			st := newStore(store.Options{Histograms: []store.HistogramSetting{
				{Match: func(string) bool { return true }, Buckets: []float64{0.5, 1e6}},
			}})
			st.Root().Histogram("edge.idle_ms", store.Milliseconds)
			// Recorded to, but never flushed: as good as unused.
			st.Root().Histogram("edge.young_ms", store.Milliseconds).Record(7)
			checkForms(t, "unused/"+name, st, Options{Buckets: form})
			for form, write := range forms() {
				var b bytes.Buffer
				if err := write(&b, st, Options{UsedOnly: true}); err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(b.Bytes(), []byte("edge")) {
					t.Errorf("%s shows an unused histogram among the used ones: %q", form, b.String())
				}
			}
		})
	}
}

// TestPercent records 12.5 %, 50 % and 99 %: all output is in fractions.
func TestPercent(t *testing.T) {
	st := newStore(store.Options{Histograms: []store.HistogramSetting{
		{Match: func(string) bool { return true }, Buckets: []float64{0.25, 0.29, 0.5, 1}},
	}})
	h := st.Root().Histogram("edge.budget_used", store.Percent)
	for _, v := range []uint64{125_000, 500_000, 990_000} {
		h.Record(v)
	}
	st.Flush(store.FlushOptions{}).Close()
	for name, form := range map[string]Buckets{"quantiles": Default, "cumulative": Cumulative, "detailed": Detailed, "summary": Summary} {
		t.Run(name, func(t *testing.T) { checkForms(t, "percent/"+name, st, Options{Buckets: form}) })
	}
}

// TestHDR shows the form with an encoder that writes counts.
func TestHDR(t *testing.T) {
	st := newStore(store.Options{})
	h := st.Root().Histogram("edge.rq_ms", store.Milliseconds)
	st.Root().Histogram("edge.unused_ms", store.Milliseconds)
	h.RecordN(12, 5)
	st.Flush(store.FlushOptions{}).Close()
	h.Record(13)
	st.Flush(store.FlushOptions{}).Close()
	o := Options{Buckets: HDR, HDR: func(dst []byte, s *histogram.Stats) ([]byte, error) {
		return fmt.Appendf(dst, "count%d", s.Count()), nil
	}}
	for _, form := range []string{"text", "json", "html"} {
		var b bytes.Buffer
		if err := forms()[form](&b, st, o); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "hdr/"+form, b.Bytes())
	}

	broken := errors.New("broken")
	o.HDR = func(dst []byte, s *histogram.Stats) ([]byte, error) {
		if s.Count() > 1 {
			return dst, broken
		}
		return dst, nil
	}
	for _, write := range []func(io.Writer, *store.Store, Options) error{Text, JSON} {
		if err := write(io.Discard, st, o); err != broken {
			t.Errorf("error of the encoder: got %v", err)
		}
	}
}

func TestGaugesBelowZeroAndBetween(t *testing.T) {
	st := newStore(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	for name, v := range map[string]float64{
		"minus": -3, "half": 0.5, "minus.small": -1e-7, "tenth": 0.1, "large": 1 << 60, "huge": 1e300, "zero": 0, "whole": 12345678,
	} {
		if err := network.FloatGauge(name).Set(v); err != nil {
			t.Fatal(err)
		}
	}
	g := st.Root().Gauge("own")
	g.Set(2)
	g.Sub(5)
	st.Root().Gauge("own_large").Set(1<<63 - 1)
	st.Root().Counter("counter_large").Add(1<<64 - 1)
	checkForms(t, "gauges", st, Options{})
}

func TestEscaping(t *testing.T) {
	st := newStore(store.Options{})
	r := st.Root()
	r.Text("edge.motto").Set("\"q\" \\ \n\t\r\x01\x7f <b>&'</b> é \u2028\u2029 \xff")
	r.Counter(`edge."quoted"\back<tag>`).Inc()
	r.Counter("edge.tagged", tags.Tag{Name: "a\"b", Value: "say \"hi\"\\\n"}, tags.Tag{Name: "é", Value: "<i>é\xff"}).Inc()
	r.Gauge("edge.space and,comma{x=\"y\"} 1").Set(1)
	r.Histogram("edge.<h>", store.Bytes)
	checkForms(t, "escaping", st, Options{TextReadouts: true})
}

// TestFixedTagsAreEscaped: their values are no part of the names.
func TestFixedTagsAreEscaped(t *testing.T) {
	fixed := []tags.Tag{{Name: "site", Value: "a \"b\" \\ <c>\n\xff"}, {Name: "none", Value: ""}}
	e, err := tags.New(tags.Config{UseDefaults: true, CommandLine: fixed})
	if err != nil {
		t.Fatal(err)
	}
	st := newStore(store.Options{Tags: e})
	st.Root().Counter("edge.rq").Add(1)
	st.Root().Counter("cluster.a.upstream_rq_200").Add(2)
	st.Root().Text("edge.motto").Set("m")
	checkForms(t, "fixed-tags", st, Options{TextReadouts: true})
}

// TestLabels shows tags whose names are reserved, come twice, need cleaning or
// have no value, and stats of the program with one tag, most of which take a fast path.
func TestLabels(t *testing.T) {
	st := newStore(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	network.Counter("rq", tags.Tag{Name: "zone", Value: "eu"}, tags.Tag{Name: "a-b", Value: "1"}, tags.Tag{Name: "le", Value: "5"}).Add(1)
	network.Counter("rq", tags.Tag{Name: "a-b", Value: "1"}, tags.Tag{Name: "a_b", Value: "2"}, tags.Tag{Name: "__name__", Value: "x"}).Add(2)
	network.Counter("rq", tags.Tag{Name: "bare"}).Add(4)
	network.Counter("rq", tags.Tag{Name: "bare", Value: "true"}).Add(8) // the same series
	network.Counter("9.rq", tags.Tag{Name: "9", Value: "9"}, tags.Tag{Name: "quantile", Value: "q"}).Add(16)
	network.Text("t", tags.Tag{Name: "text_value", Value: "x"}).Set("y")
	st.Root().Counter("own", tags.Tag{Name: "empty", Value: ""}, tags.Tag{Name: "z", Value: "1"}, tags.Tag{Name: "a", Value: "2"}).Add(32)
	for _, tag := range []tags.Tag{{Name: "a", Value: "1"}, {Name: "b", Value: "1"}, {Name: "b", Value: `"`}, {Name: "b", Value: "é"}} {
		st.Root().Counter("one", tag).Add(64)
		st.Root().Gauge("one.g", tag).Set(128)
	}
	checkForms(t, "labels", st, Options{TextReadouts: true})
}

// TestNamesThatMeet shows stats that would have one metric name.
func TestNamesThatMeet(t *testing.T) {
	st := newStore(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	network.Counter("a.b").Add(1)
	network.Counter("a-b").Add(2)
	network.Counter("a_b", tags.Tag{Name: "k", Value: "v"}).Add(4)
	network.Gauge("a+b").Set(8)
	st.Root().Counter("x.y").Add(16)
	network.Counter("proxy.x.y").Add(32)
	network.Counter("stat_count").Add(64)
	network.Histogram("stat", store.Bytes)
	network.Gauge("g.one").Set(1)
	network.Gauge("g_one").Set(2)
	st.Root().Counter("rq_total").Add(128)
	st.Root().Counter("other.rq_total").Add(256)
	st.Root().Gauge("other.rq").Set(3)
	checkForms(t, "meet", st, Options{Buckets: Summary})
}

func TestHidden(t *testing.T) {
	st := newStore(store.Options{})
	st.Root().GaugeWithMode("edge.shadow", store.HiddenAccumulate).Set(1)
	st.Root().Gauge("edge.light").Set(2)
	st.Root().Counter("edge.count").Add(3)
	for name, h := range map[string]Hidden{"exclude": HiddenExclude, "include": HiddenInclude, "only": HiddenOnly} {
		t.Run(name, func(t *testing.T) { checkForms(t, "hidden/"+name, st, Options{Hidden: h}) })
	}
}

func TestNothingToShow(t *testing.T) {
	for name, typ := range map[string]Type{"all": All, "counters": Counters, "gauges": Gauges, "histograms": Histograms, "readouts": TextReadouts} {
		t.Run(name, func(t *testing.T) {
			checkForms(t, "nothing/"+name, newStore(store.Options{}), Options{Type: typ})
		})
	}
}

func TestNamespaces(t *testing.T) {
	for _, tt := range []struct{ raw, namespace, want string }{
		{"edge.cache-hits@eu", "", "proxy_edge_cache_hits_eu"},
		{"9lives.used", "", "proxy_9lives_used"},
		{"plugin.Rate.limit-hits", "plugin", "Rate_limit_hits"},
		{"plugin.9lives.used", "plugin", ""},
		{"plugin", "plugin", "proxy_plugin"},
		{"plugins.x", "plugin", "proxy_plugins_x"},
	} {
		t.Run(tt.raw, func(t *testing.T) {
			o := store.Options{}
			if tt.namespace != "" {
				o.Naming.Namespaces = []string{tt.namespace}
			}
			st := store.New(o)
			st.Root().Counter(tt.raw).Add(5)
			want := ""
			if tt.want != "" {
				want = "# TYPE " + tt.want + " counter\n" + tt.want + "{} 5\n"
			}
			var b bytes.Buffer
			if err := Exposition(&b, st, Options{}); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	shortest := func(dst []byte, x float64) []byte { return appendFloat(dst, x) }
	g := func(digits int) func([]byte, float64) []byte {
		return func(dst []byte, x float64) []byte { return appendG(dst, x, digits) }
	}
	for _, tt := range []struct {
		name   string
		append func([]byte, float64) []byte
		x      float64
		want   string
	}{
		{"zero", shortest, 0, "0"},
		{"whole", shortest, 915, "915"},
		{"fraction", shortest, 12.666666666666666, "12.666666666666666"},
		{"large", shortest, 300000, "300000"},
		{"exponent-from", shortest, 1e16, "1e+16"},
		{"exponent-below", shortest, 9999999999999998, "9999999999999998"},
		{"small", shortest, 0.0001, "0.0001"},
		{"smaller", shortest, 0.00009, "9e-05"},
		{"negative", shortest, -1.5, "-1.5"},
		{"text-nan", appendTextFloat, nan(), "nan"},
		{"json-nan", AppendJSONFloat, nan(), "null"},
		{"label-99.9", g(6), 99.9, "99.9"},
		{"label-100", g(6), 100, "100"},
		{"label-300000", g(6), 300000, "300000"},
		{"label-600000", g(6), 600000, "600000"},
		{"label-1800000", g(6), 1800000, "1.8e+06"},
		{"label-3600000", g(6), 3600000, "3.6e+06"},
		{"bin", g(15), 0.1, "0.1"},
		{"bin-whole", g(15), 123456789012345, "123456789012345"},
		{"le-0.1", g(32), 0.1, "0.10000000000000000555111512312578"},
		{"le-1800000", g(32), 1800000, "1800000"},
		{"le-0.5", g(32), 0.5, "0.5"},
		{"sum", g(32), 2587.3285509689494574558921158314, "2587.3285509689494574558921158314"},
		{"sum-zero", g(32), 0, "0"},
	} {
		if got := string(tt.append(nil, tt.x)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func nan() float64 {
	var zero float64
	return zero / zero
}

// TestNetworkCannotTakeAName lets network input have a metric name first, in
// every kind, alone and shared: when the program's own stat comes it gets the
// name all the same.
func TestNetworkCannotTakeAName(t *testing.T) {
	makers := map[string]func(sc *store.Scope, name string){
		"counter":   func(sc *store.Scope, name string) { sc.Counter(name).Add(5) },
		"gauge":     func(sc *store.Scope, name string) { sc.Gauge(name).Set(5) },
		"text":      func(sc *store.Scope, name string) { sc.Text(name).Set("5") },
		"histogram": func(sc *store.Scope, name string) { sc.Histogram(name, store.Bytes) },
	}
	for theirs, claim := range makers {
		for ours, makeOwn := range makers {
			for _, names := range [][]string{{"proxy.x"}, {"proxy.x", "proxy_x"}, {"proxy.x", "proxy-x", "proxy.x_counter", "proxy.x.gauge"}} {
				st := newStore(store.Options{})
				for _, n := range names {
					claim(st.ScopeWith("", store.ScopeOptions{Network: true}), n)
				}
				show := func() string {
					var b bytes.Buffer
					if err := Exposition(&b, st, Options{TextReadouts: true}); err != nil {
						t.Fatal(err)
					}
					checkExposition(t, b.String(), expolint.Text004)
					return b.String()
				}
				if got := show(); !bytes.Contains([]byte(got), []byte("# TYPE proxy_x ")) {
					t.Errorf("the %s does not have the name it could have:\n%s", theirs, got)
				}
				makeOwn(st.Root(), "x")
				typ := map[string]string{"text": "gauge"}[ours]
				if typ == "" {
					typ = ours
				}
				got := show()
				for _, want := range []string{"# TYPE proxy_x " + typ + "\n", "# TYPE proxy_x_" + theirs + " "} {
					if len(names) <= 2 && !bytes.Contains([]byte(got), []byte(want)) {
						t.Errorf("a %s against %q of the network as a %s: no %q in\n%s", ours, names, theirs, want, got)
					}
				}
			}
		}
	}
}

// TestReceivedUnderOwnName marks received stats that follow a stat of the program
// under the same name, across the buffer's ends too, and no others.
func TestReceivedUnderOwnName(t *testing.T) {
	st := store.New(store.Options{})
	own, network := st.Scope(""), st.ScopeWith("", store.ScopeOptions{Network: true})
	own.Gauge("server.live").Set(1)
	network.Gauge("server.live").Set(0)
	network.Gauge("server.life").Set(2)
	own.Histogram("took", histogram.Unspecified)
	network.Histogram("took", histogram.Unspecified)
	own.Text("aaaaaa").Set(strings.Repeat("v", 2*bufferSize))
	network.Counter("aaaaab").Add(4)
	var b strings.Builder
	if err := Text(&b, st, Options{}); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "\n")
	want := "aaaaab: 4\nserver.life: 2\nserver.live: 1\nserver.live (received): 0\ntook: No recorded values\ntook (received): No recorded values\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
