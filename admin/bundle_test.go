package admin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// unzipped returns the files of a bundle after comparing them with its checksums.
func unzipped(t *testing.T, body []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	files, sums := make(map[string]string), ""
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		if f.Name != bundleSums {
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(text), f.Name)
		}
	}
	if files[bundleSums] != sums {
		t.Errorf("checksums\n%s\nwant\n%s", files[bundleSums], sums)
	}
	jsonschema.Check(t, "../docs/schema/bundle.schema.json", []byte(files[bundleManifest]))
	var manifest struct {
		Files []struct {
			Name, SHA256, Error string
			Bytes               int
			Truncated           bool
		}
	}
	if err := json.Unmarshal([]byte(files[bundleManifest]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Files) != len(files)-2 {
		t.Errorf("the manifest has %d of %d files", len(manifest.Files), len(files)-2)
	}
	for _, f := range manifest.Files {
		if text := files[f.Name]; f.Bytes != len(text) || f.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(text))) || f.Truncated {
			t.Errorf("the manifest says %+v of a file with %d bytes", f, len(text))
		}
		if f.Error != "" && f.Name != "mapping.json" {
			t.Errorf("%s: %s", f.Name, f.Error)
		}
	}
	return files
}

// leakyIngest has a secret in the text of a rejected line.
type leakyIngest struct{ Ingest }

func (l leakyIngest) Report() report.Report {
	rep := l.Ingest.Report()
	rep.Rejected[0].Last = append(rep.Rejected[0].Last, report.RejectedLine{Time: testTime(), Line: canary, Source: canary})
	return rep
}

// TestBundleHasNoSecrets plants a secret wherever a client or the configuration can
// put one, and looks for it in the files of a bundle.
func TestBundleHasNoSecrets(t *testing.T) {
	world := newWorld()
	sources := world.sources()
	sources.Ingest = leakyIngest{sources.Ingest}
	info := sources.Info
	sources.Info = func() ServerInfo {
		i := info()
		i.CommandLine.ConfigYAML = "password: " + canary
		i.Node.Metadata = map[string]any{"token": canary}
		return i
	}
	s := impatient(start(t, Config{Sources: sources, ShowUntyped: true, Auth: &Auth{Tokens: testTokens(t)}, Now: later()}))
	s.store.Root().Text("release.token").Set(canary)
	s.store.Root().Text("upstream").Set("https://user:" + canary + "@host/")
	s.store.Root().Text("jwt").Set("eyJhbGciOiJIUzI1." + canary + canary + ".c2ln")
	s.store.Root().Counter("steps").Add(7)
	ask := func(target string, role Role, more ...string) string {
		return talk(t, s, request("POST "+target+" HTTP/1.1", append(more, "Connection: close", "Authorization: Bearer "+secret(role))...))
	}
	ask("/runtime_modify?db.password="+canary+"&plain=1", RoleOperate, "Cookie: "+canary, "X-Api-Key: "+canary)
	ask("/logging?"+canary+"=off", RoleNone)
	if a := ask("/bundle", RoleOperate); !strings.HasPrefix(a, "HTTP/1.1 403 ") {
		t.Errorf("a bundle for %v: %.100s", RoleOperate, a)
	}
	if a := parseAnswers(t, talk(t, s, request("GET /bundle HTTP/1.1", "Connection: close", "Authorization: Bearer "+secret(RoleAdmin))))[0]; a.status != 400 {
		t.Errorf("GET: %d", a.status)
	}
	head, body, _ := strings.Cut(ask("/bundle", RoleAdmin), "\r\n\r\n")
	if !strings.Contains(head, "content-type: application/zip\r\n") || !strings.Contains(head, `content-disposition: attachment; filename="proxy-bundle-20260102T`) {
		t.Fatalf("the head is %s", head)
	}
	files := unzipped(t, []byte(body))
	for name, text := range files {
		for _, planted := range []string{canary, secret(RoleAdmin), secret(RoleOperate), "PRIVATE KEY"} {
			if strings.Contains(text, planted) {
				at := strings.Index(text, planted)
				t.Errorf("%s has a secret: %q", name, text[max(at-80, 0):at+len(planted)])
			}
		}
	}
	for name, want := range map[string]string{
		"stats.txt": "steps: 7\n", "histograms.txt": "", "runtime.json": `"limits.max_sessions"`, "clusters.json": "cluster_statuses", "config_dump.json": "backend_a",
		"audit.json": "/runtime_modify", "loggers.txt": "main: debug\n", "goroutines.txt": "goroutine profile: total", "heap.pprof": "\x1f\x8b", "build.txt": "go\t",
		"server_info.json": "n-17", "memory.json": "heap_size", "ingest.json": "kernel_drops", "sinks.json": "metrics.example.com", "certs.json": "/old.pem",
		"listeners.json": "ingress", "init_dump.json": "RdsRouteConfig", "contention.txt": "num_contentions", "mapping.json": "",
	} {
		if text, ok := files[name]; !ok || !strings.Contains(text, want) {
			t.Errorf("%s lacks %q: %.300s", name, want, text)
		}
	}
	if r := s.Request("POST", "/bundle", nil, Field{"referer", "http://localhost/ui/server"}, Field{"accept", "text/html"},
		Field{"authorization", "Bearer " + secret(RoleAdmin)}); r.Status != 200 {
		t.Errorf("from a page: %d", r.Status)
	}
	if e := s.Audit(1)[0]; e.Path != "/bundle" || e.Status != 200 || e.Principal.Name != "t-admin" {
		t.Errorf("audit %+v", e)
	}
}

