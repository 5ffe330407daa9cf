package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestFailedNewLeavesNothingOpen makes each step of New and Check fail, and counts
// descriptors, goroutines and timers.
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
	recordTimers(t)
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
			noMoreOpen(t, before)
		})
	}
}

// TestRunLeavesNothingOpen runs servers with everything that they can open, and takes
// over from them with servers that have other listeners, and counts descriptors,
// goroutines, timers and views.
func TestRunLeavesNothingOpen(t *testing.T) {
	round := func(t *testing.T) { // whose ports are given back at its end
		l := newLine(t)
		config := func(epoch uint32) server.Config {
			cfg := fromYAML(t, l.dir, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, access_log_path: $DIR/access}
static_resources: {clusters: [{name: a, connect_timeout: 1s, type: STATIC, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}]}
cluster_manager: {outlier_detection: {event_log_path: $DIR/outliers}}
`)
			like := l.config(epoch, 0)
			cfg.Store, cfg.StatsD, cfg.Flush, cfg.HotRestart, cfg.Admin.Address = like.Store, like.StatsD, like.Flush, like.HotRestart, l.port
			if epoch == 1 { // lacks all listeners of the first but one
				cfg.StatsD = statsdOn("unixlines://"+filepath.Join(l.dir, "s"), "unixgram://"+filepath.Join(l.dir, "g"))
				return cfg
			}
			cfg.HealthListeners = []server.HealthListener{{Address: "127.0.0.1:0"}, {Name: "local", Address: "unix:" + filepath.Join(l.dir, "h")}}
			cfg.Listeners = []server.Listener{{Name: "http", Address: "127.0.0.1:0", Serve: func(ctx context.Context, ln net.Listener) error {
				<-ctx.Done()
				return ln.Close()
			}}}
			return cfg
		}
		var views []*store.Store
		var before *running
		for epoch := range uint32(3) {
			cfg := config(epoch)
			s := start(t, cfg)
			views = append(views, s.Store())
			c, err := net.Dial("unix", filepath.Join(l.dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, "hits:1|c\n")
			waittest.Until(t, "the line is counted", func() bool { return s.get(t, "/stats?filter=^hits$") == fmt.Sprintf("hits: %d\n", epoch+1) })
			c.Close()
			if before != nil {
				if err := before.stop(); err != nil {
					t.Error(err)
				}
			}
			before = s
		}
		if err := before.stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		for i, st := range views {
			if n := st.OpenViews(); n != 0 {
				t.Errorf("server %d leaves %d views open", i, n)
			}
		}
	}
	recordTimers(t)
	t.Run("first", round)
	before := open(t)
	for range 3 {
		t.Run("more", round)
	}
	noMoreOpen(t, before)
}

// TestTimersAreCounted checks that open sees timers that nothing stops, and no
// others.
func TestTimersAreCounted(t *testing.T) {
	recordTimers(t)
	before := open(t)
	var held []*time.Ticker
	after := time.AfterFunc(time.Hour, func() {})
	_, cancel := context.WithTimeout(context.Background(), time.Hour)
	held = append(held, time.NewTicker(time.Hour))
	if got := open(t); got[2] != before[2]+3 {
		t.Errorf("%d timers, %d before three were made", got[2], before[2])
	}
	held[0].Stop()
	cancel()
	after.Stop()
	held, after = nil, nil
	noMoreOpen(t, before)
}

// noMoreOpen waits until no more descriptors, goroutines and timers are open than
// before.
func noMoreOpen(t *testing.T, before [3]int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		now := open(t)
		if now[0] <= before[0] && now[1] <= before[1] && now[2] <= before[2] {
			return
		}
		if time.Now().After(end) {
			_, made := timers()
			t.Fatalf("%v descriptors, goroutines and timers, %v before; the timers were made by%s", now, before, made)
		}
	}
}

// open counts open descriptors, goroutines and timers.
func open(t *testing.T) [3]int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getpid()))
	if err != nil {
		t.Skip(err)
	}
	n, _ := timers()
	return [3]int{len(fds), runtime.NumGoroutine(), n}
}

// recordTimers lets timers see all timers that are made until the test ends.
func recordTimers(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = rate })
}

// timers counts the timers and tickers in memory according to the heap profile, and
// returns where they were made. The runtime keeps timers that can still fire a function, and the program the timers it
// refers to.
func timers() (n int, made string) {
	for range 3 { // the profile is that of an earlier collection
		runtime.GC()
	}
	var records []runtime.MemProfileRecord
	for size, ok := runtime.MemProfile(nil, false); !ok; {
		records = make([]runtime.MemProfileRecord, size+100)
		size, ok = runtime.MemProfile(records, false)
		records = records[:min(size, len(records))]
	}
	for _, r := range records {
		timer, stack := false, ""
		for frames := runtime.CallersFrames(r.Stack()); ; {
			f, more := frames.Next()
			if f.Function == "runtime.(*timers).addHeap" {
				break // the runtime's list of timers has grown
			}
			timer = timer || f.Function == "time.newTimer"
			stack += fmt.Sprintf("\n\t%s:%d", f.Function, f.Line)
			if !more {
				break
			}
		}
		if timer && r.InUseObjects() > 0 {
			n += int(r.InUseObjects())
			made += stack + "\n"
		}
	}
	return n, made
}
