// Package nodestatsd starts StatsD for Node.js for a test, asks its management port,
// and returns the totals that its backend gets in the end.
package nodestatsd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// Config configures a server.
type Config struct {
	Transport string // udp or tcp
	Repeater  string // host:port that gets every packet, over the same transport; default: none
}

// Server is a running server. It is on a loopback address of its own, since it cannot
// choose its ports.
type Server struct {
	Address    string // host:port for lines
	Management string // host:port of the management port

	t      testing.TB
	cmd    *exec.Cmd
	output string
	log    bytes.Buffer
	ended  chan struct{}
}

// Totals are all stats of a server since its start.
type Totals struct {
	Counters map[string]float64
	Gauges   map[string]float64
	Timers   map[string][]float64 // values
	Samples  map[string]float64   // of timers: values, each as often as its sample rate says
	Sets     map[string][]string
}

// Start starts a server that flushes at its end only, waits until it takes lines, and
// stops it when the test ends.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	node := need.Program(t, "node")
	npm, err := filepath.Abs("../npm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(npm, "node_modules/statsd")); err != nil {
		need.Missing(t, "the npm package statsd is not installed: run the tests with scripts/e2e")
	}
	host, dir := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)), t.TempDir()
	s := &Server{
		Address: host + ":8125", Management: host + ":8126",
		t: t, output: filepath.Join(dir, "flush.json"), ended: make(chan struct{}),
	}
	settings := map[string]any{
		"servers":      []any{map[string]any{"server": "./servers/" + c.Transport, "address": host, "port": 8125}},
		"mgmt_address": host, "mgmt_port": 8126, "flushInterval": time.Hour.Milliseconds(),
		"backends": []string{filepath.Join(npm, "backend.js")}, "output": s.output,
	}
	if c.Repeater != "" {
		to, port, _ := net.SplitHostPort(c.Repeater)
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		settings["backends"] = append(settings["backends"].([]string), "./backends/repeater")
		settings["repeater"] = []any{map[string]any{"host": to, "port": number}}
		settings["repeaterProtocol"] = c.Transport
	}
	text, err := json.Marshal(settings) // which is JavaScript
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.js")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(node, "stats.js", config)
	s.cmd.Dir = filepath.Join(npm, "node_modules/statsd")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("StatsD for Node.js said:\n%s", &s.log)
		}
	})
	daemon.Until(t, "StatsD for Node.js", func() bool {
		select {
		case <-s.ended:
			t.Fatal("StatsD for Node.js ended")
		default:
		}
		conn, err := net.Dial(c.Transport, s.Address)
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "\n") // a packet without lines
		return err == nil && s.Counters()["statsd.packets_received"] > 0
	})
	return s
}

// Ask sends a command to the management port and returns the first line of the answer.
func (s *Server) Ask(command string) string {
	s.t.Helper()
	answer, err := s.ask(command, "\n")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSuffix(answer, "\n")
}

// ask returns the answer to a command up to end.
func (s *Server) ask(command, end string) (answer string, err error) {
	conn, err := net.Dial("tcp", s.Management)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(daemon.Patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", err
	}
	buf := make([]byte, 64<<10)
	for !strings.HasSuffix(answer, end) {
		n, err := conn.Read(buf)
		if err != nil {
			return "", fmt.Errorf("%w after %q", err, answer)
		}
		answer += string(buf[:n])
	}
	return answer, nil
}

var counter = regexp.MustCompile(`'?([^\s':]+)'?: (-?[0-9.e+-]+)`)

// Counters returns the counters that the management port shows, none while it is not
// open.
func (s *Server) Counters() map[string]float64 {
	answer, err := s.ask("counters", "END\n\n")
	if err != nil {
		return nil
	}
	all := map[string]float64{}
	for _, m := range counter.FindAllStringSubmatch(answer, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			s.t.Errorf("%q: %v", m[0], err)
		}
		all[m[1]] = v
	}
	return all
}

// Lines returns how many lines the server has got.
func (s *Server) Lines() int { return int(s.Counters()["statsd.metrics_received"]) }

// End ends the server and returns its totals.
func (s *Server) End() Totals {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
	text, err := os.ReadFile(s.output)
	if err != nil {
		s.t.Fatal(err)
	}
	var all Totals
	if err := json.Unmarshal(text, &all); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return all
}
