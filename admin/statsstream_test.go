package admin

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/store"
)

// streaming returns a server with a stream of stats.
func streaming(t *testing.T, cfg deltastream.Config) (*Server, *store.Store, *deltastream.Stream) {
	t.Helper()
	st := store.New(store.Options{})
	cfg.Store = st
	stream := deltastream.New(cfg)
	return start(t, Config{Store: st, Sources: Sources{StatsStream: stream}}), st, stream
}

func TestStatsStreamParameters(t *testing.T) {
	s, _, stream := streaming(t, deltastream.Config{Clients: 1})
	for target, want := range map[string]string{
		"?filter=[":           "Invalid re2 regex",
		"?type=Many":          "invalid &type= param",
		"?ids=1,x":            "ids: \"x\" is not an integer below 2^53, or there are more than 2000\n",
		"?ids=-1":             "ids: \"-1\" is not an integer below 2^53, or there are more than 2000\n",
		"?interval_ms=999":    "interval_ms: \"999\" is not an integer from 1000 to 30000\n",
		"?interval_ms=30001":  "interval_ms: \"30001\" is not an integer from 1000 to 30000\n",
		"?interval_ms=second": "interval_ms: \"second\" is not an integer from 1000 to 30000\n",
		"?initial=2":          "initial: \"2\" is neither 0 nor 1\n",
	} {
		if r := s.Request("GET", "/stats/stream"+target, nil); r.Status != 400 || string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", target, r.Status, r.Body, want)
		}
	}
	if r := s.Request("GET", "/stats/stream", nil, Field{"last-event-id", "nine"}); r.Status != 400 || !strings.HasPrefix(string(r.Body), `malformed Last-Event-ID: "nine"`) {
		t.Errorf("last-event-id: %d %q", r.Status, r.Body)
	}
	if r := s.Request("HEAD", "/stats/stream?filter=x", nil); r.Status != 200 || stream.Clients() != 0 {
		t.Errorf("HEAD: %d, %d clients", r.Status, stream.Clients())
	}
	for _, x := range []struct {
		query    Query
		changes  bool
		interval time.Duration
	}{
		{nil, false, 0}, {Query{{"initial", "1"}, {"interval_ms", "1000"}}, false, time.Second}, {Query{{"initial", "0"}, {"interval_ms", "30000"}}, true, 30 * time.Second},
	} {
		req, err := s.parseStream(&Request{query: x.query, fields: []Field{{"last-event-id", "9"}}})
		if err != nil || req.ChangesOnly != x.changes || req.Interval != x.interval || req.LastEventID != "9" {
			t.Errorf("%v: %+v, %v", x.query, req, err)
		}
	}
	client, err := stream.Subscribe(deltastream.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if r := s.Request("GET", "/stats/stream", nil); r.Status != 503 || r.Get("retry-after") != "5" || string(r.Body) != "1 streams of stats are open, which is the limit\n" {
		t.Errorf("over the limit: %d %q", r.Status, r.Body)
	}
	if r := newServer(t, Config{}).Request("GET", "/stats/stream", nil); r.Status != 404 {
		t.Errorf("without a source: %d %q", r.Status, r.Body)
	}
}

// TestStreamsWaitForTheGate: a stream with a filter needs a slot until it has begun, and
// gives it back when it is refused.
func TestStreamsWaitForTheGate(t *testing.T) {
	stream := deltastream.New(deltastream.Config{Store: store.New(store.Options{})})
	s := newServer(t, Config{Limits: Limits{RegexParallel: 1}, Sources: Sources{StatsStream: stream}})
	s.regexes.wait = time.Millisecond
	for _, method := range []string{"GET", "HEAD"} {
		if r := s.Request(method, "/stats/stream?filter=a&initial=2", nil); r.Status != 400 {
			t.Errorf("refused: %d", r.Status)
		}
	}
	if !s.regexes.enter(s.closing) {
		t.Fatal("a slot is taken")
	}
	for target, want := range map[string]int{"filter=a": 503, "usedonly": 200} {
		if r := s.Request("HEAD", "/stats/stream?"+target, nil); r.Status != want {
			t.Errorf("%s without a slot: %d, want %d", target, r.Status, want)
		}
	}
	s.regexes.leave()
	if r := s.Request("HEAD", "/stats/stream?filter=a", nil); r.Status != 200 || !s.regexes.enter(s.closing) {
		t.Errorf("with a slot: %d", r.Status)
	}
}

// TestStreamedIDs expects ids in lists, as distances and in several parameters.
func TestStreamedIDs(t *testing.T) {
	for _, x := range []struct {
		q    Query
		want string
	}{
		{nil, "[]"}, {Query{{Name: "ids"}, {Name: "id", Value: "4"}}, "[]"}, {Query{{Name: "ids", Value: "3,1"}}, "[3 1]"},
		{Query{{Name: "ids", Value: "3.1.0,2.5"}, {Name: "x", Value: "9"}, {Name: "ids", Value: "7.2"}}, "[3 4 4 2 7 7 9]"},
		{Query{{Name: "ids", Value: strings.Repeat("1.", maxIDs-1) + "1"}}, ""},
		{Query{{Name: "ids", Value: strings.Repeat("1.", maxIDs) + "1"}}, "ids: \"1\" is not"},
		{Query{{Name: "ids", Value: "9007199254740991"}}, "[9007199254740991]"}, {Query{{Name: "ids", Value: "9007199254740991.1"}}, "ids: \"1\" is not"},
		{Query{{Name: "ids", Value: "3."}}, "ids: \"\" is not"},
	} {
		refs, err := parseIDs(x.q)
		got := fmt.Sprint(refs)
		if err != nil {
			got = err.Error()
		}
		if x.want == "" && len(refs) != maxIDs || x.want != "" && !strings.Contains(got, x.want) {
			t.Errorf("%v: %s, want %s", x.q, got, x.want)
		}
	}
}

// TestStatsStreamOverHTTP follows a counter, and more clients with filters than
// there are slots for filters.
func TestStatsStreamOverHTTP(t *testing.T) {
	s, st, stream := streaming(t, deltastream.Config{})
	a := st.Root().Counter("cart.a")
	st.Root().Counter("other").Inc()
	var clients []*bufio.Reader
	for range 8 {
		c := dial(t, s)
		fmt.Fprint(c, "GET /stats/stream?filter=%5Ecart HTTP/1.1\r\nhost: localhost\r\n\r\n")
		clients = append(clients, bufio.NewReader(c))
	}
	until := func(r *bufio.Reader, want string) {
		t.Helper()
		var read strings.Builder
		for !strings.Contains(read.String(), want) {
			l, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("%v after %q, want %q", err, read.String(), want)
			}
			read.WriteString(l)
		}
		if strings.Contains(read.String(), "other") {
			t.Errorf("a stat that the filter does not match is there: %q", read.String())
		}
	}
	for _, r := range clients {
		until(r, "content-type: text/event-stream")
		until(r, `]],"rows":[[`)
	}
	a.Add(41)
	head := dial(t, s)
	fmt.Fprint(head, "HEAD /stats/stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
	if b, err := io.ReadAll(head); err != nil || !bytes.HasSuffix(b, []byte("\r\n\r\n")) || bytes.Contains(b, []byte("content-length")) || !bytes.Contains(b, []byte("text/event-stream")) {
		t.Errorf("HEAD: %q, %v", b, err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for stream.Clients() < 8 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	stream.Tick()
	for _, r := range clients {
		until(r, ",41,")
	}
}
