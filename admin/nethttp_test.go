package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// mount serves s under /admin/ of a mux and returns the address of the prefix.
func mount(t testing.TB, s *Server) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/admin/", http.StripPrefix("/admin", s))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(w, "slow")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL + "/admin"
}

// askMounted sends a request to s below a prefix. A body is a form.
func askMounted(t testing.TB, s *Server, method, target, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, mount(t, s)+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", formType)
	}
	return roundTrip(t, req)
}

func roundTrip(t testing.TB, req *http.Request) answer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
}

// TestMountedEndpointsAnswerAsOnThePort sends a GET and a POST to every endpoint
// on the port and below a prefix.
func TestMountedEndpointsAnswerAsOnThePort(t *testing.T) {
	for _, e := range newServer(t, Config{DebugEndpoints: true}).Endpoints() {
		switch e.Path {
		case "/debug/pprof/profile", "/debug/pprof/trace", "/heap_dump", "/bundle":
			continue // never the same twice, or slow
		}
		if strings.HasPrefix(e.Path, "/debug/pprof/") {
			continue
		}
		for _, method := range []string{"GET", "POST"} {
			port := start(t, Config{Sources: newWorld().sources(), Store: fixture()})
			own := newServer(t, Config{Sources: newWorld().sources(), Store: fixture()})
			port.store.Symbols().ClearRecent()
			own.store.Symbols().ClearRecent()
			target := e.Path
			if strings.HasPrefix(target, "/stats") {
				target += "?filter=^cluster" // the port counts its own connection
			}
			want := parseAnswers(t, talk(t, port, request(method+" "+target+" HTTP/1.1", "Connection: close", "Content-Length: 0")), method)[0]
			if got := askMounted(t, own, method, target, ""); got.status != want.status || got.body != want.body {
				t.Errorf("%s %s: %d %q, want %d %q", method, e.Path, got.status, got.body, want.status, want.body)
			} else if a, b := fieldsOf(got), fieldsOf(want); !maps.EqualFunc(a, b, slices.Equal) {
				t.Errorf("%s %s: %v, want %v", method, e.Path, a, b)
			}
		}
	}
}

// fieldsOf returns the header fields of a but for its time and its framing, which are
// up to the program's server.
func fieldsOf(a answer) http.Header {
	fields := a.header.Clone()
	for _, name := range []string{"Date", "Connection", "Content-Length", "Transfer-Encoding"} {
		fields.Del(name)
	}
	return fields
}

func TestMountedChecks(t *testing.T) {
	s := newServer(t, Config{Limits: Limits{BodyBytes: 10, TargetBytes: 100, Headers: 10}, AllowedHosts: []string{"ok.test"}})
	base := mount(t, s)
	for name, c := range map[string]struct {
		method, target, body string
		change               func(*http.Request)
		want                 int
	}{
		"plain":        {"GET", "/ready", "", nil, 200},
		"allowed-host": {"GET", "/ready", "", func(r *http.Request) { r.Host = "ok.test" }, 200},
		"foreign-host": {"GET", "/ready", "", func(r *http.Request) { r.Host = "evil.test" }, 403},
		"foreign-page": {"POST", "/reset_counters", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") }, 403},
		"get-mutation": {"GET", "/reset_counters", "", nil, 400},
		"put-mutation": {"PUT", "/reset_counters", "", nil, 405},
		"post":         {"POST", "/reset_counters", "", nil, 200},
		"unknown":      {"GET", "/none", "", nil, 404},
		"escaped":      {"GET", "/%72eady", "", nil, 404},
		"large-body":   {"POST", "/reset_counters", "01234567890", nil, 413},
		"long-target":  {"GET", "/ready?" + strings.Repeat("x", 100), "", nil, 414},
		"expect":       {"POST", "/reset_counters", "", func(r *http.Request) { r.Header.Set("Expect", "x") }, 417},
		"chunked": {"POST", "/reset_counters", "x", func(r *http.Request) {
			r.ContentLength = -1
		}, 400},
		"upgrade":        {"GET", "/ready", "", func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, 400},
		"content-coding": {"POST", "/reset_counters", "x", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 415},
		"many-fields": {"GET", "/ready", "", func(r *http.Request) {
			for i := range 10 {
				r.Header.Set(fmt.Sprintf("X-%d", i), "v")
			}
		}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, base+c.target, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(req)
			}
			if got := roundTrip(t, req); got.status != c.want {
				t.Errorf("status %d, want %d: %s", got.status, c.want, got.body)
			}
		})
	}
}

