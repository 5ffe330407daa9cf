// Package promserver starts Debian's Prometheus server for a test and queries it.
package promserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

const head = "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"

const scrape = `
scrape_configs:
- job_name: daemon
  static_configs: [{targets: %s}]
`

// Config configures a server.
type Config struct {
	Targets []string // host:port of each server that is scraped
	Text    string   // the configuration; default: one that scrapes the targets often
	Args    []string // further arguments
}

// Server is a running server.
type Server struct {
	URL string

	t testing.TB
}

// Start starts a server, waits until it is ready, and stops it when the test ends.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	program := need.Program(t, "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := head
	if len(c.Targets) > 0 {
		targets, err := json.Marshal(c.Targets)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf(scrape, targets)
	}
	text = cmp.Or(c.Text, text)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		// The port can be taken by the time the server binds it; then it ends.
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := free.Addr().String()
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		if s := start(t, program, address, append([]string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + address, "--log.level=warn"}, c.Args...)); s != nil {
			return s
		}
	}
}

// start returns nil if the address is taken.
func start(t testing.TB, program, address string, args []string) *Server {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("prometheus said:\n%s", &log)
		}
	})
	s := &Server{"http://" + address, t}
	for end := time.Now().Add(daemon.Patience); ; time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			if bytes.Contains(log.Bytes(), []byte("address already in use")) {
				return nil
			}
			t.Fatalf("prometheus ended:\n%s", &log)
		default:
		}
		if resp, err := http.Get(s.URL + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return s
			}
		}
		if time.Now().After(end) {
			t.Fatal("prometheus is not ready")
		}
	}
}

// Types returns the types of the metrics that were scraped.
func (s *Server) Types() map[string]string {
	s.t.Helper()
	resp, err := http.Get(s.URL + "/api/v1/metadata")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Data map[string][]struct{ Type string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	types := map[string]string{}
	for name, all := range answer.Data {
		for _, m := range all {
			types[name] = m.Type
		}
	}
	return types
}

// Query returns the only value of an instant query, and whether there is one.
func (s *Server) Query(promQL string) (float64, bool) {
	s.t.Helper()
	resp, err := http.Get(s.URL + "/api/v1/query?query=" + url.QueryEscape(promQL))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	if answer.Error != "" {
		s.t.Fatalf("%s: %s", promQL, answer.Error)
	}
	if len(answer.Data.Result) != 1 {
		return 0, false
	}
	v, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v, true
}

// Expect waits until a query has a value.
func (s *Server) Expect(promQL string, ok func(float64) bool) {
	s.t.Helper()
	last := "nothing"
	for end := time.Now().Add(daemon.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		v, found := s.Query(promQL)
		if found && ok(v) {
			return
		}
		if found {
			last = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	s.t.Errorf("%s: %s", promQL, last)
}

// Gone waits until a query has no value.
func (s *Server) Gone(promQL string) {
	s.t.Helper()
	for end := time.Now().Add(daemon.Patience); ; time.Sleep(50 * time.Millisecond) {
		v, found := s.Query(promQL)
		if !found {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("%s: still %v", promQL, v)
			return
		}
	}
}

// Is accepts one value.
func Is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

// Within accepts the values from low to high.
func Within(low, high float64) func(float64) bool {
	return func(v float64) bool { return low <= v && v <= high }
}
