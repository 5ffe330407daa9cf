package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// fixture returns a store with some stats of each kind.
func fixture() *store.Store {
	st := store.New(store.Options{Now: testTime})
	up := st.Scope("cluster.checkout")
	up.Counter("upstream_rq").Add(7)
	up.Counter("upstream_cx_unused")
	up.Gauge("membership_healthy").Set(3)
	st.Scope("edge").Text("release").Set(`1.2 "<b>"`)
	up.GaugeWithMode("secret", store.HiddenAccumulate).Set(1)
	h := up.Histogram("upstream_rq_time", store.Milliseconds)
	for _, v := range []uint64{15, 30, 23} {
		h.Record(v)
	}
	up.Histogram("idle_time", store.Milliseconds)
	st.Flush(store.FlushOptions{}).Close()
	return st
}

// goldenRow is a request whose response, head and body, is a golden file.
type goldenRow struct {
	name, method, target string
	body                 string // of a form
	with                 func(*world)
}

var goldenRows = []goldenRow{
	{"home", "GET", "/", "", nil},
	{"help", "GET", "/help", "", nil},
	{"unknown-path", "GET", "/nothing", "", nil},
	{"get-on-mutation", "GET", "/quitquitquit", "", nil},
	{"head-on-mutation", "HEAD", "/quitquitquit", "", nil},
	{"put-on-mutation", "PUT", "/quitquitquit", "", nil},
	{"ready", "GET", "/ready", "", nil},
	{"ready-head", "HEAD", "/ready", "", nil},
	{"ready-draining", "GET", "/ready", "", func(w *world) { w.state = "DRAINING" }},
	{"ready-pre-initializing", "GET", "/ready", "", func(w *world) { w.state = "PRE_INITIALIZING" }},
	{"live", "GET", "/live", "", nil},
	{"server-info", "GET", "/server_info", "", nil},
	{"memory", "GET", "/memory", "", nil},
	{"contention", "GET", "/contention", "", nil},
	{"hot-restart-version", "GET", "/hot_restart_version", "", nil},
	{"quit", "POST", "/quitquitquit", "", nil},
	{"healthcheck-fail", "POST", "/healthcheck/fail", "", nil},
	{"healthcheck-ok", "POST", "/healthcheck/ok", "", nil},
	{"reset-counters", "POST", "/reset_counters", "", nil},
	{"reopen-logs", "POST", "/reopen_logs", "", nil},
	{"reopen-logs-failed", "POST", "/reopen_logs", "", func(w *world) { w.failing = errors.New("disk is full") }},
	{"cpuprofiler-usage", "POST", "/cpuprofiler", "", nil},
	{"cpuprofiler-start", "POST", "/cpuprofiler?enable=y", "", nil},
	{"cpuprofiler-stop", "POST", "/cpuprofiler?enable=n", "", nil},
	{"cpuprofiler-failed", "POST", "/cpuprofiler?enable=y", "", func(w *world) { w.failing = errors.New("no such directory") }},
	{"heapprofiler-usage", "POST", "/heapprofiler?enable=Y", "", nil},
	{"heapprofiler-start", "POST", "/heapprofiler?enable=y", "", nil},
	{"heapprofiler-started", "POST", "/heapprofiler?enable=y", "", func(w *world) { w.profiles["heap"] = true }},
	{"heapprofiler-stop", "POST", "/heapprofiler?enable=n", "", func(w *world) { w.profiles["heap"] = true }},
	{"heapprofiler-not-started", "POST", "/heapprofiler?enable=n", "", nil},
	{"heapprofiler-failed", "POST", "/heapprofiler?enable=y", "", func(w *world) { w.failing = errors.New("no such directory") }},
	{"listeners", "GET", "/listeners", "", nil},
	{"listeners-json", "GET", "/listeners?format=json", "", nil},
	{"listeners-unknown-format", "GET", "/listeners?format=xml", "", nil},
	{"drain", "POST", "/drain_listeners", "", nil},
	{"drain-skip-exit", "POST", "/drain_listeners?skip_exit", "", nil},
	{"certs", "GET", "/certs", "", nil},
	{"init-dump", "GET", "/init_dump", "", nil},
	{"init-dump-mask", "GET", "/init_dump?mask=listener", "", nil},
	{"init-dump-unknown-mask", "GET", "/init_dump?mask=cluster", "", nil},
	{"runtime", "GET", "/runtime?format=json", "", func(w *world) { _ = w.runtime.Modify(map[string]string{"limits.max_sessions": "350", "a<b": "x\ny"}) }},
	{"runtime-modify-usage", "POST", "/runtime_modify", "", nil},
	{"runtime-modify", "POST", "/runtime_modify?a=b", "", nil},
	{"runtime-modify-form", "POST", "/runtime_modify", "a=b", nil},
	{"runtime-modify-no-layer", "POST", "/runtime_modify?a=b", "", func(w *world) { w.runtime = runtimeLayers("defaults") }},
	{"logging", "POST", "/logging", "", nil},
	{"logging-empty-fields", "POST", "/logging?paths=&level=", "", nil},
	{"logging-level", "POST", "/logging?level=error", "", nil},
	{"logging-name", "POST", "/logging?main=off", "", nil},
	{"logging-paths", "POST", "/logging?paths=main:off,stats=info", "", nil},
	{"logging-two-parameters", "POST", "/logging?level=info&main=off", "", nil},
	{"logging-unknown-level", "POST", "/logging?level=warn", "", nil},
	{"logging-empty-level", "POST", "/logging?main=", "", nil},
	{"logging-unknown-name", "POST", "/logging?nobody=info", "", nil},
	{"logging-bad-paths", "POST", "/logging?paths=bad", "", nil},
	{"ingest", "GET", "/ingest", "", nil},
	{"ingest-json", "GET", "/ingest?format=json", "", nil},
	{"ingest-listener", "GET", "/ingest?listener=tcp&top=new&limit=1", "", nil},
	{"sinks", "GET", "/sinks", "", nil},
	{"sinks-json", "GET", "/sinks?format=json&name=prometheus", "", nil},
	{"sinks-unknown", "GET", "/sinks?name=nobody", "", nil},
	{"ingest-bad-top", "GET", "/ingest?top=all", "", nil},
	{"ingest-bad-limit", "GET", "/ingest?limit=-1", "", nil},
	{"ingest-events", "GET", "/ingest/events", "", nil},
	{"ingest-events-json", "GET", "/ingest/events?format=json&limit=1", "", nil},
	{"ingest-explain", "GET", "/ingest/explain?line=rt:+5|g|%23route:/a,canary", "", nil},
	{"ingest-explain-json", "GET", "/ingest/explain?format=json&line=rt:+5|g|%23route:/a,canary", "", nil},
	{"ingest-explain-rejected", "GET", "/ingest/explain?line=a:x|c", "", nil},
	{"ingest-explain-event", "GET", "/ingest/explain?line=event", "", nil},
	{"ingest-explain-check", "GET", "/ingest/explain?line=check", "", nil},
	{"ingest-explain-blank", "GET", "/ingest/explain?line=%0D", "", nil},
	{"ingest-explain-empty", "GET", "/ingest/explain?line=&format=text", "", nil},
	{"ingest-explain-usage", "GET", "/ingest/explain", "", nil},
	{"ingest-forget-usage", "POST", "/ingest/forget?name=a&prefix=b", "", nil},
	{"ingest-forget", "POST", "/ingest/forget?prefix=web.", "", nil},
	{"lookups-off", "GET", "/stats/recentlookups", "", nil},
	{"lookups-enable", "POST", "/stats/recentlookups/enable", "", nil},
	{"lookups-disable", "POST", "/stats/recentlookups/disable", "", nil},
	{"lookups-clear", "POST", "/stats/recentlookups/clear", "", nil},
	{"stats", "GET", "/stats?filter=^(cluster|edge)", "", nil},
	{"stats-head", "HEAD", "/stats?filter=^cluster", "", nil},
	{"stats-json", "GET", "/stats?format=json&filter=^cluster", "", nil},
	{"stats-html", "GET", "/stats?format=html&filter=^edge|%3Cscript%3E&usedonly", "", nil},
	{"stats-metrics", "GET", "/stats/metrics?filter=^cluster", "", nil},
	{"stats-metrics-of-stats", "GET", "/stats?format=metrics&filter=^edge&text_readouts", "", nil},
	{"stats-bad-filter", "GET", "/stats?filter=(", "", nil},
	{"stats-bad-format", "GET", "/stats?format=xml", "", nil},
}

