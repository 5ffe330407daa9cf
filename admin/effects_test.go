package admin

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// post sends a mutation and expects 200.
func post(t *testing.T, s *Server, target string) {
	t.Helper()
	if r := s.Request("POST", target, nil); r.Status != 200 {
		t.Errorf("POST %s: %d %q", target, r.Status, r.Body)
	}
}

func TestMutationsReachTheirSource(t *testing.T) {
	for target, want := range map[string]string{
		"/quitquitquit":                                    "quit",
		"/reopen_logs":                                     "reopen",
		"/drain_listeners":                                 "drain inbound=false",
		"/drain_listeners?inboundonly=false":               "drain inbound=true",
		"/drain_listeners?graceful":                        "drain gracefully inbound=false skip=false",
		"/drain_listeners?graceful&inboundonly":            "drain gracefully inbound=true skip=false",
		"/drain_listeners?graceful=&skip_exit&inboundonly": "drain gracefully inbound=true skip=true",
		"/logging?paths=a:info,b=off":                      "paths a:info,b=off",
		"/ingest/forget?name=web":                          "forget web",
		"/ingest/forget?prefix=web.&name=":                 "forget web.a;forget web.b",
		"/ingest/forget?prefix=nothing":                    "",
	} {
		world := newWorld()
		s := newServer(t, Config{Sources: world.sources()})
		post(t, s, target)
		if got := strings.Join(world.calls, ";"); got != want {
			t.Errorf("POST %s did %q, want %q", target, got, want)
		}
	}
}

func TestHealthSwitch(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	for range 2 {
		post(t, s, "/healthcheck/fail")
		if r := s.Request("GET", "/ready", nil); r.Status != 503 || string(r.Body) != "DRAINING\n" {
			t.Errorf("failed: %d %q", r.Status, r.Body)
		}
	}
	post(t, s, "/healthcheck/ok")
	if r := s.Request("GET", "/ready", nil); r.Status != 200 || string(r.Body) != "LIVE\n" {
		t.Errorf("ok again: %d %q", r.Status, r.Body)
	}
}

func TestRuntimeModify(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	post(t, s, "/runtime_modify?limits.max_sessions=350&b=%7Bx%7D+y&b=second&gone=")
	if want := map[string]string{"limits.max_sessions": "350", "b": "{x}+y"}; fmt.Sprint(world.overrides()) != fmt.Sprint(want) {
		t.Errorf("runtime is %v, want %v", world.overrides(), want)
	}
	post(t, s, "/runtime_modify?b=")
	if want := map[string]string{"limits.max_sessions": "350"}; fmt.Sprint(world.overrides()) != fmt.Sprint(want) {
		t.Errorf("runtime is %v, want %v", world.overrides(), want)
	}
	want := []Change{{"b", "{x}+y", ""}}
	if got := s.Audit(1)[0]; !slices.Equal(got.Changes, want) || !slices.Equal(got.Keys, []string{"b"}) {
		t.Errorf("audit %+v", got)
	}
	want = []Change{{"limits.max_sessions", "200", "350"}, {"b", "", "{x}+y"}, {"gone", "", ""}}
	if got := s.Audit(2)[1]; !slices.Equal(got.Changes, want) || got.Seq != 1 || got.Status != 200 || got.Path != "/runtime_modify" || !got.Time.Equal(testTime()) {
		t.Errorf("audit %+v", got)
	}
}

