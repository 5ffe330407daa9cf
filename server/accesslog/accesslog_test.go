package accesslog

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

func request() *Entry {
	headers := map[string]string{"user-agent": "curl/8", "x-forwarded-for": "10.0.0.1, 10.0.0.2", "x-request-id": "r-1", "x-odd": `a"b\`}
	return &Entry{
		Start: time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.FixedZone("x", 3600)), Duration: 1234567 * time.Microsecond,
		Method: "GET", Target: "/stats?filter=a", Authority: "127.0.0.1:9901", Scheme: "http", Protocol: "HTTP/1.1",
		Status: 200, BytesReceived: 5, BytesSent: 600,
		RequestHeader:  func(name string) string { return headers[name] },
		ResponseHeader: func(name string) string { return map[string]string{"x-proxy-upstream-service-time": "12"}[name] },
	}
}

// logged returns the output of a logger with the given format.
func logged(t *testing.T, format string, entries ...*Entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := New(Config{Path: path, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		l.Log(e)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDefaultLine(t *testing.T) {
	want := `[2026-03-04T04:06:07.089Z] "GET /stats?filter=a HTTP/1.1" 200 - 5 600 1234 12 "10.0.0.1, 10.0.0.2" "curl/8" "r-1" "127.0.0.1:9901" "-"` + "\n"
	if got := logged(t, "", request()); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	empty := `[0001-01-01T00:00:00.000Z] "- - -" 0 - 0 0 0 - "-" "-" "-" "-" "-"` + "\n"
	if got := logged(t, "", &Entry{}); got != empty {
		t.Errorf("got  %swant %s", got, empty)
	}
	if got := DefaultFormat("x-edge"); !strings.Contains(got, "%REQ(X-EDGE-ORIGINAL-PATH?:PATH)%") || !strings.HasSuffix(got, "\n") {
		t.Errorf("format %s", got)
	}
}

func TestOperators(t *testing.T) {
	tests := []struct{ format, want string }{
		{"%PROTOCOL%", "HTTP/1.1"}, {"100%% %RESPONSE_CODE%", "100% 200"}, {"%REQ(:METHOD)%%REQ(:PATH)%", "GET/stats?filter=a"},
		{"%REQ(:SCHEME)% %REQ(HOST)%", "http 127.0.0.1:9901"}, {"%REQ(X-NONE?USER-AGENT)%", "curl/8"}, {"%REQ(USER-AGENT?X-NONE)%", "curl/8"},
		{"%REQ(User-Agent):3%", "cur"}, {"%REQ(User-Agent):1%", "c"}, {"%REQ(X-NONE?X-NEITHER)%", "-"}, {"%RESP(X-NONE)%", "-"}, {"%REQ(X-ODD)%", `a\"b\\`},
		{"%RESPONSE_FLAGS%|%UPSTREAM_HOST%", "-|-"}, {"text\n\n", "text"}, {"two\nlines", "two\nlines"},
	}
	for _, tt := range tests {
		if got := logged(t, tt.format, request()); got != tt.want+"\n" {
			t.Errorf("%q: got %q, want %q", tt.format, got, tt.want+"\n")
		}
	}
}

// TestUpstream has values that only requests to other hosts have.
func TestUpstream(t *testing.T) {
	e := &Entry{Flags: "UF", UpstreamHost: "10.0.0.3:80"}
	if got := logged(t, "%RESPONSE_FLAGS% %UPSTREAM_HOST%", e); got != "UF 10.0.0.3:80\n" {
		t.Errorf("got %q", got)
	}
}

func TestFormatErrors(t *testing.T) {
	tests := []struct{ format, want string }{
		{"%START", `accesslog: format: missing closing % in "%START"`},
		{"%NOPE%", `accesslog: format: operator "NOPE" is not one of BYTES_RECEIVED, BYTES_SENT, DOWNSTREAM_REMOTE_ADDRESS, DURATION, PRINCIPAL, PROTOCOL, RESPONSE_CODE, RESPONSE_FLAGS, START_TIME, UPSTREAM_HOST, REQ(header), RESP(header)`},
		{"%REQ(A%", `operator "REQ(A" is not one of`}, {"%REQ()%", `"REQ()" names no header`}, {"%REQ(A?)%", `"REQ(A?)" names no header`},
		{"%REQ(A):0%", `length ":0" is not a positive number`}, {"%REQ(A)5%", `length "5" is not a positive number`},
		{"%REQ(Authorization)%", `header "Authorization" is secret and cannot be logged`}, {"%REQ(A?COOKIE)%", `header "COOKIE" is secret and cannot be logged`},
		{"%RESP(SET-COOKIE)%", `header "SET-COOKIE" is secret and cannot be logged`},
	}
	for _, tt := range tests {
		_, err := New(Config{Path: filepath.Join(t.TempDir(), "a"), Format: tt.format})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: err = %v, want %s", tt.format, err, tt.want)
		}
	}
	if _, err := New(Config{Path: filepath.Join(t.TempDir(), "none", "a.log")}); err == nil {
		t.Error("opened a file in a directory that does not exist")
	}
}

