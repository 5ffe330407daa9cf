//go:build linux

package main

import (
	"flag"
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
	"unsafe"
)

var wholeMatrix = flag.Bool("matrix", false, "run every cell of the take-over matrix")

// cell is one way in which a take-over can go wrong.
type cell struct {
	point  string // of package server/hotrestart, with the failpoint tag
	action string
}

func (c cell) String() string { return c.point + "/" + c.action }

// old reports whether the failpoint is in the old server.
func (c cell) old() bool { return strings.HasPrefix(c.point, "old.") }

// exact reports whether every line must be counted: no process that has accepted
// lines was killed, or was left for dead because it did not answer in time.
func (c cell) exact() bool {
	late := c.served() || c.point == "new.commit.answered"
	switch c.action {
	case "kill-old":
		return false
	case "kill-new":
		return !late
	case "hang":
		return !late && c.point != "old.commit.answered"
	case "term-old":
		return !strings.Contains(c.point, ".hello.") && !strings.Contains(c.point, ".sockets.")
	case "truncate":
		return c.point == "new.hello.sending" || c.point == "new.sockets.sending" || c.point == "new.stats.sending" || c.point == "old.welcome.sending"
	}
	return true
}

// cells returns the matrix.
func cells() (all []cell) {
	for _, kind := range []string{"hello", "sockets", "stats", "commit", "drain", "terminate"} {
		points := []string{"old." + kind + ".asked", "old." + kind + ".answered", "new." + kind + ".sending", "new." + kind + ".answered"}
		for i, p := range points {
			if p == "new.hello.answered" || p == "new.terminate.answered" {
				continue // they are not reached
			}
			for _, action := range []string{"kill-new", "kill-old", "term-new", "term-old", "hang"} {
				all = append(all, cell{p, action})
			}
			if i == 2 {
				all = append(all, cell{p, "truncate"}, cell{p, "repeat"})
			}
		}
	}
	for _, kind := range []string{"welcome", "socket", "stat", "done", "bye", "connection"} {
		all = append(all, cell{"old." + kind + ".sending", "truncate"}, cell{"old." + kind + ".sending", "repeat"})
	}
	return append(all, cell{"full", "base-id"}, cell{"full", "address"}, cell{"descriptors", "none"})
}

// sample has the cells that run in each test of the package.
var sample = map[string]bool{
	"new.hello.sending/kill-new": true, "new.stats.answered/kill-new": true, "old.commit.answered/kill-new": true,
	"new.commit.sending/term-new": true, "old.drain.answered/kill-new": true, "old.commit.asked/hang": true,
	"new.commit.answered/term-old": true, "old.stats.answered/kill-old": true, "old.done.sending/repeat": true, "descriptors/none": true,
}

// TestTakeOverMatrix breaks take-overs in all ways under load, and checks that one
// server ends up live and answering, with every line counted once, and that the
// next take-over succeeds.
func TestTakeOverMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	bin := filepath.Join(t.TempDir(), "statsd-admin")
	if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var done atomic.Int64
	begin := time.Now()
	t.Run("cells", func(t *testing.T) {
		for _, c := range cells() {
			if !*wholeMatrix && !sample[c.String()] {
				continue
			}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				newTakeOver(t, bin, c).run()
				done.Add(1)
			})
		}
	})
	t.Logf("%d cells in %v", done.Load(), time.Since(begin).Round(time.Second))
}

// takeOver is the run of one cell.
type takeOver struct {
	*testing.T
	cell
	bin, dir, admin string
	ports           [2]int           // that a successor can bind, too
	sent            [3]atomic.Uint64 // by protocol
	stop            chan struct{}
	senders         sync.WaitGroup
	processes       []*life
}

// life is a process.
type life struct {
	cmd  *exec.Cmd
	log  *os.File
	gone chan struct{}
}

func (l *life) ended() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

func (l *life) signal(s syscall.Signal) { _ = l.cmd.Process.Signal(s) } // it may have ended

// stopped reports whether the process has stopped itself.
func (l *life) stopped() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.cmd.Process.Pid))
	i := strings.LastIndexByte(string(b), ')')
	return err == nil && i > 0 && strings.HasPrefix(string(b[i:]), ") T")
}

