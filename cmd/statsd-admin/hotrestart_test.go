package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/epochtest"
)

// startEpoch starts a process with listeners of all kinds.
func startEpoch(t *testing.T, bin, dir string, n int, args ...string) *epochtest.Process {
	t.Helper()
	config := fmt.Sprintf(`{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, stats_flush_interval: 0.1s, `+
		`statsd: {listeners: [{address: "udp://127.0.0.1:0"}, {address: "tcp://127.0.0.1:0"}, {address: "unixgram://%[1]s/g"}, {address: "unixlines://%[1]s/l"}]}}`, dir)
	return epochtest.Start(t, bin, dir, n, append([]string{"--config-yaml", config}, args...)...)
}

// TestHotRestartOfProcesses lets real processes follow each other while lines
// come in over all kinds of sockets. The first one ends when its time is over,
// the second one on a signal.
func TestHotRestartOfProcesses(t *testing.T) {
	dir, bin := t.TempDir(), programFor(t)
	first := startEpoch(t, bin, dir, 0)
	var places struct {
		All []struct {
			Local struct {
				Socket struct {
					Port int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(first.Get("/listeners?format=json")), &places); err != nil {
		t.Fatal(err)
	}
	sockets := []struct{ network, address string }{
		{"udp", fmt.Sprint("127.0.0.1:", places.All[0].Local.Socket.Port)},
		{"tcp", fmt.Sprint("127.0.0.1:", places.All[1].Local.Socket.Port)},
		{"unixgram", filepath.Join(dir, "g")},
		{"unix", filepath.Join(dir, "l")},
	}
	var senders sync.WaitGroup
	var counts [2 * 4]atomic.Uint64
	stop := make(chan struct{})
	send := func(i int, lasting bool) {
		s, pause := sockets[i%4], 200*time.Microsecond
		if s.network == "udp" {
			pause = 2 * time.Millisecond // what comes while nobody reads must fit into a small receive buffer
		}
		var c net.Conn
		for {
			select {
			case <-stop:
				if c != nil {
					c.Close()
				}
				return
			case <-time.After(pause):
			}
			if c == nil {
				var err error
				if c, err = net.Dial(s.network, s.address); err != nil {
					t.Errorf("%s: %v", s.network, err)
					return
				}
			}
			if _, err := fmt.Fprintf(c, "from.%d:1|c\nmeter:%d|g\n", i, i); err != nil {
				t.Errorf("%s: %v", s.network, err)
				return
			}
			counts[i].Add(1)
			if !lasting {
				c.Close()
				c = nil
			}
		}
	}
	for i := range counts {
		senders.Go(func() { send(i, i < 4) }) // one connection that lasts, and many short ones
	}
	busy := func() {
		t.Helper()
		n := counts[1].Load()
		first.Eventually("gets more", func() bool { return counts[1].Load() > n+300 })
	}
	busy()
	second := startEpoch(t, bin, dir, 1, "--parent-shutdown-time-s", "1")
	busy()
	first.End()
	busy()
	third := startEpoch(t, bin, dir, 2, "--parent-shutdown-time-s", "900")
	busy()
	second.Signal(syscall.SIGTERM)
	second.End()
	busy()
	close(stop)
	senders.Wait()
	for i := range counts {
		want, got := fmt.Sprintf("from.%d: %d\n", i, counts[i].Load()), ""
		for end := time.Now().Add(60 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			got = third.Get(fmt.Sprintf("/stats?filter=^from.%d$", i))
		}
		if got != want {
			t.Errorf("got %swant %s%s\nlogs:\n%s\n%s", got, want, third.Get("/stats?filter=ingest&usedonly"), first.Log(), second.Log())
		}
	}
	if got := third.Get("/stats?filter=ingest.lines_rejected|kernel_drops&usedonly"); got != "" {
		t.Errorf("losses: %s", got)
	}
	var info struct {
		Current string `json:"uptime_current_epoch"`
		All     string `json:"uptime_all_epochs"`
	}
	if err := json.Unmarshal([]byte(third.Get("/server_info")), &info); err != nil {
		t.Fatal(err)
	}
	current, err1 := time.ParseDuration(info.Current)
	all, err2 := time.ParseDuration(info.All)
	if err1 != nil || err2 != nil || all < current+time.Second {
		t.Errorf("uptimes %+v: the first process was started more than a second before the third", info)
	}
	third.Signal(syscall.SIGTERM)
	third.End()
	for _, name := range []string{"g", "l"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("socket %s stays", name)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "hot*"))
	if len(left) != 0 {
		t.Errorf("%s stay", strings.Join(left, " "))
	}
}

// TestHotRestartRefusals starts processes that cannot take their place.
func TestHotRestartRefusals(t *testing.T) {
	dir, bin := t.TempDir(), programFor(t)
	run := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command(bin, append([]string{"--socket-path", filepath.Join(dir, "hot"),
			"--config-yaml", `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, statsd: {listeners: []}}`}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	run("start with --restart-epoch 0, or with --skip-hot-restart-on-no-parent", "--restart-epoch", "1")
	afresh := startEpoch(t, bin, dir, 1, "--skip-hot-restart-on-no-parent", "--base-id", "7")
	run("the base id is in use by another server", "--restart-epoch", "1", "--base-id", "7")
	run("its successor has epoch 2, not 5", "--restart-epoch", "5", "--base-id", "7")
	run("server: base id file: open "+filepath.Join(dir, "no", "base-id"), "--base-id-path", filepath.Join(dir, "no", "base-id"))
	idFile := filepath.Join(dir, "base-id")
	other := exec.Command(bin, "--socket-path", filepath.Join(dir, "hot"), "--use-dynamic-base-id", "--base-id-path", idFile,
		"--config-yaml", `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, statsd: {listeners: []}}`)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer other.Process.Kill()
	afresh.Eventually("has a neighbor", func() bool { b, err := os.ReadFile(idFile); return err == nil && len(b) > 0 })
	if got := afresh.Get("/ready"); got != "LIVE\n" {
		t.Errorf("/ready: %q", got)
	}
}