// TestMountedCutResponse expects that a handler that fails in the middle of a
// large response breaks the connection, and that the next request on a
// connection has no deadline left over.
func TestMountedCutResponse(t *testing.T) {
	s := newServer(t, Config{Limits: Limits{StreamStall: 20 * time.Millisecond}})
	err := errors.Join(
		s.Handle(Endpoint{Path: "/cut", Serve: func(w *Response, _ *Request) error {
			if _, err := w.Write(make([]byte, 3*responseBuffer)); err != nil {
				return err
			}
			return errors.New("broken")
		}}),
		s.Handle(Endpoint{Path: "/large", Serve: func(w *Response, _ *Request) error {
			_, err := w.Write(make([]byte, 3*responseBuffer))
			return err
		}}))
	if err != nil {
		t.Fatal(err)
	}
	base := mount(t, s)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(base + "/cut")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(resp.Body); err == nil || len(b) > 3*responseBuffer {
		t.Errorf("%d bytes and no error", len(b))
	}
	resp.Body.Close()
	for _, path := range []string{base + "/large", strings.TrimSuffix(base, "/admin") + "/slow", base + "/large"} {
		resp, err := client.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		resp.Body.Close()
	}
}

func TestMountedEndlessResponse(t *testing.T) {
	ended := make(chan struct{}, 1)
	s := newServer(t, Config{})
	err := s.Handle(Endpoint{Path: "/events", Serve: func(w *Response, _ *Request) error {
		gone := w.Endless()
		if _, err := io.WriteString(w, "one\n"); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		<-gone
		ended <- struct{}{}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", mount(t, s)+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "one\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	<-ended
}

func TestHTTPHandlerAsEndpoint(t *testing.T) {
	s := start(t, Config{})
	var seen *http.Request
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		switch r.URL.Query().Get("case") {
		case "empty":
		case "status":
			w.Header().Set("X-Mine", "a\r\nb")
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Length", "7")
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			fmt.Fprint(w, "teapot")
		case "packed":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write(make([]byte, 3000))
		case "abort":
			_, _ = w.Write(make([]byte, 3*responseBuffer))
			panic(http.ErrAbortHandler)
		case "body":
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %s %d %s", r.Method, r.URL.Path, r.Host, r.Header.Get("X-In"), r.ContentLength, b)
		default:
			fmt.Fprint(w, "<html>")
		}
	})
	if err := s.Handle(Endpoint{Path: "/mine", OpenParams: true, Serve: HTTPHandler(h)}); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s, "/mine"); a.status != 200 || a.body != "<html>" || a.header.Get("content-type") != "text/html; charset=utf-8" {
		t.Errorf("%+v", a)
	}
	if a := get(t, s, "/mine?case=empty"); a.status != 200 || a.body != "" {
		t.Errorf("%+v", a)
	}
	if a := get(t, s, "/mine?case=status"); a.status != 418 || a.body != "teapot" || a.header.Get("x-mine") != "a  b" || a.header.Get("content-length") != "6" {
		t.Errorf("%+v", a)
	}
	if r := s.Request("GET", "/mine?case=packed", nil, Field{"accept-encoding", "zstd"}); len(r.Body) != 3000 || r.Get("content-encoding") != "gzip" {
		t.Errorf("%d bytes, %v", len(r.Body), r.Header)
	}
	if r := s.Request("GET", "/mine?case=abort", nil); r.Err == nil {
		t.Error("an aborted response counts as complete")
	}
	r := s.Request("POST", "/mine?case=body", []byte("form"), Field{"x-in", "v"})
	if want := "POST /mine localhost v 4 form"; string(r.Body) != want {
		t.Errorf("%q, want %q", r.Body, want)
	}
	if err := seen.Context().Err(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-seen.Context().Done()
	if err := seen.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// wildWriter is a ResponseWriter that panics.
type wildWriter struct{ http.ResponseWriter }

func (wildWriter) WriteHeader(int) { panic(http.ErrAbortHandler) }

// TestPanicsOfWritersTakeNoSlots: a large answer whose writer panics gives its slot back.
func TestPanicsOfWritersTakeNoSlots(t *testing.T) {
	s, err := New(Config{Limits: Limits{HeavyRunning: 1, HeavyWaiting: -1, HeavyWait: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest("GET", "http://localhost/stats", nil)
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("the panic became %v", got)
			}
		}()
		s.ServeHTTP(wildWriter{httptest.NewRecorder()}, request)
	}()
	answer := httptest.NewRecorder()
	if s.ServeHTTP(answer, request); answer.Code != 200 {
		t.Errorf("the next request: %d %s", answer.Code, answer.Body)
	}
}

// TestMountedOnAnOpenPort expects a warning, once, when a request arrives on an
// address that other machines can reach and nothing restricts changes.
func TestMountedOnAnOpenPort(t *testing.T) {
	token, err := NewToken("ops", RoleAdmin, strings.Repeat("x", 22))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg   Config
		local net.Addr
		want  uint64
	}{
		"open":      {Config{}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 80}, 1},
		"loopback":  {Config{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, 0},
		"unknown":   {Config{}, nil, 0},
		"socket":    {Config{}, &net.UnixAddr{Net: "unix", Name: "/run/s"}, 0},
		"other":     {Config{}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}, 1},
		"read-only": {Config{Mode: ModeReadOnly}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 80}, 0},
		"tokens":    {Config{Auth: &Auth{Tokens: NewTokens(token)}}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 80}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBuffer{}
			c.cfg.Logger = log.logger()
			s := newServer(t, c.cfg)
			for range 2 {
				req := httptest.NewRequest("GET", "http://localhost/ready", nil)
				if c.local != nil {
					req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, c.local))
				}
				s.ServeHTTP(httptest.NewRecorder(), req)
			}
			if got := s.metrics.exposed.Value(); got != c.want {
				t.Errorf("server.admin_exposed is %d, want %d", got, c.want)
			}
			if got := strings.Count(log.String(), "has no authentication"); got != int(c.want) {
				t.Errorf("%d warnings, want %d:\n%s", got, c.want, log)
			}
		})
	}
}

