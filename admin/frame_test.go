package admin

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// request returns a complete request with additional header fields.
func request(first string, fields ...string) string {
	raw := first + "\r\nHost: localhost\r\n"
	for _, f := range fields {
		raw += f + "\r\n"
	}
	return raw + "\r\n"
}

func TestFraming(t *testing.T) {
	s := start(t, Config{})
	long := strings.Repeat("x", 8<<10)
	many := make([]string, 70)
	for i := range many {
		many[i] = fmt.Sprintf("X-%d: y", i)
	}
	tests := []struct {
		name, raw string
		status    int
		stays     bool // a second request on the connection is answered
	}{
		{"get", request("GET /ready HTTP/1.1"), 200, true},
		{"get-zero-length", request("GET /ready HTTP/1.1", "Content-Length: 0"), 200, true},
		{"http10-closes", request("GET /ready HTTP/1.0"), 200, false},
		{"http10-keep-alive", request("GET /ready HTTP/1.0", "Connection: keep-alive"), 200, true},
		{"close-in-any-case", request("GET /ready HTTP/1.1", "Connection: Close"), 200, false},
		{"close-in-list", request("GET /ready HTTP/1.1", "Connection: x, close"), 200, false},
		{"post-body", request("POST /ready HTTP/1.1", "Content-Length: 3") + "a=b", 200, true},
		{"chunked", request("POST /ready HTTP/1.1", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, false},
		{"chunked-http10", request("POST /ready HTTP/1.0", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, false},
		{"identity", request("POST /ready HTTP/1.1", "Transfer-Encoding: identity"), 400, false},
		{"chunked-and-length", request("POST /ready HTTP/1.1", "Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, false},
		{"two-lengths", request("POST /ready HTTP/1.1", "Content-Length: 3", "Content-Length: 3") + "a=b", 400, false},
		{"length-list", request("POST /ready HTTP/1.1", "Content-Length: 3, 3") + "a=b", 400, false},
		{"length-sign", request("POST /ready HTTP/1.1", "Content-Length: +3") + "a=b", 400, false},
		{"length-negative", request("POST /ready HTTP/1.1", "Content-Length: -3") + "a=b", 400, false},
		{"length-huge", request("POST /ready HTTP/1.1", "Content-Length: 99999999999999999999"), 400, false},
		{"body-on-get", request("GET /ready HTTP/1.1", "Content-Length: 3") + "a=b", 400, false},
		{"body-on-head", request("HEAD /ready HTTP/1.1", "Content-Length: 3") + "a=b", 400, false},
		{"expect", request("POST /ready HTTP/1.1", "Content-Length: 3", "Expect: 100-continue") + "a=b", 417, false},
		{"expect-other", request("POST /ready HTTP/1.1", "Content-Length: 3", "Expect: much") + "a=b", 417, false},
		{"upgrade", request("GET /ready HTTP/1.1", "Connection: upgrade", "Upgrade: websocket"), 400, false},
		{"content-encoding", request("POST /ready HTTP/1.1", "Content-Length: 3", "Content-Encoding: gzip") + "a=b", 415, false},
		{"too-many-fields", request("GET /ready HTTP/1.1", many...), 400, false},
		{"one-field-more", request("GET /ready HTTP/1.1", many[:64]...), 400, false},
		{"most-fields", request("GET /ready HTTP/1.1", many[:63]...), 200, true},
		{"big-header", request("GET /ready HTTP/1.1", "X: "+long), 431, false},
		{"huge-header", request("GET /ready HTTP/1.1", "X: "+long+long+long), 431, false},
		{"big-target", request("GET /ready?" + long + " HTTP/1.1"), 414, false},
		{"huge-target", request("GET /ready?" + long + long + long + " HTTP/1.1"), 414, false},
		{"longest-target", request("GET /ready?" + long[:len(long)-7] + " HTTP/1.1"), 200, true},
		{"big-body", request("POST /ready HTTP/1.1", "Content-Length: 65537"), 413, false},
		{"largest-body", request("POST /ready HTTP/1.1", "Content-Length: 65536") + strings.Repeat("x", 65536), 200, true},
		{"most-parameters", request("GET /ready?" + strings.Repeat("a&", 127) + "b HTTP/1.1"), 200, true},
		{"more-parameters", request("GET /ready?" + strings.Repeat("a&", 128) + "b HTTP/1.1"), 400, false},
		{"long-parameter", request("GET /ready?a=" + strings.Repeat("x", 4097) + " HTTP/1.1"), 400, false},
		{"folded", request("GET /ready HTTP/1.1", "X: a\r\n b"), 400, false},
		{"folded-tab", request("GET /ready HTTP/1.1", "X: a\r\n\tTransfer-Encoding: chunked"), 400, false},
		{"space-before-colon", request("GET /ready HTTP/1.1", "X : a"), 400, false},
		{"space-in-name", request("GET /ready HTTP/1.1", "X Y: a"), 400, false},
		{"no-colon", request("GET /ready HTTP/1.1", "X"), 400, false},
		{"no-name", request("GET /ready HTTP/1.1", ": x"), 400, false},
		{"bare-lf", "GET /ready HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400, false},
		{"lf-lf", "GET /ready HTTP/1.1\r\nHost: localhost\n\nX: y\r\n\r\n", 400, false},
		{"nul-in-value", request("GET /ready HTTP/1.1", "X: a\x00b"), 400, false},
		{"two-hosts", request("GET /ready HTTP/1.1", "Host: localhost"), 400, false},
		{"no-host", "GET /ready HTTP/1.1\r\n\r\n", 400, false},
		{"http2", request("GET /ready HTTP/2.0"), 400, false},
		{"http09", request("GET /ready HTTP/0.9"), 400, false},
		{"preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, false},
		{"no-version", "GET /ready\r\n\r\n", 400, false},
		{"connect", request("CONNECT localhost:80 HTTP/1.1"), 400, false},
		{"connect-path", request("CONNECT /ready HTTP/1.1"), 400, false},
		{"trace", request("TRACE /ready HTTP/1.1"), 400, false},
		{"unknown-method", request("BREW /ready HTTP/1.1"), 400, false},
		{"lower-case-method", request("get /ready HTTP/1.1"), 400, false},
		{"bad-method", request("G@T /ready HTTP/1.1"), 400, false},
		{"relative-target", request("GET ready HTTP/1.1"), 400, false},
		{"foreign-scheme", request("GET file:///ready HTTP/1.1"), 400, false},
		{"no-authority", request("GET http:///ready HTTP/1.1"), 400, false},
		{"absolute-target", request("GET http://localhost/ready HTTP/1.1"), 200, true},
		{"options-star", request("OPTIONS * HTTP/1.1"), 404, true},
		{"nothing-readable", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			method, _, _ := strings.Cut(tt.raw, " ")
			answers := parseAnswers(t, talk(t, s, tt.raw+probe), method)
			if len(answers) == 0 || answers[0].status != tt.status {
				t.Fatalf("got %+v, want status %d", answers, tt.status)
			}
			if got := len(answers) == 2; got != tt.stays || len(answers) > 2 {
				t.Errorf("%d answers, connection to stay: %t", len(answers), tt.stays)
			}
			if tt.stays && (answers[1].status != 200 || answers[1].body != "LIVE\n") {
				t.Errorf("probe: %+v", answers[1])
			}
		})
	}
}

// TestBareLF sends headers whose lines end in a bare LF, and no more. The client waits for
// an answer then.
func TestBareLF(t *testing.T) {
	s := start(t, Config{Limits: Limits{ReadTimeout: time.Hour}})
	for _, raw := range []string{
		"GET /ready HTTP/1.0\n\n",
		"GET /ready HTTP/1.1\nHost: localhost\n\n",
		"GET /ready HTTP/1.1\r\nHost: localhost\n\n",
		"GET /ready HTTP/1.1\nHost: localhost\n\r\n",
		"POST /ready HTTP/1.1\nHost: localhost\nContent-Length: 3\n\na=b",
	} {
		a := parseAnswers(t, talk(t, s, raw))
		if len(a) != 1 || a[0].status != 400 || a[0].body != "malformed request: lines must end in CR LF\n" {
			t.Errorf("%q: %+v", raw, a)
		}
	}
}

// TestHeaderInPieces sends a header byte by byte. CR LF between the pieces is no bare LF.
func TestHeaderInPieces(t *testing.T) {
	client, server := net.Pipe()
	c := &conn{Conn: server, below: server}
	const raw = "POST /ready HTTP/1.1\r\nHost: localhost\r\n\r\na\n\nb"
	go func() {
		for i := range len(raw) {
			io.WriteString(client, raw[i:i+1])
		}
		client.Close()
	}()
	if got, err := io.ReadAll(c); err != nil || string(got) != raw {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSmugglingCorpus sends requests with an ambiguous end, each followed by a second
// request. The second one must be answered once, or the connection must be closed
// before it.
func TestSmugglingCorpus(t *testing.T) {
	s := start(t, Config{})
	codings := []string{
		"Transfer-Encoding: chunked", "transfer-encoding: chunked", "Transfer-Encoding:chunked", "Transfer-Encoding : chunked",
		"Transfer-Encoding:\tchunked", " Transfer-Encoding: chunked", "X: y\r\n Transfer-Encoding: chunked", "Transfer-Encoding: xchunked",
		"Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: gzip, chunked",
		"Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked\x0b", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
		"Transfer\x00-Encoding: chunked", "Transfer_Encoding: chunked", "TE: chunked", "Transfer-Encoding: ", "X: y\nTransfer-Encoding: chunked",
	}
	lengths := []string{"", "Content-Length: 5", "Content-Length: 0", "Content-Length: 05", "Content-Length: 5\r\nContent-Length: 0",
		"Content-Length: 5, 0", "Content-Length:\t5", "Content-Length : 5", "content-length: 5", "Content-Length: 0x5", "X: y\nContent-Length: 5"}
	n := 0
	for _, method := range []string{"GET", "POST"} {
		for _, coding := range codings {
			for _, length := range lengths {
				fields := []string{}
				for _, f := range []string{length, coding} {
					if f != "" {
						fields = append(fields, f)
					}
				}
				raw := request(method+" /ready HTTP/1.1", fields...) + "0\r\n\r\n"
				n++
				answers := parseAnswers(t, talk(t, s, raw+probe), method)
				live := 0
				for _, a := range answers[min(1, len(answers)):] {
					if a.body == "LIVE\n" {
						live++
					}
				}
				if len(answers) > 2 || live > 1 {
					t.Errorf("%q: %d answers, probe answered %d times: %+v", raw, len(answers), live, answers)
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d requests, want 200", n)
	}
}

// TestRefusedBodiesAreNotAwaited sends heads of refused requests without the promised
// bodies.
func TestRefusedBodiesAreNotAwaited(t *testing.T) {
	s := start(t, Config{Limits: Limits{ReadTimeout: time.Hour}})
	for _, fields := range [][]string{
		{"Transfer-Encoding: chunked"}, {"Transfer-Encoding: chunked", "Content-Length: 5"}, {"Content-Length: 5", "Expect: 100-continue"},
		{"Content-Length: 5", "Expect: x"}, {"Content-Length: 5", "Content-Encoding: gzip"}, {"Content-Length: 5", "Upgrade: x"}, {"Content-Length: 99999999"},
	} {
		a := parseAnswers(t, talk(t, s, request("POST /ready HTTP/1.1", fields...)))
		if len(a) != 1 || a[0].status < 400 {
			t.Errorf("%q: %+v", fields, a)
		}
	}
	if a := parseAnswers(t, talk(t, s, request("GET /ready HTTP/1.1", "Content-Length: 5"))); len(a) != 1 || a[0].status != 400 {
		t.Errorf("GET: %+v", a)
	}
}

func TestQueryLimits(t *testing.T) {
	s := newServer(t, Config{})
	many := strings.Repeat("a=b&", 128)
	for target, want := range map[string]int{
		"/ready?" + many:                                 200,
		"/ready?" + many + "c":                           400,
		"/ready?a=" + strings.Repeat("x", 4<<10):         200,
		"/ready?a=" + strings.Repeat("x", 4<<10) + "y":   400,
		"/ready?a=" + strings.Repeat("%41", 2<<10):       200,
		"/ready?" + strings.Repeat("x", 5000) + "=value": 200,
	} {
		if got := s.Request("GET", target, nil).Status; got != want {
			t.Errorf("GET %.30s… of %d bytes: status %d, want %d", target, len(target), got, want)
		}
	}
}

func TestNegativeLimitsAreNone(t *testing.T) {
	s := start(t, Config{Limits: Limits{HeaderBytes: -1, TargetBytes: -1, Headers: -1, QueryParams: -1, QueryValue: -1,
		BodyBytes: -1, Connections: -1, ConnectionsPerPeer: -1, ReadTimeout: -1, IdleTimeout: -1, StreamStall: -1,
		ResponseTime: -1, HeavyRunning: -1, HeavyWaiting: -1, HeavyWait: -1, Compressors: -1, RegexParallel: -1, StatsStreams: -1, AuditEntries: -1}})
	err := s.Handle(Endpoint{Path: "/any", Mutates: true, Serve: func(*Response, *Request) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 20<<10)
	raw := "POST /any?" + strings.Repeat("a&", 500) + "b=" + long + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
		"Content-Length: 100000\r\n" + strings.Repeat("X: y\r\n", 100) + "X: " + long + "\r\n\r\n" + strings.Repeat("z", 100000)
	answers := parseAnswers(t, talk(t, s, raw))
	if len(answers) != 1 || answers[0].status != 200 {
		t.Errorf("got %+v", answers)
	}
	if a := get(t, s, "/stats", "Accept-Encoding: gzip"); a.status != 200 || a.header.Get("content-encoding") != "" {
		t.Errorf("got %+v", a)
	}
	if got := len(s.Audit(10)); got != 1 {
		t.Errorf("%d audit entries, want 1", got)
	}
}