func TestLevelsChange(t *testing.T) {
	world := newWorld()
	log := new(logBuffer)
	s := newServer(t, Config{Sources: world.sources(), Logger: log.logger()})
	post(t, s, "/logging?main=off")
	if want := (logctl.LoggerLevel{Name: "main", Level: logctl.Off}); world.levels[1] != want {
		t.Errorf("levels %v", world.levels)
	}
	if got, want := s.Audit(1)[0].Changes, []Change{{"main", "debug", "off"}}; !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
	post(t, s, "/logging?level=error&paths=")
	if want := []logctl.LoggerLevel{{Name: "admin", Level: logctl.Error}, {Name: "main", Level: logctl.Error}, {Name: "stats", Level: logctl.Error}}; !slices.Equal(world.levels, want) {
		t.Errorf("levels %v", world.levels)
	}
	for _, want := range []string{"change log level: name='main' level='off'", "change log level: name='stats' level='error'"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	post(t, s, "/logging")
	if got := s.Audit(1)[0].Changes; len(got) != 0 {
		t.Errorf("listing changed %v", got)
	}
}

func TestProfilerParameters(t *testing.T) {
	for _, query := range []string{"", "?", "?enable", "?enable=", "?enable=Y", "?enable=yes", "?enable=y&x=1", "?x=y", "?enable=y&enable2=n", "?Enable=y"} {
		for _, path := range []string{"/cpuprofiler", "/heapprofiler"} {
			world := newWorld()
			s := newServer(t, Config{Sources: world.sources()})
			if r := s.Request("POST", path+query, nil); r.Status != 400 || string(r.Body) != profilerUsage || len(world.profiles) > 0 {
				t.Errorf("POST %s%s: %d %q", path, query, r.Status, r.Body)
			}
		}
	}
	s := newServer(t, Config{})
	if r := s.Request("POST", "/heapprofiler", nil); r.Status != 501 {
		t.Errorf("no heap profiler: %d, want 501 whatever the parameters", r.Status)
	}
	post(t, s, "/cpuprofiler?enable=n")
	world := newWorld()
	s = newServer(t, Config{Sources: world.sources()})
	for range 2 {
		post(t, s, "/cpuprofiler?enable=y&enable=n")
	}
	if !world.profiles["cpu"] {
		t.Error("the profiler does not run")
	}
	world.failing = errors.New("disk is full")
	for _, path := range []string{"/cpuprofiler", "/heapprofiler"} {
		if r := s.Request("POST", path+"?enable=n", nil); r.Status != 500 || string(r.Body) != "failure to write the profile\n" {
			t.Errorf("%s: %d %q", path, r.Status, r.Body)
		}
	}
}

func TestHeapDump(t *testing.T) {
	s := start(t, Config{})
	a := get(t, s, "/heap_dump", "Accept-Encoding: gzip, zstd")
	if a.status != 200 || a.header.Get("content-encoding") != "" || a.header.Get("content-type") != typeText {
		t.Errorf("%d %v", a.status, a.header)
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 100)); n == 0 {
		t.Errorf("the profile is empty: %v", err)
	}
}

func TestProcessMemory(t *testing.T) {
	m := ProcessMemory()
	if m.Allocated == 0 || m.HeapSize < m.Allocated || m.HeapSize < m.Allocated+m.PageheapFree+m.PageheapUnmapped {
		t.Errorf("%+v does not add up", m)
	}
	if runtime.GOOS == "linux" && m.TotalPhysicalBytes < 1<<20 {
		t.Errorf("resident: %d bytes", m.TotalPhysicalBytes)
	}
	if m.TotalThreadCache == 0 {
		t.Error("no caches of threads")
	}
}

// yieldingRuntime yields the processor before and after each change.
type yieldingRuntime struct{ Runtime }

func (r yieldingRuntime) Modify(values map[string]string) error {
	runtime.Gosched()
	defer runtime.Gosched()
	return r.Runtime.Modify(values)
}

