package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/server/profiler"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// mapped is an input with rules of every sort, and explanations of what drops a sample.
type mapped struct {
	worldIngest
	rules report.Mapping
}

func (m *mapped) Mapping() report.Mapping {
	rules := m.rules
	rules.Rules = slices.Clone(rules.Rules)
	return rules
}

func (m *mapped) Explain(text []byte) report.Explanation {
	return report.Explanation{Kind: "metric", Samples: []report.Sample{{Type: "c", Kind: "counter", Rule: &report.Rule{Number: 3, Match: "a"}, Dropped: string(text) == "dropped", Filter: "metrics"}}}
}

func (m *mapped) Report() report.Report {
	return report.Report{Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Name: "one"}, RelayOnly: 7}, {ListenerInfo: report.ListenerInfo{Name: "two"}}}}
}

// TestMappingIsShown expects the settings and the rules, as far as they are asked for.
func TestMappingIsShown(t *testing.T) {
	at := testTime()
	input := &mapped{rules: report.Mapping{Reloads: 2, Reloaded: at, MostLiteral: true, DropUnmatched: true, Rules: []report.RuleUse{
		{Rule: report.Rule{Number: 1, Match: "a", Position: "x:1"}, Name: "used", Matches: 4, Last: at, Kind: "timer"},
		{Rule: report.Rule{Number: 2, Match: "b"}, Regex: true, Drops: true},
		{Rule: report.Rule{Number: 3, Match: "c"}, Name: "hidden", ShadowedBy: 1},
	}}}
	s := newServer(t, Config{Sources: Sources{Ingest: input, ReloadMapping: func() error { return nil }}})
	for target, want := range map[string]string{
		"/ingest/mapping":               "\nlast_reload: 2026-01-02T03:04:05.678Z\nglobs: most_literal\nunmatched: drop\n",
		"/ingest/mapping?show=all":      "used",
		"/ingest/mapping?show=unused":   "hidden",
		"/ingest/mapping?show=shadowed": "shadowed_by: 1",
		"/ingest/explain?line=dropped":  "rule",
		"/ingest":                       "relay_only: 7",
	} {
		if r := s.Request("GET", target, nil); r.Status != 200 || !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d lacks %q:\n%s", target, r.Status, want, r.Body)
		}
	}
	count := func(target, text string) int { return strings.Count(string(s.Request("GET", target, nil).Body), text) }
	for _, x := range []struct {
		target, text string
		want         int
	}{
		{"/ingest/mapping", "match_type: regex", 1}, {"/ingest/mapping", "match_metric_type: timer", 1}, {"/ingest/mapping", "action: drop", 1}, {"/ingest/mapping", "name: ", 2}, {"/ingest/mapping", "unused: true", 1}, {"/ingest/mapping", "last_match: ", 1},
		{"/ingest/mapping", "matches: ", 3}, {"/ingest/mapping?show=unused", "matches: ", 2}, {"/ingest/mapping?show=shadowed", "matches: ", 1}, {"/ingest/mapping?show=other", "usage: ", 1},
		{"/ingest/explain?line=dropped", "dropped: true", 1}, {"/ingest/explain?line=kept", "dropped: true", 0}, {"/ingest/explain?line=kept", "filter: metrics", 1}, {"/ingest/explain?line=kept", "number: 3", 1},
		{"/ingest", "relay_only: ", 1}, {"/ingest?listener=two", "relay_only: ", 0}, {"/ingest?listener=none", "no such listener: ", 1}, {"/ingest/events?limit=x", "limit", 1}, {"/ingest?limit=x", "limit", 1},
	} {
		if got := count(x.target, x.text); got != x.want {
			t.Errorf("%s has %q %d times, want %d", x.target, x.text, got, x.want)
		}
	}
	input.rules = report.Mapping{}
	for _, text := range []string{"globs: first_in_file\nunmatched: keep\n"} {
		if count("/ingest/mapping", text) != 1 || count("/ingest/mapping", "last_reload") != 0 {
			t.Errorf("no %q", text)
		}
	}
}

// busyProfiler is a profiler of a file that another one writes.
type busyProfiler struct{ worldProfiler }

func (busyProfiler) Start() (bool, error) { return false, fmt.Errorf("now: %w", profiler.ErrBusy) }