func newTakeOver(t *testing.T, bin string, c cell) *takeOver {
	dir, err := os.MkdirTemp("", "to") // a short name, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &takeOver{T: t, cell: c, bin: bin, dir: dir, stop: make(chan struct{})}
	for i := range m.ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		m.ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return m
}

// start starts the process of an epoch.
func (m *takeOver) start(epoch int, failpoint string, args ...string) *life {
	m.Helper()
	config := fmt.Sprintf(`{admin: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}, stats_flush_interval: 0.05s, `+
		`statsd: {listeners: [{name: u, address: "udp://127.0.0.1:%[2]d"}, {name: t, address: "tcp://127.0.0.1:%[3]d"}, {name: l, address: "unixlines://%[1]s/l"}]}}`,
		m.dir, m.ports[0], m.ports[1])
	log, err := os.Create(filepath.Join(m.dir, fmt.Sprint("log-", len(m.processes))))
	if err != nil {
		m.Fatal(err)
	}
	l := &life{log: log, gone: make(chan struct{})}
	l.cmd = exec.Command(m.bin, append([]string{"--config-yaml", config, "--socket-path", m.dir + "/hot", "--restart-epoch", fmt.Sprint(epoch),
		"--parent-shutdown-time-s", "1", "--admin-address-path", m.dir + "/address"}, args...)...)
	l.cmd.Env = append(os.Environ(), "STATSD_ADMIN_FAILPOINT="+failpoint)
	l.cmd.Stderr = log
	if err := l.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.processes = append(m.processes, l)
	go func() {
		_ = l.cmd.Wait()
		close(l.gone)
	}()
	m.Cleanup(func() {
		l.signal(syscall.SIGKILL)
		<-l.gone
		if b, err := os.ReadFile(log.Name()); m.Failed() && err == nil {
			m.Logf("epoch %d:\n%s", epoch, b)
		}
		_ = log.Close()
	})
	return l
}

func (m *takeOver) until(what string, ok func() bool) {
	m.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			m.Fatalf("never: %s", what)
		}
	}
}

// get returns the answer of the admin port, "" without one.
func (m *takeOver) get(path string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := c.Get("http://" + m.admin + path)
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

// load sends lines over one protocol until the end.
func (m *takeOver) load(i int, network, address string, pause time.Duration) {
	var c net.Conn
	for {
		select {
		case <-m.stop:
			if c != nil {
				c.Close()
			}
			return
		case <-time.After(pause):
		}
		if c == nil {
			var err error
			if c, err = net.Dial(network, address); err != nil {
				c = nil
				continue // the check of the counts says whether that was right
			}
		}
		if _, err := fmt.Fprintf(c, "hits%d:1|c\n", i); err != nil {
			c.Close()
			c = nil
			continue
		}
		m.sent[i].Add(1)
	}
}

func (m *takeOver) run() {
	failpoint := func(old bool) string {
		switch {
		case m.old() != old || !strings.Contains(m.point, "."):
			return ""
		case m.action == "truncate" || m.action == "repeat":
			return m.point + "=" + m.action
		}
		return m.point + "=stop"
	}
	first := m.start(0, failpoint(true))
	m.until("the first server is live", func() bool {
		b, err := os.ReadFile(m.dir + "/address")
		m.admin = string(b)
		return err == nil && m.get("/ready") == "LIVE\n"
	})
	at := map[string]string{}
	for line := range strings.Lines(m.get("/listeners")) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), "::")
		at[name] = address
	}
	m.senders.Go(func() { m.load(0, "udp", at["u"], 10*time.Millisecond) })
	m.senders.Go(func() { m.load(1, "tcp", at["t"], time.Millisecond) })
	m.senders.Go(func() { m.load(2, "unix", m.dir+"/l", time.Millisecond) })
	defer func() {
		close(m.stop)
		m.senders.Wait()
	}()
	if c, err := net.Dial("tcp", at["t"]); err == nil {
		fmt.Fprint(c, "level:7|g\n")
		c.Close()
	}
	m.until("lines are counted", func() bool {
		return strings.Contains(m.get("/stats?filter=^(hits|level)"), "level: 7\n") && m.sent[1].Load() > 20
	})

	var args []string
	switch m.point + "/" + m.action {
	case "full/base-id":
		args = []string{"--base-id-path", "/dev/full"}
	case "full/address":
		args = []string{"--admin-address-path", "/dev/full"}
	}
	second := m.start(1, failpoint(false), args...)
	stopped := second
	if m.old() {
		stopped = first
	}
	switch {
	case m.point == "descriptors":
		limit := syscall.Rlimit{Cur: 12, Max: 12}
		_, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(second.cmd.Process.Pid), 7, uintptrOf(&limit), 0, 0, 0)
		if errno != 0 {
			m.Logf("no limit: %v", errno)
		}
	case strings.HasSuffix(failpoint(m.old()), "=stop"):
		m.until("the failpoint is reached", func() bool { return stopped.stopped() || stopped.ended() })
		switch m.action {
		case "kill-new":
			second.signal(syscall.SIGKILL)
		case "kill-old":
			first.signal(syscall.SIGKILL)
		case "term-new":
			second.signal(syscall.SIGTERM)
		case "term-old":
			first.signal(syscall.SIGTERM)
		case "hang":
			time.Sleep(2500 * time.Millisecond)
		}
		stopped.signal(syscall.SIGCONT)
	}
	begin := time.Now()
	live := m.settle(first, second)
	if d := time.Since(begin); d > 15*time.Second {
		m.Errorf("one server is live only after %v", d)
	}
	if !live {
		return
	}
	m.check()

	// The next take-over succeeds, whoever survived.
	survivor, epoch := first, 1
	if first.ended() {
		survivor, epoch = second, 2
	}
	before := m.sent[1].Load()
	third := m.start(epoch, "")
	m.until("the survivor has ended", survivor.ended)
	m.until("more lines are sent", func() bool { return m.sent[1].Load() > before+20 })
	if third.ended() || m.get("/ready") != "LIVE\n" {
		m.Fatal("the next take-over fails")
	}
	m.check()
}

