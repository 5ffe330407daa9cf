package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// epoch is one process of a line.
type epoch struct {
	t      *testing.T
	cmd    *exec.Cmd
	admin  string
	log    bytes.Buffer
	exited chan error
}

// startEpoch starts a process and waits until it is live.
func startEpoch(t *testing.T, bin, dir string, n int, args ...string) *epoch {
	t.Helper()
	e := &epoch{t: t, exited: make(chan error, 1)}
	file := filepath.Join(dir, fmt.Sprint("address-", n))
	config := fmt.Sprintf(`{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, stats_flush_interval: 0.1s, `+
		`statsd: {listeners: [{address: "udp://127.0.0.1:0"}, {address: "tcp://127.0.0.1:0"}, {address: "unixgram://%[1]s/g"}, {address: "unixlines://%[1]s/l"}]}}`, dir)
	e.cmd = exec.Command(bin, append([]string{"--config-yaml", config, "--admin-address-path", file,
		"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", fmt.Sprint(n)}, args...)...)
	e.cmd.Stderr = &e.log
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { e.exited <- e.cmd.Wait() }()
	t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	e.eventually("is live", func() bool {
		b, err := os.ReadFile(file)
		e.admin = "http://" + string(b)
		return err == nil && len(b) > 0 && e.get("/ready") == "LIVE\n"
	})
	return e
}

func (e *epoch) eventually(what string, ok func() bool) {
	e.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = e.cmd.Process.Kill()
			<-e.exited
			e.t.Fatalf("the process never %s; it says\n%s", what, e.log.String())
		}
	}
}

// get returns the body of an answer, "" if there is none.
func (e *epoch) get(path string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := c.Get(e.admin + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// end waits for the process to end by itself.
func (e *epoch) end() {
	e.t.Helper()
	select {
	case err := <-e.exited:
		if err != nil {
			e.t.Errorf("%v\n%s", err, e.log.String())
		}
	case <-time.After(20 * time.Second):
		e.t.Error("the process does not end")
	}
}

// TestHotRestartOfProcesses lets real processes follow each other while lines
// come in over all kinds of sockets. The first one ends when its time is over,
// the second one when it is told to.
func TestHotRestartOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "statsd-admin")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
	if err := json.Unmarshal([]byte(first.get("/listeners?format=json")), &places); err != nil {
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
		s := sockets[i%4]
		var c net.Conn
		for {
			select {
			case <-stop:
				if c != nil {
					c.Close()
				}
				return
			case <-time.After(200 * time.Microsecond):
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
		first.eventually("gets more", func() bool { return counts[1].Load() > n+300 })
	}
	busy()
	second := startEpoch(t, bin, dir, 1, "--parent-shutdown-time-s", "1")
	busy()
	first.end()
	busy()
	third := startEpoch(t, bin, dir, 2, "--parent-shutdown-time-s", "900")
	busy()
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.end()
	busy()
	close(stop)
	senders.Wait()
	for i := range counts {
		want, got := fmt.Sprintf("from.%d: %d\n", i, counts[i].Load()), ""
		for end := time.Now().Add(20 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			got = third.get(fmt.Sprintf("/stats?filter=^from.%d$", i))
		}
		if got != want {
			t.Errorf("got %swant %s%s\nlogs:\n%s\n%s", got, want, third.get("/stats?filter=ingest&usedonly"), first.log.String(), second.log.String())
		}
	}
	if got := third.get("/stats?filter=ingest.lines_rejected|kernel_drops&usedonly"); got != "" {
		t.Errorf("losses: %s", got)
	}
	var info struct {
		Current string `json:"uptime_current_epoch"`
		All     string `json:"uptime_all_epochs"`
	}
	if err := json.Unmarshal([]byte(third.get("/server_info")), &info); err != nil {
		t.Fatal(err)
	}
	current, err1 := time.ParseDuration(info.Current)
	all, err2 := time.ParseDuration(info.All)
	if err1 != nil || err2 != nil || all < current+time.Second {
		t.Errorf("uptimes %+v: the first process was started more than a second before the third", info)
	}
	if err := third.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	third.end()
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
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "statsd-admin")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
	run("server: file for the base id: open "+filepath.Join(dir, "no", "base-id"), "--base-id-path", filepath.Join(dir, "no", "base-id"))
	idFile := filepath.Join(dir, "base-id")
	other := exec.Command(bin, "--socket-path", filepath.Join(dir, "hot"), "--use-dynamic-base-id", "--base-id-path", idFile,
		"--config-yaml", `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, statsd: {listeners: []}}`)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer other.Process.Kill()
	afresh.eventually("has a neighbour", func() bool { b, err := os.ReadFile(idFile); return err == nil && len(b) > 0 })
	if got := afresh.get("/ready"); got != "LIVE\n" {
		t.Errorf("/ready: %q", got)
	}
}
