package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// TestLogsCannotBeForged sends requests with control bytes everywhere and secrets in
// unusual places. Each request is one line of the access log, and no log has a
// control byte or a secret.
func TestLogsCannotBeForged(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "app.log"), filepath.Join(dir, "text.log"), filepath.Join(dir, "json.log")}
	loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Path: paths[0]})
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.Config{
		Loggers: loggers, LogFile: loggers, Admin: anyPort(),
		AccessLogs: []accesslog.Config{{Path: paths[1]}, {Path: paths[2], JSON: map[string]any{
			"path": "%REQ(:PATH)%", "agent": "%REQ(USER-AGENT)%", "host": "%REQ(:AUTHORITY)%", "method": "%REQ(:METHOD)%",
		}}},
	}
	r := start(t, cfg)
	r.Admin().Handle(admin.Endpoint{Path: "/wild", Serve: func(_ *admin.Response, r *admin.Request) error { panic(r.Header("authorization")) }})
	requests, workers := 10_000, 4
	if testing.Short() {
		requests = 2_000
	}
	addr := r.Admin().Addr().String()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(w)))
			noise := func() string {
				b := make([]byte, rng.IntN(40))
				for i := range b {
					if b[i] = byte(rng.Uint32()); b[i] == '\r' || b[i] == '\n' || b[i] == ' ' {
						b[i] = 0x1b
					}
				}
				return string(b) + "\x1b[2J\u202e"
			}
			for i := range requests / workers {
				raw := fmt.Sprintf("GET /stats/%s?%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: %s\r\nAuthorization: Bearer canary\r\nCookie: canary\r\nConnection: close\r\n\r\n", noise(), noise(), noise())
				switch i % 6 {
				case 1:
					raw = fmt.Sprintf("POST /runtime_modify?key%s=canary HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: canary\r\nConnection: close\r\n\r\n", noise())
				case 2:
					raw = fmt.Sprintf("%s / HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic canary\r\n\r\n", noise(), noise())
				case 3:
					raw = "POST /logging?level=canary HTTP/1.1\r\nHost: localhost\r\nOrigin: http://" + noise() + "\r\nConnection: close\r\n\r\n"
				case 4:
					raw = "GET /wild?" + noise() + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer canary\r\nConnection: close\r\n\r\n"
				}
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.WriteString(c, raw); err != nil {
					t.Error(err)
				}
				_, _ = io.Copy(io.Discard, c) // some are reset
				c.Close()
			}
		})
	}
	all.Wait()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s shows a secret", path)
		}
		if !utf8.Valid(text) || bytes.ContainsFunc(text, func(c rune) bool { return c < 0x20 && c != '\n' || c == 0x7f || c == '\u202e' }) {
			t.Errorf("%s has control characters", path)
		}
		// The start of the test has asked for /ready.
		if lines := bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte("/ready")); path != paths[0] && lines != requests {
			t.Errorf("%s has %d lines for %d requests", path, lines, requests)
		}
	}
}

// TestFailedHandshakes checks that failed handshakes and plain text on a TLS port are
// not logged.
func TestFailedHandshakes(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, 1, time.Now().Add(time.Hour))
	cfg := fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log_path: $DIR/access.log
  tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem, client_ca: $DIR/cert.pem}
