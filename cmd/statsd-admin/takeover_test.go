//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/closedport"
)

var (
	wholeMatrix    = flag.Bool("matrix", false, "run every cell of the take-over matrix")
	matrixBinary   = flag.String("matrix-binary", "", "program with failpoints for the take-over matrix; default: built from the sources")
	matrixCells    = flag.String("matrix-cells", "", "regular expression that selects cells of the take-over matrix")
	matrixPatience = flag.Duration("matrix-patience", time.Minute, "how long a cell waits for anything")
)

// cell is one way in which a take-over can go wrong.
type cell struct {
	point  string // of package server/hotrestart, with the failpoint tag
	action string
	dead   bool // the receiver of the sinks is down until the point, or until the old server has ended
}

func (c cell) String() string {
	if c.dead {
		return c.point + "/" + c.action + "/dead-sink"
	}
	return c.point + "/" + c.action
}

// old reports whether the failpoint is in the old server.
func (c cell) old() bool { return strings.HasPrefix(c.point, "old.") }

// served reports whether the new server is live at the point.
func (c cell) served() bool {
	return strings.Contains(c.point, ".drain.") || strings.Contains(c.point, ".terminate.") || strings.Contains(c.point, ".parcel.")
}

// exact reports whether the survivor must show every line: no process that has
// accepted lines was killed, or was left for dead because it did not answer in time.
func (c cell) exact() bool {
	late := c.served() || c.point == "new.commit.answered"
	switch c.action {
	case "kill-old", "descriptors+kill-old", "pause": // a pause can be too long for the new server
		return false
	case "kill-new", "descriptors+kill-new":
		return !late
	case "descriptors": // the new server cannot take all connections over
		return c.old()
	case "hang":
		return !late && c.point != "old.commit.answered"
	case "term-old":
		return !strings.Contains(c.point, ".hello.") && !strings.Contains(c.point, ".sockets.")
	case "truncate":
		return c.point == "new.hello.sending" || c.point == "new.sockets.sending" || c.point == "new.stats.sending" || c.point == "old.welcome.sending"
	}
	return true
}

// killed reports whether a process dies without a chance to report its lines.
func (c cell) killed() bool { return strings.Contains(c.action, "kill-") }

// promised reports whether the server promises to be whole within a second: the fault
// is before the commit and does not outlast it, and the old process lives.
func (c cell) promised() bool {
	if strings.HasPrefix(c.action, "descriptors") && !c.old() && c.point != "descriptors" && !strings.Contains(c.point, ".hello.") && !strings.Contains(c.point, ".sockets.") {
		return false // the new server takes over, without descriptors
	}
	return !c.served() && !strings.HasSuffix(c.action, "-old") && c.point != "third" && c.point != "none" &&
		!strings.HasSuffix(c.point, ".commit.answered") && c.point != "old.bye.sending" && c.point != "old.connection.sending"
}

// outageBound is when a cell fails that promises outages of at most a second. It is
// higher than that, because the cells compete for processors, with each other and with
// other work. A server that waits for a successor that hangs exceeds it. The sample of
// cells runs beside compilers and has no bound.
const outageBound = 3 * time.Second

// cells returns the matrix.
func cells() (all []cell) {
	for _, kind := range []string{"hello", "sockets", "stats", "commit", "ack", "drain", "terminate"} {
		points := []string{"old." + kind + ".asked", "old." + kind + ".answered", "new." + kind + ".sending", "new." + kind + ".answered"}
		for i, p := range points {
			if p == "new.hello.answered" || p == "new.terminate.answered" || p == "new.ack.answered" {
				continue // they are not reached
			}
			for _, action := range []string{"kill-new", "kill-old", "term-new", "term-old", "term-both", "hang", "full", "descriptors"} {
				all = append(all, cell{point: p, action: action})
			}
			if i == 2 {
				all = append(all, cell{point: p, action: "truncate"}, cell{point: p, action: "repeat"})
			}
		}
	}
	for _, kind := range []string{"welcome", "socket", "stat", "done", "bye", "connection"} {
		all = append(all, cell{point: "old." + kind + ".sending", action: "truncate"}, cell{point: "old." + kind + ".sending", action: "repeat"})
	}
	for _, action := range []string{"repeat", "kill-new", "term-new", "hang"} {
		all = append(all, cell{"old.parcel.sending", action, true})
	}
	all = append(all, cell{"none", "none", true}, cell{"old.bye.sending", "pause", true}, cell{"old.commit.answered", "kill-new", true}, cell{"old.terminate.asked", "hang", true})
	for _, c := range []string{"old.commit.answered/descriptors+kill-new", "old.drain.answered/descriptors+kill-new", "new.stats.sending/descriptors+kill-old", "full/base-id", "full/address", "descriptors/none", "none/none", "third/hang-first"} {
		point, action, _ := strings.Cut(c, "/")
		all = append(all, cell{point: point, action: action})
	}
	return all
}