// failingBody ends with an error.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }
func (b failingBody) Close() error             { return nil }

// failingWriter writes and flushes with errors.
type failingWriter struct {
	http.ResponseWriter
	write, flush error
}

func (w failingWriter) Write(p []byte) (int, error) {
	if w.write != nil {
		return 0, w.write
	}
	return w.ResponseWriter.Write(p)
}

func (w failingWriter) FlushError() error { return w.flush }

// TestMountedOnOtherServers sends requests as servers for other networks and protocols
// make them.
func TestMountedOnOtherServers(t *testing.T) {
	ca := newAuthority(t)
	leaf := ca.named("spiffe://test/ops").Leaf
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		change func(*http.Request)
		writer failingWriter
		status int
		peer   string
		name   string // of the principal
		err    error
	}{
		"http2":         {func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0 }, failingWriter{}, 200, "192.0.2.1:1234", "", nil},
		"http9":         {func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/0.9", 0, 9 }, failingWriter{}, 400, "192.0.2.1:1234", "", nil},
		"no-body":       {func(r *http.Request) { r.Body = nil }, failingWriter{}, 200, "192.0.2.1:1234", "", nil},
		"slow-body":     {func(r *http.Request) { r.Body = failingBody{os.ErrDeadlineExceeded} }, failingWriter{}, 408, "192.0.2.1:1234", "", nil},
		"broken-body":   {func(r *http.Request) { r.Body = failingBody{broken} }, failingWriter{}, 400, "192.0.2.1:1234", "", nil},
		"no-deadlines":  {nil, failingWriter{flush: http.ErrNotSupported}, 200, "192.0.2.1:1234", "", nil},
		"write-failed":  {nil, failingWriter{write: broken}, 200, "192.0.2.1:1234", "", ErrGone},
		"flush-failed":  {nil, failingWriter{flush: broken}, 200, "192.0.2.1:1234", "", ErrGone},
		"unverified":    {func(r *http.Request) { r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}} }, failingWriter{}, 200, "192.0.2.1:1234", "", nil},
		"certificate":   {func(r *http.Request) { r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}} }, failingWriter{}, 200, "192.0.2.1:1234", "uri:spiffe://test/ops", nil},
		"without-peer":  {func(r *http.Request) { r.RemoteAddr = "@" }, failingWriter{}, 200, "@", "", nil},
		"without-proto": {func(r *http.Request) { r.Method = "" }, failingWriter{}, 200, "192.0.2.1:1234", "", nil},
		"socket": {func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix", Name: "/run/s"}))
			r.Host = ""
		}, failingWriter{}, 200, "unix", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log []Access
			s := newServer(t, Config{
				Auth:      &Auth{OpenPaths: []string{"/ready"}, ClientCertificates: []CertificateRole{{Name: "uri:spiffe://test/ops", Role: RoleRead}}},
				AccessLog: func(a Access) { log = append(log, a) },
			})
			rec := httptest.NewRecorder()
			tt.writer.ResponseWriter = rec
			req := httptest.NewRequest("GET", "http://localhost/ready", nil)
			if tt.change != nil {
				tt.change(req)
			}
			s.ServeHTTP(tt.writer, req)
			if a := log[0]; a.Status != tt.status || a.Peer != tt.peer || a.Principal.Name != tt.name || a.TLS != (req.TLS != nil) || !errors.Is(a.Err, tt.err) || a.Method != "GET" {
				t.Errorf("%+v, want %+v", a, tt)
			}
			if rec.Code != tt.status {
				t.Errorf("status %d, want %d", rec.Code, tt.status)
			}
		})
	}
}

// TestMountedAfterTheEnd expects that a server that was closed answers nothing but
// 503, so that a load balancer does not send more to a program that ends.
func TestMountedAfterTheEnd(t *testing.T) {
	s := newServer(t, Config{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/ready", "/stats", "/ui/"} {
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost"+target, nil))
		if rec.Code != 503 || rec.Body.String() != "the server has shut down\n" {
			t.Errorf("GET %s: %d %q", target, rec.Code, rec.Body)
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
	if n := s.metrics.panics.Value(); n != 0 {
		t.Errorf("an aborted answer counts as %d panics", n)
	}
	if r := s.Request("GET", "/own?panic", nil); r.Status != 500 || s.metrics.panics.Value() != 1 {
		t.Errorf("a panic: %d, %d are counted", r.Status, s.metrics.panics.Value())
	}
}
