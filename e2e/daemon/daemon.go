// Package daemon starts the real binary for a test, on free ports and in a temporary
// directory, and queries it.
//
//	d := daemon.Start(t, daemon.Config{})
//	send(d.Address("udp"), "a.b:1|c")
//	d.Wait("a.b: 1", func(s daemon.Stats) bool { return s["a.b"] == "1" })
package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// Patience is how long a test waits for a condition.
const Patience = 60 * time.Second

// listeners configures all transports, on free ports and in the directory %[1]s.
const listeners = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners:
  - {name: udp, address: "udp://127.0.0.1:0"}
  - {name: tcp, address: "tcp://127.0.0.1:0"}
  - {name: unixgram, address: "unixgram://%[1]s/gram.sock"}
  - {name: unixstream, address: "unixstream://%[1]s/stream.sock"}
  - {name: unixlines, address: "unixlines://%[1]s/lines.sock"}
`

// Config configures a daemon. The zero value has all transports and flushes five
// times a second.
type Config struct {
	YAML string   // configuration; $DIR is the daemon's directory. Empty: all transports
	Args []string // further arguments; $DIR as above
	Dir  string   // default: a new one
	// Bare omits the flags for the configuration and the admin address. Start then
	// does not wait until the daemon is ready.
	Bare bool
}

// Daemon is a running process.
type Daemon struct {
	Dir   string
	Admin string // host:port of the admin port
	PID   int

	t      testing.TB
	cmd    *exec.Cmd
	output output
	done   chan struct{}
	exit   int
}

// output collects the output of a process.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start starts a daemon, waits until it is ready, and stops it when the test ends.
func Start(t testing.TB, c Config) *Daemon {
	t.Helper()
	d := &Daemon{Dir: c.Dir, t: t, done: make(chan struct{})}
	if d.Dir == "" {
		d.Dir = shortDir(t)
	}
	var args []string
	if !c.Bare {
		yaml := c.YAML
		if yaml == "" {
			yaml = fmt.Sprintf(listeners, d.Dir)
		}
		args = []string{"--config-yaml", yaml, "--admin-address-path", d.addressFile()}
		_ = os.Remove(d.addressFile())
	}
	args = append(args, c.Args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$DIR", d.Dir)
	}
	d.cmd = exec.Command(need.Binary(t), args...)
	d.cmd.Dir = d.Dir
	d.cmd.Stdout, d.cmd.Stderr = &d.output, &d.output
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.PID = d.cmd.Process.Pid
	go func() {
		_ = d.cmd.Wait()
		d.exit = d.cmd.ProcessState.ExitCode()
		close(d.done)
	}()
	t.Cleanup(func() {
		d.Kill()
		for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: ", "goroutine 1 ["} {
			if strings.Contains(d.Output(), bad) {
				t.Errorf("the daemon said %q", bad)
			}
		}
		if t.Failed() {
			t.Logf("the daemon said:\n%s", d.Output())
		}
	})
	if !c.Bare {
		d.waitReady()
	}
	return d
}

// shortDir returns a new directory whose path is short enough for unix sockets.
func shortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "sa")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (d *Daemon) addressFile() string { return filepath.Join(d.Dir, "admin.address") }

func (d *Daemon) waitReady() {
	d.t.Helper()
	d.Until("the daemon to be ready", func() bool {
		if d.Ended() {
			d.t.Fatalf("the daemon ended with status %d:\n%s", d.exit, d.Output())
		}
		address, err := os.ReadFile(d.addressFile())
		if err != nil || len(address) == 0 {
			return false
		}
		d.Admin = string(address)
		resp, err := http.Get("http://" + d.Admin + "/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// Until waits for a condition and fails the test if it does not become true.
func (d *Daemon) Until(what string, ok func() bool) {
	d.t.Helper()
	Until(d.t, what, ok)
}

// Until waits for a condition and fails the test if it does not become true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}

// Output returns the standard output and standard error of the daemon so far.
func (d *Daemon) Output() string { return d.output.String() }

// Ended reports whether the process has exited.
func (d *Daemon) Ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal.
func (d *Daemon) Signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// Exit waits until the process exits and returns its status, -1 after a signal.
func (d *Daemon) Exit() int {
	d.t.Helper()
	select {
	case <-d.done:
	case <-time.After(Patience):
		d.t.Fatalf("the daemon did not end in %v", Patience)
	}
	return d.exit
}

// Kill kills the process without a chance to clean up.
func (d *Daemon) Kill() {
	if !d.Ended() {
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}

// Get returns the body of an answer, whose status must be 200.
func (d *Daemon) Get(path string) string {
	d.t.Helper()
	resp, err := http.Get("http://" + d.Admin + path)
	return d.body("GET", path, resp, err)
}

// Post returns the body of an answer, whose status must be 200.
func (d *Daemon) Post(path string) string {
	d.t.Helper()
	resp, err := http.Post("http://"+d.Admin+path, "", nil)
	return d.body("POST", path, resp, err)
}

func (d *Daemon) body(method, path string, resp *http.Response, err error) string {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		d.t.Fatalf("%s %s: status %d, %v:\n%s", method, path, resp.StatusCode, err, body)
	}
	return string(body)
}

// Metrics waits until the exposition has a line, and returns all of it. Histograms
// show new values only after the next flush.
func (d *Daemon) Metrics(line string) string {
	d.t.Helper()
	var all string
	d.Until(line, func() bool {
		all = d.Get("/stats/metrics")
		return strings.Contains(all, "\n"+line+"\n")
	})
	return all
}

// Address returns the address of a listener: host:port or a path.
func (d *Daemon) Address(listener string) string {
	d.t.Helper()
	for line := range strings.Lines(d.Get("/listeners")) {
		if name, address, _ := strings.Cut(strings.TrimSpace(line), "::"); name == listener {
			return address
		}
	}
	d.t.Fatalf("there is no listener %q", listener)
	return ""
}

// Stats holds the lines of /stats by name.
type Stats map[string]string

// Stats returns all stats.
func (d *Daemon) Stats() Stats {
	d.t.Helper()
	s := make(Stats)
	for line := range strings.Lines(d.Get("/stats")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		s[name] = value
	}
	return s
}

// Number returns the value of a counter or gauge, 0 if it does not exist.
func (s Stats) Number(name string) float64 {
	v, _ := strconv.ParseFloat(s[name], 64)
	return v
}

// Sum returns the sum of the counters and gauges whose names begin with prefix.
func (s Stats) Sum(prefix string) float64 {
	sum := 0.0
	for name, value := range s {
		if v, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, prefix) {
			sum += v
		}
	}
	return sum
}

// Wait waits until the stats satisfy a condition, and returns them.
func (d *Daemon) Wait(what string, ok func(Stats) bool) Stats {
	d.t.Helper()
	var s Stats
	for end := time.Now().Add(Patience); ; time.Sleep(20 * time.Millisecond) {
		if s = d.Stats(); ok(s) {
			return s
		}
		if time.Now().After(end) {
			d.t.Fatalf("waited %v for %s; the stats are:\n%s", Patience, what, d.Get("/stats?usedonly"))
		}
	}
}

// Resident returns the resident memory of the process in bytes.
func (d *Daemon) Resident() int64 {
	d.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID))
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return kb << 10
		}
	}
	d.t.Fatal("the process has no resident memory")
	return 0
}