func TestGolden(t *testing.T) {
	for _, row := range slices.Concat(goldenRows, clusterRows, configRows) {
		t.Run(row.name, func(t *testing.T) {
			world := newWorld()
			if row.with != nil {
				row.with(world)
			}
			s := start(t, Config{Sources: world.sources(), Store: fixture()})
			s.store.Symbols().ClearRecent() // the server has looked up its own stats
			fields := []string{"Connection: close"}
			if row.body != "" {
				fields = append(fields, "Content-Type: "+formType, "Content-Length: "+string(rune('0'+len(row.body))))
			}
			raw := talk(t, s, request(row.method+" "+row.target+" HTTP/1.1", fields...)+row.body)
			golden.Check(t, row.name, []byte(strings.ReplaceAll(raw, "\r\n", "\n")))

			// The same without a socket.
			own := newServer(t, Config{Sources: rerun(row.with).sources(), Store: fixture()})
			own.store.Symbols().ClearRecent()
			var header []Field
			if row.body != "" {
				header = append(header, Field{"content-type", formType})
			}
			reply := own.Request(row.method, row.target, []byte(row.body), header...)
			want := parseAnswers(t, raw, row.method)[0]
			if reply.Status != want.status || string(reply.Body) != want.body || reply.Err != nil {
				t.Errorf("in process: status %d, body %q, %v; over the socket %d, %q", reply.Status, reply.Body, reply.Err, want.status, want.body)
			}
			for _, f := range reply.Header {
				if got := want.header.Get(f.Name); got != f.Value {
					t.Errorf("in process: %s: %s; over the socket %q", f.Name, f.Value, got)
				}
			}

			// The same under a prefix of a net/http mux.
			mounted := newServer(t, Config{Sources: rerun(row.with).sources(), Store: fixture()})
			mounted.store.Symbols().ClearRecent()
			got := askMounted(t, mounted, row.method, row.target, row.body)
			if got.status != want.status || got.body != want.body {
				t.Errorf("mounted: status %d, body %q; over the socket %d, %q", got.status, got.body, want.status, want.body)
			}
			for _, f := range reply.Header {
				if got := got.header.Get(f.Name); got != f.Value {
					t.Errorf("mounted: %s: %q; over the socket %s", f.Name, got, f.Value)
				}
			}
		})
	}
}

