package tap

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/tap/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// page is the client side of a stream.
type page struct {
	mu  sync.Mutex
	buf bytes.Buffer
	err error
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	return p.buf.Write(b)
}

func (p *page) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *page) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// request returns a body with a sink and a format.
func request(sink, format, rest string) []byte {
	return fmt.Appendf(nil, `{"config_id": "statsd", "tap_config": {"match": {"any_match": true}, "output_config": {"sinks": [{%q: %s, "format": %q}]%s}}}`,
		sink, map[string]string{"streaming_admin": "{}", "buffered_admin": `{"max_traces": 2, "timeout": "3s"}`}[sink], format, rest)
}

func newTap(cfg Config) (*Tap, *Source) {
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Unix(1_700_000_000, 250_000_000) }
	}
	t := New(cfg)
	return t, t.Register("statsd")
}

func attach(t *testing.T, tp *Tap, body []byte) *Session {
	t.Helper()
	s, err := tp.Attach(body)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func samples(s *Session) {
	s.Socket(Read{Local: "udp://127.0.0.1:8125", Remote: "127.0.0.1:5000", Data: []byte("a:1|c|#k:v")})
	s.Socket(Read{Local: "unixgram:///run/s.sock", Data: []byte("long:\xff" + strings.Repeat("1", 1100) + "|g")})
	s.HTTP(Exchange{
		Time: time.Unix(1_700_000_001, 0), Remote: "127.0.0.1",
		Request: []Field{{":method", "GET"}, {":path", "/stats?filter=\xff"}}, Response: []Field{{":status", "200"}},
	})
}

func TestFormats(t *testing.T) {
	for _, format := range []string{"JSON_BODY_AS_BYTES", "JSON_BODY_AS_STRING"} {
		for name, rest := range map[string]string{"whole": "", "pieces": `, "streaming": true`} {
			tp, _ := newTap(Config{})
			s := attach(t, tp, request("streaming_admin", format, rest))
			samples(s)
			var b []byte
			for _, tr := range s.take() {
				b = s.append(b, &tr)
			}
			golden.Check(t, strings.ToLower(format)+"-"+name, b)
			// Each document must be a valid message.
			for doc := range strings.SplitAfterSeq(string(b), "\n}\n") {
				if err := protojson.Unmarshal([]byte(doc), new(datav3.TraceWrapper)); doc != "" && err != nil {
					t.Errorf("%v in %s", err, doc)
				}
			}
		}
	}
}

// TestLengthDelimitedPieces: every piece of a streamed exchange is sent.
func TestLengthDelimitedPieces(t *testing.T) {
	tp, _ := newTap(Config{})
	s := attach(t, tp, request("streaming_admin", "PROTO_BINARY_LENGTH_DELIMITED", `, "streaming": true`))
	s.HTTP(Exchange{Request: []Field{{":path", "/asked"}}, Response: []Field{{":status", "299"}}})
	var b []byte
	for _, tr := range s.take() {
		b = s.append(b, &tr)
	}
	if !bytes.Contains(b, []byte("/asked")) || !bytes.Contains(b, []byte("299")) {
		t.Errorf("got %q, want the request and the response", b)
	}
}

func TestLengthDelimited(t *testing.T) {
	tp, _ := newTap(Config{})
	s := attach(t, tp, request("streaming_admin", "PROTO_BINARY_LENGTH_DELIMITED", `, "max_buffered_rx_bytes": 5`))
	samples(s)
	var b []byte
	for _, tr := range s.take() {
		b = s.append(b, &tr)
	}
	r := bufio.NewReader(bytes.NewReader(b))
	var got []string
	for {
		n, err := binary.ReadUvarint(r)
		if err == io.EOF {
			break
		}
		m := make([]byte, n)
		if _, err := io.ReadFull(r, m); err != nil {
			t.Fatal(err)
		}
		var w datav3.TraceWrapper
		if err := proto.Unmarshal(m, &w); err != nil {
			t.Fatal(err)
		}
		if x := w.GetSocketBufferedTrace(); x != nil {
			body := x.GetEvents()[0].GetRead().GetData()
			got = append(got, fmt.Sprint(x.GetTraceId(), string(body.GetAsBytes()), body.GetTruncated(), x.GetReadTruncated()))
		} else {
			got = append(got, w.GetHttpBufferedTrace().GetRequest().GetHeaders()[1].GetValue())
		}
	}
	if want := "1a:1|ctruetrue 2long:truetrue /stats?filter=\ufffd"; strings.ReplaceAll(strings.Join(got, " "), " true", "true") != want {
		t.Errorf("got %q", got)
	}
}

// nested returns a match-anything rule negated n times.
func nested(times int) string {
	return strings.Repeat(`{"not_match": `, times) + `{"any_match": true}` + strings.Repeat("}", times)
}

// bomb returns a request in which each level holds the one before ten times.
func bomb(levels int) string {
	text := "x0: &a0 {any_match: true}\n"
	for i := range levels {
		text += fmt.Sprintf("x%d: &a%d {or_match: {rules: [%s]}}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	return text + fmt.Sprintf("config_id: statsd\ntap_config: {match: *a%d}\n", levels)
}

func TestRefusals(t *testing.T) {
	tp, source := newTap(Config{})
	body := func(id, tap string) string { return `{"config_id": "` + id + `", "tap_config": ` + tap + `}` }
	const anyMatch = `"match_config": {"any_match": true}`
	const sink = `{"streaming_admin": {}}`
	for text, want := range map[string]string{
		"":                                "/tap requires a JSON/YAML body",
		"]":                               "not valid YAML",
		"a: *b":                           "",
		"a: &b [1]\nc: *b":                "request:2:1: c: unknown field of TapRequest",
		bomb(6):                           "values once aliases are written out",
		strings.Repeat("[", 100):          "not valid YAML",
		`{"config_id": "statsd", "x": 1}`: "request:1:25: x: unknown field of TapRequest",
		body("", `{`+anyMatch+`, "output_config": {"sinks": [`+sink+`]}}`): "request:1:2: config_id: must not be empty",
		`{"config_id": "statsd"}`:                                                                                                                                                "request:1:1: tap_config: must be set",
		body("statsd", `{`+anyMatch+`}`):                                                                                                                                         "tap_config.output_config: must be set",
		body("statsd", `{`+anyMatch+`, "output_config": {}}`):                                                                                                                    "tap_config.output_config.sinks: must not be empty",
		body("statsd", `{"output_config": {"sinks": [`+sink+`]}}`):                                                                                                               "one of match and match_config",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [{}]}}`):                                                                                                       "",
		body("nobody", `{`+anyMatch+`, "output_config": {"sinks": [`+sink+`]}}`):                                                                                                 "Unknown config id 'nobody'. No extension has registered with this id.",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [`+sink+`,`+sink+`]}}`):                                                                                        "tap_config.output_config.sinks: ",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [{"file_per_tap": {"path_prefix": "/tmp/x"}}]}}`):                                                              "only streaming_admin and buffered_admin",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [{"buffered_admin": {}}]}}`):                                                                                   "buffered_admin.max_traces: 0 must be greater than 0",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [{"buffered_admin": {"max_traces": 1, "timeout": "-1s"}}]}}`):                                                  "buffered_admin.timeout: ",
		body("statsd", `{`+anyMatch+`, "output_config": {"sinks": [{"streaming_admin": {}, "format": "PROTO_TEXT"}]}}`):                                                          "PROTO_TEXT cannot be streamed",
		body("statsd", `{`+anyMatch+`, "output_config": {"max_buffered_rx_bytes": 2000000, "sinks": [`+sink+`]}}`):                                                               "not in [0, 1048576]",
		body("statsd", `{"match": `+nested(33)+`, "output_config": {"sinks": [`+sink+`]}}`):                                                                                      "tap_config.match: nested deeper than 32 levels",
		body("statsd", `{"match": {"http_request_trailers_match": {}}, "output_config": {"sinks": [`+sink+`]}}`):                                                                 "is not supported",
		body("statsd", `{"match": {"http_request_headers_match": {"headers": [{"name": "a", "range_match": {"start": 1, "end": 2}}]}}, "output_config": {"sinks": [`+sink+`]}}`): "is not supported",
	} {
		s, err := tp.Attach([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\u00a0") {
			t.Errorf("%s: %v", text, err)
		}
		if s != nil || source.Session() != nil {
			t.Fatalf("%s: a stream was attached", text)
		}
	}
	first := attach(t, tp, []byte("config_id: statsd\ntap_config:\n  match: {any_match: true}\n  output_config:\n    sinks: [{streaming_admin: {}}]\n"))
	if _, err := tp.Attach(nil); err == nil || err.Error() != "An attached /tap admin stream already exists. Detach it." {
		t.Errorf("a second stream: %v", err)
	}
	if tp.Register("statsd").Session() != first {
		t.Error("a source that is registered again lost its stream")
	}
	first.Close()
	first.Close()
	if source.Session() != nil {
		t.Error("the source is tapped although the stream has ended")
	}
	attach(t, tp, request("streaming_admin", "JSON_BODY_AS_BYTES", ""))
}

func TestMatch(t *testing.T) {
	lines := []string{"a:1|c", "b:1|c", "ab:1|ms"}
	for match, want := range map[string]string{
		`{"any_match": true}`:                "a:1|c b:1|c ab:1|ms GET POST",
		`{"not_match": {"any_match": true}}`: "",
		`{"http_request_generic_body_match": {"patterns": [{"string_match": "a"}]}}`:                                                                                                                                     "a:1|c ab:1|ms",
		`{"http_request_generic_body_match": {"bytes_limit": 1, "patterns": [{"binary_match": "Yg=="}]}}`:                                                                                                                "b:1|c",
		`{"and_match": {"rules": [{"any_match": true}, {"http_request_generic_body_match": {"patterns": [{"string_match": "b:"}]}}]}}`:                                                                                   "b:1|c ab:1|ms",
		`{"or_match": {"rules": [{"http_request_generic_body_match": {"patterns": [{"string_match": "|ms"}]}}, {"http_response_headers_match": {"headers": [{"name": ":status", "string_match": {"exact": "500"}}]}}]}}`: "ab:1|ms POST",
		`{"http_request_headers_match": {"headers": [{"name": ":METHOD", "string_match": {"prefix": "g", "ignore_case": true}}]}}`:                                                                                       "GET",
		`{"http_request_headers_match": {"headers": [{"name": ":method", "string_match": {"safe_regex": {"regex": "P.*"}}}]}}`:                                                                                           "POST",
		`{"http_request_headers_match": {"headers": [{"name": ":method", "string_match": {"suffix": "T"}, "invert_match": true}]}}`:                                                                                      "",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "present_match": true}]}}`:                                                                                                                       "POST",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "present_match": true, "invert_match": true}]}}`:                                                                                                 "GET",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "present_match": false}]}}`:                                                                                                                      "GET",
		`{"http_request_headers_match": {"headers": [{"name": "accept"}]}}`:                                                                                                                                              "POST",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "invert_match": true}]}}`:                                                                                                                        "GET",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "string_match": {"exact": ""}}]}}`:                                                                                                               "",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "string_match": {"exact": ""}, "treat_missing_header_as_empty": true}]}}`:                                                                        "GET",
		nested(31): "",
		nested(32): "a:1|c b:1|c ab:1|ms GET POST",
		`{"http_request_headers_match": {"headers": [{"name": "accept", "string_match": {"contains": "js"}}]}}`: "POST",
	} {
		for _, field := range []string{"match", "match_config"} { // the deprecated field means the same
			tp, _ := newTap(Config{})
			s := attach(t, tp, []byte(`{"config_id": "statsd", "tap_config": {"`+field+`": `+match+`, "output_config": {"sinks": [{"streaming_admin": {}}]}}}`))
			for _, l := range lines {
				s.Socket(Read{Data: []byte(l)})
			}
			s.HTTP(Exchange{Request: []Field{{":method", "GET"}}, Response: []Field{{":status", "200"}}})
			s.HTTP(Exchange{Request: []Field{{":method", "POST"}, {"accept", "text/js"}}, Response: []Field{{":status", "500"}}})
			var got []string
			for _, tr := range s.take() {
				if tr.read != nil {
					got = append(got, string(tr.read.Data))
				} else {
					got = append(got, tr.exchange.Request[0].Value)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s %s: %q, want %q", field, match, got, want)
			}
		}
	}
}

func TestStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp, source := newTap(Config{})
		s := attach(t, tp, request("streaming_admin", "JSON_BODY_AS_STRING", ""))
		p, stop, done := &page{}, make(chan struct{}), make(chan error, 1)
		go func() { done <- s.Serve(p, stop) }()
		for i := range 3 {
			source.Session().Socket(Read{Data: fmt.Appendf(nil, "n%d:1|c", i)})
			synctest.Wait()
			if n := strings.Count(p.text(), `"as_string"`); n != i+1 {
				t.Errorf("%d traces after %d lines", n, i+1)
			}
		}
		before := len(p.text())
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := p.text()[before:]; got != "\n\n" {
			t.Errorf("in 11 s without a line: %q", got)
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, sink := range []string{"streaming_admin", "buffered_admin"} {
			tp, _ := newTap(Config{Heartbeat: time.Second})
			s := attach(t, tp, request(sink, "JSON_BODY_AS_BYTES", ""))
			gone := errors.New("gone")
			p, done := &page{}, make(chan error, 1)
			go func() { done <- s.Serve(p, nil) }()
			synctest.Wait()
			p.mu.Lock()
			p.err = gone
			p.mu.Unlock()
			if err := <-done; !errors.Is(err, gone) {
				t.Errorf("%s: %v", sink, err)
			}
		}
	})
}

func TestBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(lines int, wait time.Duration, wantTraces int, wantTook time.Duration) {
			t.Helper()
			tp, _ := newTap(Config{Heartbeat: 700 * time.Millisecond})
			s := attach(t, tp, request("buffered_admin", "JSON_BODY_AS_STRING", ""))
			p, began := &page{}, time.Now()
			done := make(chan error, 1)
			go func() { done <- s.Serve(p, nil) }()
			for i := range lines {
				time.Sleep(wait)
				s.Socket(Read{Data: []byte("a:1|c")})
				synctest.Wait()
				if i+1 < wantTraces && strings.TrimLeft(p.text(), "\n") != "" {
					t.Error("something was sent before the end")
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := strings.Count(p.text(), "a:1|c"); n != wantTraces || time.Since(began) != wantTook {
				t.Errorf("%d traces after %v, want %d after %v", n, time.Since(began), wantTraces, wantTook)
			}
			if got, want := len(p.text())-len(strings.TrimLeft(p.text(), "\n")), int(wantTook/(700*time.Millisecond)); got != want {
				t.Errorf("%d signs of life in %v, want %d", got, wantTook, want)
			}
		}
		run(2, time.Second, 2, 2*time.Second) // complete
		run(1, time.Second, 1, 3*time.Second) // timed out
		run(0, 0, 0, 3*time.Second)
	})
}

// TestBufferedAtOnce checks that no more than the requested number of traces are
// sent, even if more arrive at once, and that without a timeout the stream waits for
// all of them.
func TestBufferedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp, _ := newTap(Config{})
		body := strings.Replace(string(request("buffered_admin", "JSON_BODY_AS_STRING", "")), `, "timeout": "3s"`, "", 1)
		s := attach(t, tp, []byte(body))
		p, done := &page{}, make(chan error, 1)
		go func() { done <- s.Serve(p, nil) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Trim(p.text(), "\n"); got != "" || len(done) > 0 {
			t.Errorf("after an hour: %q", got)
		}
		s.Socket(Read{Data: []byte("a:1|c")})
		s.Socket(Read{Data: []byte("a:1|c")})
		s.Socket(Read{Data: []byte("a:1|c")})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(p.text(), "a:1|c"); n != 2 {
			t.Errorf("%d traces, want 2", n)
		}
	})
}

type count struct{ atomic.Int64 }

func (c *count) Inc() { c.Add(1) }

func TestQueueIsBounded(t *testing.T) {
	var dropped count
	tp, source := newTap(Config{QueueBytes: 10_000, Dropped: &dropped})
	s := attach(t, tp, request("streaming_admin", "JSON_BODY_AS_BYTES", ""))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				source.Session().Socket(Read{Data: make([]byte, 744)})
			}
		})
	}
	all.Wait()
	if kept := len(s.take()); kept != 10 || dropped.Load() != 390 {
		t.Errorf("%d traces kept and %d dropped, want 10 and 390", kept, dropped.Load())
	}
	for range 20 {
		s.HTTP(Exchange{Request: []Field{{":path", strings.Repeat("x", 739)}}})
	}
	if kept := len(s.take()); kept != 10 || dropped.Load() != 400 {
		t.Errorf("%d exchanges kept and %d dropped in all, want 10 and 400", kept, dropped.Load())
	}
	s.Close()
	s.Socket(Read{})
	if len(s.take()) != 0 {
		t.Error("a closed session keeps traces")
	}
}

// TestLimits: data that fits exactly is kept, one byte more is not.
func TestLimits(t *testing.T) {
	const limits = `, "max_buffered_rx_bytes": %d`
	for _, tt := range []struct {
		rest            string
		size            int
		kept, truncated bool
	}{
		{"", 1024, true, false}, {"", 1025, true, true},
		{fmt.Sprintf(limits, 0), 0, true, false}, {fmt.Sprintf(limits, 0), 1, true, true},
		{fmt.Sprintf(limits, 1<<20), 1<<20 - 256, true, false}, {fmt.Sprintf(limits, 1<<20), 1<<20 - 255, false, false}, // the queue
	} {
		var dropped count
		tp, _ := newTap(Config{Dropped: &dropped})
		s := attach(t, tp, request("streaming_admin", "JSON_BODY_AS_BYTES", tt.rest))
		s.Socket(Read{Data: make([]byte, tt.size)})
		got := s.take()
		if kept := len(got) == 1; kept != tt.kept || kept && got[0].truncated != tt.truncated || dropped.Load() != int64(1-len(got)) {
			t.Errorf("%d bytes%s: kept %v, dropped %d, want %v, truncated %v", tt.size, tt.rest, kept, dropped.Load(), tt.kept, tt.truncated)
		}
	}
	for _, name := range []string{"max_buffered_rx_bytes", "max_buffered_tx_bytes"} {
		for value, ok := range map[int]bool{0: true, 1 << 20: true, 1<<20 + 1: false} {
			if _, err := parse(request("streaming_admin", "JSON_BODY_AS_BYTES", fmt.Sprintf(`, %q: %d`, name, value))); (err == nil) != ok {
				t.Errorf("%s %d: %v", name, value, err)
			}
		}
	}
}

// TestBufferedBytes: a buffered stream ends when it is full.
func TestBufferedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp, _ := newTap(Config{})
		body := strings.NewReplacer(`"max_traces": 2, "timeout": "3s"`, `"max_traces": 100`).Replace(
			string(request("buffered_admin", "JSON_BODY_AS_STRING", `, "max_buffered_rx_bytes": 1048576`)))
		s := attach(t, tp, []byte(body))
		p, done := &page{}, make(chan error, 1)
		go func() { done <- s.Serve(p, nil) }()
		traces := 0
		for ; len(done) == 0 && traces < 100; traces++ {
			s.Socket(Read{Data: bytes.Repeat([]byte("x"), 1_000_000)})
			synctest.Wait()
		}
		if traces != 9 {
			t.Fatalf("ended after %d traces of a million bytes, want 9", traces)
		}
		if n := len(p.text()); n < 9_000_000 || n > 9_010_000 {
			t.Errorf("%d bytes", n)
		}
	})
}

func TestDefaultHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp, _ := newTap(Config{})
		s := attach(t, tp, request("streaming_admin", "JSON_BODY_AS_STRING", ""))
		p, closing, done := &page{}, make(chan struct{}), make(chan error, 1)
		go func() { done <- s.Serve(p, closing) }()
		for _, step := range []struct {
			sleep time.Duration
			want  string
		}{{5*time.Second - 1, ""}, {1, "\n"}, {5*time.Second - 1, "\n"}, {1, "\n\n"}} {
			time.Sleep(step.sleep)
			synctest.Wait()
			if p.text() != step.want {
				t.Errorf("after another %v: %q, want %q", step.sleep, p.text(), step.want)
			}
		}
		close(closing)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add(request("streaming_admin", "JSON_BODY_AS_BYTES", ""))
	f.Add([]byte("config_id: statsd\ntap_config:\n  match: {any_match: true}\n  output_config:\n    sinks: [{buffered_admin: {max_traces: 1}}]\n"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parse(b)
		if err == nil && (s.id == "" || s.match == nil || s.received > maxBodyBytes || s.buffered && s.traces == 0) {
			t.Errorf("%q was accepted as %+v", b, s)
		}
	})
}