// sample has the cells that run in each test of the package.
var sample = map[string]bool{
	"new.stats.answered/kill-new": true, "old.commit.answered/kill-new": true,
	"new.commit.sending/term-new": true, "old.commit.asked/hang": true,
	"new.commit.answered/term-old": true, "old.stats.answered/kill-old": true, "old.done.sending/repeat": true,
	"new.commit.answered/full": true, "old.drain.answered/descriptors+kill-new": true,
	"none/none/dead-sink": true, "old.parcel.sending/hang/dead-sink": true,
}

// TestTakeOverMatrix breaks take-overs in all ways under load. It checks that one
// server ends up live, answering and accepting over every transport, that each line is
// counted once on its page and in the sinks, and that the next take-over succeeds.
func TestTakeOverMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	bin := *matrixBinary
	if bin == "" {
		bin = filepath.Join(t.TempDir(), "statsd-admin")
		if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", bin, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	selected, err := regexp.Compile(*matrixCells)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	var all outages
	begin := time.Now()
	t.Run("cells", func(t *testing.T) {
		for _, c := range cells() {
			if !*wholeMatrix && !sample[c.String()] || !selected.MatchString(c.String()) {
				continue
			}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				m := newTakeOver(t, bin, c)
				m.run()
				all.add(c, m.watch)
				done.Add(1)
			})
		}
	})
	if done.Load() == 0 {
		t.Error("no cell was run")
	}
	t.Logf("%d cells in %v", done.Load(), time.Since(begin).Round(time.Second))
	all.log(t)
}

// takeOver is the run of one cell.
type takeOver struct {
	*testing.T
	cell
	bin, dir, admin string
	host            string // a loopback address of this cell alone, since nothing reserves a UDP port
	ports           [2]int // that a successor can bind, too
	listening       map[string]string
	phases          [2]phase
	sink            *lineSink
	processes       []*life
	watch           *watch
}

// phase is the load on the servers before or after the take-over that breaks.
type phase struct {
	name    string
	sent    [protocols]atomic.Uint64 // lines that the system has accepted
	doubt   [protocols]atomic.Uint64 // lines that it may have
	stop    chan struct{}
	senders sync.WaitGroup
}

// protocols is the number of transports that are loaded: UDP, TCP and unix.
const protocols = 3

func newTakeOver(t *testing.T, bin string, c cell) *takeOver {
	dir, err := os.MkdirTemp("", "to") // a short name, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &takeOver{T: t, cell: c, bin: bin, dir: dir, host: fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)), sink: newLineSink(t, dir+"/sink", !c.dead)}
	m.phases[0].name, m.phases[1].name = "hits", "more"
	for i := range m.ports {
		m.ports[i] = closedport.Reserve(t).Port
	}
	return m
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
	m.listening = map[string]string{}
	for line := range strings.Lines(m.get("/listeners")) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), "::")
		m.listening[name] = address
	}
	before := &m.phases[0]
	m.load(before)
	m.send("level:7|g\n")
	m.until("lines are counted", func() bool {
		return strings.Contains(m.get("/stats?filter=^(hits|level)"), "level: 7\n") && before.atLeast(20)
	})

	var args []string
	switch m.point + "/" + m.action {
	case "full/base-id":
		args = []string{"--base-id-path", "/dev/full"}
	case "full/address":
		args = []string{"--admin-address-path", "/dev/full"}
	case "third/hang-first":
		args = []string{"--parent-shutdown-time-s", "900"}
	}
	m.watch = m.startWatch(before)
	second := m.start(1, failpoint(false), args...)
	if m.point == "third" {
		m.until("the second server has taken over", func() bool { return second.logged("server is live") && first.logged("the successor has taken over") })
		m.watch.end()
		before.end()
		m.check(before, true)
		first.signal(syscall.SIGSTOP)
		m.next(second, 2)
		first.signal(syscall.SIGCONT)
		m.until("the first server has ended", first.ended)
		m.end()
		return
	}
	m.disturb(first, second, failpoint(m.old()))
	begin := time.Now()
	live := m.settle(first, second)
	m.sink.listen()
	if d := time.Since(begin); d > *matrixPatience/2 {
		m.Errorf("one server is live only after %v", d)
	}
	if !live {
		m.watch.close()
		m.watch.dropped = true
		before.end()
		m.checkSink(before, m.action == "term-both", 0)
		return
	}
	m.watch.end()
	if p := m.watch.longest(); *wholeMatrix && m.promised() && p.longest > outageBound {
		m.Errorf("%v without %s", p.longest, p.name)
	}
	survivor, epoch := first, 1
	if first.ended() {
		survivor, epoch = second, 2
	}
	before.end()
	m.check(before, m.exact())
	if b, err := os.ReadFile(m.dir + "/address"); m.action == "full" && string(b) != m.admin {
		m.Errorf("the file of the address has %q, %v", b, err)
	}
	m.next(survivor, epoch)
	m.end()
}

