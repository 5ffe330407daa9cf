package admin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestAbsentEndpointsNameTheirSetting requests paths that other servers have. Any other
// path has the list of commands as its answer.
func TestAbsentEndpointsNameTheirSetting(t *testing.T) {
	doc, err := os.ReadFile("../docs/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	bare, metrics := newServer(t, Config{}), newServer(t, Config{Mode: ModeMetricsOnly})
	full := newServer(t, Config{DebugEndpoints: true})
	for path, want := range map[string]string{
		"/sinks": "sinks", "/ui/sinks": "sinks", "/ingest": "section statsd", "/ui/ingest": "section statsd", "/ingest/mapping": "section statsd",
		"/ingest/reload": "statsd.mapping", "/tap": "admin.tap", "/debug/pprof/": "admin.debug_endpoints", "/debug/pprof/heap": "admin.debug_endpoints",
	} {
		if !strings.HasPrefix(path, "/ui/") && !strings.HasSuffix(path, "/") && !strings.Contains(string(doc), "| `"+path+"` |") {
			t.Errorf("docs/endpoints.md has no %s", path)
		}
		for _, method := range []string{"GET", "POST"} {
			r := bare.Request(method, path, nil)
			if text := string(r.Body); r.Status != 404 || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%s %s: %d %s", method, path, r.Status, text)
			}
		}
		if text := string(metrics.Request("GET", path, nil).Body); !strings.HasPrefix(text, "invalid path. ") {
			t.Errorf("metrics only: GET %s: %s", path, text)
		}
	}
	for _, path := range []string{"/sinks/", "/ingest/none", "/debug/pprof/none", "/debug/pprof"} {
		if text := string(full.Request("GET", path, nil).Body); !strings.HasPrefix(text, "invalid path. ") {
			t.Errorf("GET %s: %s", path, text)
		}
	}
}

func TestEveryEndpointIsListed(t *testing.T) {
	s := newServer(t, Config{})
	help, home := string(s.Request("GET", "/help", nil).Body), string(s.Request("GET", "/", nil).Body)
	lost := string(s.Request("GET", "/nothing", nil).Body)
	if want := "invalid path. " + help; lost != want {
		t.Errorf("404 body is %q, want %q", lost, want)
	}
	seen := map[string]bool{}
	last := ""
	for _, e := range s.Endpoints() {
		for _, path := range append([]string{e.Path}, e.Aliases...) {
			if seen[path] {
				t.Errorf("path %s occurs twice", path)
			}
			seen[path] = true
		}
		if e.Path <= last {
			t.Errorf("%s comes after %s", e.Path, last)
		}
		last = e.Path
		method := ""
		if e.Mutates {
			method = " (POST)"
		}
		if want := "  " + e.Path + method + ": " + e.Help + "\n"; !strings.Contains(help, want) {
			t.Errorf("/help lacks %q", want)
		}
		link := e.Path[1:]
		switch {
		case e.Path == "/":
		case e.Mutates:
			if want := fmt.Sprintf("<form action='%s' method='post'", link); !strings.Contains(home, want) {
				t.Errorf("/ lacks %q", want)
			}
			if strings.Contains(home, "href='"+link+"'") {
				t.Errorf("/ links to the mutation %s", link)
			}
		case len(e.Params) > 0:
			if want := fmt.Sprintf("<form action='%s' method='get'", link); !strings.Contains(home, want) {
				t.Errorf("/ lacks %q", want)
			}
		default:
			if want := fmt.Sprintf("<a href='%s'>%s</a>", link, link); !strings.Contains(home, want) {
				t.Errorf("/ lacks %q", want)
			}
		}
		for _, p := range e.Params {
			if want := fmt.Sprintf("name='%s' id='form-%s-%s'", p.Name, strings.ReplaceAll(link, "/", "-"), p.Name); !strings.Contains(home, want) {
				t.Errorf("/ lacks %q", want)
			}
			if want := "\n      " + p.Name + ": " + p.Help; !strings.Contains(help, want) {
				t.Errorf("/help lacks %q", want)
			}
		}
	}
	for _, path := range []string{"/", "/help", "/ready", "/live", "/server_info", "/memory", "/quitquitquit", "/healthcheck/fail",
		"/healthcheck/ok", "/hot_restart_version", "/contention", "/cpuprofiler", "/heapprofiler", "/heap_dump", "/reopen_logs",
		"/logging", "/listeners", "/drain_listeners", "/certs", "/init_dump", "/runtime", "/runtime_modify", "/stats",
		"/stats/metrics", "/stats/prometheus", "/stats/recentlookups", "/stats/recentlookups/enable",
		"/stats/recentlookups/disable", "/stats/recentlookups/clear", "/reset_counters"} {
		if !seen[path] {
			t.Errorf("the table lacks %s", path)
		}
	}
}

