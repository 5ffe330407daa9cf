package admin

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzRawHTTP sends arbitrary bytes to a server over loopback and closes the sending
// side. The output must be a sequence of complete responses with the mandatory
// fields, nothing may have panicked, and the server must keep working.
func FuzzRawHTTP(f *testing.F) {
	for _, seed := range []string{
		"", "\r\n", "\n\n\n", probe, probe + probe, "GET", "GET /ready", "GET /ready HTTP/1.1", "GET /ready HTTP/1.1\r\n\r\n",
		request("GET /ready HTTP/1.1") + request("HEAD /help HTTP/1.1") + request("POST /reset_counters HTTP/1.1"),
		request("GET /ready HTTP/1.0", "Connection: keep-alive") + probe,
		request("POST /runtime_modify HTTP/1.1", "Content-Type: "+formType, "Content-Length: 3") + "a=b" + probe,
		request("POST /ready HTTP/1.1", "Transfer-Encoding: chunked") + "3\r\nabc\r\n0\r\n\r\n" + probe,
		request("POST /ready HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 3") + "0\r\n\r\n" + probe,
		request("POST /ready HTTP/1.1", "Content-Length: 3", "Expect: 100-continue"),
		request("GET /stats?filter=(&format=json HTTP/1.1", "Accept-Encoding: gzip, zstd"), request("GET / HTTP/1.1", "Accept-Encoding: zstd"),
		request("GET http://localhost/help?%zz HTTP/1.1"), request("OPTIONS * HTTP/1.1"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		request("GET /" + strings.Repeat("x", 9000) + " HTTP/1.1"), request("GET /ready HTTP/1.1", "X: "+strings.Repeat("x", 9000)),
		request("POST /logging?level=off HTTP/1.1", "Origin: null"), request("GET /ready HTTP/1.1", "X: a\r\n b") + probe,
	} {
		f.Add([]byte(seed))
	}
	world := newWorld()
	sources := world.sources()
	sources.Quit = nil
	s := start(f, Config{Sources: sources, Limits: Limits{ReadTimeout: time.Second}})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = c.Write(raw) // the server may close before it has all
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		out, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%q: the connection hangs after %q", raw, out)
		}
		checkAnswers(t, raw, string(out))
		if n := s.metrics.panics.Value(); n != 0 {
			t.Fatalf("%q: recovered from %d panics", raw, n)
		}
		if r := s.Request("GET", "/ready", nil); r.Status != 200 {
			t.Fatalf("%q: /ready has status %d afterwards", raw, r.Status)
		}
	})
}

// checkAnswers parses responses to requests with unknown methods. If a response has a
// length and no body, its request was a HEAD.
func checkAnswers(t *testing.T, raw []byte, out string) {
	for out != "" {
		head, rest, ok := strings.Cut(out, "\r\n\r\n")
		if !ok || !strings.HasPrefix(head, "HTTP/1.1 ") {
			t.Fatalf("%q: got %q", raw, out)
		}
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head+"\r\n\r\n")), &http.Request{Method: "HEAD"})
		if err != nil {
			t.Fatalf("%q: %v in %q", raw, err, head)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Server": "proxy", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := resp.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Fatalf("%q: %s is %q", raw, name, got)
			}
		}
		if rest == "" || strings.HasPrefix(rest, "HTTP/1.1 ") {
			out = rest
			continue
		}
		br := bufio.NewReader(strings.NewReader(out))
		if resp, err = http.ReadResponse(br, &http.Request{Method: "GET"}); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatalf("%q: reading %q: %v", raw, out, err)
		}
		left, _ := io.ReadAll(br)
		out = string(left)
	}
}
