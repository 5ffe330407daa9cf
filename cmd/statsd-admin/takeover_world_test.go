//go:build linux

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// life is a process.
type life struct {
	cmd    *exec.Cmd
	log    *os.File
	gone   chan struct{}
	failed bool // its status is not 0; to be read when it has ended
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

// logged reports whether the log has the text.
func (l *life) logged(text string) bool {
	b, err := os.ReadFile(l.log.Name())
	return err == nil && strings.Contains(string(b), text)
}

// limit sets the soft limit of the process for a resource and returns the one before.
func (l *life) limit(t *testing.T, resource int, n uint64) (before uint64) {
	var limit syscall.Rlimit
	prlimit := func(to, of *syscall.Rlimit) {
		_, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(l.cmd.Process.Pid), uintptr(resource), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(of)), 0, 0)
		if errno != 0 && !l.ended() {
			t.Errorf("no limit: %v", errno)
		}
	}
	prlimit(nil, &limit)
	before, limit.Cur = limit.Cur, n
	prlimit(&limit, nil)
	return before
}

// free returns the lowest number that no descriptor of the process has.
func (l *life) free() (n uint64) {
	for ; ; n++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", l.cmd.Process.Pid, n)); err != nil {
			return n
		}
	}
}

// start starts the process of an epoch.
func (m *takeOver) start(epoch int, failpoint string, args ...string) *life {
	m.Helper()
	files, lines := "", ""
	if m.action == "full" { // more files to write to
		files, lines = ", access_log_path: "+m.dir+"/access", ", {json_lines: {path: "+m.dir+"/lines}}"
	}
	config := fmt.Sprintf(`{admin: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}%[5]s}, stats_flush_interval: 0.05s, `+
		`sinks: [{statsd: {protocol: unixlines, address: %[1]s/sink}}%[6]s], `+
		`statsd: {listeners: [{name: u, address: "udp://%[4]s:%[2]d"}, {name: t, address: "tcp://127.0.0.1:%[3]d"}, {name: l, address: "unixlines://%[1]s/l"}]}}`,
		m.dir, m.ports[0], m.ports[1], m.host, files, lines)
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
		l.failed = l.cmd.Wait() != nil
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
	for end := time.Now().Add(*matrixPatience); !ok(); time.Sleep(5 * time.Millisecond) {
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

// find returns the number after prefix on a line of text.
func find(text, prefix string) (n uint64, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, prefix); found {
			n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// send sends text over a TCP connection of its own.
func (m *takeOver) send(text string) {
	m.Helper()
	c, err := net.Dial("tcp", m.listening["t"])
	if err != nil {
		m.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		m.Fatal(err)
	}
}

// load starts the senders of a phase, with connections of their own.
func (m *takeOver) load(p *phase) {
	p.stop = make(chan struct{})
	p.senders.Go(func() { p.send(0, "udp", m.listening["u"], 20*time.Millisecond) })
	p.senders.Go(func() { p.send(1, "tcp", m.listening["t"], time.Millisecond) })
	p.senders.Go(func() { p.send(2, "unix", m.dir+"/l", time.Millisecond) })
	m.Cleanup(p.end)
}

// end stops the senders and closes their connections.
func (p *phase) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.senders.Wait()
}

// send sends lines over one protocol until the end of the phase.
func (p *phase) send(i int, network, address string, pause time.Duration) {
	var c net.Conn
	for {
		select {
		case <-p.stop:
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
		_ = c.SetWriteDeadline(time.Now().Add(*matrixPatience)) // fails with a server that does not read for ever
		if _, err := fmt.Fprintf(c, "%[1]s%[2]d:1|c\nwho:%[2]d|s\ntook.%[1]s:1|ms\n", p.name, i); err != nil {
			p.doubt[i].Add(1)
			c.Close()
			c = nil
			continue
		}
		p.sent[i].Add(1)
	}
}

// atLeast reports whether each sender has sent n lines.
func (p *phase) atLeast(n uint64) bool {
	for i := range p.sent {
		if p.sent[i].Load() < n {
			return false
		}
	}
	return true
}

func (p *phase) total() (n uint64) {
	for i := range p.sent {
		n += p.sent[i].Load()
	}
	return n
}

// watch measures for how long no server does a part of its work.
type watch struct {
	m       *takeOver
	stop    chan struct{}
	done    sync.WaitGroup
	dropped bool // no server is left

	mu    sync.Mutex
	parts []part
}

// part is a part of the work of a server.
type part struct {
	name    string
	value   uint64 // rises when it is done
	rises   int
	seen    time.Time
	longest time.Duration // between two observations
}

// startWatch starts to watch the servers under the load of p.
func (m *takeOver) startWatch(p *phase) *watch {
	w := &watch{m: m, stop: make(chan struct{}), parts: []part{{name: "answers"}, {name: "lines over UDP"}, {name: "lines over TCP"}, {name: "lines over unix sockets"}}}
	if !m.dead { // a sender to a dead sink takes its time
		w.parts = append(w.parts, part{name: "flushes"})
	}
	w.reset()
	w.done.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			values := make([]uint64, 1+protocols, 2+protocols)
			if m.get("/ready") == "LIVE\n" {
				values[0] = w.parts[0].value + 1
			}
			text := m.get("/stats?filter=^" + p.name)
			for i := range protocols {
				values[1+i], _ = find(text, fmt.Sprintf("%s%d: ", p.name, i))
			}
			w.observe(append(values, m.sink.total(p.name)))
		}
	})
	m.Cleanup(w.close)
	return w
}

