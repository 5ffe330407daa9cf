package admin

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/waittest"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
)

// lines writes n numbered lines of 100 bytes in chunks of the given number of lines.
func lines(w io.Writer, n, piece int) error {
	var buf []byte
	for i := range n {
		buf = fmt.Appendf(buf, "%-99d\n", i)
		if (i+1)%piece == 0 || i == n-1 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

func linesText(n int) string {
	var b bytes.Buffer
	if err := lines(&b, n, 1); err != nil {
		panic(err)
	}
	return b.String()
}

// TestResponsesThatFit expects the length of responses that fill the buffer, however
// they are written.
func TestResponsesThatFit(t *testing.T) {
	s := start(t, Config{})
	for path, write := range map[string]func(*Response, int) (int, error){
		"/bytes": func(w *Response, n int) (int, error) { return w.Write(make([]byte, n)) },
		"/text":  func(w *Response, n int) (int, error) { return w.WriteString(strings.Repeat("x", n)) },
	} {
		for _, more := range []int{0, 1} {
			s.Handle(Endpoint{Path: path, Serve: func(w *Response, _ *Request) error {
				_, err := write(w, responseBuffer+more)
				return err
			}})
			a := parseAnswers(t, talk(t, s, request("GET "+path+" HTTP/1.1", "Connection: close")))
			if len(a) != 1 || len(a[0].body) != responseBuffer+more || (a[0].header.Get("content-length") != "") != (more == 0) {
				t.Errorf("%s: %d bytes more than fit: %d bytes, %v", path, more, len(a[0].body), a[0].header)
			}
			s.Remove(path)
		}
	}
}

// TestStreamsArriveWhole sends responses with sizes around the buffer size in chunks
// with sizes around it, plain and compressed, over HTTP/1.1 and 1.0.
func TestStreamsArriveWhole(t *testing.T) {
	s := start(t, Config{})
	for _, n := range []int{0, 1, 9, 11, 655, 656, 700, 5000, 20000} {
		for _, piece := range []int{1, 7, 300, 330, 700, 2000} {
			path := fmt.Sprintf("/lines%d-%d", n, piece)
			s.Handle(Endpoint{Path: path, Serve: func(w *Response, _ *Request) error { return lines(w, n, piece) }})
			want := linesText(n)
			for _, encoding := range []string{"", "gzip", "zstd"} {
				for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
					raw := request("GET "+path+" "+proto, "Connection: close", "Accept-Encoding: "+encoding)
					a := parseAnswers(t, talk(t, s, raw))
					if len(a) != 1 || a[0].status != 200 || a[0].err != nil {
						t.Fatalf("%s %s %s: %d answers, %v", path, proto, encoding, len(a), a[0].err)
					}
					if got := unpack(t, a[0]); got != want {
						t.Errorf("%s %s %s: %d bytes, want %d", path, proto, encoding, len(got), len(want))
					}
					if got := a[0].header.Get("content-encoding"); got != encoding && len(want) >= compressFrom {
						t.Errorf("%s: content-encoding %q, want %q", path, got, encoding)
					}
					if whole := len(want) <= responseBuffer; whole != (a[0].header.Get("content-length") != "") {
						t.Errorf("%s: content-length %q of %d bytes", path, a[0].header.Get("content-length"), len(want))
					}
				}
			}
			if r := s.Request("GET", path, nil); string(r.Body) != want || r.Err != nil {
				t.Errorf("%s in process: %d bytes, %v", path, len(r.Body), r.Err)
			}
			if a := parseAnswers(t, talk(t, s, request("HEAD "+path+" HTTP/1.1")+probe), "HEAD"); len(a) != 2 || a[0].body != "" || a[1].body != "LIVE\n" {
				t.Errorf("HEAD %s: %+v", path, a)
			}
		}
	}
}

// unpack decodes the content encoding of a response.
func unpack(t *testing.T, a answer) string {
	t.Helper()
	var r io.Reader = strings.NewReader(a.body)
	var err error
	switch a.header.Get("content-encoding") {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer d.Close()
			r = d
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestChooseEncoding(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "GZIP": "gzip", "zstd": "zstd", "gzip, zstd": "zstd", "gzip, deflate, br, zstd": "zstd",
		"br": "", "identity": "", "*": "", "gzip;q=0": "", "gzip; q=0.5, zstd;q=0.4": "gzip", "gzip;q=1.0,zstd;q=0": "gzip",
		"zstd;q=0.5 , gzip;Q=0.5": "zstd", "identity, gzip;q=0.5": "", "gzip;q=0.5, identity;q=0.6, zstd;q=0.4": "",
		"gzip, identity": "gzip", "identity;q=0.5, gzip;q=0.5": "gzip", "identity;q=0, gzip;q=0.1": "gzip", "gzip;q=x": "", "gzip;q=2": "", "gzip;q=-1": "", "gzip;q=NaN": "", "gzip;x=1": "", "xgzip": "",
	} {
		if got := chooseEncoding([]string{accept}); got != want {
			t.Errorf("Accept-Encoding %q: %q, want %q", accept, got, want)
		}
	}
	if got := chooseEncoding([]string{"br", "gzip"}); got != "gzip" {
		t.Errorf("two fields: %q", got)
	}
}

// TestCompressorsAreLimited sends a request while all compressors are in use.
func TestCompressorsAreLimited(t *testing.T) {
	s := start(t, Config{Limits: Limits{Compressors: 1}})
	running, goOn := make(chan bool), make(chan bool)
	s.Handle(Endpoint{Path: "/long", Serve: func(w *Response, _ *Request) error {
		if err := lines(w, 1000, 1000); err != nil {
			return err
		}
		running <- true
		<-goOn
		return nil
	}})
	s.Handle(Endpoint{Path: "/short", Serve: func(w *Response, _ *Request) error { return lines(w, 100, 100) }})
	first := make(chan answer)
	go func() { first <- get(t, s, "/long", "Accept-Encoding: gzip") }()
	<-running
	if a := get(t, s, "/short", "Accept-Encoding: gzip"); a.header.Get("content-encoding") != "" || a.body != linesText(100) {
		t.Errorf("second answer: %v", a.header)
	}
	close(goOn)
	if a := <-first; a.header.Get("content-encoding") != "gzip" || unpack(t, a) != linesText(1000) {
		t.Errorf("first answer: %v", a.header)
	}
	if a := get(t, s, "/short", "Accept-Encoding: gzip"); a.header.Get("content-encoding") != "gzip" || unpack(t, a) != linesText(100) {
		t.Errorf("third answer: %v", a.header)
	}
}

// TestErrorsOfHandlers checks that an error before the first byte becomes a response,
// and a later one cuts the connection so that no client takes the response for
// complete.
func TestErrorsOfHandlers(t *testing.T) {
	log := new(logBuffer)
	s := start(t, Config{Logger: log.logger()})
	handle := func(path string, size int, err error) {
		s.Handle(Endpoint{Path: path, Serve: func(w *Response, _ *Request) error {
			w.SetType(typeJSON)
			w.SetHeader("x-test", "y")
			if err := lines(w, size, 10); err != nil {
				return err
			}
			return err
		}})
	}
	handle("/early", 10, &Error{Status: 409, Msg: "not now\n", Err: errors.New("cause with details")})
	handle("/plain", 10, errors.New("secret details"))
	handle("/zero", 10, &Error{Msg: "broken\n"})
	handle("/late", 5000, &Error{Status: 400, Msg: "too late\n"})
	for path, want := range map[string]answer{"/early": {status: 409, body: "not now\n"}, "/plain": {status: 500, body: "internal error\n"},
		"/zero": {status: 500, body: "broken\n"}} {
		a := get(t, s, path)
		if a.status != want.status || a.body != want.body || a.header.Get("content-type") != typeText || a.header.Get("x-test") != "" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, encoding := range []string{"", "gzip", "zstd"} {
		raw := talk(t, s, request("GET /late HTTP/1.1", "Accept-Encoding: "+encoding)+probe)
		a := parseAnswers(t, raw)
		if len(a) != 1 || a[0].err == nil || strings.HasSuffix(raw, "0\r\n\r\n") || strings.Contains(raw, "too late") {
			t.Errorf("cut stream (%s): %d answers, %v, ends in %q", encoding, len(a), a[0].err, raw[len(raw)-20:])
		}
	}
	// Without chunked encoding, only a reset shows that the response was cut.
	c := dial(t, s)
	io.WriteString(c, request("GET /late HTTP/1.0"))
	if _, err := io.ReadAll(c); err == nil {
		t.Error("a cut HTTP/1.0 answer ends as if it were complete")
	}
	if r := s.Request("GET", "/late", nil); r.Err == nil || r.Status != 200 {
		t.Errorf("in process: %d, %v", r.Status, r.Err)
	}
	for _, want := range []string{"cause with details", "secret details"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestPanics(t *testing.T) {
	log := new(logBuffer)
	s := start(t, Config{Logger: log.logger()})
	s.Handle(Endpoint{Path: "/early", Serve: func(w *Response, r *Request) error {
		io.WriteString(w, "half an answer")
		panic("about " + r.Query().Value("token"))
	}})
	s.Handle(Endpoint{Path: "/late", Serve: func(w *Response, _ *Request) error {
		if err := lines(w, 5000, 10); err != nil {
			return err
		}
		var list []int
		return fmt.Errorf("%d", list[len(list)])
	}})
	for range 2 {
		if a := get(t, s, "/early?token=hush"); a.status != 500 || a.body != "internal error\n" {
			t.Errorf("early panic: %+v", a)
		}
		if a := parseAnswers(t, talk(t, s, request("GET /late HTTP/1.1", "Accept-Encoding: zstd")+probe)); len(a) != 1 || a[0].err == nil {
			t.Errorf("late panic: %d answers, %v", len(a), a[0].err)
		}
	}
	if got := s.metrics.panics.Value(); got != 4 {
		t.Errorf("server.recovered_panics is %d, want 4", got)
	}
	if !strings.Contains(log.String(), "stream_test.go") || !strings.Contains(log.String(), "index out of range") || strings.Contains(log.String(), "hush") {
		t.Errorf("the log lacks the stack, or has the token:\n%s", log)
	}
	get(t, s, "/early")
	if a := get(t, s, "/early"); a.status != 500 || !strings.Contains(a.body, "switched off") {
		t.Errorf("after three panics: %+v", a)
	}
	if got := s.metrics.panics.Value(); got != 5 {
		t.Errorf("server.recovered_panics is %d, want 5", got)
	}
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("/ready: %+v", a)
	}
}

// TestPanicsAreForgotten spreads panics over more than a minute.
func TestPanicsAreForgotten(t *testing.T) {
	var p panicLog
	now := testTime()
	for i := range 10 {
		if p.note("/x", now.Add(time.Duration(i)*31*time.Second)) {
			t.Fatalf("switched off after panic %d", i)
		}
	}
	now = now.Add(time.Hour)
	p.note("/x", now)
	p.note("/x", now.Add(30*time.Second))
	if p.disabled("/x") || !p.note("/x", now.Add(59*time.Second)) || !p.disabled("/x") || p.disabled("/y") {
		t.Error("want /x to be switched off by the third panic within a minute")
	}
}

func TestEndpointsWithoutPanicsStayOn(t *testing.T) {
	broken := newWorld().sources()
	broken.State = func() string { panic("no state") }
	s := newServer(t, Config{Sources: broken})
	for range 5 {
		if r := s.Request("GET", "/ready", nil); r.Status != 500 || string(r.Body) != "internal error\n" {
			t.Errorf("got %d %q", r.Status, r.Body)
		}
	}
}

// stalled opens a connection that asks for path and reads nothing.
func stalled(t *testing.T, s *Server, path string) net.Conn {
	t.Helper()
	c := dial(t, s)
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request("GET "+path+" HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	return c
}

// endlessLines is a handler that writes until it is stopped.
func endlessLines(ended chan<- error) Handler {
	return func(w *Response, _ *Request) error {
		for {
			if err := lines(w, 1000, 1000); err != nil {
				ended <- err
				return err
			}
		}
	}
}

// endsGone waits until a handler is notified that its client is gone.
func endsGone(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrGone) {
			t.Errorf("the handler got %v, want ErrGone", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the handler still runs")
	}
}

func TestStalledReaderIsDropped(t *testing.T) {
	s := start(t, Config{Limits: Limits{StreamStall: 50 * time.Millisecond}})
	ended := make(chan error, 1)
	s.Handle(Endpoint{Path: "/endless", Serve: endlessLines(ended)})
	stalled(t, s, "/endless")
	endsGone(t, ended)
	waittest.Until(t, "the connection to be closed", func() bool { return s.connections.count() == 0 })
}

// TestCPUBoundResponsesAreSerialized sends large responses to several clients; one
// client does not read. They are rendered one at a time, and all others complete.
func TestCPUBoundResponsesAreSerialized(t *testing.T) {
	s := start(t, Config{Limits: Limits{StreamStall: time.Minute, HeavyRunning: 8}})
	s.slots = newSlots(2)
	var inside, most atomic.Int64
	s.Handle(Endpoint{Path: "/large", Heavy: true, CPUBound: true, Serve: func(w *Response, _ *Request) error {
		piece := make([]byte, responseBuffer)
		for i := range 200 {
			if i > 1 { // it holds a slot
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				runtime.Gosched()
				inside.Add(-1)
			}
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}})
	stalled(t, s, "/large")
	var ends sync.WaitGroup
	for range 4 {
		ends.Go(func() {
			if a := parseAnswers(t, talk(t, s, request("GET /large HTTP/1.1", "Connection: close"))); len(a) != 1 || len(a[0].body) != 200*responseBuffer {
				t.Errorf("got %d answers", len(a))
			}
		})
	}
	ends.Wait()
	if most.Load() != 1 {
		t.Errorf("%d answers were made at a time, want 1", most.Load())
	}
	if n := len(s.slots); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

func TestResponseTime(t *testing.T) {
	s := start(t, Config{Limits: Limits{ResponseTime: 80 * time.Millisecond}})
	ended := make(chan error, 1)
	s.Handle(Endpoint{Path: "/endless", Serve: endlessLines(ended)})
	begin := time.Now()
	raw := talk(t, s, request("GET /endless HTTP/1.1"))
	endsGone(t, ended)
	if a := parseAnswers(t, raw); len(a) != 1 || a[0].err == nil {
		t.Errorf("%d answers, %v", len(a), a[0].err)
	}
	if d := time.Since(begin); d < 80*time.Millisecond {
		t.Errorf("cut after %v", d)
	}
}

func TestScrapeTimeoutLowersTheLimit(t *testing.T) {
	for seconds, want := range map[string]time.Duration{
		"": time.Minute, "10": 10 * time.Second, "0.5": 500 * time.Millisecond, "60": time.Minute, "1e9": time.Minute,
		"0": time.Minute, "-1": time.Minute, "NaN": time.Minute, "Inf": time.Minute, "x": time.Minute,
	} {
		if got := scrapeTimeout(seconds, time.Minute); got != want {
			t.Errorf("%q: %v, want %v", seconds, got, want)
		}
	}
}

// TestScrapeTimeout checks that a response is cut at the scraper's timeout, read or
// unread, far below the limits of the server.
func TestScrapeTimeout(t *testing.T) {
	s := start(t, Config{Limits: Limits{ResponseTime: time.Hour, StreamStall: time.Hour}})
	ended := make(chan error, 1)
	s.Handle(Endpoint{Path: "/endless", Serve: endlessLines(ended)})
	for _, read := range []bool{true, false} {
		c := dial(t, s)
		if _, err := io.WriteString(c, request("GET /endless HTTP/1.1", "X-Prometheus-Scrape-Timeout-Seconds: 0.05")); err != nil {
			t.Fatal(err)
		}
		if read {
			go func() { _, _ = io.Copy(io.Discard, c) }() // ends when the answer is cut
		}
		endsGone(t, ended)
	}
}

// TestGateAndReady stalls the maximum number of large responses: further ones wait
// and are refused, and /ready, /live and /server_info still work.
func TestGateAndReady(t *testing.T) {
	s := start(t, Config{Limits: Limits{StreamStall: time.Hour, ResponseTime: time.Hour, HeavyWait: 30 * time.Millisecond, ShutdownTime: time.Millisecond}})
	ended := make(chan error, 4)
	var running atomic.Int32
	serve := endlessLines(ended)
	s.Handle(Endpoint{Path: "/heavy", Heavy: true, Serve: func(w *Response, r *Request) error {
		running.Add(1)
		return serve(w, r)
	}})
	for range 4 {
		stalled(t, s, "/heavy")
	}
	waittest.Until(t, "four answers to run", func() bool { return running.Load() == 4 })
	for _, path := range []string{"/heavy", "/stats"} {
		if a := get(t, s, path); a.status != 503 || a.header.Get("retry-after") != "1" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, path := range []string{"/ready", "/live", "/server_info", "/help"} {
		if a := get(t, s, path); a.status != 200 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	if got := s.metrics.busy.Value(); got != 2 {
		t.Errorf("admin.busy_rejected is %d, want 2", got)
	}
}

func TestGate(t *testing.T) {
	g := newGate(1, 1, time.Hour)
	stop := make(chan struct{})
	if !g.enter(stop) {
		t.Fatal("the first must enter")
	}
	entered := make(chan bool)
	go func() { entered <- g.enter(stop) }()
	waittest.Until(t, "the second to wait", func() bool { return g.waiting.Load() == 1 })
	if g.enter(stop) {
		t.Error("the queue is full")
	}
	g.leave()
	if !<-entered {
		t.Error("the second must enter when the first leaves")
	}
	go func() { entered <- g.enter(stop) }()
	waittest.Until(t, "the third to wait", func() bool { return g.waiting.Load() == 1 })
	close(stop)
	if <-entered {
		t.Error("no request enters when the server stops")
	}
	if g = newGate(1, 0, time.Millisecond); !g.enter(stop) || g.enter(stop) {
		t.Error("want one to enter and none to wait")
	}
}

func TestEndlessAnswers(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0", Limits: Limits{ResponseTime: 20 * time.Millisecond}})
	ticks, gone := make(chan string), make(chan bool, 1)
	s.Handle(Endpoint{Path: "/events", Serve: func(w *Response, r *Request) error {
		ended := w.Endless()
		w.SetType(typeEvents)
		w.SetHeader("cache-control", "no-cache")
		r.After(func() { gone <- true })
		for {
			select {
			case tick := <-ticks:
				io.WriteString(w, tick)
				if err := w.Flush(); err != nil {
					return err
				}
			case <-ended:
				return nil
			}
		}
	}})
	run(t, s)
	c := dial(t, s)
	io.WriteString(c, request("GET /events HTTP/1.1", "Accept-Encoding: gzip"))
	buf := make([]byte, 4096)
	ticks <- "data: 1\n\n"
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	head := string(buf[:n])
	if !strings.HasSuffix(head, "\r\n\r\ndata: 1\n\n") || strings.Contains(head, "chunked") || strings.Contains(head, "content-length") ||
		!strings.Contains(head, "connection: close\r\n") || !strings.Contains(head, "cache-control: no-cache\r\n") {
		t.Errorf("got %q", head)
	}
	for begin := time.Now(); time.Since(begin) < 25*time.Millisecond; {
		runtime.Gosched() // the limit for whole answers, which does not hold for this one, passes
	}
	ticks <- "data: 2\n\n"
	if n, err := io.ReadFull(c, buf[:9]); err != nil || string(buf[:n]) != "data: 2\n\n" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	s.Close()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	<-gone
}

// TestEndlessAnswersEndWithTheirClient checks that the handler is notified when the
// client is gone or closes its sending side, even if the handler writes nothing.
func TestEndlessAnswersEndWithTheirClient(t *testing.T) {
	ca := newAuthority(t)
	for name, cfg := range map[string]Config{
		"tcp": {}, "unix": {Address: "unix:" + t.TempDir() + "/s"}, "tls": {TLS: ca.settings(tls.NoClientCert)},
	} {
		s := start(t, cfg)
		began, ended := make(chan bool), make(chan bool)
		s.Handle(Endpoint{Path: "/events", Serve: func(w *Response, r *Request) error {
			stop := w.Endless()
			if w.Endless() != stop {
				t.Error("another channel")
			}
			began <- true
			<-stop
			ended <- true
			return nil
		}})
		listen := func() net.Conn {
			c := dial(t, s)
			if name == "tls" {
				c = tls.Client(c, &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1", Time: testTime})
			}
			if _, err := io.WriteString(c, request("GET /events HTTP/1.1")); err != nil {
				t.Fatal(err)
			}
			<-began
			return c
		}
		expect := func(what string) {
			t.Helper()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: not told of the %s", name, what)
			}
		}
		for how, leave := range map[string]func(net.Conn){
			"close":      func(c net.Conn) { c.Close() },
			"half close": func(c net.Conn) { c.(interface{ CloseWrite() error }).CloseWrite() },
		} {
			c := listen()
			io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\n", 100))
			leave(c)
			expect(how)
		}
		listen()
		go s.Close()
		expect("end of the server")
	}
}

// TestMoreRequestsEndNoAnswer checks that the watch of a client reads and discards
// further input until its end.
func TestMoreRequestsEndNoAnswer(t *testing.T) {
	server, client := net.Pipe() // a write reslots when all of it was read
	x := &exchange{conn: &conn{Conn: server}, stop: make(chan struct{})}
	ended := x.watch(guard.Guard{})
	if err := client.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := client.Write(make([]byte, 1000)); err != nil {
			t.Fatalf("chunk %d is not read: %v", i, err)
		}
	}
	if isClosed(ended) {
		t.Error("ended by what the client said")
	}
	client.Close()
	<-ended
}

// panickingConn is a connection that cannot be read from.
type panickingConn struct{ net.Conn }

func (panickingConn) SetReadDeadline(time.Time) error { return nil }

func (panickingConn) Read([]byte) (int, error) { panic(guardtest.Canary) }

// TestWatchPanics checks that a panic of the watch ends only its own response.
func TestWatchPanics(t *testing.T) {
	panics := guardtest.New(t)
	x := &exchange{conn: &conn{Conn: panickingConn{}}, stop: make(chan struct{})}
	<-x.watch(panics.Guard())
	panics.Caught("watch of a client")
	if !x.closing {
		t.Error("the connection is used again")
	}
}

// run serves s until the test ends.
func run(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Run(t.Context()) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// slotRecorder records whether a response held a slot when its end was sent.
type slotRecorder struct {
	memory
	slots slots
	held  int
}

func (t *slotRecorder) end() error { t.held += len(t.slots); return nil }

func (t *slotRecorder) abort() { t.held += len(t.slots) }

// TestNoSlotIsHeldWhileTheEndIsSent checks that a response whose last chunk was full does
// not block others while its end is sent.
func TestNoSlotIsHeldWhileTheEndIsSent(t *testing.T) {
	s := newServer(t, Config{})
	for _, err := range []error{nil, ErrGone} {
		watcher := &slotRecorder{memory: memory{reply: new(Reply)}, slots: newSlots(2)}
		w := s.response(watcher, &Request{method: "GET"})
		w.slots = watcher.slots
		for range 2 {
			if _, err := w.Write(make([]byte, responseBuffer)); err != nil {
				t.Fatal(err)
			}
		}
		if len(watcher.slots) != 1 {
			t.Error("the response holds no slot while it is rendered")
		}
		_ = w.finish(err)
		if watcher.held != 0 || len(watcher.slots) != 0 {
			t.Errorf("after %v: %d slots held while the end is sent, %d at last", err, watcher.held, len(watcher.slots))
		}
	}
}

// chunkRecorder records the sizes of the chunks of a response.
type chunkRecorder struct {
	memory
	sizes []int
}

func (p *chunkRecorder) body(a, b []byte) error {
	p.sizes = append(p.sizes, len(a)+len(b))
	return nil
}

// TestChunksAreSmall checks that the chunks sent within one deadline are 64 KiB,
// regardless of the sizes of writes, even for incompressible data.
func TestChunksAreSmall(t *testing.T) {
	s := newServer(t, Config{})
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for _, encoding := range []string{"", "gzip", "zstd"} {
		watcher := &chunkRecorder{memory: memory{reply: new(Reply)}}
		w := s.response(watcher, &Request{method: "GET", fields: []Field{{"accept-encoding", encoding}}})
		if _, err := w.Write(noise); err != nil {
			t.Fatal(err)
		}
		if err := w.finish(nil); err != nil || w.encoding != encoding {
			t.Errorf("%q: encoding %q, %v", encoding, w.encoding, err)
		}
		if got := slices.Max(watcher.sizes); got > 64<<10 || len(watcher.sizes) < 16 {
			t.Errorf("%q: %d chunks of up to %d bytes", encoding, len(watcher.sizes), got)
		}
	}
}

// deadlineConn records deadlines and writes.
type deadlineConn struct {
	net.Conn
	until  time.Time
	chunks []time.Time // by when each had to leave
}

func (c *deadlineConn) SetWriteDeadline(t time.Time) error { c.until = t; return nil }

func (c *deadlineConn) Write(p []byte) (int, error) {
	if !c.until.IsZero() {
		c.chunks = append(c.chunks, c.until)
	}
	c.until = time.Time{}
	return len(p), nil
}

// TestEachChunkHasItsDeadline checks that the deadline of a chunk starts with the chunk,
// and is no later than the deadline of the response.
func TestEachChunkHasItsDeadline(t *testing.T) {
	out := new(deadlineConn)
	x := &exchange{conn: &conn{Conn: out}, limits: &Limits{StreamStall: time.Hour}}
	for i := range 3 {
		begin := time.Now()
		if err := x.body([]byte("piece"), nil); err != nil {
			t.Fatal(err)
		}
		if len(out.chunks) != i+1 || out.chunks[i].Before(begin.Add(time.Hour)) {
			t.Fatalf("chunk %d has to leave by %v, an hour from %v", i, out.chunks, begin)
		}
	}
	x.limit = time.Now().Add(time.Minute)
	if err := x.body([]byte("piece"), nil); err != nil || !out.chunks[3].Equal(x.limit) {
		t.Errorf("by %v, want the end of the whole answer %v, %v", out.chunks[3], x.limit, err)
	}
}