// TestRefusedReads expects the status and the text of answers to requests that ask for
// too much, or for what is not there.
func TestRefusedReads(t *testing.T) {
	m := newRemembering(t)
	s := newServer(t, Config{Sources: Sources{HeapProfiler: busyProfiler{}, History: nil}})
	for _, x := range []struct {
		s                    *Server
		method, target, want string
	}{
		{s, "POST", "/heapprofiler?enable=y", "400 Fail to start heap profiler: the CPU profiler is running"},
		{s, "GET", "/audit?limit=x", "400 limit"},
		{s, "GET", "/stats/explain", "400 "},
		{s, "GET", "/stats/explore?by=rate", "400 by=rate needs the history"},
		{s, "GET", "/stats/explore?by=samples", "400 by=samples needs a StatsD input"},
		{s, "GET", "/stats/histogram?name=x&at=-1s", "400 at, since and rate need the history"},
		{m.Server, "GET", "/stats/history?name=t.h&since=x", "400 since"},
		{m.Server, "GET", "/stats/history?name=t.h&since=-1s", "200 {"},
		{m.Server, "GET", "/stats/histogram?name=t.h&q=0&bins", "200 "},
		{s, "GET", "relative", "400 malformed request target"},
	} {
		r := x.s.Request(x.method, x.target, nil)
		if got := fmt.Sprint(r.Status, " ", string(r.Body)); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %.200s, want %s", x.target, got, x.want)
		}
	}
	if body := string(m.Request("GET", "/stats/histogram?name=t.h&q=0&bins", nil).Body); !strings.Contains(body, `"bins":[[`) || !strings.Contains(body, "],[") || strings.Contains(body, "][") {
		t.Error(body)
	}
	limits := Limits{BodyBytes: 3}
	small := newServer(t, Config{Limits: limits})
	for body, want := range map[string]int{"abc": 200, "abcd": 413} {
		if r := small.Request("GET", "/help", []byte(body)); r.Status != want {
			t.Errorf("a body of %d bytes: %d", len(body), r.Status)
		}
	}
}

// TestSlowFilters expects filters of other endpoints than the stats to have a budget and
// a slot.
func TestSlowFilters(t *testing.T) {
	w := newWorld()
	slow := newServer(t, Config{Sources: w.sources(), Limits: Limits{RegexBudget: time.Nanosecond}})
	for target, s := range map[string]*Server{"/clusters?filter=x": slow, "/stats?filter=x": slow} {
		if r := s.Request("GET", target, nil); r.Status != 400 || !strings.Contains(string(r.Body), "filter") {
			t.Errorf("%s: %d %s", target, r.Status, r.Body)
		}
	}
	busy := newServer(t, Config{Sources: w.sources(), Limits: Limits{RegexParallel: 1}})
	busy.regexes.wait = time.Millisecond
	if !busy.regexes.enter(busy.session()) {
		t.Fatal("no slot")
	}
	for _, target := range []string{"/clusters?filter=x", "/stats?filter=x", "/stats/histogram?filter=x"} {
		if r := busy.Request("GET", target, nil); r.Status != 503 || r.Get("retry-after") == "" {
			t.Errorf("%s: %d %s", target, r.Status, r.Body)
		}
	}
	busy.regexes.leave()
	if r := busy.Request("GET", "/clusters?filter=x", nil); r.Status != 200 {
		t.Errorf("with a free slot: %d", r.Status)
	}
}

