package sinkhttp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, cfg Config, body string) (*Answer, error) {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Post(t.Context(), http.Header{"Content-Type": {"text/x"}}, []byte(body))
}

func TestRequest(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q %q %q %q", r.Method, r.URL, body, r.Header["Content-Type"], r.Header["Authorization"], r.Header["X-Scope-Orgid"], r.Header["User-Agent"])
	}))
	defer srv.Close()
	a, err := post(t, Config{URL: srv.URL + "/w?a=b", Headers: map[string]string{"X-Scope-OrgID": "7"}, BearerTokenFile: token}, "body")
	want := `POST /w?a=b body ["text/x"] ["Bearer s3cret"] ["7"] ["statsd-admin"]`
	if err != nil || a.Status != 200 || string(a.Body) != want || a.Err(false) != nil {
		t.Errorf("%v %+v\nwant %s", err, a, want)
	}
	for _, content := range []string{"", "\n", "two words", "s3cr\x00t", "s3cr\xe9t"} {
		if err := os.WriteFile(token, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = post(t, Config{URL: srv.URL, BearerTokenFile: token}, "")
		if err == nil || !strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "s3cr") || errors.Is(err, sinkqueue.ErrAmbiguous) || errors.Is(err, sinkqueue.ErrRefused) {
			t.Errorf("token %q: %v, want an error that is retried", content, err)
		}
	}
	_, err = post(t, Config{URL: srv.URL, BearerTokenFile: token + "x"}, "")
	if err == nil || errors.Is(err, sinkqueue.ErrAmbiguous) || errors.Is(err, sinkqueue.ErrRefused) {
		t.Errorf("without a token: %v", err)
	}
}

// TestHost: a receiver behind a proxy can be named in a header.
func TestHost(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer srv.Close()
	for header, want := range map[string]string{"": strings.TrimPrefix(srv.URL, "http://"), "metrics.shop.test": "metrics.shop.test"} {
		cfg := Config{URL: srv.URL}
		if header != "" {
			cfg.Headers = map[string]string{"host": header}
		}
		if a, err := post(t, cfg, "body"); err != nil || string(a.Body) != want {
			t.Errorf("header %q: %+v, %v; want host %q", header, a, err, want)
		}
	}
}

// TestRedirectsAreNotFollowed: credentials and stats go to the configured receiver alone.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other server got a request") }))
	defer other.Close()
	for _, status := range []int{302, 307, 308} {
		srv := httptest.NewServer(http.RedirectHandler(other.URL, status))
		if a, err := post(t, Config{URL: srv.URL}, "body"); err != nil || a.Status != status {
			t.Errorf("%v %+v, want status %d", err, a, status)
		}
		srv.Close()
	}
}

