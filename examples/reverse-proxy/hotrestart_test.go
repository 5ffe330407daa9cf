package main

import (
	"bytes"
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

	"github.com/statsd-admin/statsd-admin/server"
)

// process is one proxy of a line.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	admin  string
	log    bytes.Buffer
	exited chan error
}

// startProcess starts a proxy and waits until it is live.
func startProcess(t *testing.T, bin, dir string, epoch int) *process {
	t.Helper()
	p := &process{t: t, exited: make(chan error, 1)}
	file := filepath.Join(dir, fmt.Sprint("address-", epoch))
	p.cmd = exec.Command(bin, "--config", filepath.Join(dir, "boot.yaml"), "--listeners", filepath.Join(dir, "listeners.json"),
		"--admin-address-path", file, "--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", fmt.Sprint(epoch),
		"--drain-time", "0s", "--parent-shutdown-time", "1s")
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.eventually("is live", func() bool {
		b, err := os.ReadFile(file)
		p.admin = "http://" + string(b)
		return err == nil && len(b) > 0 && p.get("/ready") == "LIVE\n"
	})
	return p
}

func (p *process) eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = p.cmd.Process.Kill()
			<-p.exited
			p.t.Fatalf("the process never %s; it says\n%s", what, p.log.String())
		}
	}
}

// get returns the body of an answer of the administration port, "" if there is
// none.
func (p *process) get(path string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := c.Get(p.admin + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(b)
}

func (p *process) stat(name string) int {
	_, value, _ := strings.Cut(strings.TrimSpace(p.get("/stats?filter=^"+strings.ReplaceAll(name, ".", "\\.")+"$")), ": ")
	n, err := strconv.Atoi(value)
	if err != nil {
		return -1
	}
	return n
}

// end waits for the process to end by itself.
func (p *process) end() {
	p.t.Helper()
	select {
	case err := <-p.exited:
		if err != nil {
			p.t.Errorf("the process ends with %v; it says\n%s", err, p.log.String())
		}
	case <-time.After(60 * time.Second):
		p.t.Fatalf("the process does not end; it says\n%s", p.log.String())
	}
}

// TestHotRestart replaces a proxy twice under load: no request fails, and all are
// counted, each once.
func TestHotRestart(t *testing.T) {
	if server.HotRestartVersion() == "disabled" {
		t.Skip("the system cannot do it")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "reverse-proxy")
	args := []string{"build", "-o", bin, "."}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := newBackend(t, "127.0.0.1:0")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("boot.yaml", "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstats_flush_interval: 0.1s\n"+static("", b))
	write("listeners.json", `[{"name": "web", "address": "127.0.0.1:0", "cluster": "backend", "timeout": "60s"}]`)

	old := startProcess(t, bin, dir, 0)
	_, address, _ := strings.Cut(strings.TrimSpace(old.get("/listeners")), "::")
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
		old.eventually("serves", func() bool { return answered.Load() > before+200 })
		next := startProcess(t, bin, dir, epoch)
		old.end()
		if _, again, _ := strings.Cut(strings.TrimSpace(next.get("/listeners")), "::"); again != address {
			t.Errorf("epoch %d listens on %s, the one before on %s", epoch, again, address)
		}
		old = next
	}
	before := answered.Load()
	old.eventually("serves", func() bool { return answered.Load() > before+200 })
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
		old.eventually(fmt.Sprintf("counts %s: %d (it has %d)", name, want, old.stat(name)), func() bool { return old.stat(name) == want })
	}
	if err := old.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	old.end()
}