// disturb does what the cell is about.
func (m *takeOver) disturb(first, second *life, failpoint string) {
	m.Helper()
	if m.point == "descriptors" {
		second.limit(m.T, syscall.RLIMIT_NOFILE, 12)
	}
	if !strings.HasSuffix(failpoint, "=stop") {
		return
	}
	stopped := second
	if m.old() {
		stopped = first
	}
	m.until("the failpoint is reached", func() bool { return stopped.stopped() || stopped.ended() })
	if strings.HasPrefix(m.action, "descriptors") {
		defer m.useUpDescriptors(stopped, first, second)()
	}
	switch m.action {
	case "kill-new", "descriptors+kill-new":
		second.signal(syscall.SIGKILL)
	case "kill-old", "descriptors+kill-old":
		first.signal(syscall.SIGKILL)
	case "term-new":
		second.signal(syscall.SIGTERM)
	case "term-old":
		first.signal(syscall.SIGTERM)
	case "term-both":
		m.phases[0].end() // so that all lines are counted
		first.signal(syscall.SIGTERM)
		second.signal(syscall.SIGTERM)
	case "full":
		stopped.limit(m.T, syscall.RLIMIT_FSIZE, 0)
	case "hang":
		m.watch.reset()
		if m.promised() && !m.old() { // nobody notices that the new server hangs
			time.Sleep(outageBound + 500*time.Millisecond)
			stopped.signal(syscall.SIGCONT)
			return
		}
		time.Sleep(2500 * time.Millisecond) // longer than the processes wait for each other
	}
	m.sink.listen()
	m.watch.reset() // what a paused process did not do was no outage
	stopped.signal(syscall.SIGCONT)
}

// useUpDescriptors leaves the process without free descriptors. The returned function
// waits until the take-over is over, which it may not be without them, and frees some.
func (m *takeOver) useUpDescriptors(l, first, second *life) (end func()) {
	before := l.limit(m.T, syscall.RLIMIT_NOFILE, l.free())
	return func() {
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && !first.ended() && !second.ended(); {
			time.Sleep(5 * time.Millisecond)
		}
		l.limit(m.T, syscall.RLIMIT_NOFILE, before)
	}
}

// settle waits until exactly one process runs and is live. It reports false if
// there is none because both were stopped, because the new server, which was live, was
// stopped, or because the old one was ending when the new one died.
func (m *takeOver) settle(first, second *life) bool {
	m.Helper()
	if m.action == "kill-new" && (strings.HasPrefix(m.point, "old.terminate.") || strings.HasPrefix(m.point, "old.parcel.")) {
		m.until("both servers have ended", func() bool { return first.ended() && second.ended() })
		return false
	}
	if m.action == "term-both" {
		m.until("both servers have ended", func() bool { return first.ended() && second.ended() })
		if first.failed || second.failed {
			m.Errorf("the servers end with %v and %v", first.cmd.ProcessState, second.cmd.ProcessState)
		}
		return false
	}
	if m.action == "term-new" {
		m.until("the new server has ended", second.ended)
		if second.logged("server is live") { // it ends the old one, too
			m.until("the old server ends with it", first.ended)
			return false
		}
		if m.served() {
			m.Error("the new server is not live")
		}
	}
	m.until("exactly one server is live", func() bool {
		if first.ended() && second.ended() {
			m.Fatal("both servers have ended")
		}
		return first.ended() != second.ended() && m.get("/ready") == "LIVE\n"
	})
	return true
}

