package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/convert"
)

// convertInputs returns the files that the package's golden files are made of, with the
// program of each.
func convertInputs(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, from := range convert.Programs() {
		files, err := filepath.Glob("../../internal/convert/testdata/" + string(from) + "*[a-z]")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", from, err)
		}
		for _, f := range files {
			if filepath.Ext(f) != ".golden" {
				all[f] = string(from)
			}
		}
	}
	return all
}

// TestConvertIsValid validates what the subcommand prints.
func TestConvertIsValid(t *testing.T) {
	for file, from := range convertInputs(t) {
		status, stdout, stderr := invoke(nil, "convert", "--from", from, file)
		want := 0
		if stderr != "" {
			want = 1
		}
		if status != want || strings.Count(stdout, "(line ") != strings.Count(stderr, "\n") {
			t.Errorf("%s: status %d\n%s%s", file, status, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "not shown") {
			t.Errorf("%s: a secret is shown", file)
		}
		result := write(t, "result.yaml", stdout)
		if status, _, stderr := invoke(nil, "--mode", "validate", "-c", result); status != 0 {
			t.Errorf("%s: status %d, %s\n%s", file, status, stderr, stdout)
		}
	}
	status, stdout, stderr := invoke(strings.NewReader("{port: 1, x: 2}"), "convert", "--from=statsd", "-")
	if status != 1 || !strings.Contains(stdout, ":1") || !strings.HasPrefix(stderr, "stdin:1:11: x: has no equivalent\n") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

// TestConvertRuns starts the daemon with converted configurations, sends lines to the
// listener of each, and waits for them at its backend.
func TestConvertRuns(t *testing.T) {
	tests := []struct{ from, file, text, want string }{
		{"statsd", "config.js", `{
			servers: [{server: './servers/tcp', socket: 'DIR/s'}], flushInterval: 100, percentThreshold: 90, deleteGauges: true,
			graphiteHost: '127.0.0.1', graphitePort: PORT, backends: ['./backends/graphite'], graphite: {legacyNamespace: false}}`,
			"stats.counters.shop.orders.count 3"},
		{"gostatsd", "config.toml", "metrics-addr = 'DIR/s'\nflush-interval = '100ms'\nbackends = 'graphite'\nnamespace = 'eu'\n[graphite]\naddress = '127.0.0.1:PORT'\nmode = 'legacy'\n",
			"stats_counts.eu.shop.orders 3"},
		{"telegraf", "telegraf.conf", "[agent]\ninterval = '100ms'\n[[inputs.statsd]]\nservice_address = 'HOST:8125'\n[[outputs.graphite]]\nservers = ['127.0.0.1:PORT']\nprefix = 'eu'\n",
			"eu.shop.orders 3"},
		{"brubeck", "brubeck.json", `{"backends": [{"type": "carbon", "address": "127.0.0.1", "port": PORT, "frequency": 1}],
			"samplers": [{"type": "statsd", "address": "HOST", "port": 8125}]}`,
			"shop.orders 3"},
	}
	for i, tt := range tests {
		t.Run(tt.from, func(t *testing.T) {
			carbon, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer carbon.Close()
			dir := shortDir(t)
			host := fmt.Sprintf("127.%d.%d.%d", os.Getpid()>>8&255, os.Getpid()&255, 2+i) // no other process has it
			file := write(t, tt.file, strings.NewReplacer("DIR", dir, "PORT", strconv.Itoa(carbon.Addr().(*net.TCPAddr).Port), "HOST", host).Replace(tt.text))
			status, stdout, stderr := invoke(nil, "convert", "--from", tt.from, file)
			if status > 1 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			d := serving(t, "--disable-hot-restart", "-c", write(t, "result.yaml", stdout), "--config-yaml", "admin: {address: {socket_address: {port_value: 0}}}")
			address := d.StatsD().Listeners()[0].Address
			scheme, place, _ := strings.Cut(address, "://")
			if scheme == "unixlines" {
				scheme = "unix"
			}
			conn, err := net.Dial(scheme, place)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("shop.orders:3|c\n")); err != nil {
				t.Fatal(err)
			}
			receiver, err := carbon.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer receiver.Close()
			if err := receiver.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(receiver)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), tt.want+" ") {
					return
				}
			}
			t.Errorf("no %q in time: %v", tt.want, lines.Err())
		})
	}
}