// raw answers each connection with f.
func raw(t *testing.T, f func(net.Conn, *bufio.Reader)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c, bufio.NewReader(c))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// TestSwitchOfProtocols gets an answer that hands the connection over to another
// protocol, and then nothing.
func TestSwitchOfProtocols(t *testing.T) {
	url := raw(t, func(c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if a, err := post(t, Config{URL: url}, ""); err != nil || a.Status != http.StatusSwitchingProtocols {
			t.Errorf("%+v, %v", a, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the request goes on")
	}
}

// TestFaults: what each failure says about the delivery.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", 32<<20) // more than the system buffers
	whole := func(r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
	}
	held, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts, and the kernel answers
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, tt := range []struct {
		name, url, body string
		ambiguous       bool
	}{
		{"no such host", "http://nothing.invalid", "a", false},
		{"no answer", "http://" + held.Addr().String(), "a", true},
		{"closed at once", raw(t, func(net.Conn, *bufio.Reader) {}), long, false},
		{"closed in the middle", raw(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.Discard(1000) }), long, false},
		{"closed without an answer", raw(t, func(_ net.Conn, r *bufio.Reader) { whole(r) }), "a", true},
		{"half an answer", raw(t, func(c net.Conn, r *bufio.Reader) { whole(r); _, _ = io.WriteString(c, "HTTP/1.1 20") }), "a", true},
		{"not HTTP", raw(t, func(c net.Conn, r *bufio.Reader) { whole(r); _, _ = io.WriteString(c, "SSH-2.0\r\n\r\n") }), "a", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timeout := 30 * time.Second
			if tt.name == "no answer" {
				timeout = 50 * time.Millisecond
			}
			_, err := post(t, Config{URL: tt.url + "/?key=s3cret", Timeout: timeout}, tt.body)
			if err == nil || errors.Is(err, sinkqueue.ErrAmbiguous) != tt.ambiguous || errors.Is(err, sinkqueue.ErrRefused) {
				t.Errorf("%v, want ambiguous: %t", err, tt.ambiguous)
			}
			if strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// TestStatus: what each status says about the delivery.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status             int
		every5xx           bool
		ambiguous, refused bool
		after              string
		wait               time.Duration
	}{
		{status: 204},
		{status: 302, refused: true},
		{status: 400, refused: true, after: "5"},
		{status: 429, after: "5", wait: 5 * time.Second},
		{status: 429, after: "soon"},
		{status: 500, refused: true},
		{status: 500, every5xx: true, ambiguous: true},
		{status: 502, ambiguous: true},
		{status: 503, after: "7", wait: 7 * time.Second},
		{status: 504, every5xx: true, ambiguous: true, after: "1", wait: time.Second},
	} {
		a := Answer{Status: tt.status, Header: http.Header{"Retry-After": {tt.after}}, Body: []byte(strings.Repeat("no ", 1000))}
		err := a.Err(tt.every5xx)
		if (err == nil) != (tt.status == 204) || errors.Is(err, sinkqueue.ErrAmbiguous) != tt.ambiguous || errors.Is(err, sinkqueue.ErrRefused) != tt.refused {
			t.Errorf("%d: %v", tt.status, err)
		}
		var w *sinkqueue.Wait
		if errors.As(err, &w) != (tt.wait > 0) || w != nil && w.After != tt.wait {
			t.Errorf("%d, Retry-After %q: %+v, want %v", tt.status, tt.after, w, tt.wait)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%d: an error of %d bytes", tt.status, len(err.Error()))
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if d := retryAfter("Fri, 02 Jan 2026 03:04:35 GMT", now); d != 30*time.Second {
		t.Errorf("a date half a minute ahead asks for %v", d)
	}
	if d := retryAfter("Fri, 02 Jan 2026 03:00:00 GMT", now); d != 0 {
		t.Errorf("a date in the past asks for %v", d)
	}
}

// TestReason: what an error says about an answer.
func TestReason(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.Bytes()
	}
	for _, tt := range []struct {
		status         int
		location, want string
		body           []byte
	}{
		{status: 404, want: "status 404"},
		{status: 404, body: []byte(" \n"), want: "status 404"},
		{status: 400, body: []byte("out of order\n"), want: "status 400: out of order"},
		{status: 400, body: zip("out of order\n"), want: "status 400: out of order"},
		{status: 400, body: zip("out of order\n")[:20], want: "status 400: out of or"},
		{status: 500, body: zip(strings.Repeat("a", 1<<20)), want: "status 500: " + strings.Repeat("a", maxShown)},
		{status: 301, want: "status 301"},
		{status: 301, location: "://", want: "status 301"},
		{status: 301, location: "https://u:s3cret@a.example/w?key=s3cret#s3cret", want: `status 301: redirect to "https://u:xxxxx@a.example/w" is not followed`},
		{status: 307, location: "/hook/s3crets3crets3cr", want: `status 307: redirect to "/[redacted]" is not followed`},
		{status: 308, location: "/w/", body: []byte("moved"), want: `status 308: redirect to "/w/" is not followed`},
		{status: 302, location: "/" + strings.Repeat("a", 2000), want: `status 302: redirect to "/` + strings.Repeat("a", maxShown-1) + `" is not followed`},
	} {
		a := Answer{Status: tt.status, Header: http.Header{}, Body: tt.body}
		if tt.location != "" {
			a.Header.Set("Location", tt.location)
		}
		err := a.Err(false)
		if err == nil || err.Error() != tt.want+": cannot be sent" {
			t.Errorf("%d %q: %v\nwant %s", tt.status, tt.body, err, tt.want)
		}
	}
}

// TestLongAnswer reads a part of an answer, and ends the connection.
func TestLongAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	a, err := post(t, Config{URL: srv.URL}, "body")
	if err != nil || a.Status != 200 || len(a.Body) != maxAnswer {
		t.Errorf("%v, %+v", err, a)
	}
	srv.Close() // waits until the connection is closed
}

func TestURLs(t *testing.T) {
	for _, bad := range []string{"", "::", "host:9090", "ftp://a", "http://", "http://u:s3cret@a/"} {
		if _, err := New(Config{URL: bad}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for address, want := range map[string]string{
		"https://a.example:8443/w?key=s3cret":               "https://a.example:8443/w",
		"https://a.example/services/T0/B0/s3crets3crets3cr": "https://a.example/[redacted]",
	} {
		c, err := New(Config{URL: address})
		if err != nil || c.Target() != want {
			t.Errorf("%v, target %s, want %s", err, c.Target(), want)
		}
	}
}

func ExampleClient_Post() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.Post(context.Background(), nil, []byte("packet"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var wait *sinkqueue.Wait
	fmt.Println(answer.Status, errors.As(answer.Err(false), &wait), wait.After)
	// Output: 429 true 30s
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		in          Config
		timeout     time.Duration
		connections int
	}{{Config{}, 10 * time.Second, 1}, {Config{Timeout: -1, Connections: -1}, 10 * time.Second, 1}, {Config{Timeout: 1, Connections: 7}, 1, 7}} {
		tt.in.URL = "http://127.0.0.1:1"
		c, err := New(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		tr := c.client.Transport.(*http.Transport)
		if c.client.Timeout != tt.timeout || tr.MaxConnsPerHost != tt.connections || tr.MaxIdleConnsPerHost != tt.connections || c.cfg.UserAgent != "statsd-admin" {
			t.Errorf("timeout %v, %d connections, want %v and %d", c.client.Timeout, tr.MaxConnsPerHost, tt.timeout, tt.connections)
		}
	}
}

// writes counts the calls of Write of a connection.
type writes struct {
	net.Conn
	n *atomic.Int32
}

func (w writes) Write(b []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(b)
}

// TestBodyIsWrittenAtOnce has one call for the header and the begin of the body, and
// one for the rest.
func TestBodyIsWrittenAtOnce(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 100<<10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes of the body arrived, %v", len(got), err)
		}
	}))
	defer srv.Close()
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var n atomic.Int32
	transport := c.client.Transport.(*http.Transport)
	opened := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := opened(ctx, network, address)
		if d, ok := conn.(direct); ok {
			conn = direct{writes{d.Conn, &n}}
		}
		return conn, err
	}
	if a, err := c.Post(t.Context(), nil, body); err != nil || a.Err(false) != nil {
		t.Fatal(a, err)
	}
	if n := n.Load(); n < 1 || n > 2 {
		t.Errorf("%d calls of Write", n)
	}
}