// next starts a second load over new connections and lets a third server take over
// from the survivor, which must succeed, with every line counted.
func (m *takeOver) next(survivor *life, epoch int) {
	m.Helper()
	after := &m.phases[1]
	m.load(after)
	m.Cleanup(func() {
		if m.Failed() {
			m.Logf("sent %d %d %d lines; shown:\n%s", after.sent[0].Load(), after.sent[1].Load(), after.sent[2].Load(), m.get("/stats?filter=^(who|hits|more)"))
		}
	})
	m.until("lines are accepted over all transports, and one set has them", func() bool { return after.atLeast(10) && m.get("/stats?filter=^who") == "who: 3\n" })
	third := m.start(epoch, "")
	m.until("the survivor has ended", survivor.ended)
	if survivor.failed && m.action != "full" { // what it could not write is an error
		m.Errorf("the survivor ends with %v", survivor.cmd.ProcessState)
	}
	had := after.total()
	m.until("more lines are sent", func() bool { return after.total() > had+100 && m.get("/stats?filter=^who") == "who: 3\n" })
	m.until("the next take-over succeeds", func() bool {
		if third.ended() {
			m.Fatal("the next take-over fails")
		}
		return m.get("/ready") == "LIVE\n"
	})
	after.end()
	m.check(after, true)
	if m.exact() {
		m.until("the gauge is 7", func() bool { return m.get("/stats?filter=^level$") == "level: 7\n" })
	}
}

// end stops the last server, and checks what all of them have sent to the sinks.
func (m *takeOver) end() {
	m.Helper()
	last := m.processes[len(m.processes)-1]
	last.signal(syscall.SIGTERM)
	m.until("the last server has ended", last.ended)
	if last.failed {
		m.Errorf("the last server ends with %v", last.cmd.ProcessState)
	}
	m.until("all servers have ended", func() bool {
		for _, l := range m.processes {
			if !l.ended() {
				return false
			}
		}
		return true
	})
	cut := uint64(0)
	if !m.exact() {
		// A server that could not hand over its connections closes them. Lines that
		// were on their way then are lost, and the client sees an error only later.
		cut = 25
	}
	m.checkSink(&m.phases[0], !m.killed(), cut)
	m.checkSink(&m.phases[1], true, 0)
}

// exact reports whether the survivor must show every line. It need not if the new
// server was live already when it was killed: it may have read lines.
func (m *takeOver) exact() bool {
	return m.cell.exact() && !(strings.HasSuffix(m.action, "kill-new") && m.processes[1].logged("server is live"))
}

// check compares the stats of a phase that has ended with the lines that were sent.
func (m *takeOver) check(p *phase, exact bool) {
	m.Helper()
	var text string
	for end := time.Now().Add(*matrixPatience); ; time.Sleep(10 * time.Millisecond) {
		text = m.get("/stats?filter=^" + p.name)
		low := ""
		for i := range protocols {
			shown, _ := find(text, fmt.Sprintf("%s%d: ", p.name, i))
			sent, doubt := p.sent[i].Load(), p.doubt[i].Load()
			if shown > sent+doubt {
				m.Fatalf("%s%d: %d lines are shown, %d were sent, %d perhaps", p.name, i, shown, sent, doubt)
			}
			if exact && doubt > 0 {
				m.Fatalf("%d connections of %s%d broke", doubt, p.name, i)
			}
			if shown < sent {
				low += fmt.Sprintf("%s%d: %d lines are shown, %d were sent; ", p.name, i, shown, sent)
			}
		}
		if low == "" || !exact {
			return
		}
		if time.Now().After(end) {
			m.Fatal(low)
		}
	}
}

// checkSink compares the increments that the sinks of all servers got with the lines that were sent.
// Of each connection that broke, cut lines can be lost.
func (m *takeOver) checkSink(p *phase, exact bool, cut uint64) {
	m.Helper()
	check := func(name string, sent, doubt uint64) {
		m.Helper()
		lost := cut * doubt
		if cut > 0 {
			lost++ // a datagram that arrived between the last read of a socket and its end
		}
		if got := m.sink.sum(name); got > sent+doubt || exact && got+lost < sent {
			m.Errorf("the sinks got %d of %s, %d were sent, %d perhaps", got, name, sent, doubt)
		}
	}
	var sent, doubt uint64
	for i := range protocols {
		check(fmt.Sprintf("%s%d", p.name, i), p.sent[i].Load(), p.doubt[i].Load())
		sent, doubt = sent+p.sent[i].Load(), doubt+p.doubt[i].Load()
	}
	check("took."+p.name, sent, doubt)
}