// TestSecretParametersAreNotLogged sends parameters that no endpoint knows.
func TestSecretParametersAreNotLogged(t *testing.T) {
	for target, want := range map[string]string{
		"/stats?format=json&filter=token&x=": "/stats?format=json&filter=token&x=", "/stats?": "/stats?", "/stats?usedonly": "/stats?usedonly",
		"/stats?token=s3cret&format=json": "/stats?token&format=json", "/x?a=b&API-Key=s3cret": "/x?a=b&API-Key", "/x?tok%65n=s3cret": "/x?tok%65n",
		"/x?a=eyJ.s3cret.b": "/x?a", "/x?a=Bearer+s3crets3crets3cret": "/x?a", "/x?password=": "/x?password=", "/x?%zz=%zz": "/x?%zz=%zz",
	} {
		if got := logged(t, "%REQ(:PATH)%", &Entry{Target: target}); got != want+"\n" {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestOneLinePerRequest checks that no request, whatever its bytes, can write a
// second line or a control character.
func TestOneLinePerRequest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func() string {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return "\r\n[fake] " + string(b) + "\x1b[0m"
	}
	const n = 10000
	entries := make([]*Entry, n)
	for i := range entries {
		header := noise()
		entries[i] = &Entry{Method: noise(), Target: noise(), Authority: noise(), Protocol: noise(), UpstreamHost: noise(), RequestHeader: func(string) string { return header }}
	}
	lines := strings.Split(strings.TrimSuffix(logged(t, "", entries...), "\n"), "\n")
	if len(lines) != n {
		t.Fatalf("%d lines, want %d", len(lines), n)
	}
	for _, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			t.Fatalf("line %q", line)
		}
	}
	long := &Entry{Target: strings.Repeat("x", 1<<20)}
	if got := logged(t, "", long); len(got) > logfile.MaxLineBytes+1 || strings.Count(got, "\n") != 1 {
		t.Errorf("line of %d bytes", len(got))
	}
}

func TestReopenKeepsEveryLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		l, err := New(Config{Path: path, Format: "%REQ(:PATH)%", FlushInterval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		l.Log(&Entry{Target: "/1"})
		time.Sleep(2 * time.Second)
		l.Log(&Entry{Target: "/2"})
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
		l.Log(&Entry{Target: "/3"})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{path + ".1": "/1\n/2\n", path: "/3\n"} {
			if got, err := os.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", filepath.Base(name), got, err)
			}
		}
		if l.Dropped()+l.Failed() != 0 {
			t.Error("lines were lost")
		}
	})
}

func TestFullBufferDrops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := New(Config{Path: path, Format: "%REQ(:PATH)%", FlushBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &Entry{Target: strings.Repeat("x", 8000)}
	for range 200 { // without a flush
		l.Log(e)
	}
	if l.Dropped() == 0 {
		t.Error("the buffer grew without bound")
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 || uint64(info.Size()/8001)+l.Dropped() != 200 {
		t.Errorf("size %d, dropped %d, %v", info.Size(), l.Dropped(), err)
	}
}

// TestFailedLines counts lines that the disk does not take.
func TestFailedLines(t *testing.T) {
	l, err := New(Config{Path: "/dev/full"})
	if err != nil {
		t.Skip(err)
	}
	l.Log(&Entry{})
	l.Log(&Entry{})
	if err := l.Flush(); err == nil || l.Failed() != 2 || l.Dropped() != 0 {
		t.Errorf("%d failed, %d dropped, %v", l.Failed(), l.Dropped(), err)
	}
	_ = l.Close()
}

// TestFlushByDefault writes lines once 64 KiB are buffered, and after 10 s.
func TestFlushByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		l, err := New(Config{Path: path, Format: "%REQ(:PATH)%"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		size := func() int64 {
			t.Helper()
			synctest.Wait()
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		for range 63 {
			l.Log(&Entry{Target: strings.Repeat("x", 1023)})
		}
		l.Log(&Entry{Target: strings.Repeat("x", 1022)})
		if n := size(); n != 0 {
			t.Errorf("%d bytes are written before 64 KiB are buffered", n)
		}
		l.Log(&Entry{})
		if n := size(); n < 64<<10 {
			t.Errorf("%d bytes are written at 64 KiB", n)
		}
		before := size()
		l.Log(&Entry{})
		time.Sleep(10 * time.Second)
		if n := size(); n <= before {
			t.Errorf("nothing is written after 10 s")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// FuzzFormat checks that compiling a format never panics, and that a format of one
// line writes one line per request.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{DefaultFormat("x-envoy"), "%", "%%", "%REQ(A?B):5%", "%%REQ(A)%%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		pieces, err := compile(format)
		if err != nil {
			return
		}
		e := request()
		e.Target = "/\n"
		breaks := 0
		for _, p := range pieces {
			if p.value != nil {
				if strings.ContainsAny(string(p.value.appendLine(nil, e)), "\r\n") {
					t.Errorf("%q: a value with a line break", format)
				}
			} else {
				breaks += strings.Count(p.text, "\n")
			}
		}
		if breaks > strings.Count(format, "\n") {
			t.Errorf("%q: %d line breaks", format, breaks)
		}
	})
}

func BenchmarkLog(b *testing.B) {
	l, err := New(Config{Path: "/dev/null"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	e := request()
	e.RequestHeader, e.ResponseHeader = nil, nil
	b.ReportAllocs()
	for b.Loop() {
		l.Log(e)
	}
	b.StopTimer()
	cancel()
	<-done
}
