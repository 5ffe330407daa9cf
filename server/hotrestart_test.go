package server_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// line makes the servers of a line of processes.
type line struct {
	t    *testing.T
	dir  string
	sink *counting
	port string
}

func newLine(t *testing.T) *line {
	probe, err := net.Listen("tcp", "127.0.0.1:0") // all need the same port
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	return &line{t, t.TempDir(), &counting{}, probe.Addr().String()}
}

// config returns the configuration of an epoch.
func (l *line) config(epoch uint32, parentShutdown time.Duration) server.Config {
	return server.Config{
		Store: store.New(store.Options{}), Admin: admin.Config{Address: l.port},
		StatsD: statsdOn("udp://127.0.0.1:0", "tcp://127.0.0.1:0", "unixlines://"+filepath.Join(l.dir, "s")),
		Flush:  flush.Config{Interval: 50 * time.Millisecond, Sinks: []flush.Sink{l.sink}},
		HotRestart: &server.HotRestart{
			SocketPath: filepath.Join(l.dir, "hot"), RestartEpoch: epoch, ParentShutdownTime: parentShutdown,
		},
	}
}

// TestHotRestart sends lines over all sockets while three servers follow each
// other. The last one shows all of them, and the sink got each of them once.
func TestHotRestart(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	gauge := first.Store().Root().Gauge("load", store.Accumulate)
	gauge.Set(4)
	own := first.Store().Root().Counter("requests")
	own.Add(9)

	var senders sync.WaitGroup
	var sent atomic.Uint64
	stop := make(chan struct{})
	for _, a := range first.StatsD().Listeners() {
		protocol, place, _ := strings.Cut(a.Address, "://")
		c, err := net.Dial(strings.Replace(protocol, "unixlines", "unix", 1), place)
		if err != nil {
			t.Fatal(err)
		}
		senders.Go(func() {
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
				if _, err := c.Write([]byte("hits:1|c\n")); err != nil {
					t.Errorf("%s: %v", a.Address, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	busy := func(r *running) {
		t.Helper()
		n := sent.Load()
		eventually(t, "more lines are sent", func() bool { return sent.Load() > n+500 })
	}
	busy(first)
	second := start(t, l.config(1, time.Minute))
	busy(second)
	if got := first.StatsD().Listeners()[0].Address; got != second.StatsD().Listeners()[0].Address {
		t.Errorf("the second server listens on %s", second.StatsD().Listeners()[0].Address)
	}
	if got := second.get(t, "/stats?filter=^(load|requests)$"); got != "load: 4\nrequests: 9\n" {
		t.Errorf("the second server shows %q", got)
	}
	eventually(t, "the second server tells of the first one's connections", func() bool {
		return second.get(t, "/stats?filter=^server.(parent|total)_connections$") == "server.parent_connections: 2\nserver.total_connections: 2\n"
	})
	own.Add(1)
	gauge.Set(6)
	eventually(t, "the second server follows the first", func() bool {
		return second.get(t, "/stats?filter=^(load|requests)$") == "load: 6\nrequests: 10\n"
	})
	third := start(t, l.config(2, 0)) // which ends the second at once
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	busy(third)
	close(stop)
	senders.Wait()
	want := fmt.Sprintf("hits: %d\n", sent.Load())
	eventually(t, "the third server shows all lines", func() bool { return third.get(t, "/stats?filter=^hits$") == want })
	for path, want := range map[string]string{
		"/stats?filter=^server.hot_restart":                 "server.hot_restart_epoch: 2\nserver.hot_restart_generation: 3\n",
		"/hot_restart_version":                              server.HotRestartVersion(),
		"/stats?filter=^server.(parent|total)_connections$": "server.parent_connections: 0\nserver.total_connections: 0\n",
		"/stats?filter=^(load|requests)$":                   "",
	} {
		eventually(t, path+" shows "+want, func() bool { return third.get(t, path) == want })
	}
	var info struct {
		Current string `json:"uptime_current_epoch"`
		All     string `json:"uptime_all_epochs"`
		Version string `json:"hot_restart_version"`
	}
	if err := json.Unmarshal([]byte(third.get(t, "/server_info")), &info); err != nil || info.Version != server.HotRestartVersion() {
		t.Errorf("%+v, %v", info, err)
	}
	if err := third.stop(); err != nil {
		t.Error(err)
	}
	if l.sink.sum != sent.Load() {
		t.Errorf("the sink got %d lines, %d were sent", l.sink.sum, sent.Load())
	}
	if left, _ := os.ReadDir(l.dir); len(left) != 0 {
		t.Errorf("files stay: %v", left)
	}
	http.DefaultClient.CloseIdleConnections()
}
