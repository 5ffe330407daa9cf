package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestFailedNewLeavesNothingOpen makes each step of New and Check fail, and counts
// descriptors and goroutines.
func TestFailedNewLeavesNothingOpen(t *testing.T) {
	const calls = 5
	steps := map[string]func(*server.Config){
		"runtime":     func(c *server.Config) { c.Layers = []layers.Layer{{Name: "a"}} },
		"outlier log": func(c *server.Config) { c.Clusters.OutlierLog = filepath.Join(t.TempDir(), "none", "log") },
		"control": func(c *server.Config) {
			c.Clusters.Control = func(*server.Server) (server.Control, error) { return nil, errors.New("no control plane") }
		},
		"statsd":      func(c *server.Config) { c.StatsD = statsdOn("udp://127.0.0.1:0", "carrier-pigeon://here") },
		"statsd tls":  func(c *server.Config) { c.StatsDTLS = map[int]certs.Files{0: {Chain: "/none", Key: "/none"}} },
		"health":      func(c *server.Config) { c.HealthListeners = []server.HealthListener{{Address: "nowhere"}} },
		"hot restart": func(c *server.Config) { c.HotRestart = &server.HotRestart{} },
		"flush":       func(c *server.Config) { c.Flush = flush.Config{Interval: -1} },
		"access log": func(c *server.Config) {
			c.AccessLogs = append(c.AccessLogs, accesslog.Config{Path: t.TempDir(), Format: "%X"})
		},
		"tokens": func(c *server.Config) { c.AdminTokens = "/none" },
		"admin":  func(c *server.Config) { c.Store = store.New(store.Options{Product: "not a product"}) },
		"extension": func(c *server.Config) {
			c.Extend = []func(*server.Server) error{func(*server.Server) error { return errors.New("no") }}
		},
		"listen":        func(c *server.Config) { c.Admin.Address = "192.0.2.1:1" },
		"health listen": func(c *server.Config) { c.HealthListeners = []server.HealthListener{{Address: "192.0.2.1:1"}} },
	}
	for name, breakIt := range steps {
		t.Run(name, func(t *testing.T) {
			attempt := func() {
				dir := t.TempDir()
				cfg := fromYAML(t, dir, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, access_log_path: $DIR/access}
statsd: {listeners: [{address: "tcp://127.0.0.1:0"}]}
static_resources: {clusters: [{name: a, connect_timeout: 1s, type: STATIC, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}]}
cluster_manager: {outlier_detection: {event_log_path: $DIR/outliers}}
`)
				cfg.Loggers = quiet(t)
				breakIt(&cfg)
				s, err := server.New(cfg)
				if err == nil {
					err = s.Listen()
				} else if err := server.Check(cfg); err == nil && name != "outlier log" {
					t.Error("Check found nothing")
				}
				if err == nil {
					t.Fatal("no error")
				}
			}
			attempt()
			before := open(t)
			for range calls {
				attempt()
			}
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				now := open(t)
				if now[0] <= before[0] && now[1] <= before[1] {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("after %d calls: %v descriptors and goroutines, %v before", calls, now, before)
				}
			}
		})
	}
}

// open counts open descriptors and goroutines.
func open(t *testing.T) [2]int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getpid()))
	if err != nil {
		t.Skip(err)
	}
	return [2]int{len(fds), runtime.NumGoroutine()}
}