// slowWriter waits in its first Write until it may go on.
type slowWriter struct{ started, proceed chan struct{} }

func (w slowWriter) Write(p []byte) (int, error) {
	select {
	case w.started <- struct{}{}:
	default:
	}
	<-w.proceed
	return len(p), nil
}

func TestOneBundleAtATime(t *testing.T) {
	s := newServer(t, Config{})
	w := slowWriter{make(chan struct{}, 1), make(chan struct{})}
	ended := make(chan error)
	go func() { ended <- s.Bundle(context.Background(), w, 0) }()
	<-w.started
	if r := s.Request("POST", "/bundle", nil); r.Status != 503 || r.Get("retry-after") == "" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	if err := s.Bundle(context.Background(), io.Discard, 0); !errors.Is(err, ErrBundleRunning) {
		t.Errorf("a second bundle: %v", err)
	}
	close(w.proceed)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if r := s.Request("POST", "/bundle", nil); r.Status != 200 {
		t.Errorf("afterwards: %d", r.Status)
	}
}

// TestBundleEndsWithItsClient ends the client while the profile is recorded.
func TestBundleEndsWithItsClient(t *testing.T) {
	s := start(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	w := slowWriter{make(chan struct{}, 1), make(chan struct{})}
	close(w.proceed)
	ended := make(chan error)
	go func() { ended <- s.Bundle(ctx, w, bundleMaxCPU) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	c := dial(t, s)
	fmt.Fprintf(c, "POST /bundle?cpu=30s HTTP/1.1\r\nHost: localhost\r\n\r\n")
	waittest.Until(t, "the bundle", func() bool { return s.bundling.Load() })
	c.Close()
	waittest.Until(t, "its end", func() bool { return !s.bundling.Load() })
}

// slowClient takes an hour for each part of an answer.
type slowClient struct{ http.ResponseWriter }

func (slowClient) Flush() { time.Sleep(time.Hour) }

// TestSlowClientDoesNotKeepTheBundle expects an end, also if the client still reads.
func TestSlowClientDoesNotKeepTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		defer func() {
			if v := recover(); v != http.ErrAbortHandler || s.bundling.Load() {
				t.Errorf("ended with %v, still running: %t", v, s.bundling.Load())
			}
		}()
		s.ServeHTTP(slowClient{httptest.NewRecorder()}, httptest.NewRequest("POST", "http://localhost/bundle", nil))
	})
}

func TestBundleWithProfile(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	r := s.Request("POST", "/bundle?cpu=20ms", nil)
	if files := unzipped(t, r.Body); r.Status != 200 || !strings.HasPrefix(files["cpu.pprof"], "\x1f\x8b") {
		t.Errorf("%d with %d bytes of profile", r.Status, len(files["cpu.pprof"]))
	}
	for _, cpu := range []string{"5", "-1s", "31s", "x"} {
		if r := s.Request("POST", "/bundle?cpu="+cpu, nil); r.Status != 400 {
			t.Errorf("cpu=%s: %d", cpu, r.Status)
		}
	}
	if err := s.Bundle(context.Background(), io.Discard, time.Minute); err == nil {
		t.Error("a profile of a minute was made")
	}
}

// TestBundleMembersAreBounded checks that a long file is cut.
func TestBundleMembersAreBounded(t *testing.T) {
	m := member{ctx: context.Background(), w: io.Discard, hash: sha256.New(), n: bundleMember - 5}
	if n, err := m.Write([]byte("12345")); n != 5 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := m.Write([]byte("6")); !errors.Is(err, errMemberFull) || !m.cut || m.n != bundleMember {
		t.Errorf("%v %+v", err, m)
	}
}

