package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// line creates the servers of a chain of hot restarts.
type line struct {
	t    *testing.T
	dir  string
	sink *counting
	port string
	more string // of metrics alone

	mu    sync.Mutex // guards moves
	moves []string   // what became of the parcels of the servers' sinks
}

func (l *line) moved(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves = append(l.moves, what)
}

// movable is a sink that always has one parcel left.
type movable struct {
	l      *line
	closed chan struct{}
}

func (m movable) Name() string                { return "movable" }
func (m movable) Flush(*store.Snapshot) error { return nil }
func (m movable) Close()                      { close(m.closed) }
func (m movable) Run(ctx context.Context) {
	select {
	case <-m.closed:
	case <-ctx.Done():
	}
}

func (m movable) Hold(context.Context) []flush.Parcel {
	m.l.moved("hold")
	return []flush.Parcel{{Sink: m.Name(), Form: "text", Metrics: 1, Data: []byte("left")}}
}

func (m movable) Release(moved bool) { m.l.moved(fmt.Sprintf("release %t", moved)) }

func (m movable) Inherit(p flush.Parcel) bool {
	m.l.moved("inherit " + string(p.Data))
	return true
}

// All of them have the same ports.
func newLine(t *testing.T) *line {
	return &line{t: t, dir: t.TempDir(), sink: &counting{}, port: closedport.Reserve(t).String(), more: closedport.Reserve(t).String()}
}

// config returns the configuration of an epoch.
func (l *line) config(epoch uint32, parentShutdown time.Duration) server.Config {
	return server.Config{
		Store: store.New(store.Options{}), Admin: admin.Config{Address: l.port, MetricsAddress: l.more},
		StatsD: statsdOn("udp://127.0.0.1:0", "tcp://127.0.0.1:0", "unixlines://"+filepath.Join(l.dir, "s")),
		Flush:  flush.Config{Interval: 50 * time.Millisecond, Sinks: []flush.Sink{l.sink, movable{l, make(chan struct{})}}},
		HotRestart: &server.HotRestart{
			SocketPath: filepath.Join(l.dir, "hot"), RestartEpoch: epoch, ParentShutdownTime: parentShutdown,
		},
	}
}