// TestAuditIsComplete sends concurrent mutations. Each has an entry and a log line,
// in the same order, and they contain the full history of each key.
func TestAuditIsComplete(t *testing.T) {
	const workers, each = 8, 1250
	world, log := newWorld(), new(logBuffer)
	sources := world.sources()
	sources.Runtime = yieldingRuntime{sources.Runtime}
	s := newServer(t, Config{Sources: sources, Logger: log.logger(), Limits: Limits{AuditEntries: workers*each + 10, AuditBytes: -1}})
	last := map[string]string{}
	for _, l := range world.levels {
		last[l.Name] = l.Level.String()
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				target := fmt.Sprintf("/runtime_modify?k%d=%d-%d", (w+i)%3, w, i)
				if i%4 == 0 {
					target = fmt.Sprintf("/logging?%s=%s", []string{"admin", "main", "stats"}[i%3], logctl.Levels()[(w+i)%len(logctl.Levels())])
				}
				if r := s.Request("POST", target, nil); r.Status != 200 {
					t.Errorf("%s: status %d", target, r.Status)
				}
			}
		})
	}
	wg.Wait()
	list := s.Audit(workers*each + 10)
	if len(list) != workers*each {
		t.Fatalf("%d entries, want %d", len(list), workers*each)
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "msg=audit") {
			lines = append(lines, line)
		}
	}
	if len(lines) != len(list) {
		t.Fatalf("%d lines in the log, want %d", len(lines), len(list))
	}
	changes := 0
	for i := range list {
		e := list[len(list)-1-i]
		if e.Seq != uint64(i+1) || !strings.Contains(lines[i], fmt.Sprintf(" seq=%d ", e.Seq)) {
			t.Fatalf("entry %d has number %d, and the line is %s", i, e.Seq, lines[i])
		}
		for _, c := range e.Changes {
			changes++
			if c.Before != last[c.What] {
				t.Fatalf("entry %d: %s was %q, not %q", e.Seq, c.What, last[c.What], c.Before)
			}
			if want := fmt.Sprintf("%[1]s.before=%[2]s %[1]s.after=%[3]s", strings.ReplaceAll(c.What, " ", "_"), quoteEmpty(c.Before), c.After); !strings.Contains(lines[i], want) {
				t.Fatalf("entry %d: the line lacks %q: %s", e.Seq, want, lines[i])
			}
			last[c.What] = c.After
		}
	}
	for key, value := range world.overrides() {
		if last[key] != value {
			t.Errorf("the last entry says that %s is %q, but it is %q", key, last[key], value)
		}
	}
	for _, l := range world.levels {
		if last[l.Name] != l.Level.String() {
			t.Errorf("the last entry says that %s has level %q, but it has %q", l.Name, last[l.Name], l.Level)
		}
	}
	if changes < workers*each*3/4 {
		t.Errorf("only %d changes", changes)
	}
}

// quoteEmpty returns text as shown in the log.
func quoteEmpty(text string) string {
	if text == "" {
		return `""`
	}
	return text
}