`)
	log := filepath.Join(dir, "app.log")
	loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Path: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers, cfg.LogFile = loggers, loggers
	r := start(t, cfg)
	addr := r.Admin().Addr().String()
	for _, raw := range []string{
		"GET /help?token=canary HTTP/1.1\r\nHost: canary\r\nAuthorization: Bearer canary\r\n\r\n", "POST /canary", "canary canary\n",
		"\x16\x03\x01\x00\x06canary", "\x16\x03\x01\xff\xffcanary",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite() // the answer tells
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	for _, client := range []*tls.Config{{MaxVersion: tls.VersionTLS11}, {}} { // one of an old version, one without a certificate
		client.InsecureSkipVerify, client.ServerName = true, "canary.test"
		if c, err := tls.Dial("tcp", addr, client); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}
	const failures = 7
	waittest.Until(t, "all handshakes have failed", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && bytes.Count(text, []byte("TLS handshake failed")) == failures
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for path, answered := range map[string]int{log: 0, filepath.Join(dir, "access.log"): 2} {
		text, err := os.ReadFile(path)
		if err != nil || bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s: %v, %s", path, err, text)
		}
		if got := bytes.Count(text, []byte(`"- - HTTP/1.1" 400 `)); got != answered {
			t.Errorf("%s has %d lines of those who speak no TLS, want %d:\n%s", path, got, answered, text)
		}
	}
}

// TestLinksAreNotFollowed checks that a symbolic link at an output path cannot
// redirect writes to another file.
func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	r := start(t, server.Config{Admin: anyPort(), AdminAddressPath: link, ProfilePath: link})
	for _, path := range []string{"/cpuprofiler?enable=y", "/heapprofiler?enable=y"} {
		if reply := r.post(t, path); reply.Status != 500 || strings.Contains(string(reply.Body), dir) {
			t.Errorf("%s: %d, %q", path, reply.Status, reply.Body)
		}
	}
	if _, err := server.New(withLoggers(t, server.Config{Admin: anyPort(), AccessLogs: []accesslog.Config{{Path: link}}})); err == nil {
		t.Error("an access log goes through a link")
	}
	s, err := server.New(withLoggers(t, server.Config{Admin: anyPort(), HotRestart: &server.HotRestart{SocketPath: filepath.Join(dir, "hot"), BaseIDPath: link}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err == nil {
		t.Error("the base id goes through a link")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link has %q, %v", text, err)
	}
	own := filepath.Join(dir, "address")
	again := start(t, server.Config{Admin: anyPort(), AdminAddressPath: own})
	text, err := os.ReadFile(own)
	if err != nil || string(text) != again.Admin().Addr().String() {
		t.Errorf("the address file has %q, %v", text, err)
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// panicLog is the log of a server in which something panics.
type panicLog struct{ lines }

// expect fails unless there is one line with a stack for each guard, in any order,
// and none shows the panic value.
func (l *panicLog) expect(t *testing.T, places ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, guardtest.Canary) {
			t.Errorf("the log shows the value of a panic: %s", line)
		}
		if !strings.HasPrefix(line, "[") {
			t.Errorf("a line of the log has no head: %s", line)
		}
		_, place, ok := strings.Cut(line, "recovered from a panic where=")
		if !ok {
			continue
		}
		place, stack, _ := strings.Cut(place, " panic=string stack=")
		if got = append(got, strings.Trim(place, `"`)); !strings.Contains(stack, "goroutine ") || !strings.Contains(stack, "hostile_test.go") {
			t.Errorf("no stack: %s", line)
		}
	}
	slices.Sort(got)
	if slices.Sort(places); !slices.Equal(got, places) {
		t.Errorf("panics at %q are logged, want %q", got, places)
	}
}

