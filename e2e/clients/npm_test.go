package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// The numbers of metrics that npm/send.js sends.
const (
	npmIncrements = 3_000
	npmSampled    = 1_000
	npmTimings    = 300
	npmMembers    = 50
)

// packages returns the directory of the npm clients. It skips the test if they are
// not installed.
func packages(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../npm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "hot-shots")); err != nil {
		need.Missing(t, "the npm clients are not installed: run the tests with scripts/e2e")
	}
	return dir
}

// TestNpmClients sends with clients for Node.js.
func TestNpmClients(t *testing.T) {
	node := need.Program(t, "node")
	dir := packages(t)
	tests := []struct {
		library, listener string
		events            bool
	}{
		{"hot-shots", "udp", true},
		{"hot-shots", "tcp", false},
		{"hot-shots", "unixgram", true},
		{"hot-shots", "unixlines", false},
		{"statsd-client", "udp", false},
		{"statsd-client", "tcp", false},
	}
	for _, tt := range tests {
		t.Run(tt.library+"/"+tt.listener, func(t *testing.T) {
			if tt.listener == "unixgram" {
				if _, err := os.Stat(filepath.Join(dir, "node_modules/unix-dgram/build/Release/unix_dgram.node")); err != nil {
					need.Missing(t, "the npm package unix-dgram was not compiled")
				}
			}
			d := daemon.Start(t, daemon.Config{})
			command := func(what string) *exec.Cmd {
				cmd := exec.Command(node, "send.js", tt.library, tt.listener, d.Address(tt.listener), what)
				cmd.Dir = dir
				return cmd
			}
			out, err := command("all").Output()
			if err != nil {
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					t.Fatalf("%v: %s", err, exit.Stderr)
				}
				t.Fatal(err)
			}
			var sent struct{ Lines float64 }
			if err := json.Unmarshal(out, &sent); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s := d.Wait(fmt.Sprintf("%v lines", sent.Lines), func(s daemon.Stats) bool {
				lines := sent.Lines + s.Number("shop.sampled.env.test")/2 // the client sends every second one of these
				return s.Number("ingest.lines.listener."+tt.listener) == lines || s.Number("ingest.kernel_drops.listener."+tt.listener) > 0
			})
			if drops := s.Number("ingest.kernel_drops.listener." + tt.listener); drops > 0 {
				t.Fatalf("the kernel dropped %v packets of a slow sender", drops)
			}
			if tt.library == "hot-shots" {
				checkSampled(t, s.Number("shop.sampled.env.test"), npmSampled)
			}
			checkNpm(t, d, tt.events)
			checkNpmSet(t, d, command("set"))
		})
	}
}

func checkNpm(t *testing.T, d *daemon.Daemon, events bool) {
	t.Helper()
	got := d.Stats()
	want := map[string]float64{
		"shop.temperature.env.test": 15.5,
		"ingest.type_conflicts":     0,
	}
	for h := range 10 {
		want[fmt.Sprintf("shop.orders.env.test.host.h%d", h)] = npmIncrements / 10
	}
	if events {
		want["ingest.events.alert_type.info"] = 1
		want["ingest.events.alert_type.success"] = 1
		want["ingest.events.alert_type.warning"] = 1
		want["ingest.events.alert_type.error"] = 1
		want["ingest.service_checks.status.ok"] = 2
		want["ingest.service_checks.status.warning"] = 1
		want["ingest.service_checks.status.critical"] = 1
		want["ingest.service_checks.status.unknown"] = 1
	}
	for name, v := range want {
		if value, ok := got[name]; !ok || got.Number(name) != v {
			t.Errorf("%s: %q, want %v", name, value, v)
		}
	}
	if v := got.Sum("ingest.rejected."); v != 0 {
		t.Errorf("%v lines were rejected", v)
	}
	metrics := d.Metrics(fmt.Sprintf(`shop_spread_count{env="test"} %d`, npmTimings))
	for _, name := range []string{"shop_latency", "shop_size", "shop_spread"} {
		checkHistogram(t, metrics, name, `env="test"`, npmTimings, 15_150)
	}
}

// checkNpmSet lets cmd repeatedly send the members of a set and waits for their
// number.
func checkNpmSet(t *testing.T, d *daemon.Daemon, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe() // it ends when this does
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := d.Wait("all members of a set", func(s daemon.Stats) bool { return s.Number("shop.users.env.test") >= npmMembers })
	if v := s.Number("shop.users.env.test"); v != npmMembers {
		t.Errorf("a set of %d members has %v", npmMembers, v)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
