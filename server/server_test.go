package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// The timer goroutine of the backtracking regular expression engine outlives the last
// match for some time.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// running is a server that runs until stop is called or the test ends.
type running struct {
	*server.Server
	url  string
	stop func() error
}

func quiet(t testing.TB) *logctl.Registry {
	t.Helper()
	l, err := logctl.New(logctl.Config{Level: logctl.Trace, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func start(t *testing.T, cfg server.Config) *running {
	t.Helper()
	r, err := tryStart(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tryStart is start for a server that may fail to listen.
func tryStart(t *testing.T, cfg server.Config) (*running, error) {
	t.Helper()
	if cfg.Loggers == nil {
		cfg.Loggers = quiet(t)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r := &running{Server: s}
	if addr := s.Admin().Addr(); addr != nil {
		r.url = "http://" + addr.String()
	}
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			return errors.New("the server does not end")
		}
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	waittest.Until(t, "the server is live", func() bool { return r.get(t, "/ready") == "LIVE\n" })
	return r, nil
}

func (r *running) get(t testing.TB, path string) string {
	t.Helper()
	return string(r.Admin().Request("GET", path, nil).Body)
}

func (r *running) post(t *testing.T, path string) *admin.Reply {
	t.Helper()
	return r.Admin().Request("POST", path, nil)
}

func anyPort() admin.Config { return admin.Config{Address: "127.0.0.1:0"} }

func statsdOn(addresses ...string) *statsd.Config {
	c := &statsd.Config{}
	for _, a := range addresses {
		c.Listeners = append(c.Listeners, statsd.ListenerConfig{Address: a})
	}
	return c
}

// counting is a sink that sums up a counter.
type counting struct {
	mu      sync.Mutex
	sum     uint64
	samples uint64 // of the received histogram "took"
}

func (c *counting) Name() string { return "counting" }
func (c *counting) Flush(s *store.Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.CounterChanges(func(cur *store.Cursor, d uint64) bool {
		if cur.Network() && cur.Name() == "hits" {
			c.sum += d
		}
		return true
	})
	s.HistogramChanges(func(cur *store.Cursor, h *histogram.Snapshot) bool {
		if cur.Network() && cur.Name() == "took" {
			c.samples += h.Interval.Count()
		}
		return true
	})
	return nil
}

// TestLinesReachEveryReader sends lines over TCP and shuts the server down
// immediately. The page and the sink must have all of them.
func TestLinesReachEveryReader(t *testing.T) {
	sink := &counting{}
	st := store.New(store.Options{})
	r := start(t, server.Config{
		Store: st, Admin: anyPort(), StatsD: statsdOn("tcp://127.0.0.1:0"),
		Flush: flush.Config{Interval: time.Minute, Sinks: []flush.Sink{sink}},
	})
	addr := strings.TrimPrefix(r.StatsD().Listeners()[0].Address, "tcp://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	const lines = 20_000
	for range lines / 100 {
		if _, err := io.WriteString(conn, strings.Repeat("hits:1|c\n", 100)); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	want := fmt.Sprintf("hits: %d\n", lines)
	waittest.Until(t, "all lines are counted", func() bool { return r.get(t, "/stats?filter=^hits$") == want })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if sink.sum != lines {
		t.Errorf("the sink got %d, want %d: the last flush is missing", sink.sum, lines)
	}
}

func TestTwoServersInOneProcess(t *testing.T) {
	a := start(t, server.Config{Admin: anyPort()})
	b := start(t, server.Config{Admin: anyPort()})
	a.Store().Root().Counter("only.a").Inc()
	if got := b.get(t, "/stats?filter=only"); got != "" {
		t.Errorf("the other server shows %q", got)
	}
	a.post(t, "/healthcheck/fail")
	if got := b.get(t, "/ready"); got != "LIVE\n" {
		t.Errorf("the other server is %q", got)
	}
	if reply := a.Admin().Request("GET", "/ready", nil); reply.Status != 503 || string(reply.Body) != "DRAINING\n" {
		t.Errorf("/ready after /healthcheck/fail: %d %q", reply.Status, reply.Body)
	}
}

func TestQuit(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort()})
	resp, err := http.Post(r.url+"/quitquitquit", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(body) != "OK\n" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	waittest.Until(t, "the port is closed", func() bool {
		c, err := net.Dial("tcp", r.Admin().Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// TestEndBeforeTheStart: a server whose context is done already flushes once, too.
func TestEndBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		sink := &counting{}
		s, err := server.New(withLoggers(t, server.Config{Flush: flush.Config{Sinks: []flush.Sink{sink}}}))
		if err != nil {
			t.Fatal(err)
		}
		s.Store().ScopeWith("", store.ScopeOptions{Network: true}).Counter("hits").Inc()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if sink.sum != 1 {
			t.Fatalf("the sink got %d increments, want 1", sink.sum)
		}
	}
}

func TestTakenPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	taken := ln.Addr().String()
	for name, cfg := range map[string]server.Config{
		"admin":  {Admin: admin.Config{Address: taken}},
		"statsd": {Admin: anyPort(), StatsD: statsdOn("tcp://" + taken)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Loggers = quiet(t)
			s, err := server.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), taken) {
				t.Errorf("error %v does not name %s", err, taken)
			}
		})
	}
}

func TestRuntimeSwitchesTheFilterEngine(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort()})
	r.Store().Root().Counter("ab.x")
	const lookahead = "/stats?filter=a(?=b)"
	if reply := r.Admin().Request("GET", lookahead, nil); reply.Status != 400 {
		t.Errorf("RE2 takes a lookahead: %d", reply.Status)
	}
	if reply := r.post(t, "/runtime_modify?proxy.reloadable_features.admin_stats_filter_use_re2=false"); reply.Status != 200 {
		t.Fatalf("/runtime_modify: %d %s", reply.Status, reply.Body)
	}
	if got := r.get(t, lookahead); got != "ab.x: 0\n" {
		t.Errorf("ECMAScript engine: %q", got)
	}
}

func TestFlushOnAdmin(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), Flush: flush.Config{OnAdmin: true}})
	h := r.Store().Root().Histogram("h", store.Milliseconds)
	h.Record(7)
	if got := r.get(t, "/stats?filter=^h$"); !strings.HasPrefix(got, "h: P0(7,7)") {
		t.Errorf("the answer does not show the flush it made: %q", got)
	}
	if got := r.get(t, "/stats?filter=^h$"); !strings.HasPrefix(got, "h: P0(nan,7)") {
		t.Errorf("second answer: %q", got)
	}
}