// TestHotRestart sends lines over all sockets across two hot restarts. The last
// server shows all of them, and the sink receives each exactly once.
func TestHotRestart(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	gauge := first.Store().Root().Gauge("load")
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
		pause := 100 * time.Microsecond
		if protocol == "udp" {
			pause = 2 * time.Millisecond // what comes while nobody reads must fit into a small receive buffer
		}
		senders.Go(func() {
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				case <-time.After(pause):
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
		waittest.Until(t, "more lines are sent", func() bool { return sent.Load() > n+500 })
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
	waittest.Until(t, "the second server tells of the first one's connections", func() bool {
		return second.get(t, "/stats?filter=^server.(parent|total)_connections$") == "server.parent_connections: 2\nserver.total_connections: 2\n"
	})
	own.Add(1)
	gauge.Set(6)
	waittest.Until(t, "the second server follows the first", func() bool {
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
	if resp, err := http.Get("http://" + l.more + "/ready"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the third server does not answer at %s: %+v, %v", l.more, resp, err)
	} else {
		resp.Body.Close()
	}
	close(stop)
	senders.Wait()
	want := fmt.Sprintf("hits: %d\n", sent.Load())
	waittest.Until(t, "the third server shows all lines", func() bool { return third.get(t, "/stats?filter=^hits$") == want })
	for path, want := range map[string]string{
		"/stats?filter=^server.hot_restart":                 "server.hot_restart_epoch: 2\nserver.hot_restart_generation: 3\n",
		"/hot_restart_version":                              server.HotRestartVersion(),
		"/stats?filter=^server.(parent|total)_connections$": "server.parent_connections: 0\nserver.total_connections: 0\n",
		"/stats?filter=^(load|requests)$":                   "",
	} {
		waittest.Until(t, path+" shows "+want, func() bool { return third.get(t, path) == want })
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
	if got := strings.Join(l.moves, ", "); strings.Count(got, "hold, inherit left, release true") != 2 || len(l.moves) != 6 {
		t.Errorf("the parcels of two handovers: %s", got)
	}
	if left, _ := os.ReadDir(l.dir); len(left) != 0 {
		t.Errorf("files stay: %v", left)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestConnectionsInAHotRestart: an open connection of a listener of the program stays with
// its server until that one ends. New connections go to the next server.
func TestConnectionsInAHotRestart(t *testing.T) {
	l := newLine(t)
	epoch := func(n uint32, parentShutdown time.Duration) *running {
		cfg := l.config(n, parentShutdown)
		cfg.Listeners = []server.Listener{{Name: "raw", Address: "127.0.0.1:0", Handle: func(_ context.Context, c net.Conn) {
			b := make([]byte, 1)
			for {
				if _, err := c.Read(b); err != nil {
					return
				}
				_, _ = c.Write([]byte{byte('0' + n)})
			}
		}}}
		return start(t, cfg)
	}
	first := epoch(0, time.Minute)
	at := ""
	for _, l := range first.Listeners().List() {
		if l.Name == "raw" {
			at = l.Addresses[0].String()
		}
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	check := func(c net.Conn, want string) {
		t.Helper()
		b := make([]byte, 1)
		_, err := c.Write(b)
		if err == nil {
			_, err = io.ReadFull(c, b)
		}
		if err != nil || string(b) != want {
			t.Errorf("answer %q, %v, want that of epoch %s", b, err, want)
		}
	}
	old := dial()
	check(old, "0")
	second := epoch(1, time.Minute)
	waittest.Until(t, "the connection is known", func() bool {
		return second.get(t, "/stats?filter=^server.parent_connections$") == "server.parent_connections: 1\n"
	})
	young := dial()
	check(young, "1")
	check(old, "0")
	third := epoch(2, time.Minute) // which ends the first
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if n, err := old.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes from a server that has ended", n)
	}
	check(young, "1")
	waittest.Until(t, "the third serves", func() bool { // until then, the second answers as well
		return third.get(t, "/stats?filter=^server.hot_restart_generation$") == "server.hot_restart_generation: 3\n"
	})
	check(dial(), "2")
	for _, r := range []*running{second, third} {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestParentKeepsItsStats takes over without the stats. The predecessor keeps
// flushing to its own sinks, so they receive each line exactly once.
func TestParentKeepsItsStats(t *testing.T) {
	l := newLine(t)
	parent := start(t, l.config(0, time.Minute))
	sink := l.sink
	conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, strings.Repeat("hits:1|c\n", 100))
	waittest.Until(t, "the lines are counted", func() bool { return parent.get(t, "/stats?filter=^hits$") == "hits: 100\n" })

	l.sink = &counting{}
	cfg := l.config(1, time.Minute)
	cfg.HotRestart.SkipParentStats = true
	child := start(t, cfg)
	fmt.Fprint(conn, strings.Repeat("hits:1|c\n", 10)) // on the connection that the parent has
	if err := parent.stop(); err != nil {
		t.Error(err)
	}
	waittest.Until(t, "the connection is taken over", func() bool {
		fmt.Fprint(conn, "more:1|c\n")
		return child.get(t, "/stats?filter=^more$") != ""
	})
	if err := child.stop(); err != nil {
		t.Error(err)
	}
	if sum := sink.sum + l.sink.sum; sum != 110 || sink.sum < 100 {
		t.Errorf("the sinks got %d and %d lines, 110 were sent", sink.sum, l.sink.sum)
	}
}

// received returns the received total of a counter of s.
func received(s *running, name string) uint64 { return s.StatsD().Scope().Counter(name).Total() }

// TestLostSuccessor lets successors die at every step up to the shutdown of the first
// server. Each time the first server recovers: it answers, accepts, flushes, and its
// sinks receive each line exactly once.
func TestLostSuccessor(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := 0
	send := func(n int) {
		t.Helper()
		fmt.Fprint(conn, strings.Repeat("hits:1|c\n", n))
		lines += n
		waittest.Until(t, fmt.Sprint(lines, " lines are counted"), func() bool { return received(first, "hits") == uint64(lines) })
	}
	for steps := range 6 {
		send(10)
		child, err := hotrestart.Dial(hotrestart.Config{Path: filepath.Join(l.dir, "hot"), Epoch: 1},
			hotrestart.Successor{Stat: func(*store.ExportedStat) {}})
		if err != nil {
			t.Fatal(err)
		}
		sockets := func() error {
			all, err := child.Sockets()
			for _, s := range all {
				for _, f := range s.Files {
					f.Close()
				}
			}
			return err
		}
		for _, ask := range []func() error{sockets, child.Stats, child.Commit, child.Drain, child.Watch}[:steps] {
			send(10)
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		send(10)
		child.Close()
		waittest.Until(t, "a new connection is accepted", func() bool {
			c, err := net.Dial("unix", filepath.Join(l.dir, "s"))
			if err != nil {
				return false
			}
			defer c.Close()
			before := received(first, "more")
			fmt.Fprint(c, "more:1|c\n")
			for range 100 {
				if received(first, "more") == before+1 {
					return true
				}
				time.Sleep(5 * time.Millisecond)
			}
			return false
		})
		if got := first.get(t, "/ready"); got != "LIVE\n" {
			t.Errorf("after %d steps the first server answers %q", steps, got)
		}
		if got := first.get(t, "/stats?filter=^hits$"); got != fmt.Sprintf("hits: %d\n", lines) {
			t.Errorf("after %d steps %d lines are shown as %q", steps, lines, got)
		}
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if l.sink.sum != uint64(lines) {
		t.Errorf("the sink got %d lines, %d were sent", l.sink.sum, lines)
	}
	if left, _ := os.ReadDir(l.dir); len(left) != 0 {
		t.Errorf("files stay: %v", left)
	}
}

// TestLostSuccessorOfADrainingServer: a drain that an operator asked for before or during
// the take-over continues when the successor is gone, and no other does.
func TestLostSuccessorOfADrainingServer(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	for _, before := range []bool{false, true} {
		child, err := hotrestart.Dial(hotrestart.Config{Path: filepath.Join(l.dir, "hot"), Epoch: 1},
			hotrestart.Successor{Stat: func(*store.ExportedStat) {}})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []func() error{child.Commit, child.Drain} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if !first.Lifecycle().Draining(true) || !first.Lifecycle().Draining(false) {
			t.Error("the server does not drain for its successor")
		}
		child.Close()
		waittest.Until(t, "the drain for the successor ends", func() bool { return !first.Lifecycle().Draining(false) })
		if got := first.Lifecycle().Draining(true); got != before {
			t.Errorf("inbound drain: %t, want %t", got, before)
		}
		first.post(t, "/drain_listeners?graceful&inboundonly")
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
}

// TestTimersOfADrainingServer: the samples of histograms are not handed over, so they
// reach the sinks of the server that received them, until its end.
func TestTimersOfADrainingServer(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	child, err := hotrestart.Dial(hotrestart.Config{Path: filepath.Join(l.dir, "hot"), Epoch: 1},
		hotrestart.Successor{Stat: func(*store.ExportedStat) {}})
	if err != nil {
		t.Fatal(err)
	}
	samples := func() uint64 {
		l.sink.mu.Lock()
		defer l.sink.mu.Unlock()
		return l.sink.samples
	}
	fmt.Fprint(conn, "took:1|ms\n")
	waittest.Until(t, "a sample reaches the sinks", func() bool { return samples() == 1 })
	for _, step := range []func() error{child.Stats, child.Commit, child.Drain} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(conn, strings.Repeat("took:1|ms\n", 5))
	waittest.Until(t, "the samples of a draining server reach the sinks", func() bool { return samples() == 6 })
	fmt.Fprint(conn, strings.Repeat("took:1|ms\n", 4)+"hits:1|c\n")
	waittest.Until(t, "the last line is read", func() bool { return received(first, "hits") == 1 })
	if err := child.Terminate(); err != nil {
		t.Error(err)
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if l.sink.sum != 0 || samples() != 10 {
		t.Errorf("the sink got %d lines and %d samples, want 0 and 10", l.sink.sum, samples())
	}
}

// slowEnd is the output of a log that is held up at the end of the server.
type slowEnd struct{ begun, goOn chan struct{} }

func (s slowEnd) Write(p []byte) (int, error) {
	if strings.HasSuffix(strings.TrimSpace(string(p)), "shutting down") {
		close(s.begun)
		<-s.goOn
	}
	return len(p), nil
}

// inCall reports whether a goroutine is in a function.
func inCall(function string) bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function))
}

// TestSuccessorLostWhileTheServerEnds: the increments that a successor has not
// acknowledged reach the sinks of the server that it has asked to end, and these keep
// their parcels.
func TestSuccessorLostWhileTheServerEnds(t *testing.T) {
	for name, parts := range map[string]bool{"before the handover": false, "during the handover": true} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			cfg := l.config(0, time.Minute)
			out := slowEnd{make(chan struct{}), make(chan struct{})}
			var err error
			if cfg.Loggers, err = logctl.New(logctl.Config{Level: logctl.Trace, Output: out}); err != nil {
				t.Fatal(err)
			}
			cfg.StatsD.Relay = []relay.Route{{Targets: []relay.Target{{Name: "dead", Address: "unixlines:///nothing/here"}}}}
			first := start(t, cfg)
			conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			child, err := hotrestart.Dial(hotrestart.Config{Path: filepath.Join(l.dir, "hot"), Epoch: 1}, hotrestart.Successor{
				Stat: func(*store.ExportedStat) {},
				Connection: func(c hotrestart.Connection) {
					c.File.Close()
					runtime.Goexit() // the successor reads nothing more
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Commit(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(conn, strings.Repeat("hits:1|c\n", 10))
			waittest.Until(t, "10 lines are counted", func() bool { return received(first, "hits") == 10 })
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer child.Close()
				_ = child.Terminate() // it fails
			}()
			<-out.begun
			if !parts {
				child.Close()
				<-ended
				waittest.Until(t, "the server notices", func() bool { return inCall("server.(*followed).Lost(") })
			}
			close(out.goOn)
			<-ended
			if err := first.stop(); err != nil {
				t.Error(err)
			}
			if l.sink.sum != 10 {
				t.Errorf("the sink got %d lines, 10 were sent", l.sink.sum)
			}
			want := ""
			if parts {
				want = "hold, release false"
			}
			if got := strings.Join(l.moves, ", "); got != want && got != strings.TrimPrefix(want, "hold, ") {
				t.Errorf("the parcels of the sink: %s, want %s", got, want)
			}
			if r := first.StatsD().Relay().Report()[0]; r.Dropped != 10 || r.Queued != 0 {
				t.Errorf("%d lines of the relay are counted as lost and %d wait, want 10 and 0", r.Dropped, r.Queued)
			}
		})
	}
}

// neighbor is a process of the test that follows a server.
type neighbor struct {
	hotrestart.Process
	asked chan struct{} // whether it serves
}

func (n neighbor) Serving() bool {
	close(n.asked)
	return true
}

// TestSuccessorThatLeavesTheServerEnding: a live successor that has waited in vain
// for the end of the server before it keeps the paths of the sockets that it serves.
func TestSuccessorThatLeavesTheServerEnding(t *testing.T) {
	l := newLine(t)
	cfg := l.config(0, time.Minute)
	out := slowEnd{make(chan struct{}), make(chan struct{})}
	var err error
	if cfg.Loggers, err = logctl.New(logctl.Config{Level: logctl.Trace, Output: out}); err != nil {
		t.Fatal(err)
	}
	first := start(t, cfg)
	own := hotrestart.Config{Path: filepath.Join(l.dir, "hot"), Epoch: 1}
	next, err := hotrestart.Listen(own)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	process := neighbor{asked: make(chan struct{})}
	go func() { done <- next.Run(ctx, process) }()
	child, err := hotrestart.Dial(own, hotrestart.Successor{Stat: func(*store.ExportedStat) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{child.Commit, child.Drain} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Terminate() // it fails
	}()
	<-out.begun
	child.Close()
	<-ended
	<-process.asked // the server has noticed
	close(out.goOn)
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(l.dir, "s")); err != nil {
		t.Errorf("the path of a socket that the successor serves: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestFailedSuccessor starts a second server that cannot listen. The first one is not
// affected.
func TestFailedSuccessor(t *testing.T) {
	l := newLine(t)
	first := start(t, l.config(0, time.Minute))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := l.config(1, time.Minute)
	cfg.StatsD = statsdOn("unixlines://"+filepath.Join(l.dir, "s"), "tcp://"+taken.Addr().String())
	second, err := server.New(withLoggers(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("the second server: %v", err)
	}
	conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
	if err != nil {
		t.Fatalf("the socket of the first server is gone: %v", err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hits:1|c\n")
	waittest.Until(t, "the first server goes on", func() bool {
		resp, err := http.Get(first.url + "/stats?filter=^hits$")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b) == "hits: 1\n"
	})
	third := start(t, l.config(1, 0)) // one that can
	waittest.Until(t, "the stats are carried over", func() bool { return third.get(t, "/stats?filter=^hits$") == "hits: 1\n" })
}

func withLoggers(t *testing.T, cfg server.Config) server.Config {
	cfg.Loggers = quiet(t)
	return cfg
}

// TestInheritedSocketsOfMissingListeners takes over from a server with listeners
// that the successor does not have: nothing keeps their sockets open.
func TestInheritedSocketsOfMissingListeners(t *testing.T) {
	l := newLine(t)
	cfg := l.config(0, 0)
	cfg.HealthListeners = []server.HealthListener{{Address: "unix:" + filepath.Join(l.dir, "health")}}
	first := start(t, cfg)
	var gone []string
	for _, a := range first.StatsD().Listeners() {
		if strings.HasPrefix(a.Address, "tcp://") {
			gone = append(gone, strings.TrimPrefix(a.Address, "tcp://"))
		}
	}
	cfg = l.config(1, 0)
	cfg.StatsD = statsdOn("unixlines://" + filepath.Join(l.dir, "s"))
	second := start(t, cfg)
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	for _, a := range gone {
		if c, err := net.Dial("tcp", a); err == nil {
			c.Close()
			t.Errorf("%s is still open", a)
		}
	}
	if c, err := net.Dial("unix", filepath.Join(l.dir, "health")); err == nil {
		c.Close()
		t.Error("the health listener is still open")
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}

// TestTakenOverStatsAreLogged: a take-over says which stats continue.
func TestTakenOverStatsAreLogged(t *testing.T) {
	for skip, want := range map[bool]string{
		false: "counters and gauges taken over; histograms, summaries and sets start again",
		true:  "all stats start again",
	} {
		l := newLine(t)
		start(t, l.config(0, 0))
		cfg, file := l.config(1, 0), filepath.Join(l.dir, "log")
		cfg.HotRestart.SkipParentStats = skip
		var err error
		if cfg.Loggers, err = logctl.New(logctl.Config{Level: logctl.Info, Path: file}); err != nil {
			t.Fatal(err)
		}
		start(t, cfg)
		waittest.Until(t, "the log says "+want, func() bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), want)
		})
	}
}

// TestDroppedSockets: the paths of unix sockets that a successor has no listeners for are
// gone when the predecessor has ended. If the successor does not get so far, they stay.
func TestDroppedSockets(t *testing.T) {
	for _, withStatsD := range []bool{true, false} {
		l := newLine(t)
		cfg := l.config(0, 0)
		cfg.Admin.Address = "unix:" + filepath.Join(l.dir, "a")
		cfg.HealthListeners = []server.HealthListener{{Address: "unix:" + filepath.Join(l.dir, "h")}}
		cfg.StatsD = statsdOn("unixgram://"+filepath.Join(l.dir, "g"), "unixlines://"+filepath.Join(l.dir, "s"))
		first := start(t, cfg)
		sockets := func() (names string) {
			for _, name := range []string{"a", "g", "h", "s"} {
				if _, err := os.Lstat(filepath.Join(l.dir, name)); err == nil {
					names += name
				}
			}
			return names
		}
		next := func() server.Config {
			cfg := l.config(1, 0)
			if withStatsD {
				cfg.StatsD = statsdOn("unixlines://" + filepath.Join(l.dir, "s"))
			} else {
				cfg.StatsD = nil
			}
			return cfg
		}
		failing := next()
		failing.HealthListeners = []server.HealthListener{{Address: closedport.TCP(t).String()}} // which is taken
		lost, err := server.New(withLoggers(t, failing))
		if err != nil {
			t.Fatal(err)
		}
		if err := lost.Listen(); err == nil {
			t.Fatal("a taken address can be bound")
		}
		if got := sockets(); got != "aghs" {
			t.Errorf("after a lost successor the sockets %q are left", got)
		}
		var second *running
		waittest.Until(t, "the old server takes another successor", func() bool {
			second, err = tryStart(t, next())
			if err != nil && !strings.Contains(err.Error(), "has a successor already") {
				t.Fatal(err)
			}
			return err == nil
		})
		if err := first.stop(); err != nil {
			t.Error(err)
		}
		want := map[bool]string{true: "s"}[withStatsD]
		waittest.Until(t, "only the successor's sockets are left", func() bool { return sockets() == want })
		if err := second.stop(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(l.dir); len(left) != 0 {
			t.Errorf("files stay: %v", left)
		}
	}
}
