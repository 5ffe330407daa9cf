package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// That package's clock goroutine stops on its own some time later.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// testTime is the current time for servers under test.
func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }

// logBuffer is a log for tests to read.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newServer returns a server without a socket. At the end of the test, the views of its
// store must be closed.
func newServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = testTime
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.store.OpenViews(); n != 0 {
			t.Errorf("%d views are open", n)
		}
	})
	return s
}

// start returns a server on a loopback port that is shut down at the end of the test.
func start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Address == "" {
		cfg.Address = "127.0.0.1:0"
	}
	s := newServer(t, cfg)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

// dial connects to s, with a deadline on the connection.
func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// talk sends raw bytes and returns everything received until the server closes the
// connection.
func talk(t testing.TB, s *Server, raw string) string {
	t.Helper()
	c := dial(t, s)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset by peer") {
		t.Fatalf("reading the answer to %.200q: %v after %q", raw, err, out)
	}
	return string(out)
}

// probe is a request that closes its connection.
const probe = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// answer is a parsed response.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// parseAnswers splits the bytes of a connection into responses. The methods belong to the
// requests; past their end GET is assumed.
func parseAnswers(t testing.TB, raw string, methods ...string) []answer {
	t.Helper()
	var out []answer
	r := bufio.NewReader(strings.NewReader(raw))
	for {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			return out
		}
		method := "GET"
		if len(out) < len(methods) {
			method = methods[len(out)]
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d of %q: %v", len(out), raw, err)
		}
		body, err := io.ReadAll(resp.Body)
		out = append(out, answer{resp.StatusCode, resp.Header, string(body), err})
	}
}

// get sends a request over a new connection.
func get(t testing.TB, s *Server, path string, header ...string) answer {
	t.Helper()
	raw := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	for _, h := range header {
		raw += h + "\r\n"
	}
	answers := parseAnswers(t, talk(t, s, raw+"\r\n"))
	if len(answers) != 1 {
		t.Fatalf("GET %s: %d answers", path, len(answers))
	}
	return answers[0]
}
