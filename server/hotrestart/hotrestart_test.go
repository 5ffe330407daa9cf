package hotrestart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/unixsock"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a process that records its calls.
type fake struct {
	mu      sync.Mutex
	asked   []string
	stats   []store.ExportedStat
	parcels []flush.Parcel
	sockets []Socket
	refuse  error
	quit    chan struct{}
	lost    chan bool
	idle    bool // it does not serve
}

func newFake() *fake { return &fake{quit: make(chan struct{}, 9), lost: make(chan bool, 9)} }

func (f *fake) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse
}

// done returns what the process was asked to do.
func (f *fake) done() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, " ")
}

// refuseWith makes the process refuse from now on, or not any more.
func (f *fake) refuseWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
}

func (f *fake) Origin() Origin { return Origin{time.Unix(1_700_000_000, 5), 3} }
func (f *fake) Sockets() ([]Socket, error) {
	f.note("sockets")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sockets, f.refuse
}
func (f *fake) Serving() bool           { return !f.idle }
func (f *fake) Commit()                 { f.note("commit") }
func (f *fake) Acknowledged()           { f.note("ack") }
func (f *fake) Usage() Usage            { return Usage{Memory: 1 << 40, Connections: 7} }
func (f *fake) Drain()                  { f.note("drain") }
func (f *fake) Terminate()              { f.note("terminate"); f.quit <- struct{}{} }
func (f *fake) Lost(replaced bool)      { f.lost <- replaced }
func (f *fake) Parcels() []flush.Parcel { return f.parcels }
func (f *fake) Stats(yield func(*store.ExportedStat) bool) {
	f.note("stats")
	for _, h := range f.has() {
		if !yield(&h) {
			return
		}
	}
}

// has replaces the stats that are to be handed over and returns the old ones.
func (f *fake) has(stats ...store.ExportedStat) []store.ExportedStat {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.stats
	f.stats = stats
	return old
}

// world is a parent that listens.
type world struct {
	t   *testing.T
	cfg Config
	*Parent
	process *fake
	log     bytes.Buffer
	logMu   sync.Mutex
	stop    func()
}

func (w *world) Write(b []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(b)
}

func newWorld(t *testing.T) *world { return newPatientWorld(t, 10*time.Second) }

// newPatientWorld is newWorld with another time limit.
func newPatientWorld(t *testing.T, limit time.Duration) *world {
	w := &world{t: t, process: newFake()}
	w.cfg = Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: limit, Logger: slog.New(slog.NewTextHandler(w, nil))}
	var err error
	if w.Parent, err = Listen(w.cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, w.process) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

