package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/epochtest"
	"github.com/statsd-admin/statsd-admin/server"
)

// process is one proxy of a line.
type process struct{ *epochtest.Process }

// startProcess starts a proxy and waits until it is live.
func startProcess(t *testing.T, bin, dir string, epoch int, more ...string) *process {
	t.Helper()
	args := []string{"--config", filepath.Join(dir, "boot.yaml"), "--listeners", filepath.Join(dir, "listeners.json"),
		"--drain-time", "0s", "--parent-shutdown-time", "1s"}
	return &process{epochtest.Start(t, bin, dir, epoch, append(args, more...)...)}
}

func (p *process) stat(name string) int {
	_, value, _ := strings.Cut(strings.TrimSpace(p.Get("/stats?filter=^"+strings.ReplaceAll(name, ".", "\\.")+"$")), ": ")
	n, err := strconv.Atoi(value)
	if err != nil {
		return -1
	}
	return n
}

// line prepares a directory for a line of proxies, and builds their program.
func line(t *testing.T, boot, listeners string) (bin, dir string) {
	t.Helper()
	if server.HotRestartVersion() == "disabled" {
		t.Skip("the system cannot do it")
	}
	dir = t.TempDir()
	bin = filepath.Join(dir, "reverse-proxy")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	boot = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstats_flush_interval: 0.1s\n" + boot
	for name, text := range map[string]string{"boot.yaml": boot, "listeners.json": listeners} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bin, dir
}

// address returns where a listener listens.
func (p *process) address(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(p.Get("/listeners")) {
		if n, address, _ := strings.Cut(strings.TrimSpace(line), "::"); n == name {
			return address
		}
	}
	t.Fatalf("no listener %q", name)
	return ""
}

// TestHotRestart replaces a proxy twice under load: no request fails, and all are
// counted, each once.
func TestHotRestart(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	bin, dir := line(t, static("", b), `[{"name": "web", "address": "127.0.0.1:0", "cluster": "backend", "timeout": "60s"}]`)
	old := startProcess(t, bin, dir, 0)
	address := old.address(t, "web")
	ctx, stop := context.WithCancel(context.Background())
	var answered atomic.Int64
	var load sync.WaitGroup
	for i := range 6 {
		load.Go(func() {
			// Some stay connected, some come anew each time.
			c := http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}, Timeout: 60 * time.Second}
			defer c.CloseIdleConnections()
			for ctx.Err() == nil {
				resp, err := c.Get("http://" + address + "/")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(string(body), "hello") {
					t.Errorf("answer %d %q, %v", resp.StatusCode, body, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for epoch := 1; epoch <= 2; epoch++ {
		before := answered.Load()
		old.Eventually("serves", func() bool { return answered.Load() > before+200 })
		next := startProcess(t, bin, dir, epoch)
		old.End()
		if again := next.address(t, "web"); again != address {
			t.Errorf("epoch %d listens on %s, the one before on %s", epoch, again, address)
		}
		old = next
	}
	before := answered.Load()
	old.Eventually("serves", func() bool { return answered.Load() > before+200 })
	stop()
	load.Wait()
	total := int(answered.Load())
	if got := int(b.requests.Load()); got != total {
		t.Errorf("the host got %d requests, %d were answered", got, total)
	}
	for name, want := range map[string]int{
		"cluster.backend.upstream_rq_total": total, "cluster.backend.upstream_rq_200": total, "cluster.backend.upstream_rq_completed": total,
		"http.web.downstream_rq_total": total, "http.web.downstream_rq_2xx": total, "http.web.downstream_rq_active": 0,
		"cluster.backend.upstream_rq_active": 0, "cluster.backend.upstream_cx_total": int(b.accepted.Load()),
	} {
		old.Eventually(fmt.Sprintf("counts %s: %d (it has %d)", name, want, old.stat(name)), func() bool { return old.stat(name) == want })
	}
	old.Signal(os.Interrupt)
	old.End()
}

// TestRequestsUnderWayInAHotRestart: a request that is under way stays with the proxy
// that has it. New ones go to the next proxy. All are counted there.
func TestRequestsUnderWayInAHotRestart(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	b.does(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first half, ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
		fmt.Fprint(w, "second half")
	})
	bin, dir := line(t, static("", b), `[{"name": "web", "address": "127.0.0.1:0", "cluster": "backend", "timeout": "60s"}]`)
	first := startProcess(t, bin, dir, 0)
	web := "http://" + first.address(t, "web") + "/"
	type reply struct {
		text string
		err  error
	}
	ask := func() <-chan reply {
		replies := make(chan reply, 1)
		go func() {
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(web)
			if err != nil {
				replies <- reply{err: err}
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			replies <- reply{string(body), err}
		}()
		return replies
	}
	slow := ask()
	first.Eventually("has the request", func() bool { return b.requests.Load() == 1 })
	second := startProcess(t, bin, dir, 1, "--parent-shutdown-time", "15m")
	second.Eventually("knows of the connection before", func() bool { return second.stat("server.parent_connections") == 1 })
	close(release)
	for _, r := range []reply{<-slow, <-ask()} {
		if r.err != nil || r.text != "first half, second half" {
			t.Errorf("answer %q, %v", r.text, r.err)
		}
	}
	for name, want := range map[string]int{
		"http.web.downstream_rq_2xx": 2, "http.web.downstream_cx_total": 2, "cluster.backend.upstream_rq_total": 2, "server.parent_connections": 0,
	} {
		second.Eventually(fmt.Sprintf("counts %s: %d (it has %d)", name, want, second.stat(name)), func() bool { return second.stat(name) == want })
	}
	for _, p := range []*process{second, startProcess(t, bin, dir, 2)} {
		p.Signal(os.Interrupt)
		p.End()
	}
	first.End()
	if got := b.requests.Load(); got != 2 {
		t.Errorf("the host got %d requests", got)
	}
}
