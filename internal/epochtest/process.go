// Package epochtest runs real processes that replace each other in hot restarts. Only
// test files import it.
package epochtest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience is generous, for busy machines.
const patience = 60 * time.Second

// Process is one process in a series of restarts.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	admin  string
	log    string        // path of its standard error; a pipe would keep Wait waiting for its children
	exited chan struct{} // closed when the process has ended
	err    error         // how; read it after exited is closed
}

// Start starts a process as an epoch of the series whose sockets are in dir, and
// waits until it is live. It is killed when the test ends.
func Start(t testing.TB, bin, dir string, epoch int, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, exited: make(chan struct{})}
	file := filepath.Join(dir, fmt.Sprint("address-", epoch))
	p.cmd = exec.Command(bin, append([]string{"--admin-address-path", file,
		"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", fmt.Sprint(epoch)}, args...)...)
	p.log = filepath.Join(t.TempDir(), "log")
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	p.Eventually("is live", func() bool {
		b, err := os.ReadFile(file)
		p.admin = "http://" + string(b)
		return err == nil && len(b) > 0 && p.Get("/ready") == "LIVE\n"
	})
	return p
}

// kill kills the process if it is still running.
func (p *Process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Eventually waits until ok returns true. If it never does, the test fails with the
// log of the process.
func (p *Process) Eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.kill()
			p.t.Fatalf("the process never %s; it says\n%s", what, p.Log())
		}
	}
}

// Get returns the body of an answer of the administration port, or "" if there is
// none.
func (p *Process) Get(path string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
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

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// End waits until the process exits by itself with status 0.
func (p *Process) End() {
	p.t.Helper()
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Errorf("the process ends with %v; it says\n%s", p.err, p.Log())
		}
	case <-time.After(patience):
		p.kill()
		p.t.Fatalf("the process does not end; it says\n%s", p.Log())
	}
}

// Log returns the log of the process and of its children.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