func TestMutationsWantPost(t *testing.T) {
	world := newWorld()
	log := new(logBuffer)
	s := start(t, Config{Now: later(), Sources: world.sources(), Logger: log.logger()})
	counter := s.store.Scope("x").Counter("c")
	counter.Inc()
	s.store.Symbols().EnableRecent()
	before := world.String()
	methods := map[string]int{"GET": 400, "HEAD": 400, "PUT": 405, "DELETE": 405, "PATCH": 405, "OPTIONS": 405,
		"CONNECT": 400, "TRACE": 400, "PRI": 400, "BREW": 400, "post": 400, "PROPFIND": 400}
	for _, e := range s.Endpoints() {
		if !e.Mutates {
			continue
		}
		for method, want := range methods {
			for _, params := range []string{"", "?enable=y", "?level=trace", "?a=b", "?graceful&inboundonly"} {
				raw := request(method+" "+e.Path+params+" HTTP/1.1", "Connection: close")
				answers := parseAnswers(t, talk(t, s, raw), method)
				if len(answers) != 1 || answers[0].status != want {
					t.Fatalf("%s %s: %+v, want status %d", method, e.Path+params, answers, want)
				}
				known := knownMethod(method)
				if got, want := answers[0].body, "Method "+method+" not allowed, POST required."; known && method != "HEAD" && got != want {
					t.Errorf("%s %s: body %q, want %q", method, e.Path, got, want)
				}
				if got := answers[0].header.Get("allow"); known && got != "POST" {
					t.Errorf("%s %s: allow: %q", method, e.Path, got)
				}
			}
		}
		if want := `admin path \"` + e.Path + `\" mutates state, method=GET rather than POST`; !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if after := world.String(); after != before {
		t.Errorf("state changed from\n%s\nto\n%s", before, after)
	}
	if counter.Value() != 1 || !s.store.Symbols().RecentEnabled() || s.store.Symbols().RecentTotal() == 0 {
		t.Error("the store changed")
	}
	if list := s.Audit(1000); len(list) != 0 {
		t.Errorf("audit entries %+v", list)
	}
}

// TestWrongMethodsDoNotFillTheLog checks that wrong methods are logged once per path
// and second, with the number of suppressed lines.
func TestWrongMethodsDoNotFillTheLog(t *testing.T) {
	now, log := testTime(), new(logBuffer)
	s := newServer(t, Config{Now: func() time.Time { return now }, Logger: log.logger()})
	for range 2 {
		for i := range 100 {
			for _, path := range []string{"/quitquitquit", "/reset_counters"} {
				method := []string{"GET", "PUT"}[i%2]
				if got, want := s.Request(method, path, nil).Status, map[string]int{"GET": 400, "PUT": 405}[method]; got != want {
					t.Fatalf("%s %s: status %d, want %d", method, path, got, want)
				}
			}
		}
		now = now.Add(time.Second)
	}
	if got := strings.Count(log.String(), "\n"); got != 4 {
		t.Errorf("%d lines, want 4:\n%s", got, log)
	}
	for _, path := range []string{"/quitquitquit", "/reset_counters"} {
		for _, suppressed := range []string{"", " suppressed=99"} {
			want := `level=ERROR msg="admin path \"` + path + `\" mutates state, method=GET rather than POST"` + suppressed + "\n"
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	}
}

func TestQueriesAnswerAnyMethod(t *testing.T) {
	world := newWorld()
	s := start(t, Config{Sources: world.sources()})
	for _, e := range s.Endpoints() {
		if e.Mutates || e.Path == "/heap_dump" || strings.HasPrefix(e.Path, "/stats") {
			continue // their bodies differ from call to call
		}
		want := get(t, s, e.Path)
		for _, method := range []string{"HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			a := parseAnswers(t, talk(t, s, request(method+" "+e.Path+" HTTP/1.1", "Connection: close")), method)
			if len(a) != 1 || a[0].status != want.status || a[0].header.Get("content-length") != want.header.Get("content-length") {
				t.Fatalf("%s %s: %+v, want that of GET: %+v", method, e.Path, a, want)
			}
			if method != "HEAD" && a[0].body != want.body || method == "HEAD" && a[0].body != "" {
				t.Errorf("%s %s: body %q", method, e.Path, a[0].body)
			}
		}
	}
}

func TestHandleAndRemove(t *testing.T) {
	s := start(t, Config{})
	serve := func(w *Response, r *Request) error {
		w.SetStatus(202)
		_, err := w.WriteString("hello " + r.Query().Value("name"))
		return err
	}
	for _, path := range []string{"", "/", "x", "/a&b", `/a"b`, "/a'b", "/a<b", "/a>b", "/a?b", "/a:b", "/a b", "/a\tb", "/a\r\nb", "/a\x00", "/a\x7f", "/\u00e9", "//evil.test", "/ui/assets/x", "/help", "/stats/prometheus"} {
		if s.Handle(Endpoint{Path: path, Serve: serve}) == nil {
			t.Errorf("path %q was accepted", path)
		}
	}
	if err, want := s.Handle(Endpoint{Path: "/a<b", Serve: serve}), `filter "/a<b" contains invalid character '<'`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if s.Handle(Endpoint{Path: "/none"}) == nil || s.Handle(Endpoint{Path: "/alias", Aliases: []string{"/ready"}, Serve: serve}) == nil {
		t.Error("a path without a handler, or with a taken alias, was accepted")
	}
	mine := Endpoint{Path: "/hello", Help: "greet <all>", Serve: serve, Params: []Param{{Name: "name", Help: "whom"}}}
	if err := s.Handle(mine); err != nil {
		t.Error(err)
	}
	if s.Handle(mine) == nil {
		t.Error("the same path was accepted twice")
	}
	if a := get(t, s, "/hello?name=you"); a.status != 202 || a.body != "hello you" {
		t.Errorf("got %+v", a)
	}
	if home := get(t, s, "/"); !strings.Contains(home.body, "greet &lt;all&gt;") || !strings.Contains(home.body, "action='hello'") {
		t.Error("the home page lacks the new endpoint, or does not escape its help")
	}
	if a := get(t, s, "/hello/"); a.status != 404 || !strings.Contains(a.body, "  /hello: greet <all>\n      name: whom\n") {
		t.Errorf("got %+v", a)
	}
	if !s.Remove("/hello") || s.Remove("/hello") || s.Remove("/help") || s.Remove("/") || s.Remove("/stats/prometheus") {
		t.Error("want only what was added to be removed, once")
	}
	if a := get(t, s, "/hello"); a.status != 404 {
		t.Errorf("got %+v", a)
	}
	if err := s.Handle(Endpoint{Path: "/x", Serve: serve}); err != nil || get(t, s, "/x").status != 202 {
		t.Errorf("path of one letter: %v", err)
	}
	if err := s.Handle(Endpoint{Path: "/fixed", Fixed: true, Serve: serve}); err != nil || s.Remove("/fixed") {
		t.Error("a fixed endpoint was removed")
	}
}

func TestProductSpelling(t *testing.T) {
	for product, want := range map[string][2]string{"proxy": {"/stats/metrics", "/stats/prometheus"}, "envoy": {"/stats/prometheus", "/stats/metrics"}} {
		s := newServer(t, Config{Store: store.New(store.Options{Product: product})})
		help := string(s.Request("GET", "/help", nil).Body)
		if !strings.Contains(help, "  "+want[0]+":") || strings.Contains(help, "  "+want[1]+":") {
			t.Errorf("%s: /help does not list %s alone", product, want[0])
		}
		for _, path := range want {
			if r := s.Request("GET", path, nil); r.Status != 200 || r.Get("content-type") != render.FormatText.ContentType() || r.Get("server") != product {
				t.Errorf("%s: GET %s: %d %v", product, path, r.Status, r.Header)
			}
		}
		if home := string(s.Request("GET", "/", nil).Body); !strings.Contains(home, "<title>"+capital(product)+" Admin</title>") {
			t.Errorf("%s: wrong title", product)
		}
	}
	if _, err := New(Config{Store: store.New(store.Options{Product: "a\r\nb"})}); err == nil {
		t.Error("a product name with a line break is accepted")
	}
}

func TestModes(t *testing.T) {
	world := newWorld()
	metrics := []string{"/live", "/ready", "/stats", "/stats/metrics"}
	for mode, want := range map[Mode]func(e Endpoint) int{
		ModeFull: func(Endpoint) int { return 200 },
		ModeReadOnly: func(e Endpoint) int {
			if e.Mutates {
				return 403
			}
			return 200
		},
		ModeMetricsOnly: func(e Endpoint) int {
			if slices.Contains(metrics, e.Path) {
				return 200
			}
			return 404
		},
	} {
		full := newServer(t, Config{Sources: world.sources()})
		s := newServer(t, Config{Mode: mode, Sources: world.sources()})
		s.Request("POST", "/runtime_modify?undone=1", nil) // entry 1
		before := world.String()
		for _, e := range full.Endpoints() {
			method, query := "GET", ""
			if e.Mutates {
				method = "POST"
			}
			if strings.HasSuffix(e.Path, "profiler") {
				query = "?enable=n"
			}
			if q := map[string]string{"/runtime_modify": "?a=b", "/audit/undo": "?id=1", "/ingest/explain": "?line=a", "/ingest/forget": "?name=a", "/stats/explain": "?name=server.admin_exposed", "/stats/histogram": "?filter=a"}[e.Path]; q != "" {
				query = q
			}
			got := s.Request(method, e.Path+query, nil).Status
			if e.Path == "/heapprofiler" && got == 400 {
				got = 200 // it does not run
			}
			if w := want(e); got != w {
				t.Errorf("mode %d: %s %s: status %d, want %d", mode, method, e.Path, got, w)
			}
		}
		if mode != ModeFull && world.String() != before {
			t.Errorf("mode %d: state changed", mode)
		}
	}
	s := newServer(t, Config{Mode: ModeMetricsOnly})
	if got := s.Request("GET", s.assets.Path("admin.css"), nil).Status; got != 404 {
		t.Errorf("metrics only: asset has status %d", got)
	}
	if body := string(s.Request("GET", "/x", nil).Body); strings.Contains(body, "quitquitquit") {
		t.Errorf("metrics only: 404 lists %q", body)
	}
}