func (w *world) dial(to Successor) *Child {
	w.t.Helper()
	next := w.cfg
	next.Epoch++
	c, err := Dial(next, to)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func samples() []store.ExportedStat {
	return []store.ExportedStat{
		{Name: "rq", Settled: 1 << 63, Delta: 7, Reset: 3},
		{Name: "hits", Network: true, Delta: 1, Tags: []tags.Tag{{Name: "env", Value: "a.b"}, {Name: "bare"}}},
		{Name: "level", Kind: store.KindGauge, Value: 12},
		{Name: "temp\x00\xff", Kind: store.KindGauge, Fractional: true, Network: true, Value: 0xC004000000000000},
		{Name: ""},
	}
}

// parcels are more than fit into one message.
func parcels() []flush.Parcel {
	at := time.Unix(1_700_000_000, 7)
	return []flush.Parcel{
		{Sink: "a", Form: "statsd", Shard: 3, Queued: at, Metrics: 9, Data: bytes.Repeat([]byte("hits:1|c\n"), batchPart/9)},
		{Sink: "", Form: "", Queued: at, Data: []byte{0}},
		{Sink: "b", Form: "otlp increments", Queued: at, Increments: 1 << 63, Data: bytes.Repeat([]byte("k"), batchPart-5)},
		{Sink: "c", Queued: at, Metrics: 1, Data: []byte("last")},
	}
}

// TestSocketsOfManyReaders: an address can have more sockets than one message carries.
func TestSocketsOfManyReaders(t *testing.T) {
	for _, n := range []int{maxFiles, maxFiles + 1, 2 * maxFiles} {
		w := newWorld(t)
		files := make([]*os.File, n)
		for i := range files {
			var err error
			if files[i], err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
		}
		w.process.mu.Lock()
		w.process.sockets = []Socket{{Address: "udp://many", Files: files}, {Address: "udp://few"}}
		w.process.mu.Unlock()
		c := w.dial(Successor{})
		all, err := c.Sockets()
		if err != nil || len(all) != 2 || len(all[0].Files) != n || all[1].Address != "udp://few" || len(all[1].Files) != 0 {
			t.Errorf("%d sockets: %d addresses, %v", n, len(all), err)
		}
		for _, s := range all {
			closeAll(s.Files)
		}
	}
}

// TestWholeLife goes through all that a successor asks for.
func TestWholeLife(t *testing.T) {
	w := newWorld(t)
	w.process.has(samples()...)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	file, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	w.process.mu.Lock()
	w.process.sockets = []Socket{{Address: "tcp://x", Files: []*os.File{file}}, {Address: "udp://empty"}}
	w.process.mu.Unlock()

	w.process.parcels = parcels()
	var got []store.ExportedStat
	var conns []Connection
	var undelivered []flush.Parcel
	c := w.dial(Successor{
		Parcel: func(p flush.Parcel) { undelivered = append(undelivered, p) },
		Stat: func(h *store.ExportedStat) {
			k := *h
			k.Tags = append([]tags.Tag(nil), h.Tags...)
			got = append(got, k)
		},
		Connection: func(c Connection) { conns = append(conns, c) },
	})
	if o := c.Origin(); !o.Start.Equal(time.Unix(1_700_000_000, 5)) || o.Generation != 3 {
		t.Errorf("origin %+v", o)
	}
	sockets, err := c.Sockets()
	if err != nil || len(sockets) != 2 || sockets[0].Address != "tcp://x" || len(sockets[0].Files) != 1 || len(sockets[1].Files) != 0 {
		t.Fatalf("sockets %+v, %v", sockets, err)
	}
	ln, err := net.FileListener(sockets[0].Files[0])
	if err != nil || ln.Addr().String() != tcp.Addr().String() {
		t.Errorf("the socket is %v, %v", ln, err)
	}
	ln.Close()
	sockets[0].Files[0].Close()
	for _, step := range []func() error{c.Stats, c.Stats, c.Commit, c.Drain} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(samples(), got); d != "" {
		t.Errorf("stats (-want +got)\n%s", d)
	}
	if f := c.Usage(); f != (Usage{1 << 40, 7}) {
		t.Errorf("usage %+v", f)
	}
	got = nil
	go func() { // what the process does when it is told to end
		<-w.process.quit
		p := w.Part()
		r, wr, _ := os.Pipe()
		wr.WriteString("alive")
		wr.Close()
		if !p.Connection(Connection{"tcp://x", r, []byte("half a li")}) {
			t.Error("a connection was not given away")
		}
		w.process.has(samples()[:1]...)
		if err := p.Finish(w.process); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Terminate(); err != nil {
		t.Errorf("terminate: %v", err)
	}
	if len(conns) != 1 || conns[0].Address != "tcp://x" || string(conns[0].Read) != "half a li" {
		t.Fatalf("connections %+v", conns)
	}
	if b, _ := io.ReadAll(conns[0].File); string(b) != "alive" {
		t.Errorf("the connection reads %q", b)
	}
	conns[0].File.Close()
	if d := cmp.Diff(samples()[:1], got); d != "" {
		t.Errorf("last stats (-want +got)\n%s", d)
	}
	if d := cmp.Diff(parcels(), undelivered); d != "" {
		t.Errorf("parcels (-want +got)\n%s", d)
	}
	if err := c.Stats(); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
	if c.Usage() != (Usage{}) {
		t.Error("usage of a parent that is gone")
	}
	c.Close()
	for linked := true; linked; runtime.Gosched() {
		w.mu.Lock()
		linked = w.link != nil
		w.mu.Unlock()
	}
	if asked := w.process.done(); asked != "sockets stats ack stats ack commit stats ack drain terminate stats ack" {
		t.Errorf("the parent was asked for %s", asked)
	}
	w.stop()
	select {
	case <-w.process.lost:
		t.Error("a successor that ended its parent counts as lost")
	default:
	}
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if text := w.log.String(); text != "" {
		t.Errorf("an orderly hand-over was logged:\n%s", text)
	}
}

// TestParentEndsByItself sends the last words before a successor asks.
func TestParentEndsByItself(t *testing.T) {
	w := newWorld(t)
	var got []string
	c := w.dial(Successor{Stat: func(h *store.ExportedStat) { got = append(got, h.Name) }})
	if err := c.Watch(); err != nil || c.Usage().Connections != 7 {
		t.Errorf("watch: %v, usage %+v", err, c.Usage())
	}
	if err := c.Drain(); err != nil {
		t.Fatal(err)
	}
	p := w.Part()
	if w.Part() != nil {
		t.Error("two handoffs")
	}
	w.process.has(samples()[:2]...)
	finished := make(chan error, 1)
	go func() { finished <- p.Finish(w.process) }()
	if err := c.Watch(); !errors.Is(err, ErrEnded) {
		t.Errorf("watch: %v", err)
	}
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	w.stop()
	if len(w.process.lost) > 0 {
		t.Error("a parent that left by itself is notified of a lost successor")
	}
	if err := c.Watch(); !errors.Is(err, ErrGone) || strings.Join(got, " ") != "rq hits" {
		t.Errorf("%v, stats %q", err, got)
	}
	if err := c.Terminate(); err != nil {
		t.Errorf("terminate of one that has ended: %v", err)
	}
}

func TestSuccessorWithoutStats(t *testing.T) {
	w := newWorld(t)
	c := w.dial(Successor{})
	w.process.has(samples()...)
	w.process.parcels = []flush.Parcel{{Sink: "a", Data: []byte("packet")}}
	go func() {
		<-w.process.quit
		if err := w.Part().Finish(w.process); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Terminate(); err != nil {
		t.Error(err)
	}
	if len(w.process.has()) == 0 {
		t.Error("stats were taken that no process wants")
	}
}

func TestManyStats(t *testing.T) {
	w := newWorld(t)
	var many []store.ExportedStat
	for i := range 50_000 {
		many = append(many, store.ExportedStat{Name: fmt.Sprint("some.name.", i), Delta: 1})
	}
	w.process.has(many...)
	n := 0
	c := w.dial(Successor{Stat: func(*store.ExportedStat) { n++ }})
	if err := c.Stats(); err != nil || n != 50_000 {
		t.Errorf("%d stats, %v", n, err)
	}
}

// TestLost: a parent whose successor is gone is replaced only if that one has
// committed and lives.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		commits, lives, dead, want bool
	}{
		{name: "before the commit", lives: true},
		{name: "dead", commits: true},
		{name: "does not serve", commits: true, lives: true, dead: true},
		{name: "serves", commits: true, lives: true, want: true},
	} {
		w := newWorld(t)
		c := w.dial(Successor{})
		if tt.lives {
			next := w.cfg
			next.Epoch = 1
			p, err := Listen(next)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			process := newFake()
			process.idle = tt.dead
			go func() { done <- p.Run(ctx, process) }()
			defer func() { cancel(); <-done }()
		}
		if tt.commits {
			for _, step := range []func() error{c.Commit, c.Drain} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Close()
		if got := <-w.process.lost; got != tt.want {
			t.Errorf("%s: replaced %t, want %t", tt.name, got, tt.want)
		}
		w.dial(Successor{}).Close() // a second attempt
		<-w.process.lost
		if w.Part() != nil {
			t.Errorf("%s: a handoff without a successor", tt.name)
		}
		next := w.cfg
		next.Epoch = 1
		if _, err := Dial(next, Successor{}); !errors.Is(err, ErrEnded) {
			t.Errorf("%s: a successor of a server that ends: %v", tt.name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	next := w.cfg
	for _, epoch := range []uint32{1, 4} { // 4 has the name of 1
		next.Epoch = epoch
		if epoch == 1 {
			w.process.refuseWith(errors.New("not yet"))
		}
		_, err := Dial(next, Successor{})
		want := "not yet"
		if epoch == 4 {
			want = "its successor has epoch 1, not 4"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	w.process.refuseWith(nil)
	first := w.dial(Successor{})
	next.Epoch = 1
	if _, err := Dial(next, Successor{}); err == nil || !strings.Contains(err.Error(), "has a successor already") {
		t.Errorf("a second successor: %v", err)
	}
	w.process.refuseWith(errors.New("no sockets"))
	if _, err := first.Sockets(); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "no sockets") {
		t.Errorf("sockets: %v", err)
	}
	next.BaseID = 5
	if _, err := Dial(next, Successor{}); !errors.Is(err, ErrNoParent) {
		t.Errorf("another base id: %v", err)
	}
	if _, err := Dial(Config{Path: w.cfg.Path}, Successor{}); err == nil {
		t.Error("epoch 0 follows somebody")
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Path: filepath.Join(dir, "hot"), Mode: 0o640, BaseID: 12, Epoch: 5}
	p, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hot_parent_122")
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("twice: %v", err)
	}
	cfg.Path = "@" + cfg.Path
	abstract, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("twice, abstract: %v", err)
	}
	abstract.Close()
	// The socket of another server at the same path stays.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	cfg.Path = filepath.Join(dir, "hot")
	q, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error("a server removed the socket of another one")
	}
	// A name that is too long for a successor is refused at once.
	for _, path := range []string{filepath.Join(dir, strings.Repeat("h", 100)), "@" + strings.Repeat("h", 100)} {
		if _, err := Listen(Config{Path: path}); err == nil || !strings.Contains(err.Error(), "more than the 107 of an address") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A stale one is replaced, a file is not.
	q.ln.(*unixsock.Listener).Keep(true)
	q.ln.Close()
	r, err := Listen(cfg)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	r.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("files stay: %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file in the way: %v", err)
	}
}

// TestBrokenSuccessor sends nonsense to a parent, which must continue.
func TestBrokenSuccessor(t *testing.T) {
	w := newWorld(t)
	greeting := string(head{askHello, 2, 0, 1}.append(nil)) + "\x01\x01"
	for name, text := range map[string]string{
		"nothing":   "",
		"garbage":   "GET / HTTP/1.1\r\n\r\n",
		"half":      greeting[:7],
		"version":   greeting[:5] + "\x09" + greeting[6:],
		"length":    string(head{askHello, 1 << 31, 0, 1}.append(nil)),
		"files":     string(head{askHello, 2, 3, 1}.append(nil)) + "\x01\x01",
		"empty":     string(head{askHello, 0, 0, 1}.append(nil)),
		"early":     string(head{askStats, 0, 0, 1}.append(nil)),
		"unknown":   greeting + string(head{99, 1, 0, 2}.append(nil)) + "\x00",
		"truncated": greeting + string(head{askStats, 5, 0, 2}.append(nil)) + "ab",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.DialUnix("unix", nil, w.cfg.address(0))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		})
	}
	w.dial(Successor{})
	if did := w.process.done(); did != "" {
		t.Errorf("the parent did %s", did)
	}
}

// TestSilentPeers: a peer that does not answer is left after the time limit.
func TestSilentPeers(t *testing.T) {
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: 30 * time.Millisecond}
	ln, err := net.ListenUnix("unix", cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	talk := make(chan []byte, 4)
	go func() {
		for {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write(<-talk)
		}
	}()
	cfg.Epoch = 1
	talk <- nil
	if _, err := Dial(cfg, Successor{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a parent that does not greet: %v", err)
	}
	greeted := func(answer []byte, to Successor) *Child {
		t.Helper()
		greeting := Origin{time.Unix(0, 0), 1}.append(nil)
		talk <- append(append(head{answerHello, uint32(len(greeting)), 0, 1}.append(nil), greeting...), answer...)
		patient := cfg
		patient.Timeout = time.Minute
		c, err := Dial(patient, to)
		if err != nil {
			t.Fatal(err)
		}
		c.link.timeout = cfg.Timeout
		return c
	}
	if err := greeted(nil, Successor{}).Stats(); !errors.Is(err, ErrGone) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a parent that does not answer: %v", err)
	}
	for _, answer := range [][]byte{
		head{answerStats, 4, 0, 2}.append(nil), // and nothing follows
		append(head{answerStats, 4, 0, 2}.append(nil), "\xff\xff\xff\xff"...),
		append(head{answerDone, 1, 0, 2}.append(nil), 1),
		head{answerConnection, 0, 0, 2}.append(nil),
		head{answerSocket, 0, 0, 2}.append(nil),
		head{answerHello, 0, 0, 2}.append(nil),
		head{777, 0, 0, 2}.append(nil),
		{1, 2, 3},
	} {
		c := greeted(answer, Successor{Stat: func(*store.ExportedStat) { t.Error("a stat out of nothing") }})
		if err := c.Stats(); !errors.Is(err, ErrGone) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

// TestHalfABatch: of a batch that breaks off after the commit nothing is applied,
// because the parent still has it to flush.
func TestHalfABatch(t *testing.T) {
	for _, commits := range []bool{false, true} {
		cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: time.Minute}
		ln, err := net.ListenUnix("unix", cfg.address(0))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			l := &link{conn: c, timeout: time.Minute}
			_ = l.send(answerHello, Origin{time.Unix(0, 0), 1}.append(nil))
			for range 2 { // the greeting and the question
				if m, err := l.receive(0); err != nil || m.kind == 0 {
					return
				}
			}
			_ = l.send(answerStats, appendStat(nil, &samples()[0]))
		}()
		cfg.Epoch = 1
		n := 0
		c, err := Dial(cfg, Successor{Stat: func(*store.ExportedStat) { n++ }})
		if err != nil {
			t.Fatal(err)
		}
		ask, want := c.Stats, 1
		if commits {
			ask, want = c.Commit, 0
		}
		ln.Close()
		if err := ask(); !errors.Is(err, ErrDied) || n != want {
			t.Errorf("commit %t: %d stats, want %d; %v", commits, n, want, err)
		}
	}
}

// TestUnsentQuestion: a question that cannot be sent fails without waiting for an answer,
// though the parent keeps the connection open.
func TestUnsentQuestion(t *testing.T) {
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: 20 * time.Second}
	ln, err := net.ListenUnix("unix", cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		c, err := ln.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		l := &link{conn: c, timeout: time.Minute}
		_ = l.send(answerHello, Origin{time.Unix(0, 0), 1}.append(nil))
		<-over
	}()
	cfg.Epoch = 1
	c, err := Dial(cfg, Successor{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.link.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := c.Stats(); !errors.Is(err, ErrGone) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("error %v, want that of the question", err)
	}
	if took := time.Since(begin); took > cfg.Timeout/2 {
		t.Errorf("failed after %v", took)
	}
}

// TestLastAcknowledgement: without it the last stats are still to be flushed if the
// successor has left, and not if it can still read them.
func TestLastAcknowledgement(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := newWorld(t)
		c := w.dial(Successor{Stat: func(*store.ExportedStat) {}})
		w.process.has(samples()...)
		h := w.Part()
		if leaves {
			c.Close()
		} else {
			h.link.timeout = 50 * time.Millisecond
		}
		if err := h.Finish(w.process); (err != nil) != leaves {
			t.Errorf("successor leaves: %t, error %v", leaves, err)
		}
	}
}

