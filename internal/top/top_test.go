package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer answers the requests of a screen. Streams stay open until their context
// ends or cut is called.
type fakeServer struct {
	t       *testing.T
	mu      sync.Mutex
	streams []*io.PipeWriter
	paths   chan string // of requests, in their order
	refuse  string      // a filter that is not accepted
	open    []request
}

// request is an answered request.
type request struct {
	path   string
	ended  <-chan struct{} // its context
	closed chan struct{}   // the body
}

// body is the body of an answer.
type body struct {
	io.Reader
	close func() error
}

func (b body) Close() error { return b.close() }

// answer returns a body of r, whose closing is recorded.
func (f *fakeServer) answer(ctx context.Context, path string, r io.Reader) io.ReadCloser {
	f.mu.Lock()
	defer f.mu.Unlock()
	closed := make(chan struct{})
	f.open = append(f.open, request{path, ctx.Done(), closed})
	return body{r, sync.OnceValue(func() error { close(closed); return nil })}
}

// settled waits until all requests have ended and the bodies of their answers are
// closed.
func (f *fakeServer) settled() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	late := time.After(time.Minute)
	for _, r := range f.open {
		for what, end := range map[string]<-chan struct{}{"runs": r.ended, "has an open body": r.closed} {
			select {
			case <-end:
			case <-late:
				f.t.Errorf("%s still %s", r.path, what)
			}
		}
	}
	if len(f.open) == 0 {
		f.t.Error("no requests")
	}
}

func newFakeServer(t *testing.T) *fakeServer {
	return &fakeServer{t: t, paths: make(chan string, 100)}
}

func (f *fakeServer) get(ctx context.Context, path string) (io.ReadCloser, error) {
	f.paths <- path
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	switch u.Path {
	case "/clusters":
		return f.answer(ctx, path, strings.NewReader(clustersAnswer)), nil
	case "/stats/histogram":
		return f.answer(ctx, path, strings.NewReader(histogramAnswer)), nil
	}
	if f.refuse != "" && u.Query().Get("filter") == f.refuse {
		return nil, &Refused{"400 Bad Request: bad filter"}
	}
	r, w := io.Pipe()
	f.mu.Lock()
	f.streams = append(f.streams, w)
	f.mu.Unlock()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() { _, _ = io.WriteString(w, start) }() // the reader may be gone
	return f.answer(ctx, path, r), nil
}

// last returns the stream that was opened last.
func (f *fakeServer) last() *io.PipeWriter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams[len(f.streams)-1]
}

// requested waits for a request that begins with path.
func (f *fakeServer) requested(path string) {
	f.t.Helper()
	for {
		select {
		case got := <-f.paths:
			if strings.HasPrefix(got, path) {
				return
			}
		case <-time.After(time.Minute):
			f.t.Fatalf("no request for %s", path)
		}
	}
}

// terminal collects the output.
type terminal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *terminal) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *terminal) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// shows waits until text was written after the first n bytes, and returns how much
// was written then.
func (o *terminal) shows(t *testing.T, n int, text string) int {
	t.Helper()
	var all string
	waittest.Until(t, fmt.Sprintf("%q is shown", text), func() bool {
		all = o.String()
		return strings.Contains(all[n:], text)
	})
	return len(all)
}

// running starts Run and returns its terminal, a function that types keys, and one
// that waits for its end.
func running(t *testing.T, c Config) (*terminal, func(string), func() error) {
	t.Helper()
	out := new(terminal)
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	c.Output, c.Interval = out, time.Second
	if c.Input == nil {
		c.Input = in
	}
	c.Size = func() (int, int) { return 100, 12 }
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { done <- Run(ctx, c) }()
	return out, func(s string) { _, _ = io.WriteString(keys, s) }, func() error {
		t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			t.Fatal("Run does not end")
			return nil
		}
	}
}

// never is a clock that stands still.
func never(time.Duration) <-chan time.Time { return nil }

