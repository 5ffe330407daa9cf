// Package epochtest runs real processes that follow each other in hot restarts,
// for tests. Only test files import it.
package epochtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience is for machines that do many other things.
const patience = 60 * time.Second

// Process is one process of a line.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	admin  string
	log    bytes.Buffer
	exited chan error
}

// Start starts a process as an epoch of the line whose sockets are in dir, and
// waits until it is live. It is killed when the test is over.
func Start(t testing.TB, bin, dir string, epoch int, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, exited: make(chan error, 1)}
	file := filepath.Join(dir, fmt.Sprint("address-", epoch))
	p.cmd = exec.Command(bin, append([]string{"--admin-address-path", file,
		"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", fmt.Sprint(epoch)}, args...)...)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.Eventually("is live", func() bool {
		b, err := os.ReadFile(file)
		p.admin = "http://" + string(b)
		return err == nil && len(b) > 0 && p.Get("/ready") == "LIVE\n"
	})
	return p
}

// Eventually waits until ok. If that never is the test ends with what the process
// logged.
func (p *Process) Eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = p.cmd.Process.Kill()
			<-p.exited
			p.t.Fatalf("the process never %s; it says\n%s", what, p.log.String())
		}
	}
}

// Get returns the body of an answer of the administration port, "" if there is
// none.
func (p *Process) Get(path string) string {
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

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// End waits for the process to end by itself, and well.
func (p *Process) End() {
	p.t.Helper()
	select {
	case err := <-p.exited:
		if err != nil {
			p.t.Errorf("the process ends with %v; it says\n%s", err, p.log.String())
		}
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.exited
		p.t.Fatalf("the process does not end; it says\n%s", p.log.String())
	}
}

// Log returns what an ended process logged.
func (p *Process) Log() string { return p.log.String() }