// TestLateReader reads a message whose deadline passes before the read begins, as
// after a suspension.
func TestLateReader(t *testing.T) {
	w := newWorld(t)
	c := w.dial(Successor{})
	if err := c.link.send(askUsage, []byte{0}); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	raw, err := c.link.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool { // the answer has arrived
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return err == nil && n == 1
	}); err != nil {
		t.Fatal(err)
	}
	m, err := c.link.receive(1)
	if err != nil || m.kind != answerDone {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.link.receive(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing has arrived: %v", err)
	}
}

// TestUnwantedFiles sends files where none belong: they are closed.
func TestUnwantedFiles(t *testing.T) {
	w := newWorld(t)
	conn, err := net.DialUnix("unix", nil, w.cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &link{conn: conn, timeout: time.Minute}
	if err := l.send(askHello, hello{1, false}.append(nil), r, r); err != nil {
		t.Fatal(err)
	}
	if _, err := l.receive(time.Minute); err != nil {
		t.Fatal(err)
	}
	r.Close()
	// With the last reader gone, writing fails.
	for end := time.Now().Add(30 * time.Second); ; {
		if _, err = wr.Write([]byte("x")); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the parent keeps files that it does not want")
		}
	}
	wr.Close()
}

func TestVersion(t *testing.T) {
	if v := Version(); available && v != "3.20" {
		t.Errorf("version %q: processes with another version cannot follow each other; say so in the release", v)
	}
}