// TestRun walks through the screen: values move, the filter begins another stream,
// views request their data, and the end restores the terminal.
func TestRun(t *testing.T) {
	f := newFakeServer(t)
	out, typed, ended := running(t, Config{Get: f.get, Server: "here", After: never})
	f.requested("/stats/stream?interval_ms=1000")
	n := out.shows(t, 0, "6 stats")
	if _, err := io.WriteString(f.last(), second); err != nil {
		t.Fatal(err)
	}
	n = out.shows(t, n, "7 stats")
	typed("\r")
	f.requested("/stats/histogram?bins&q=50,75,90,95,99,99.9&name=cart.time")
	n = out.shows(t, n, "p99.9 30.2 ms")
	typed("\x1b")
	n = out.shows(t, n, "TREND")
	typed("gc")
	f.requested("/clusters?format=json")
	n = out.shows(t, n, "3 clusters")
	typed("/^a b\r")
	f.requested("/stats/stream?interval_ms=1000&filter=%5Ea%20b")
	n = out.shows(t, n, "filter ^a b")
	typed("q")
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	if all := out.String(); !strings.HasPrefix(all, "\x1b[?1049h\x1b[?25l") || !strings.HasSuffix(all[n:], "\x1b[?25h\x1b[?1049l") {
		t.Errorf("the terminal is left with %q", all[n:])
	}
	f.settled()
	var paths []string
	for _, r := range f.open {
		paths = append(paths, strings.FieldsFunc(r.path, func(c rune) bool { return c == '?' })[0])
	}
	if want := []string{"/stats/stream", "/stats/histogram", "/clusters", "/stats/stream"}; !slices.Equal(paths, want) {
		t.Errorf("requests of %q, want %q", paths, want)
	}
}

// TestLostStream: a stream that ends begins again after a delay, and a filter that the
// server refuses does not.
func TestLostStream(t *testing.T) {
	f := newFakeServer(t)
	f.refuse = "("
	delays := make(chan time.Duration, 100)
	fire := make(chan time.Time)
	out, typed, ended := running(t, Config{Get: f.get, After: func(d time.Duration) <-chan time.Time {
		delays <- d
		if len(delays) == 1 {
			return nil // the interval
		}
		return fire
	}})
	n := out.shows(t, 0, "6 stats")
	_ = f.last().CloseWithError(errors.New("connection \x1b[2J reset"))
	n = out.shows(t, n, `connection \x1b[2J reset`)
	fire <- time.Time{}
	n = out.shows(t, n, "q quit")
	typed("/(\r")
	n = out.shows(t, n, "400 Bad Request: bad filter")
	typed("/\x15\r")
	out.shows(t, n, "6 stats")
	typed("\x03")
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	f.settled()
	close(delays)
	var got []time.Duration
	for d := range delays {
		got = append(got, d)
	}
	if len(got) != 2 || got[1] != firstDelay {
		t.Errorf("delays %v", got)
	}
}

func TestFirstRequestFails(t *testing.T) {
	out, _, ended := running(t, Config{After: never, Get: func(context.Context, string) (io.ReadCloser, error) { return nil, &Refused{"no"} }})
	if err := ended(); err == nil || err.Error() != "no" || out.String() != "" {
		t.Errorf("%v, and the terminal has %q", err, out.String())
	}
}

// TestQuitBeforeTheFirstAnswer: a server that does not answer keeps no terminal, whose
// keys send no signals.
func TestQuitBeforeTheFirstAnswer(t *testing.T) {
	silent := func(ctx context.Context, _ string) (io.ReadCloser, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, key := range []string{"x\x03", "q"} {
		out, typed, ended := running(t, Config{After: never, Get: silent})
		typed(key)
		if err := ended(); err != nil || out.String() != "" {
			t.Errorf("%q: %v, and the terminal has %q", key, err, out.String())
		}
	}
	for range 10 { // either the context or the failed request is noticed first
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan struct{})
		in, keys := io.Pipe()
		go func() { <-asked; cancel() }()
		err := Run(ctx, Config{After: never, Input: in, Get: func(ctx context.Context, path string) (io.ReadCloser, error) {
			close(asked)
			return silent(ctx, path)
		}})
		_ = keys.Close()
		if err != nil {
			t.Errorf("after a signal: %v", err)
		}
	}
}