// TestAuditLine checks the audit record of a mutation: time, path, keys, changed
// values, address, principal, and result.
func TestAuditLine(t *testing.T) {
	log := new(logBuffer)
	world := newWorld()
	port := impatient(start(t, Config{Sources: world.sources(), Logger: log.logger(), Auth: &Auth{Tokens: testTokens(t)}}))
	port.Handle(Endpoint{Path: "/wild", Mutates: true, Serve: func(*Response, *Request) error { panic("x") }})
	credentials := "Authorization: Bearer " + secret(RoleAdmin)
	for _, first := range []string{"POST /runtime_modify?k=v&other= HTTP/1.1", "POST /healthcheck/fail HTTP/1.1", "POST /logging?main=off HTTP/1.1",
		"POST /logging?main=nonsense HTTP/1.1", "POST /wild HTTP/1.1", "POST /reopen_logs HTTP/1.1"} {
		talk(t, port, request(first, "Connection: close", credentials))
	}
	const who = " principal=t-admin role=admin"
	want := []string{
		"seq=1 method=POST path=/runtime_modify keys=k,other" + who + ` status=200 k.before="" k.after=v other.before="" other.after=""`,
		`seq=2 method=POST path=/healthcheck/fail keys=""` + who + " status=200 state.before=LIVE state.after=DRAINING",
		"seq=3 method=POST path=/logging keys=main" + who + " status=200 main.before=debug main.after=off",
		"seq=4 method=POST path=/logging keys=main" + who + " status=400",
		`seq=5 method=POST path=/wild keys=""` + who + " status=500 reason=failed",
		`seq=6 method=POST path=/reopen_logs keys=""` + who + " status=200",
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		if _, entry, ok := strings.Cut(line, "level=INFO msg=audit "); ok {
			before, after, _ := strings.Cut(entry, " peer=127.0.0.1:")
			_, after, _ = strings.Cut(after, " ")
			got = append(got, before+" "+strings.TrimSuffix(after, "\n"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, e := range port.Audit(100) {
		if !e.Time.Equal(testTime()) || !strings.HasPrefix(e.Peer, "127.0.0.1:") || e.Principal != (Principal{"t-admin", RoleAdmin}) {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
}

func TestAuditRing(t *testing.T) {
	log := new(logBuffer)
	s := newServer(t, Config{Limits: Limits{AuditEntries: 3}, Logger: log.logger()})
	for range 5 {
		s.Request("POST", "/reset_counters?token=hush", nil)
	}
	var seqs []uint64
	for _, e := range s.Audit(100) {
		seqs = append(seqs, e.Seq)
	}
	if want := []uint64{5, 4, 3}; !slices.Equal(seqs, want) {
		t.Errorf("entries %v, want %v", seqs, want)
	}
	if got := len(s.Audit(2)); got != 2 {
		t.Errorf("%d entries, want 2", got)
	}
	if got := len(s.Audit(0)); got != 0 {
		t.Errorf("%d entries, want none", got)
	}
	if n := strings.Count(log.String(), "msg=audit"); n != 5 {
		t.Errorf("%d lines in the log, want 5", n)
	}
	if !strings.Contains(log.String(), "keys=token") || strings.Contains(log.String(), "hush") {
		t.Errorf("the log must have keys and no values:\n%s", log)
	}
	s.Handle(Endpoint{Path: "/odd", Mutates: true, Serve: func(*Response, *Request) error { return errors.New("odd") }})
	s.Request("POST", "/odd", nil)
	s.Request("POST", "/cpuprofiler", nil)
	if e := s.Audit(2); e[1].Status != 500 || e[0].Status != 400 || e[0].Reason != "failed" {
		t.Errorf("failed mutations: %+v", e)
	}
	ro := newServer(t, Config{Mode: ModeReadOnly})
	ro.Request("POST", "/reset_counters", nil)
	ro.Request("GET", "/reset_counters", nil)
	if e := ro.Audit(5); len(e) != 1 || e[0].Status != 403 || e[0].Reason != "read only" {
		t.Errorf("read only: %+v", e)
	}
}

func TestAccessLog(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	s := start(t, Config{Sources: newWorld().sources(), AccessLog: func(a Access) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d %d %d %s %s", a.Method, a.Target, a.Protocol, a.Host, a.Status,
			a.Received, a.Sent, a.RequestHeader("USER-agent"), a.ResponseHeader("content-type")))
		if !strings.HasPrefix(a.Peer, "127.0.0.1:") || !a.Time.Equal(testTime()) || a.Duration != 0 || a.Err != nil {
			t.Errorf("%+v", a)
		}
	}})
	if err := s.Handle(Endpoint{Path: "/long", Serve: func(w *Response, _ *Request) error {
		_, err := w.Write(make([]byte, 2*responseBuffer))
		return err
	}}); err != nil {
		t.Fatal(err)
	}
	get(t, s, "/ready?a=b", "User-Agent: x")
	talk(t, s, request("POST /runtime_modify?key=hush&other=hush&flag HTTP/1.1", "Connection: close"))
	talk(t, s, request("POST /runtime_modify HTTP/1.1", "Connection: close", "Content-Type: "+formType, "Content-Length: 6")+"a=hush")
	talk(t, s, request("HEAD /help HTTP/1.1", "Connection: close"))
	talk(t, s, request("HEAD /long HTTP/1.1", "Connection: close"))
	talk(t, s, "nonsense\r\n\r\n")
	talk(t, s, "GET /ready HTTP/1.0\r\nHost: evil.test\r\n\r\n")
	waittest.Until(t, "the lines", func() bool { mu.Lock(); defer mu.Unlock(); return len(lines) == 7 })
	want := []string{
		"GET /ready?a=b HTTP/1.1 localhost 200 0 5 x text/plain; charset=UTF-8",
		"POST /runtime_modify?key&other&flag HTTP/1.1 localhost 200 0 3  text/plain; charset=UTF-8",
		"POST /runtime_modify HTTP/1.1 localhost 200 6 3  text/plain; charset=UTF-8",
		"HEAD /help HTTP/1.1 localhost 200 0 0  text/plain; charset=UTF-8",
		"HEAD /long HTTP/1.1 localhost 200 0 0  text/plain; charset=UTF-8",
		"  HTTP/1.1  400 0 18  text/plain; charset=UTF-8",
		"GET /ready HTTP/1.0 evil.test 403 0 122  text/plain; charset=UTF-8",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestRefusedMutationsKeepTheirValues checks that the access log hides the values of
// refused mutations, and of requests to a path that does not exist, too.
func TestRefusedMutationsKeepTheirValues(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := impatient(start(t, Config{
		Sources: newWorld().sources(), Auth: &Auth{Tokens: testTokens(t)}, Now: later(),
		AccessLog: func(a Access) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf("%d %s", a.Status, a.Target))
			if strings.Contains(a.Host, "hush") {
				t.Errorf("the host is %q", a.Host)
			}
		},
	}))
	const first = "POST /runtime_modify?key=hush&flag HTTP/1.1"
	var want []string
	for _, refused := range []struct {
		status int
		raw    string
	}{
		{401, request(first, "Connection: close")},
		{403, request(first, "Connection: close", "Authorization: Bearer "+secret(RoleRead))},
		{403, request(first, "Connection: close", "Sec-Fetch-Site: cross-site")},
		{403, strings.Replace(request(first, "Connection: close"), "Host: localhost", "Host: evil.test", 1)},
		{413, request(first, "Connection: close", "Content-Length: 100000")},
		{413, request(strings.Replace(first, "/", "http://localhost/", 1), "Connection: close", "Content-Length: 100000")},
		{403, request(strings.Replace(first, "/", "http://user:hush@localhost/", 1), "Connection: close")},
		{413, request(strings.Replace(first, "/", "http://user:hush@localhost/", 1), "Connection: close", "Content-Length: 100000")},
		{403, strings.Replace(request(first, "Connection: close"), "Host: localhost", "Host: user:hush@localhost", 1)},
		{415, request(first, "Connection: close", "Content-Encoding: gzip")},
	} {
		talk(t, s, refused.raw)
		want = append(want, fmt.Sprintf("%d /runtime_modify?key&flag", refused.status))
	}
	const bearer = "Authorization: Bearer "
	talk(t, s, request(strings.Replace(first, "?", "/?", 1), "Connection: close", bearer+secret(RoleAdmin)))
	talk(t, s, request("GET /stats?filter=shown HTTP/1.1", "Connection: close", bearer+secret(RoleAdmin)))
	want = append(want, "404 /runtime_modify/?key&flag", "200 /stats?filter=shown")
	waittest.Until(t, "the lines", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == len(want) })
	if !slices.Equal(seen, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoForeignBytes sends canaries over many connections. No response contains the
// credentials of another client.
func TestNoForeignBytes(t *testing.T) {
	s := start(t, Config{Sources: newWorld().sources()})
	s.Handle(Endpoint{Path: "/echo", Serve: func(w *Response, r *Request) error {
		if r.Query().Has("fail") {
			return fmt.Errorf("about %s", r.Query().Value("c"))
		}
		n := len(r.Query().Value("pad"))
		_, err := fmt.Fprintf(w, "%s %s %s %s", r.Query().Value("c"), r.Header("x-c"), r.Body(), strings.Repeat("p", n))
		return err
	}})
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := range 40 {
				canary := fmt.Sprintf("canary%dx%d.", worker, i)
				pad := strings.Repeat("p", i*37%1500)
				target := []string{"/echo?c=" + canary + "&pad=" + pad, "/echo?fail&c=" + canary, "/" + canary, "/stats?format=" + canary,
					"/config_dump?mask=" + canary, "/config_dump?resource=" + canary, "/clusters?format=json&c=" + canary, "/config_dump?name_regex=(" + canary}[i%8]
				raw := request("POST "+target+" HTTP/1.1", "Connection: close", "X-C: "+canary, "Accept-Encoding: gzip",
					fmt.Sprintf("Content-Length: %d", len(canary))) + canary
				for _, a := range parseAnswers(t, talk(t, s, raw)) {
					body := unpack(t, a)
					if strings.Count(body, "canary") != strings.Count(body, canary) {
						t.Errorf("the answer to %s has %q", canary, body)
					}
					if i%8 == 0 && body != canary+" "+canary+" "+canary+" "+pad {
						t.Errorf("the answer to %s is %q", canary, body)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestLongLinesCanBeExplained checks that a line can be longer than other values.
func TestLongLinesCanBeExplained(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	form := Field{"content-type", formType}
	for n, want := range map[int]int{4<<10 + 1: 200, maxExplained: 200, maxExplained + 1: 400} {
		if r := s.Request("POST", "/ingest/explain", []byte("line="+strings.Repeat("x", n)), form); r.Status != want {
			t.Errorf("a line of %d bytes: status %d, want %d", n, r.Status, want)
		}
	}
	if r := s.Request("POST", "/ready", []byte("line="+strings.Repeat("x", 4<<10+1)), form); r.Status != 400 {
		t.Errorf("another endpoint: status %d, want 400", r.Status)
	}
	if r := newServer(t, Config{}).Request("GET", "/ingest", nil); r.Status != 404 {
		t.Errorf("without input: status %d, want 404", r.Status)
	}
}