func FuzzStats(f *testing.F) {
	var all []byte
	for _, h := range samples() {
		all = appendStat(all, &h)
	}
	f.Add(all)
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{7, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		n := 0
		err := parseStats(b, func(h *store.ExportedStat) {
			n++
			again = appendStat(again, h)
		})
		if n > len(b) {
			t.Errorf("%d stats out of %d bytes", n, len(b))
		}
		if err != nil {
			return
		}
		// Stats that were read and written again read the same.
		var third []byte
		if err := parseStats(again, func(h *store.ExportedStat) { third = appendStat(third, h) }); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%x\nreads as\n%x\nthen as\n%x, %v", b, again, third, err)
		}
	})
}

func FuzzParcels(f *testing.F) {
	for _, p := range parcels()[1:2] {
		f.Add(appendParcel(nil, &p))
	}
	f.Add([]byte{1, 'a', 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		n := 0
		if err := parseParcels(b, func(p flush.Parcel) { n++; again = appendParcel(again, &p) }); n > len(b) || err != nil {
			return
		}
		var third []byte
		if err := parseParcels(again, func(p flush.Parcel) { third = appendParcel(third, &p) }); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%x\nreads as\n%x\nthen as\n%x, %v", b, again, third, err)
		}
	})
}

// TestHeadLimits: a message is as large as the limits allow, and no larger.
func TestHeadLimits(t *testing.T) {
	for h, ok := range map[head]bool{
		{answerSocket, maxPayload, maxFiles, 1}: true, {answerSocket, maxPayload + 1, 0, 1}: false, {answerSocket, 0, maxFiles + 1, 1}: false,
	} {
		if got, err := parseHead(h.append(nil)); (err == nil) != ok || ok && got != h {
			t.Errorf("%+v reads as %+v, %v", h, got, err)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add(head{askHello, 2, 0, 1}.append(nil))
	f.Add(head{answerSocket, maxPayload, maxFiles, 1}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err == nil && (!bytes.Equal(h.append(nil), b) || h.length > maxPayload || h.files > maxFiles) {
			t.Errorf("%x reads as %+v", b, h)
		}
	})
}

// TestStoppedLinkReadsNothing stops a link before a read sets its deadline.
func TestStoppedLinkReadsNothing(t *testing.T) {
	w := newWorld(t)
	l := w.dial(Successor{}).link
	l.stop()
	if _, err := l.receive(0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// wildProcess panics when it is to drain.
type wildProcess struct{ *fake }

func (wildProcess) Drain() { panic(guardtest.Canary) }

// TestAnswerPanics: a panic ends the talk to one successor alone.
func TestAnswerPanics(t *testing.T) {
	panics := guardtest.New(t)
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Logger: panics.Logger()}
	p, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, wildProcess{newFake()}) }()
	cfg.Epoch++
	for range 2 {
		c, err := Dial(cfg, Successor{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Drain(); err == nil {
			t.Error("a process that panics has drained")
		}
		c.Close()
		panics.Caught("answer to a successor")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