func rerun(with func(*world)) *world {
	w := newWorld()
	if with != nil {
		with(w)
	}
	return w
}

// TestGoldenWithoutSources sends requests to a server without sources.
func TestGoldenWithoutSources(t *testing.T) {
	s := newServer(t, Config{})
	var out strings.Builder
	for _, e := range s.Endpoints() {
		switch e.Path {
		case "/", "/bundle", "/help", "/heap_dump", "/memory", "/server_info", "/stats", "/stats/explore", "/stats/metrics", "/stats/recentlookups":
			continue // shown elsewhere, or never the same
		}
		method, query := "GET", ""
		if e.Mutates {
			method = "POST"
		}
		for _, p := range e.Params {
			if p.Name == "enable" {
				query = "?enable=y"
			}
		}
		if e.Path == "/runtime_modify" {
			query = "?a=b"
		}
		reply := s.Request(method, e.Path+query, nil)
		out.WriteString(method + " " + e.Path + query + "\n" + string(rune('0'+reply.Status/100)) + "xx " + string(reply.Body) + "\n---\n")
	}
	golden.Check(t, "without-sources", []byte(out.String()))
}

// TestGoldenChecks records the responses of the checks that run before the handlers.
func TestGoldenChecks(t *testing.T) {
	for name, raw := range map[string]string{
		"check-foreign-host":    "GET /ready HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
		"check-foreign-origin":  request("POST /quitquitquit HTTP/1.1", "Connection: close", "Origin: null"),
		"check-framing":         request("POST /ready HTTP/1.1", "Transfer-Encoding: chunked") + "0\r\n\r\n",
		"check-unreadable":      "nonsense\r\n\r\n",
		"check-header":          request("GET /ready HTTP/1.1", "X: "+strings.Repeat("x", 9000)),
		"check-target":          request("GET /ready?" + strings.Repeat("x", 9000) + " HTTP/1.1"),
		"check-body":            request("POST /ready HTTP/1.1", "Content-Length: 70000"),
		"check-expect":          request("POST /ready HTTP/1.1", "Expect: 100-continue"),
		"check-coding":          request("POST /ready HTTP/1.1", "Content-Encoding: gzip"),
		"check-parameters":      request("GET /ready?a="+strings.Repeat("x", 5000)+" HTTP/1.1", "Connection: close"),
		"check-parameter-count": request("GET /ready?"+strings.Repeat("a&", 129)+" HTTP/1.1", "Connection: close"),
		"check-keep-alive":      request("GET /ready HTTP/1.0", "Connection: keep-alive") + probe,
	} {
		s := start(t, Config{Sources: newWorld().sources()})
		golden.Check(t, name, []byte(strings.ReplaceAll(talk(t, s, raw), "\r\n", "\n")))
	}
	s := start(t, Config{Mode: ModeReadOnly, AllowPaths: match.List{match.Prefix("/ready"), match.Prefix("/quit")}})
	golden.Check(t, "check-read-only", []byte(talk(t, s, request("POST /quitquitquit HTTP/1.1", "Connection: close"))))
	golden.Check(t, "check-allow-list", []byte(talk(t, s, request("GET /help?a=b HTTP/1.1", "Connection: close"))))
}