// TestBundleHasWhatIsThere: endpoints that do not exist or are not allowed have no file,
// and a CPU profile is made only if asked for.
func TestBundleHasWhatIsThere(t *testing.T) {
	names := func(c Config, target string) string {
		t.Helper()
		r := newServer(t, c).Request("POST", target, nil)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", target, r.Status, r.Body)
		}
		var out []string
		for name := range unzipped(t, r.Body) {
			out = append(out, name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	const always = " build.txt "
	all := " " + names(Config{Sources: newWorld().sources()}, "/bundle?cpu=0s") + " "
	if strings.Contains(all, "cpu.pprof") || !strings.Contains(all, always) || !strings.Contains(all, " clusters.json ") {
		t.Errorf("all: %s", all)
	}
	sources := newWorld().sources()
	sources.Ingest, sources.Sinks = nil, nil
	few := " " + names(Config{Sources: sources}, "/bundle") + " "
	if strings.Contains(few, "sinks.json") || strings.Contains(few, "ingest.json") || !strings.Contains(few, always) || !strings.Contains(few, " stats.txt ") {
		t.Errorf("without sources: %s", few)
	}
	allowed := " " + names(Config{Sources: newWorld().sources(), AllowPaths: match.List{match.Exact("/bundle"), match.Prefix("/memory")}}, "/bundle") + " "
	if strings.Contains(allowed, "stats.txt") || !strings.Contains(allowed, always) || !strings.Contains(allowed, " memory.json ") {
		t.Errorf("allowed: %s", allowed)
	}
}

// brokenWriter fails after n bytes.
type brokenWriter struct{ n int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestEndedMembersAreNotWritten: after the end of its client, or an error of the archive,
// a file of a bundle passes nothing on.
func TestEndedMembersAreNotWritten(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		ctx  context.Context
		errs []error // of the writes
		left int     // of 5 bytes
	}{
		{t.Context(), []error{nil, io.ErrShortWrite, io.ErrShortWrite, io.ErrShortWrite}, 5 - 2*4},
		{ended, []error{context.Canceled, context.Canceled}, 5},
	} {
		to := brokenWriter{5}
		m := member{ctx: tt.ctx, w: &to, hash: sha256.New()}
		for i, want := range tt.errs {
			if _, err := m.Write([]byte("four")); !errors.Is(err, want) {
				t.Errorf("write %d: %v, want %v", i, err, want)
			}
		}
		if to.n != tt.left {
			t.Errorf("%d bytes are left, want %d", to.n, tt.left)
		}
	}
}

// TestBundleReportsABrokenWriter wherever it breaks, and the next bundle is whole.
func TestBundleReportsABrokenWriter(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	var whole bytes.Buffer
	if err := s.Bundle(context.Background(), &whole, 0); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < whole.Len()/2; n += 997 {
		if err := s.Bundle(context.Background(), &brokenWriter{n}, 0); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("broken after %d bytes: %v", n, err)
		}
	}
	whole.Reset()
	if err := s.Bundle(context.Background(), &whole, 0); err != nil {
		t.Fatal(err)
	}
	unzipped(t, whole.Bytes())
}

// TestManifestSaysWhatIsMissing: a file that failed has the reason without secrets, and one
// that was cut is marked.
func TestManifestSaysWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	b := bundle{ctx: context.Background(), zip: zip.NewWriter(&out), now: testTime()}
	b.manifest.BeginList()
	for _, p := range []bundlePart{
		{name: "a", write: func(w io.Writer) error {
			_, _ = io.WriteString(w, "part")
			return errors.New(" no luck\n")
		}},
		{name: "b", write: func(io.Writer) error { return errors.New("token: hush") }},
		{name: "c.pprof", write: func(w io.Writer) error {
			w.(*member).n = bundleMember
			_, err := w.Write([]byte("x"))
			return err
		}},
		{name: "d", write: func(io.Writer) error { return nil }},
	} {
		if err := b.add(p); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	b.manifest.EndList()
	var got []struct {
		Name, Error string
		Bytes       int
		Truncated   *bool
	}
	if err := json.Unmarshal(b.manifest.Bytes(), &got); err != nil || len(got) != 4 {
		t.Fatalf("%v: %s", err, b.manifest.Bytes())
	}
	if got[0].Error != "no luck" || got[0].Bytes != 4 || got[1].Error != "[redacted]" || got[3].Error != "" || got[3].Bytes != 0 {
		t.Errorf("%s", b.manifest.Bytes())
	}
	for i, f := range got {
		if cut := f.Truncated != nil && *f.Truncated; cut != (i == 2) || cut && f.Error != "" {
			t.Errorf("%+v", f)
		}
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