// TestFirstEventIsShown: the first event of the first stream counts like any other.
func TestFirstEventIsShown(t *testing.T) {
	out, typed, ended := running(t, Config{After: never, Get: func(ctx context.Context, _ string) (io.ReadCloser, error) {
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		go func() { _, _ = io.WriteString(w, "event: error\ndata: {\"reason\":\"filter too expensive\"}\n\n") }()
		return r, nil
	}})
	out.shows(t, 0, "filter too expensive")
	typed("q")
	if err := ended(); err != nil {
		t.Error(err)
	}
}

// TestPanics: a panic in a request is shown as its error, and one in the input ends Run
// with the terminal restored.
func TestPanics(t *testing.T) {
	f := newFakeServer(t)
	panics := guardtest.New(t)
	var fuse guardtest.Fuse
	retry := make(chan time.Time)
	out, typed, ended := running(t, Config{Logger: panics.Logger(), Get: func(ctx context.Context, path string) (io.ReadCloser, error) {
		fuse.Burn()
		return f.get(ctx, path)
	}, After: func(time.Duration) <-chan time.Time { return retry }})
	n := out.shows(t, 0, "6 stats")
	fuse.Light(1)
	typed("gc")
	panics.Caught("request of a view")
	n = out.shows(t, n, "stopped by a panic")
	typed("gs")
	n = out.shows(t, n, "6 stats")
	fuse.Light(1)
	typed("/x\r")
	panics.Caught("stream of stats")
	out.shows(t, n, "stopped by a panic")
	typed("q")
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	out, _, ended = running(t, Config{Logger: panics.Logger(), Get: f.get, After: never, Input: panicking{}})
	panics.Caught("keys of a terminal")
	if err := ended(); err != nil || !strings.HasSuffix(out.String(), "\x1b[?1049l") {
		t.Errorf("%v, %q", err, out.String())
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic(guardtest.Canary) }

// TestPrint: tables have no escape sequences, and one row for each stat.
func TestPrint(t *testing.T) {
	f := newFakeServer(t)
	var out terminal
	tick := make(chan time.Time)
	done := make(chan error, 1)
	go func() {
		done <- Print(t.Context(), Config{Get: f.get, Output: &out, Sort: "name", Interval: time.Second, Once: true, After: func(time.Duration) <-chan time.Time { return tick }})
	}()
	f.requested("/stats/stream")
	tick <- time.Time{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.settled()
	const want = "name\ttype\tvalue\tper_sec\tchange\tp50\tp90\tp99\n" +
		"a.very.long.name.of.a.counter.that.does.not.fit.on.a.narrow.screen.at.all\tcounter\t18446744073709551615\t0\t0\t\t\t\n" +
		"build.label\ttext\tr42 \\x1b[31m\\u009b2J\t\t\t\t\t\n" +
		"cart.items\tcounter\t12\t0\t0\t\t\t\n" +
		"cart.open\tgauge\t-2.5\t0\t0\t\t\t\n" +
		"cart.time\thistogram\t100\t0\t0\t\t\t\n" +
		"evil\\x1b]0;x\\a\\x1b[2J\\nname\\u202e\tcounter\t1\t0\t0\t\t\t\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEventsAreBounded: a line without an end does not fill the memory.
func TestEventsAreBounded(t *testing.T) {
	_, err := newReader(io.MultiReader(strings.NewReader("event: delta\ndata: "), endless{})).next()
	if err == nil || !strings.Contains(err.Error(), "more than 8388608 bytes") {
		t.Error(err)
	}
	if _, err := newReader(strings.NewReader("event: delta\ndata: {\n")).next(); err == nil {
		t.Error("a malformed event is accepted")
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