// served reports whether the new server is live at the point.
func (c cell) served() bool {
	return strings.Contains(c.point, ".drain.") || strings.Contains(c.point, ".terminate.")
}

// settle waits until exactly one process runs and is live. It reports false if
// there is none because the new server, which was live, was stopped.
func (m *takeOver) settle(first, second *life) bool {
	m.Helper()
	if m.action == "term-new" {
		m.until("the new server has ended", second.ended)
		if m.served() {
			m.until("the old server ends with it", first.ended)
			return false
		}
		if strings.Contains(m.point, ".commit.") { // the signal comes before or after it is live
			time.Sleep(time.Second)
			if first.ended() {
				return false
			}
		}
	}
	bothEnd := m.action == "kill-new" && strings.HasPrefix(m.point, "old.terminate.") || // the old one was ending
		m.action == "term-old" && strings.HasPrefix(m.point, "old.hello.") // the new one was refused
	m.until("exactly one server is live", func() bool {
		if bothEnd && first.ended() && second.ended() {
			return true
		}
		if first.ended() && second.ended() {
			m.Fatal("both servers have ended")
		}
		return first.ended() != second.ended() && m.get("/ready") == "LIVE\n"
	})
	return !first.ended() || !second.ended()
}

// check compares what is shown with what was sent.
func (m *takeOver) check() {
	m.Helper()
	var shown, sent uint64
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// The load goes on: what is shown lies between two looks at what was sent.
		low := m.sent[0].Load() + m.sent[1].Load() + m.sent[2].Load()
		shown = 0
		for line := range strings.Lines(m.get("/stats?filter=^hits")) {
			var i int
			var n uint64
			if _, err := fmt.Sscanf(line, "hits%d: %d", &i, &n); err == nil {
				shown += n
			}
		}
		sent = m.sent[0].Load() + m.sent[1].Load() + m.sent[2].Load() + 3
		if shown > sent {
			m.Fatalf("%d lines are shown, %d were sent", shown, sent)
		}
		if !m.exact() || shown+10 >= low {
			break
		}
		if time.Now().After(end) {
			m.Fatalf("%d lines are shown, %d were sent", shown, low)
		}
	}
	if m.exact() {
		if got := m.get("/stats?filter=^level$"); got != "level: 7\n" {
			m.Errorf("the gauge is %q", got)
		}
	}
}

func uintptrOf(l *syscall.Rlimit) uintptr { return uintptr(unsafe.Pointer(l)) }