// TestAddressFileComesFirst: the file exists as soon as the server serves.
func TestAddressFileComesFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "address")
	s, err := server.New(withLoggers(t, server.Config{Admin: anyPort(), AdminAddressPath: file}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != s.Admin().Addr().String() {
		t.Errorf("before the server runs the file has %q, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestListenersAndAddressFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "address")
	sock := filepath.Join(dir, "s.sock")
	r := start(t, server.Config{
		Admin: anyPort(), AdminAddressPath: file,
		StatsD: statsdOn("udp://127.0.0.1:0", "unixgram://"+sock),
	})
	b, err := os.ReadFile(file)
	if err != nil || string(b) != r.Admin().Addr().String() {
		t.Errorf("address file: %q, %v", b, err)
	}
	var dump struct {
		ListenerStatuses []struct {
			Name         string
			LocalAddress struct {
				SocketAddress struct {
					Address   string
					PortValue int `json:"port_value"`
					Protocol  string
				} `json:"socket_address"`
				Pipe struct{ Path string }
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(r.get(t, "/listeners?format=json")), &dump); err != nil {
		t.Fatal(err)
	}
	if len(dump.ListenerStatuses) != 2 {
		t.Fatalf("%d listeners: %+v", len(dump.ListenerStatuses), dump)
	}
	udp, unix := dump.ListenerStatuses[0].LocalAddress, dump.ListenerStatuses[1].LocalAddress
	if udp.SocketAddress.PortValue == 0 || udp.SocketAddress.Protocol != "UDP" {
		t.Errorf("udp listener %+v", udp)
	}
	if unix.Pipe.Path != sock {
		t.Errorf("unix listener %+v", unix)
	}
	r.post(t, "/drain_listeners")
	waittest.Until(t, "a drained listener is closed", func() bool {
		c, err := net.Dial("unixgram", sock)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// TestDefaultConfiguration builds the server that the daemon runs without a file, on
// other ports.
func TestDefaultConfiguration(t *testing.T) {
	c, err := bootstrap.Parse("test.yaml", []byte(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_config:
  stats_tags: [{tag_name: tier, regex: '\.tier_((\w+)\.)'}]
  stats_matcher: {exclusion_list: {patterns: [{prefix: noise.}]}}
  histogram_bucket_settings: [{match: {suffix: _ms}, buckets: [1, 10]}]
statsd: {listeners: [{address: "tcp://127.0.0.1:0"}]}
`), bootstrap.Options{Product: "proxy"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{Tags: []tags.Tag{{Name: "site", Value: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, cfg)
	root := r.Store().Root()
	root.Counter("edge.tier_gold.rq").Add(3)
	root.Counter("noise.x").Inc()
	root.Histogram("t_ms", store.Milliseconds).Record(5)
	r.Flusher().FlushNow()
	if got := r.get(t, "/stats?filter=noise"); got != "" {
		t.Errorf("the matcher let %q through", got)
	}
	if got := r.get(t, "/stats?filter=t_ms$&histogram_buckets=cumulative"); got != "t_ms: B1(0,0) B10(1,1)\n" {
		t.Errorf("bounds: %q", got)
	}
	if got, want := r.get(t, "/stats/metrics?filter=edge"),
		"# TYPE proxy_edge_tier_rq counter\nproxy_edge_tier_rq{site=\"a\",tier=\"gold\"} 3\n"; got != want {
		t.Errorf("exposition %q, want %q", got, want)
	}
}

// TestAdminWithoutAPort sends in-process and net/http requests to a server without an
// admin address, before and while it runs.
func TestAdminWithoutAPort(t *testing.T) {
	s, err := server.New(server.Config{Loggers: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Admin().Request("GET", "/stats?filter=^server.live", nil); r.Status != 200 || s.Admin().Addr() != nil {
		t.Errorf("status %d, address %v", r.Status, s.Admin().Addr())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		rec := httptest.NewRecorder()
		s.Admin().ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost/ready", nil))
		if rec.Code == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %d %s", rec.Code, rec.Body)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