func (w *watch) observe(values []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i := range w.parts {
		p := &w.parts[i]
		if values[i] > p.value {
			p.longest, p.seen = max(p.longest, now.Sub(p.seen)), now
			p.rises++
		}
		p.value = values[i]
	}
}

// reset forgets the state before a fault.
func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.parts {
		w.parts[i].seen, w.parts[i].longest = time.Now(), 0
	}
}

// end waits until all parts are done again and again, and stops watching. The first
// time can be the work of a server that has just died.
func (w *watch) end() {
	w.m.Helper()
	w.mu.Lock()
	before := slices.Clone(w.parts)
	w.mu.Unlock()
	w.m.until("a server answers, counts and flushes", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range w.parts {
			if w.parts[i].rises < before[i].rises+3 {
				return false
			}
		}
		return true
	})
	w.close()
}

func (w *watch) close() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.done.Wait()
}

// longest returns the part that was not done for the longest time.
func (w *watch) longest() part {
	return slices.MaxFunc(w.parts, func(a, b part) int { return cmp.Compare(a.longest, b.longest) })
}

// outages collects the longest outages of cells.
type outages struct {
	mu  sync.Mutex
	all []outage
}

type outage struct {
	cell cell
	part part
}

// add adds a cell, unless no server was left in the end.
func (o *outages) add(c cell, w *watch) {
	if w.dropped {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, outage{c, w.longest()})
}

// log prints the median and the maximum, separately for the cells without a promise.
func (o *outages) log(t *testing.T) {
	slices.SortFunc(o.all, func(a, b outage) int { return cmp.Compare(a.part.longest, b.part.longest) })
	for _, promised := range []bool{true, false} {
		some := slices.DeleteFunc(slices.Clone(o.all), func(x outage) bool { return x.cell.promised() != promised })
		if len(some) == 0 {
			continue
		}
		when := "fault before the commit, old server alive"
		if !promised {
			when = "other faults"
		}
		worst := some[len(some)-1]
		t.Logf("outages, %s: %d cells, median %v, at most %v (%s in %v)", when, len(some),
			some[len(some)/2].part.longest.Round(time.Millisecond), worst.part.longest.Round(time.Millisecond), worst.part.name, worst.cell)
	}
}

// lineSink collects what the sinks of all servers send.
type lineSink struct {
	t       *testing.T
	path    string
	ln      net.Listener // nil: it is down
	readers sync.WaitGroup

	mu   sync.Mutex
	sums map[string]float64 // of counters, and the samples of histograms
}

func newLineSink(t *testing.T, path string, up bool) *lineSink {
	s := &lineSink{t: t, path: path, sums: make(map[string]float64)}
	if up {
		s.listen()
	}
	return s
}

// listen makes the receiver accept connections.
func (s *lineSink) listen() {
	s.t.Helper()
	if s.ln != nil {
		return
	}
	ln, err := net.Listen("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ln = ln
	s.readers.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.readers.Go(func() { s.read(c) })
		}
	})
	s.t.Cleanup(func() { ln.Close() }) // connections end with their servers
}

func (s *lineSink) read(c net.Conn) {
	defer c.Close()
	for in := bufio.NewScanner(c); in.Scan(); {
		name, rest, _ := strings.Cut(in.Text(), ":")
		fields := strings.Split(rest, "|")
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseFloat(fields[0], 64)
		switch {
		case err != nil || fields[1] != "c" && fields[1] != "ms":
			continue
		case fields[1] == "ms": // the sample rate stands for the count
			n = 1
			if len(fields) > 2 {
				rate, err := strconv.ParseFloat(strings.TrimPrefix(fields[2], "@"), 64)
				if err != nil {
					continue
				}
				n = math.Round(1 / rate)
			}
		}
		s.mu.Lock()
		s.sums[name] += n
		s.mu.Unlock()
	}
}

// total returns what the servers have sent so far for names with that prefix.
func (s *lineSink) total(prefix string) (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, sum := range s.sums {
		if strings.HasPrefix(name, prefix) {
			n += uint64(sum)
		}
	}
	return n
}

// sum returns what the servers have sent for a name. They must have ended.
func (s *lineSink) sum(name string) uint64 {
	s.ln.Close()
	s.readers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.sums[name])
}