// loggedTo returns loggers that write to l.
func loggedTo(t *testing.T, l *panicLog) *logctl.Registry {
	t.Helper()
	r, err := logctl.New(logctl.Config{Level: logctl.Debug, Output: l})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPanicsOfOthers checks that panics of the embedding program's code are counted
// and logged, and everything else continues.
func TestPanicsOfOthers(t *testing.T) {
	log := new(panicLog)
	r := start(t, server.Config{Admin: anyPort(), Loggers: loggedTo(t, log), Flush: flush.Config{Interval: time.Minute}})
	stopped := make(chan bool, 1)
	for name, stop := range map[string]func(){"bad": func() { panic(guardtest.Canary) }, "good": func() { stopped <- true }} {
		if err := r.Listeners().Add(listeners.Listener{Name: name, Stop: stop}); err != nil {
			t.Fatal(err)
		}
	}
	r.Admin().Handle(admin.Endpoint{Path: "/panics", Serve: func(*admin.Response, *admin.Request) error { panic(guardtest.Canary) }})
	if reply := r.Admin().Request("GET", "/panics?secret="+url.QueryEscape(guardtest.Canary), nil); reply.Status != 500 {
		t.Errorf("status %d", reply.Status)
	}
	if reply := r.post(t, "/drain_listeners"); reply.Status != 200 {
		t.Errorf("status %d", reply.Status)
	}
	<-stopped
	if got := r.get(t, "/stats?filter=recovered_panics|listener_stopped"); got != "listener_manager.listener_stopped: 2\nserver.recovered_panics: 2\n" {
		t.Errorf("%q", got)
	}
	log.expect(t, "/panics", "end of a listener")
}

// TestPanicOfAPart checks that a part that panics stops, the others continue, and the
// error of Run names it.
func TestPanicOfAPart(t *testing.T) {
	log := new(panicLog)
	flushed := new(counting)
	s, err := server.New(server.Config{
		Admin: anyPort(), Loggers: loggedTo(t, log), Flush: flush.Config{Interval: time.Minute, Sinks: []flush.Sink{flushed}},
		StatsD: statsdOn("udp://127.0.0.1:0"),
		Listeners: []server.Listener{{
			Name: "wild", Address: "127.0.0.1:0", Serve: func(context.Context, net.Listener) error { panic(guardtest.Canary) },
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Initialized()
	panics := s.Store().Scope("server").Counter("recovered_panics")
	waittest.Until(t, "the panic", func() bool { return panics.Total() == 1 })
	var place string
	for _, l := range s.Listeners().List() {
		if l.Name == "wild" {
			place = l.Addresses[0].String()
		}
	}
	if place == "" {
		t.Fatal("the listener is not shown")
	}
	waittest.Until(t, "nobody listens where nobody serves", func() bool {
		c, err := net.Dial("tcp", place)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if resp, err := http.Get("http://" + s.Admin().Addr().String() + "/ready"); err != nil || resp.StatusCode != 200 {
		t.Errorf("/ready: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	_, udp, _ := strings.Cut(s.StatsD().Listeners()[0].Address, "://")
	c, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "hits:1|c"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "a line", func() bool { return s.StatsD().Scope().Counter("hits").Total() == 1 })
	select {
	case err := <-done:
		t.Fatalf("the server has ended: %v", err)
	default:
	}
	cancel()
	if err := <-done; err == nil || err.Error() != "listener: stopped by a panic" {
		t.Errorf("Run: %v", err)
	}
	if flushed.sum != 1 {
		t.Errorf("%d hits were flushed at the end", flushed.sum)
	}
	log.expect(t, "listener")
}

// TestPanicsAroundAFlush checks that a function that panics before a flush is called
// again before the next one.
func TestPanicsAroundAFlush(t *testing.T) {
	log := new(panicLog)
	var calls atomic.Int32
	r := start(t, server.Config{Admin: anyPort(), Loggers: loggedTo(t, log), Flush: flush.Config{
		Interval: flush.MinInterval, Before: []func(time.Time){func(time.Time) {
			if calls.Add(1) == 1 {
				panic(guardtest.Canary)
			}
		}},
	}})
	waittest.Until(t, "another flush", func() bool { return calls.Load() > 2 })
	if got := r.get(t, "/stats?filter=recovered_panics"); got != "server.recovered_panics: 1\n" {
		t.Errorf("%q", got)
	}
	log.expect(t, "before a flush")
}

// TestConfigurationForgesNoLines puts line breaks into all names and texts of the
// configuration that appear in text outputs. None of them starts a line there.
func TestConfigurationForgesNoLines(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "runtime.yaml")
	const bad = `a\nforged: 1\nforged::1\r\x1b\x7f`
	if err := os.WriteFile(runtime, fmt.Appendf(nil, "version_info: \"%[1]s\"\nresources:\n- {\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: \"%[1]s\", layer: {a: 1}}\n", bad), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := fromText(t, fmt.Sprintf(`node: {id: "%[1]s", cluster: "%[1]s", locality: {region: "%[1]s", zone: "%[1]s", sub_zone: "%[1]s"}}
layered_runtime: {layers: [{name: "%[1]s", rtds_layer: {name: "%[1]s", rtds_config: {path: %[2]s}}}]}
statsd: {prefix: "%[1]s", listeners: [{name: "%[1]s", address: "udp://127.0.0.1:0"}]}
static_resources:
  clusters:
  - name: "%[1]s"
    transport_socket_matches: [{name: "%[1]s", match: {}, transport_socket: {name: raw_buffer}}]
    load_assignment:
      cluster_name: "%[1]s"
      endpoints: [{locality: {region: "%[1]s", zone: "%[1]s", sub_zone: "%[1]s"}, lb_endpoints: [{endpoint: {hostname: "%[1]s", address: {pipe: {path: "/%[1]s"}}}}]}]
`, bad, runtime))
	cfg.HealthListeners = []server.HealthListener{{Name: "a\nforged: 1", Address: "127.0.0.1:0"}}
	r := start(t, cfg)
	var c *upstream.Cluster
	r.Clusters().Clusters(func(v *upstream.View) bool {
		c = r.Clusters().Cluster(v.Name).Current()
		return false
	})
	h, err := c.Pick(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.RequestStarted(h)
	c.RequestFinished(h, upstream.RequestEnd{Status: 200})
	const clean, scope = "a_forged: 1_forged::1___", "a_forged_ 1_forged__1___"
	if got := r.get(t, "/stats?filter=zone.*rq_200"); got != "cluster."+scope+".zone."+clean+"."+clean+".upstream_rq_200: 1\n" {
		t.Errorf("between zones: %q", got)
	}
	for path, shows := range map[string]string{
		"/stats": "runtime." + scope + `.version_text: "` + clean + "\"\n", "/clusters": clean + "::", "/listeners": "a_forged: 1", "/stats/metrics?text_readouts": `text_value="` + clean + `"`,
		"/stats?format=html": "total_match_count", "/stats?histogram_buckets=cumulative": "http.a_forged_ 1.health_check",
	} {
		text := r.get(t, path)
		if !strings.Contains(text, shows) {
			t.Errorf("%s shows no %s:\n%s", path, shows, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "forged") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\n\x1b\x7f") {
				t.Errorf("%s has a line of its own: %q", path, line)
			}
		}
	}
}

// wildSink panics at each flush.
type wildSink struct{}

func (wildSink) Name() string                { return "wild" }
func (wildSink) Flush(*store.Snapshot) error { panic("canary") }

// TestPanicsOfSinks checks that a sink that panics is called again at the next flush,
// and that each panic is counted.
func TestPanicsOfSinks(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), Flush: flush.Config{Interval: flush.MinInterval, Sinks: []flush.Sink{wildSink{}}}})
	panics := r.Store().Scope("server").Counter("recovered_panics")
	waittest.Until(t, "two panics are counted", func() bool { return panics.Value() >= 2 })
	if got := r.get(t, "/ready"); got != "LIVE\n" {
		t.Errorf("%q", got)
	}
}
