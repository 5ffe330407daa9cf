package server_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// TestSec_07_LogsCannotBeForged sends requests with control bytes everywhere, and
// secrets where none belong: each request is one line of the access log, and no
// log has a control byte or a secret.
func TestSec_07_LogsCannotBeForged(t *testing.T) {
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
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func() string {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			if b[i] = byte(rng.Uint32()); b[i] == '\r' || b[i] == '\n' || b[i] == ' ' {
				b[i] = 0x1b
			}
		}
		return string(b) + "\x1b[2J\u202e"
	}
	const requests = 2000
	addr := r.Admin().Addr().String()
	for i := range requests {
		raw := fmt.Sprintf("GET /stats/%s?%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: %s\r\nAuthorization: Bearer canary\r\nCookie: canary\r\nConnection: close\r\n\r\n", noise(), noise(), noise())
		switch i % 5 {
		case 1:
			raw = fmt.Sprintf("POST /runtime_modify?key%s=canary HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: canary\r\nConnection: close\r\n\r\n", noise())
		case 2:
			raw = fmt.Sprintf("%s / HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic canary\r\n\r\n", noise(), noise())
		case 3:
			raw = "POST /logging?level=canary HTTP/1.1\r\nHost: localhost\r\nOrigin: http://" + noise() + "\r\nConnection: close\r\n\r\n"
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c) // some are reset
		c.Close()
	}
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

// TestSec_20_LinksAreNotFollowed: whoever can put a link where a file is to be
// written cannot have another file written.
func TestSec_20_LinksAreNotFollowed(t *testing.T) {
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

// TestSec_24_PanicsOfOthers: what the program around the server brings along may
// panic. That is counted, and the rest goes on.
func TestSec_24_PanicsOfOthers(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), Flush: flush.Config{Interval: time.Minute}})
	stopped := make(chan bool, 1)
	for name, stop := range map[string]func(){"bad": func() { panic("canary") }, "good": func() { stopped <- true }} {
		if err := r.Listeners().Add(listeners.Listener{Name: name, Stop: stop}); err != nil {
			t.Fatal(err)
		}
	}
	r.Admin().Handle(admin.Endpoint{Path: "/panics", Serve: func(*admin.Response, *admin.Request) error { panic("canary") }})
	if reply := r.Admin().Request("GET", "/panics", nil); reply.Status != 500 {
		t.Errorf("status %d", reply.Status)
	}
	if reply := r.post(t, "/drain_listeners"); reply.Status != 200 {
		t.Errorf("status %d", reply.Status)
	}
	<-stopped
	if got := r.get(t, "/stats?filter=recovered_panics|listener_stopped"); got != "listener_manager.listener_stopped: 2\nserver.recovered_panics: 2\n" {
		t.Errorf("%q", got)
	}
}

// TestSec_24_PanicOfAPart: a part that panics ends the server in good order, and
// not the process.
func TestSec_24_PanicOfAPart(t *testing.T) {
	var bad bool
	s, err := server.New(withLoggers(t, server.Config{Admin: anyPort(), Flush: flush.Config{
		Interval: 10 * time.Millisecond, Before: []func(time.Time){func(time.Time) {
			if bad = !bad; !bad {
				panic("canary")
			}
		}},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "panic of type string") || strings.Contains(err.Error(), "canary") {
		t.Errorf("Run: %v", err)
	}
	if got := s.Store().Scope("server").Counter("recovered_panics").Value(); got != 1 {
		t.Errorf("%d panics are counted", got)
	}
	if _, err := http.Get("http://" + s.Admin().Addr().String() + "/ready"); err == nil {
		t.Error("the port is still open")
	}
}

// TestSec_06_ConfigurationForgesNoLines puts line ends into all names and texts of
// the configuration that get into text outputs: none of them begins a line there.
func TestSec_06_ConfigurationForgesNoLines(t *testing.T) {
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

// TestSec_24_PanicsOfSinks: a sink that panics is called again at the next flush,
// and each time counts.
func TestSec_24_PanicsOfSinks(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), Flush: flush.Config{Interval: flush.MinInterval, Sinks: []flush.Sink{wildSink{}}}})
	panics := r.Store().Scope("server").Counter("recovered_panics")
	for deadline := time.Now().Add(30 * time.Second); panics.Value() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d panics are counted", panics.Value())
		}
	}
	if got := r.get(t, "/ready"); got != "LIVE\n" {
		t.Errorf("%q", got)
	}
}
