package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/symtab"
)

const (
	badFormat  = "usage: /stats?format=(html|active-html|json|metrics|text)\n\n"
	badType    = "invalid &type= param"
	badHidden  = "usage: /stats?hidden=(include|only|exclude)\n\n"
	badBuckets = "usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary)\n"
	badFilter  = "Invalid re2 regex"
	badMode    = "unsupported prometheus histogram bucket mode"
	badNative  = "unsupported prometheusnative histogram type when not using protobuf exposition format"
)

func TestStatsParameters(t *testing.T) {
	type want struct {
		format  statsFormat
		pattern string
		options render.Options
		err     string
	}
	tests := []struct {
		query       string
		metricsOnly bool
		want        want
	}{
		{"", false, want{}},
		{"usedonly", false, want{options: render.Options{UsedOnly: true}}},
		{"usedonly=false", false, want{options: render.Options{UsedOnly: true}}},
		{"text_readouts=false", false, want{options: render.Options{TextReadouts: true}}},
		{"pretty", false, want{}},
		{"unknown=1", false, want{}},
		{"Usedonly", false, want{}},
		{"filter=", false, want{}},
		{"filter=&filter=b", false, want{}},
		{"filter=a.%2Bb", false, want{pattern: "a.+b"}},
		{"filter=a.+b", false, want{pattern: "a.+b"}},
		{"filter=a&filter=(", false, want{pattern: "a"}},
		{"format=", false, want{}},
		{"format=text", false, want{}},
		{"format=json", false, want{format: formatJSON}},
		{"format=json&format=xml", false, want{format: formatJSON}},
		{"format=html", false, want{format: formatHTML}},
		{"format=metrics", false, want{format: formatMetrics}},
		{"format=prometheus", false, want{format: formatMetrics}},
		{"type=", false, want{}},
		{"type=All", false, want{}},
		{"type=Counters", false, want{options: render.Options{Type: render.Counters}}},
		{"type=Gauges", false, want{options: render.Options{Type: render.Gauges}}},
		{"type=Histograms", false, want{options: render.Options{Type: render.Histograms}}},
		{"type=TextReadouts", false, want{options: render.Options{Type: render.TextReadouts}}},
		{"hidden=", false, want{}},
		{"hidden=exclude", false, want{}},
		{"hidden=include", false, want{options: render.Options{Hidden: render.HiddenInclude}}},
		{"hidden=only", false, want{options: render.Options{Hidden: render.HiddenOnly}}},
		{"histogram_buckets=", false, want{}},
		{"histogram_buckets=cumulative", false, want{options: render.Options{Buckets: render.Cumulative}}},
		{"histogram_buckets=disjoint", false, want{options: render.Options{Buckets: render.Disjoint}}},
		{"histogram_buckets=detailed", false, want{options: render.Options{Buckets: render.Detailed}}},
		{"histogram_buckets=summary", false, want{options: render.Options{Buckets: render.Summary}}},
		{"histogram_buckets=prometheusnative", false, want{options: render.Options{Buckets: render.Native}}},
		{"histogram_buckets=hdr", false, want{options: render.Options{Buckets: render.HDR}}},
		{"histogram_buckets=none", false, want{options: render.Options{Buckets: render.Summary}}},
		{"format=metrics&histogram_buckets=none&usedonly&type=Gauges", false, want{format: formatMetrics,
			options: render.Options{Buckets: render.Summary, UsedOnly: true, Type: render.Gauges}}},
		{"format=metrics&histogram_buckets=cumulative", false, want{format: formatMetrics, options: render.Options{Buckets: render.Cumulative}}},
		{"format=json&histogram_buckets=disjoint&hidden=only&usedonly&filter=x&type=Histograms", false, want{format: formatJSON, pattern: "x",
			options: render.Options{Buckets: render.Disjoint, Hidden: render.HiddenOnly, UsedOnly: true, Type: render.Histograms}}},
		{"", true, want{format: formatMetrics}},
		{"format=json", true, want{format: formatMetrics}},
		{"format=html&histogram_buckets=summary", true, want{format: formatMetrics, options: render.Options{Buckets: render.Summary}}},

		{"format=metrics&histogram_buckets=prometheusnative", false, want{err: badNative}},
		{"histogram_buckets=prometheusnative&format=text", true, want{err: badNative}},
		{"filter=(", false, want{err: badFilter}},
		{"filter=a%5B", false, want{err: badFilter}},
		{"filter=*", false, want{err: badFilter}},
		{"filter=%28%3F%3Da%29", false, want{err: badFilter}}, // a lookahead
		{"format=xml", false, want{err: badFormat}},
		{"format=JSON", false, want{err: badFormat}},
		{"format=xml", true, want{err: badFormat}},
		{"format=active-html", false, want{err: "active-html is not supported, use format=html\n"}},
		{"type=counters", false, want{err: badType}},
		{"type=x", true, want{err: badType}},
		{"hidden=showonly", false, want{err: badHidden}},
		{"hidden=x", true, want{err: badHidden}},
		{"histogram_buckets=x", false, want{err: badBuckets}},
		{"histogram_buckets=Cumulative", false, want{err: badBuckets}},
		{"histogram_buckets=x", true, want{err: badBuckets}},
		{"format=metrics&histogram_buckets=disjoint", false, want{err: badMode}},
		{"format=prometheus&histogram_buckets=detailed", false, want{err: badMode}},
		{"histogram_buckets=disjoint", true, want{err: badMode}},
		{"format=metrics&histogram_buckets=hdr", false, want{err: badMode}},
		{"histogram_buckets=detailed&format=json", true, want{err: badMode}},
		{"filter=" + strings.Repeat("a", 1025), false, want{err: "regular expression over the limit: 1025 bytes, 1024 are allowed\n"}},

		// The order of the checks.
		{"format=x&hidden=x&type=x&histogram_buckets=x&filter=(", false, want{err: badFilter}},
		{"format=x&hidden=x&type=x&histogram_buckets=x", false, want{err: badBuckets}},
		{"format=x&hidden=x&type=x&histogram_buckets=disjoint", true, want{err: badType}},
		{"format=x&hidden=x&histogram_buckets=disjoint", true, want{err: badHidden}},
		{"format=x&histogram_buckets=disjoint", true, want{err: badFormat}},
	}
	s := newServer(t, Config{})
	for _, tt := range tests {
		path := "/stats"
		if tt.metricsOnly {
			path = "/stats/metrics"
		}
		t.Run(fmt.Sprintf("%s-%.60s", path[1:], tt.query), func(t *testing.T) {
			q, _ := parseQuery(tt.query, -1, -1)
			got, err := s.parseStats(q, tt.metricsOnly)
			if tt.want.err != "" {
				if r := s.Request("GET", path+"?"+tt.query, nil); r.Status != 400 || string(r.Body) != tt.want.err || r.Get("content-type") != typeText {
					t.Errorf("got %d %q, want %q", r.Status, r.Body, tt.want.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got.options.Filter != nil) != (tt.want.pattern != "") {
				t.Error("filter without pattern, or the other way round")
			}
			got.options.Filter = nil
			if !reflect.DeepEqual(*got, statsQuery{format: tt.want.format, pattern: tt.want.pattern, options: tt.want.options}) {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
			if r := s.Request("GET", path+"?"+tt.query, nil); r.Status != 200 {
				t.Errorf("status %d, body %q", r.Status, r.Body)
			}
		})
	}
	envoy := newServer(t, Config{Store: store.New(store.Options{Product: "envoy"})})
	if got, want := string(envoy.Request("GET", "/stats?format=x", nil).Body), strings.Replace(badFormat, "metrics", "prometheus", 1); got != want {
		t.Errorf("envoy: %q, want %q", got, want)
	}
}

// TestFilterEngine selects the other regular expression engine with a runtime value.
func TestFilterEngine(t *testing.T) {
	for _, product := range []string{"proxy", "envoy"} {
		world := newWorld()
		st := store.New(store.Options{Product: product})
		st.Scope("a").Counter("foo.bar").Inc()
		st.Scope("a").Counter("foo.baz").Inc()
		st.Scope("a").Counter(strings.Repeat("a", 200) + "!").Inc()
		first := st.Scope("a").Counter("A")
		first.Inc()
		s := newServer(t, Config{Sources: world.sources(), Store: st})
		const lookahead = "/stats?filter=foo%5C.(%3F=bar)"
		if r := s.Request("GET", lookahead, nil); r.Status != 400 || string(r.Body) != badFilter {
			t.Errorf("RE2: %d %q", r.Status, r.Body)
		}
		key := product + ".reloadable_features.admin_stats_filter_use_re2"
		if r := s.Request("POST", "/runtime_modify?"+key+"=false", nil); r.Status != 200 {
			t.Fatalf("%d %q", r.Status, r.Body)
		}
		if r := s.Request("GET", lookahead, nil); r.Status != 200 || string(r.Body) != "a.foo.bar: 1\n" {
			t.Errorf("ECMAScript: %d %q", r.Status, r.Body)
		}
		r := s.Request("GET", "/stats?filter=(", nil)
		if body := string(r.Body); r.Status != 400 || !strings.HasPrefix(body, `Invalid regex: "`) || !strings.HasSuffix(body, "\"\n") {
			t.Errorf("ECMAScript: %d %q", r.Status, r.Body)
		}
		const want = "filter too expensive\na name took more than 50ms or 100000 backtracking slots; nested repetitions such as (a+)+ cost most\n"
		if r := s.Request("GET", "/stats?filter=(a%2B)%2B(b|$)", nil); r.Status != 400 || string(r.Body) != want {
			t.Errorf("a name that takes long: %d %q", r.Status, r.Body)
		}
		if r := s.Request("POST", "/reset_counters?filter=A|(a%2B)%2B(b|$)", nil); r.Status != 400 || string(r.Body) != want || first.Value() != 1 {
			t.Errorf("a reset that takes long: %d %q, the first counter has %d", r.Status, r.Body, first.Value())
		}
		s.Request("POST", "/runtime_modify?"+key+"=", nil)
		if r := s.Request("GET", lookahead, nil); r.Status != 400 {
			t.Errorf("RE2 again: %d", r.Status)
		}
	}
}

func TestFiltersAreKept(t *testing.T) {
	s := newServer(t, Config{})
	get := func(pattern string) *render.Filter {
		f, err := s.filter(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := get("a")
	for i := range 63 {
		get(fmt.Sprint(i))
	}
	if get("a") != first {
		t.Fatal("the filter is lost after 63 others")
	}
	get("b") // takes the place of the one that was not requested the longest
	if get("a") != first {
		t.Fatal("the filter is lost although it was asked for just now")
	}
	for i := range 64 {
		get(fmt.Sprint("c", i))
	}
	if get("a") == first {
		t.Error("the filter is still kept after 64 others")
	}
	if n := len(s.filters.entries); n != 64 {
		t.Errorf("%d filters are kept, want 64", n)
	}
}

// flushes counts its calls.
type flushes struct{ n atomic.Int32 }

func (f *flushes) FlushForAdmin() { f.n.Add(1) }

func TestFlushOnAdmin(t *testing.T) {
	f := new(flushes)
	s := newServer(t, Config{Flusher: f})
	for i, target := range []string{"/stats", "/stats?format=json", "/stats/metrics", "/stats?format=prometheus", "/stats?format=html"} {
		s.Request("GET", target, nil)
		if got := f.n.Load(); got != int32(i+1) {
			t.Errorf("after %s: %d flushes, want %d", target, got, i+1)
		}
	}
	for _, target := range []string{"/stats?format=x", "/stats?filter=(", "/stats/recentlookups", "/ready"} {
		s.Request("GET", target, nil)
	}
	if got := f.n.Load(); got != 5 {
		t.Errorf("requests without stats flushed %d times", got-5)
	}
}

func TestExpositionNegotiation(t *testing.T) {
	tests := []struct {
		accept string
		open   bool
	}{
		{"", false}, {"*/*", false}, {"text/plain", false}, {"application/openmetrics-text", true},
		{"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", false},
		{"application/openmetrics-text;q=0.5, text/plain;q=0.7", false},
		{"text/plain, application/openmetrics-text", false},
		{"application/openmetrics-text, text/plain", false},
		{"application/openmetrics-text;q=0", false},
		{"APPLICATION/OpenMetrics-Text; Q=0.1", true},
		{"application/openmetrics-text;q=x", false},
		{"application/vnd.google.protobuf;q=0.6,application/openmetrics-text;q=0.5,text/plain;q=0.3", false},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
	}
	s := start(t, Config{Store: fixture()})
	for _, tt := range tests {
		for _, target := range []string{"/stats/metrics", "/stats/prometheus", "/metrics", "/stats?format=metrics"} {
			a := get(t, s, target, "Accept: "+tt.accept)
			want := render.FormatText.ContentType()
			if tt.open {
				want = render.FormatOpenMetrics.ContentType()
			}
			if got := a.header.Get("content-type"); got != want || tt.open != strings.HasSuffix(a.body, "# EOF\n") {
				t.Errorf("Accept %q: content-type %q, want %q", tt.accept, got, want)
			}
		}
	}
	preferring := start(t, Config{Store: fixture(), PreferOpenMetrics: true})
	if a := get(t, preferring, "/metrics", "Accept: text/plain, application/openmetrics-text;q=0.1"); a.header.Get("content-type") != render.FormatOpenMetrics.ContentType() {
		t.Errorf("OpenMetrics is not preferred: %v", a.header)
	}
	const created = "_created{"
	if a := get(t, preferring, "/metrics", "Accept: application/openmetrics-text"); !strings.Contains(a.body, created) {
		t.Errorf("no start times in\n%s", a.body)
	}
	if a := get(t, start(t, Config{Store: fixture(), OmitCreated: true}), "/metrics", "Accept: application/openmetrics-text"); strings.Contains(a.body, created) {
		t.Errorf("start times in\n%s", a.body)
	}
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	if a := get(t, s, "/stats/metrics", "Accept: "+protobuf+";q=0.6,text/plain;q=0.3"); a.header.Get("content-type") != render.FormatProtobuf.ContentType() {
		t.Errorf("protobuf is not negotiated: %v", a.header)
	}
	for target, accept := range map[string]string{
		"/stats/metrics?prom_protobuf":                                         "*/*",
		"/stats?format=prometheus&prom_protobuf=false":                         "application/openmetrics-text",
		"/stats/metrics?histogram_buckets=prometheusnative&prom_protobuf":      "text/plain",
		"/stats/metrics?histogram_buckets=prometheusnative":                    protobuf,
		"/stats/metrics?histogram_buckets=summary&filter=none&prom_protobuf=1": "",
	} {
		a := get(t, s, target, "Accept: "+accept)
		if a.status != 200 || a.header.Get("content-type") != render.FormatProtobuf.ContentType() {
			t.Errorf("%s with Accept %q: %d %v", target, accept, a.status, a.header)
		}
	}
	if a := get(t, s, "/stats?format=json&prom_protobuf"); a.header.Get("content-type") != typeJSON {
		t.Errorf("prom_protobuf changes JSON: %v", a.header)
	}
	if a := get(t, s, "/stats", "Accept: application/openmetrics-text"); a.header.Get("content-type") != typeText {
		t.Errorf("/stats without a format negotiates: %v", a.header)
	}
}

// TestStatsAsHDR decodes both views of a histogram with hdrhistogram-go, from
// text and from JSON.
func TestStatsAsHDR(t *testing.T) {
	st := store.New(store.Options{})
	h := st.Root().Histogram("rq.time", store.Milliseconds)
	st.Root().Histogram("rq.unused", store.Milliseconds)
	for i := range uint64(2000) {
		h.Record(i * i)
	}
	st.Flush(store.FlushOptions{}).Close()
	for i := range uint64(500) {
		h.Record(3 * i)
	}
	st.Flush(store.FlushOptions{}).Close()
	s := start(t, Config{Store: st})

	check := func(what, text string, want *histogram.Stats) {
		t.Helper()
		got, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if uint64(got.TotalCount()) != want.Count() {
			t.Errorf("%s: %d values, want %d", what, got.TotalCount(), want.Count())
		}
		for q := 0.5; q < 100; q++ {
			if v := min(float64(got.ValueAtQuantile(q)), want.Max()); v != want.Quantile(q/100) {
				t.Errorf("%s: %v %% is %v, want %v", what, q, v, want.Quantile(q/100))
			}
		}
	}
	snapshot := h.Snapshot()
	a := get(t, s, "/stats?filter=^rq&histogram_buckets=hdr")
	first, second, _ := strings.Cut(a.body, "\n")
	views, ok := strings.CutPrefix(first, "rq.time: HDR(")
	interval, cumulative, _ := strings.Cut(strings.TrimSuffix(views, ")"), ",")
	if !ok || second != "rq.unused: No recorded values\n" {
		t.Fatalf("text is %q", a.body)
	}
	check("interval as text", interval, snapshot.Interval)
	check("cumulative as text", cumulative, snapshot.Cumulative)

	var page struct {
		Stats []struct {
			Histograms []struct{ Name, Interval, Cumulative string }
		}
	}
	a = get(t, s, "/stats?filter=^rq&histogram_buckets=hdr&format=json")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Stats) != 1 || len(page.Stats[0].Histograms) != 2 {
		t.Fatalf("JSON is %q: %v", a.body, err)
	}
	used, unused := page.Stats[0].Histograms[0], page.Stats[0].Histograms[1]
	check("interval in JSON", used.Interval, snapshot.Interval)
	check("cumulative in JSON", used.Cumulative, snapshot.Cumulative)
	if empty, err := hdrhistogram.Decode([]byte(unused.Cumulative)); err != nil || empty.TotalCount() != 0 || unused.Interval != unused.Cumulative {
		t.Errorf("the unused histogram is %+v: %v", unused, err)
	}
}

// TestExpensiveFilter checks that exceeding the budget yields an error if nothing was
// sent yet.
func TestExpensiveFilter(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Scope("a")
	for i := range 5000 {
		sc.Counter(fmt.Sprintf("x%d.%s", i, strings.Repeat("ab", 50)))
	}
	s := start(t, Config{Store: st, Limits: Limits{RegexBudget: 1}})
	if a := get(t, s, "/stats?filter=(a|b|ab)*c$"); a.status != 400 || a.body != "filter too expensive\nadmin.limits.regex_budget allows 1ns of elapsed time; an expression that starts with ^ and a literal prefix costs less\n" {
		t.Errorf("got %d %.100q", a.status, a.body)
	}
}

func TestFiltersWaitForTheGate(t *testing.T) {
	s := newServer(t, Config{Limits: Limits{RegexParallel: 1}})
	s.regexes.wait = time.Millisecond
	if !s.regexes.enter(s.closing) {
		t.Fatal("the gate is shut")
	}
	// Without a slot, an expression is not even compiled.
	for _, target := range []string{"/stats?filter=a", "/stats/metrics?filter=(", "/config_dump?name_regex=a", "/config_dump?name_regex=("} {
		if r := s.Request("GET", target, nil); r.Status != 503 || r.Get("retry-after") != "1" {
			t.Errorf("%s while another filter is at work: %d", target, r.Status)
		}
	}
	if r := s.Request("GET", "/stats?usedonly", nil); r.Status != 200 {
		t.Errorf("no filter: %d", r.Status)
	}
	s.regexes.leave()
	if r := s.Request("GET", "/stats?filter=a", nil); r.Status != 200 {
		t.Errorf("next filter: %d", r.Status)
	}
}

func TestRecentLookups(t *testing.T) {
	st := store.New(store.Options{})
	s := newServer(t, Config{Store: st})
	body := func(method, path string) string {
		t.Helper()
		r := s.Request(method, path, nil)
		if r.Status != 200 || r.Get("content-type") != typeText {
			t.Errorf("%s %s: %d %v", method, path, r.Status, r.Header)
		}
		return string(r.Body)
	}
	do := func(path string) {
		t.Helper()
		if got := body("POST", path); got != "OK\n" {
			t.Errorf("POST %s: %q", path, got)
		}
	}
	sym := st.Symbols()
	do("/stats/recentlookups/clear")
	sym.CountLookup("edge.restarts")
	if got, want := body("GET", "/stats/recentlookups"), "Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n\ntotal: 1\n"; got != want {
		t.Errorf("off: %q, want %q", got, want)
	}
	do("/stats/recentlookups/enable")
	if got, want := body("GET", "/stats/recentlookups"), "   Count Lookup\n\ntotal: 1\n"; got != want {
		t.Errorf("empty list: %q, want %q", got, want)
	}
	for range 14 {
		sym.CountLookup("http.edge_in.downstream_rq_total")
	}
	sym.CountLookup("edge.restarts")
	sym.CountLookup("edge.restarts")
	sym.CountLookup("cluster.checkout.upstream_rq_503")
	want := "   Count Lookup\n       1 cluster.checkout.upstream_rq_503\n       2 edge.restarts\n      14 http.edge_in.downstream_rq_total\n\ntotal: 18\n"
	if got := body("GET", "/stats/recentlookups"); got != want {
		t.Errorf("list: %q, want %q", got, want)
	}
	do("/stats/recentlookups/clear")
	if got, want := body("GET", "/stats/recentlookups"), "   Count Lookup\n\ntotal: 0\n"; got != want {
		t.Errorf("cleared: %q, want %q", got, want)
	}
	sym.CountLookup("a.b")
	do("/stats/recentlookups/disable")
	if got := body("GET", "/stats/recentlookups"); !strings.HasPrefix(got, "Lookup tracking is not enabled.") || !strings.HasSuffix(got, "\ntotal: 1\n") {
		t.Errorf("disabled: %q", got)
	}
	do("/stats/recentlookups/enable")
	sym.CountLookup("a.b")
	do("/reset_counters")
	if got, want := body("GET", "/stats/recentlookups"), "   Count Lookup\n\ntotal: 0\n"; got != want {
		t.Errorf("after a reset: %q, want %q", got, want)
	}
}

// TestFakeSymbolTable checks that with this option the mutations are accepted but
// have no effect.
func TestFakeSymbolTable(t *testing.T) {
	st := store.New(store.Options{Symbols: symtab.Options{Fake: true}})
	s := newServer(t, Config{Store: st})
	for _, path := range []string{"", "/stats/recentlookups/enable", "/stats/recentlookups/clear", "/stats/recentlookups/disable", "/stats/recentlookups/enable", "/reset_counters"} {
		if path != "" {
			if r := s.Request("POST", path, nil); r.Status != 200 || string(r.Body) != "OK\n" {
				t.Errorf("POST %s: %d %q", path, r.Status, r.Body)
			}
		}
		st.Root().Counter("edge.restarts" + strings.ReplaceAll(path, "/", ".")).Inc()
		const want = "Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n\ntotal: 0\n"
		if got := string(s.Request("GET", "/stats/recentlookups", nil).Body); got != want {
			t.Errorf("after %q: %q, want %q", path, got, want)
		}
	}
	if got := string(s.Request("POST", "/stats/recentlookups/enable?dry_run", nil).Body); got != "dry run: nothing would change\n" {
		t.Errorf("dry run: %q", got)
	}
	s.Request("POST", "/stats/recentlookups/enable?ttl=1m", nil)
	if e := s.Audit(1)[0]; e.Undoable() || len(e.Changes) > 0 || len(s.Temporary()) > 0 {
		t.Errorf("audit %+v, temporary %v", e, s.Temporary())
	}
}

func TestResetCounters(t *testing.T) {
	st := fixture()
	s := newServer(t, Config{Store: st})
	st.Scope("cluster.checkout").Counter("upstream_rq").Add(3)
	s.Request("POST", "/reset_counters", nil)
	got := string(s.Request("GET", "/stats?usedonly&filter=checkout%5C.(upstream_rq$|member)", nil).Body)
	if want := "cluster.checkout.membership_healthy: 3\ncluster.checkout.upstream_rq: 0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	var pending uint64
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		if c.Name() == "cluster.checkout.upstream_rq" {
			pending = delta
		}
		return true
	})
	if pending != 3 {
		t.Errorf("the sinks get %d, want the 3 from before the reset", pending)
	}
}

// TestEndpointStats checks that clusters with per-host statistics show them among the
// stats in all formats.
func TestEndpointStats(t *testing.T) {
	w := newWorld()
	w.clusters = usualClusters()
	for i := range w.clusters {
		c := &w.clusters[i]
		if c.Name != "backend_a" {
			w.tracked = append(w.tracked, c.Name)
		}
		for j := range c.hosts {
			for k := range c.hosts[j].Stats {
				c.hosts[j].Stats[k].Value %= 1000
			}
		}
	}
	st := store.New(store.Options{})
	st.Root().Counter("cluster.many.upstream_cx_total").Add(2)
	st.Root().Histogram("edge.time", store.Milliseconds)
	s := newServer(t, Config{Sources: w.sources(), Store: st})
	for name, query := range map[string]string{
		"text": "usedonly&filter=cluster", "json": "format=json&type=Gauges&filter=cluster", "metrics": "format=metrics&filter=endpoint",
		"html": "format=html&filter=cluster.*cx_total&type=Counters",
	} {
		t.Run(name, func(t *testing.T) {
			r := s.Request("GET", "/stats?"+query, nil)
			golden.Check(t, "endpoint-stats-"+name, r.Body)
		})
	}
	if r := s.Request("GET", "/stats?hidden=only", nil); len(r.Body) != 0 {
		t.Errorf("hidden=only shows %q", r.Body)
	}
}