// TestExactNumbers expects numbers from 2^53 on as text, which JavaScript would round.
func TestExactNumbers(t *testing.T) {
	const bound = 1 << 53
	for n, want := range map[uint64]string{0: "0", bound - 1: "9007199254740991", bound: `"9007199254740992"`} {
		if got := string(appendExact(nil, n)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for n, want := range map[int64]string{bound - 1: "9007199254740991", bound: `"9007199254740992"`, 1 - bound: "-9007199254740991", -bound: `"-9007199254740992"`} {
		if got := string(appendExactSigned(nil, n)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestRequestAccessors expects handlers of a program to see what the client sent.
func TestRequestAccessors(t *testing.T) {
	s := newServer(t, Config{})
	var got string
	err := s.Handle(Endpoint{Path: "/own", Params: []Param{{Name: "x"}}, Serve: func(w *Response, r *Request) error {
		w.SetHeader("x-one", "1")
		w.SetHeader("x-two", "2")
		w.SetHeader("x-one", "3")
		got = fmt.Sprint(r.Method(), " ", r.Path(), " ", r.Target(), " ", r.Base(), " ", r.Peer(), " ", r.Principal().Role)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Request("GET", "/own?x=1", nil)
	if want := "GET /own /own?x=1 http://localhost  admin"; got != want || r.Get("x-one") != "3" || r.Get("x-two") != "2" {
		t.Errorf("%q, want %q; %v", got, want, r.Header)
	}
	secure := &Request{tls: true, host: "a", prefix: "/p"}
	if secure.Base() != "https://localhost/p" {
		t.Error(secure.Base())
	}
	if text := Role(77).String(); text != "Role(77)" {
		t.Error(text)
	}
	if err := s.Handle(Endpoint{Path: "/own"}); err == nil {
		t.Error("a path is taken twice")
	}
}

// TestMarkdownListsEndpoints expects a row for each endpoint, with its method, role,
// parameters and aliases.
func TestMarkdownListsEndpoints(t *testing.T) {
	s := newServer(t, Config{})
	nothing := func(*Response, *Request) error { return nil }
	for _, e := range []Endpoint{
		{Path: "/own", Aliases: []string{"/mine"}, Help: "own things", Serve: nothing, Params: []Param{{Name: "flag", Kind: ParamFlag}, {Name: "text", Kind: ParamText}, {Name: "choice", Kind: ParamChoice, Choices: []string{"", "a", "b"}}}},
		{Path: "/change", Help: "change things", Mutates: true, Role: RoleOperate, Serve: nothing}, {Path: "/secret", Hidden: true, Help: "hidden things", Serve: nothing},
	} {
		if err := s.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
	text := string(s.Markdown())
	for want, n := range map[string]int{"| `/own`, `/mine` | GET | read | `flag`<br>`text`=…<br>`choice`=a\\|b | own things |\n": 1, "| `/change` | POST | operate |  | change things |\n": 1, "hidden things": 0} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d of %q, want %d", got, want, n)
		}
	}
}

// TestHTTPHandlerStreams expects a handler of the standard library to flush, abort, and
// set only fields that HTTP/1.1 can carry.
func TestHTTPHandlerStreams(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "x-y_z.1": true, "": false, "a b": false, "a:": false, "é": false, "a\x7f": false, "~": true, "a\"": false} {
		if isToken(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	s := newServer(t, Config{})
	err := s.Handle(Endpoint{Path: "/own", OpenParams: true, Serve: HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "abort":
			panic(http.ErrAbortHandler)
		case "panic":
			panic("mistake")
		}
		w.Header().Set("X-Own", "1")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Late", "1")
		_, _ = io.WriteString(w, "text")
	}))})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Request("GET", "/own", nil); r.Status != 200 || r.Get("x-own") != "1" || r.Get("x-late") != "" || string(r.Body) != "text" {
		t.Errorf("%d %v %q", r.Status, r.Header, r.Body)
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	if resp, err := http.Get(srv.URL + "/own?abort"); err == nil {
		resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Error("an aborted answer is complete")
		}
	}
	if r := s.Request("GET", "/own?panic", nil); r.Status != 500 {
		t.Errorf("a panic: %d", r.Status)
	}
}

// TestBundleEndsWithItsContext expects no archive once the caller has given up, and the
// error of a writer that fails.
func TestBundleEndsWithItsContext(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Bundle(ctx, io.Discard, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled bundle: %v", err)
	}
	if err := recordCPU(ctx, io.Discard, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled profile: %v", err)
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := recordCPU(t.Context(), io.Discard, time.Hour); err == nil {
		t.Error("two profiles at once")
	}
	pprof.StopCPUProfile()
	if err := recordCPU(t.Context(), io.Discard, time.Nanosecond); err != nil {
		t.Errorf("the profile that was refused is still there: %v", err)
	}
	for d, valid := range map[time.Duration]bool{-1: false, bundleMaxCPU + 1: false, 0: true} {
		if err := s.Bundle(t.Context(), io.Discard, d); (err == nil) != valid {
			t.Errorf("a profile of %v: %v", d, err)
		}
	}
	for limit := 0; limit < 12_000; limit += 1000 {
		if err := s.Bundle(t.Context(), &short{limit}, 0); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("a writer that takes %d bytes: %v", limit, err)
		}
	}
	if err := newServer(t, Config{}).writeLoggers(io.Discard); err == nil {
		t.Error("a server without loggers has some")
	}
}

// short is a writer that takes some bytes.
type short struct{ left int }

func (s *short) Write(p []byte) (int, error) {
	if s.left -= len(p); s.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestTokenFilesAreBounded expects the largest file and no larger one, and none that
// others can read.
func TestTokenFilesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	line := "# " + strings.Repeat("x", 1021) + "\n"
	text := strings.Repeat(line, maxTokensBytes/len(line))
	text += strings.Repeat("\n", maxTokensBytes-len(text))
	for extra, want := range map[string]string{"": "", "\n": "more than"} {
		if err := os.WriteFile(path, []byte(text+extra), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := ReadTokens(path); len(list) != 0 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", len(text)+len(extra), err)
		}
	}
	if list := (*Tokens)(nil).List(); list != nil {
		t.Errorf("no tokens are %v", list)
	}
	if list := new(Tokens).List(); list != nil {
		t.Errorf("tokens that are not set are %v", list)
	}
}

// TestNearestStatIsBounded expects suggestions of received names only where those are
// asked for.
func TestNearestStatIsBounded(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("program.name")
	st.ScopeWith("", store.ScopeOptions{Network: true}).Counter("received.name")
	s := newServer(t, Config{Store: st})
	for _, x := range []struct {
		name     string
		received bool
		want     string
	}{
		{"program.nome", false, "program.name"}, {"program.nome", true, ""}, {"received.nome", true, "received.name"}, {"received.nome", false, "received.name"}, {"received", true, "received.name"},
		{"program", true, ""}, {"program", false, "program.name"}, {"", false, ""}, {"else", false, ""}, {"programXname", false, "program.name"}, {"received.", true, ""},
	} {
		if got := s.nearestStat(x.name, x.received); got != x.want {
			t.Errorf("%q, received %v: %q, want %q", x.name, x.received, got, x.want)
		}
	}
}