// TestPlainBody is read from a reader that the client does not know.
func TestPlainBody(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		defer near.Close()
		if n, err := (direct{near}).ReadFrom(strings.NewReader("text")); n != 4 || err != nil {
			t.Error(n, err)
		}
	}()
	if got, err := io.ReadAll(far); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestVanishedReceiver: a request without an answer is the last of its connection, also
// over HTTP/2, whose connections outlive requests.
func TestVanishedReceiver(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var dials atomic.Int32
	var gone atomic.Bool
	tr := c.client.Transport.(*http.Transport)
	tr.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened, err := new(net.Dialer).DialContext(ctx, network, address)
		if dials.Add(1) == 1 {
			return sinktest.Silent{Conn: opened, Gone: &gone}, err
		}
		return opened, err
	}
	answered := func(connections int32) {
		t.Helper()
		a, err := c.Post(t.Context(), nil, []byte("a"))
		if err != nil || string(a.Body) != "HTTP/2.0" || dials.Load() != connections {
			t.Fatalf("%+v, %v over connection %d, want %d", a, err, dials.Load(), connections)
		}
	}
	answered(1)
	answered(1)
	gone.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Post(ctx, nil, []byte("a")); !errors.Is(err, sinkqueue.ErrAmbiguous) {
		t.Errorf("%v, want an unknown delivery", err)
	}
	answered(2)
	answered(2)
}

// mute is a listener whose first connection never gets an answer.
type mute struct {
	net.Listener
	first net.Conn
}

func (m *mute) Accept() (c net.Conn, err error) {
	if m.first == nil {
		if m.first, err = m.Listener.Accept(); err != nil {
			return nil, err
		}
	}
	return m.Listener.Accept()
}

// TestMuteReceiver: a connection that is never established is given up, and does not keep
// the place of another.
func TestMuteReceiver(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "done") }))
	m := &mute{Listener: srv.Listener}
	srv.Listener = m
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Config{URL: srv.URL, TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Post(t.Context(), nil, []byte("a")); err == nil || errors.Is(err, sinkqueue.ErrAmbiguous) {
		t.Errorf("%v, want an error about a request that was not sent", err)
	}
	c.client.Timeout = 5 * time.Second // to wait for the first connection is no failure
	for n := 1; ; n++ {
		a, err := c.Post(t.Context(), nil, []byte("a"))
		if err == nil && string(a.Body) == "done" {
			break
		}
		if n == 20 { // the machine can be too busy for some
			t.Fatalf("%+v, %v", a, err)
		}
	}
	m.first.Close()
}
