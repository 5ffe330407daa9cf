package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestBaseIDs lets servers ask for base IDs that are free and taken.
func TestBaseIDs(t *testing.T) {
	if hotrestart.Version() == "disabled" {
		t.Skip("no hot restarts here")
	}
	dir := t.TempDir()
	id := filepath.Join(dir, "id")
	listen := func(c HotRestart) (*Server, string, error) {
		c.SocketPath = filepath.Join(dir, "hot")
		s, log := made(t, Config{HotRestart: &c})
		err := s.hot.join()
		return s, log.String(), err
	}
	if _, _, err := listen(HotRestart{}); err != nil {
		t.Fatal(err)
	}
	if s, log, err := listen(HotRestart{}); err != nil || s.hot.version() != "disabled" || !strings.Contains(log, "another server uses base id 0") {
		t.Errorf("base id 0 is taken: %v, %q", err, log)
	}
	if err := os.WriteFile(id, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, _, err := listen(HotRestart{BaseID: 5, BaseIDPath: id}); err != nil || s.hot.version() != hotrestart.Version() {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(id); string(text) != "5" {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := listen(HotRestart{BaseID: 5}); !errors.Is(err, hotrestart.ErrInUse) {
		t.Errorf("base id 5 is taken: %v", err)
	}
	for range 2 {
		s, _, err := listen(HotRestart{BaseID: 5, UseDynamicBaseID: true, BaseIDPath: id})
		text, _ := os.ReadFile(id)
		if got := s.hot.baseID.Load(); err != nil || got == 5 || string(text) != strconv.FormatUint(uint64(got), 10) || s.Info().CommandLine.BaseID != uint64(got) {
			t.Errorf("a dynamic base id: %d, %q, %v", got, text, err)
		}
	}
	if _, _, err := listen(HotRestart{BaseID: 6, BaseIDPath: filepath.Join(dir, "none", "id")}); err == nil || !strings.HasPrefix(err.Error(), "server: base id file: ") {
		t.Errorf("a file in no directory: %v", err)
	}
	if _, _, err := listen(HotRestart{BaseID: 7, RestartEpoch: 3}); err == nil || !strings.HasSuffix(err.Error(), "; start with --restart-epoch 0, or with --skip-hot-restart-on-no-parent") {
		t.Errorf("without a predecessor: %v", err)
	}
	if s, log, err := listen(HotRestart{BaseID: 8, RestartEpoch: 3, SkipOnNoParent: true}); err != nil || s.hot.before != nil || !strings.Contains(log, "starting from scratch") {
		t.Errorf("without a predecessor, which is no error: %v, %q", err, log)
	}
	for epoch, want := range map[uint32]string{0: "", 1: "server: restart epoch 1 cannot be used with a dynamic base id"} {
		_, err := New(Config{HotRestart: &HotRestart{SocketPath: "@x", UseDynamicBaseID: true, RestartEpoch: epoch}})
		if got := errorText(err); got != want {
			t.Errorf("epoch %d: %q, want %q", epoch, got, want)
		}
	}
	if err := Check(Config{HotRestart: &HotRestart{SocketPath: "@" + strings.Repeat("x", 100)}}); err == nil || !strings.HasSuffix(err.Error(), "the name has 110 bytes, more than the 107 of an address") {
		t.Errorf("a long name: %v", err)
	}
}

// TestParcelsWithoutSinkAreCounted expects what no sink takes to be counted by sink.
func TestParcelsWithoutSinkAreCounted(t *testing.T) {
	s, _ := made(t, Config{StatsD: &statsd.Config{}})
	h := &hotRestart{s: s, refused: map[string]int{}}
	for _, sink := range []string{"a", "b", "a"} {
		h.inherit(flush.Parcel{Sink: sink})
	}
	if want := map[string]int{"a": 2, "b": 1}; !maps.Equal(h.refused, want) {
		t.Errorf("%v, want %v", h.refused, want)
	}
}

// keeper is a sink with undelivered parcels.
type keeper []flush.Parcel

func (keeper) Name() string                          { return "keeper" }
func (keeper) Flush(*store.Snapshot) error           { return nil }
func (keeper) Run(context.Context)                   {}
func (keeper) Close()                                {}
func (k keeper) Hold(context.Context) []flush.Parcel { return k }
func (keeper) Release(bool)                          {}
func (keeper) Inherit(flush.Parcel) bool             { return false }

// TestHandedOverParcelsAreLogged expects a line with their number, if there are any.
func TestHandedOverParcelsAreLogged(t *testing.T) {
	for n := range 3 {
		synctest.Test(t, func(t *testing.T) {
			s, log := made(t, Config{Flush: flush.Config{Sinks: []flush.Sink{make(keeper, n)}}})
			got := len((*followed)(&hotRestart{s: s}).Parcels())
			_, line, logged := strings.Cut(log.String(), "hot restart: handing over ")
			if got != n || logged != (n > 0) || logged && !strings.HasSuffix(line, fmt.Sprintf(" packets=%d\n", n)) {
				t.Errorf("%d of %d parcels, log %s", got, n, log)
			}
		})
	}
}

// TestEarlyConnectionsAreClosed expects connections that come before a process serves to
// be closed if it never will.
func TestEarlyConnectionsAreClosed(t *testing.T) {
	received := func() (hotrestart.Connection, func() bool) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		return hotrestart.Connection{File: r}, func() bool { return errors.Is(r.Close(), os.ErrClosed) }
	}
	s, _ := made(t, Config{StatsD: &statsd.Config{}})
	h := &hotRestart{s: s}
	first, firstClosed := received()
	second, secondClosed := received()
	h.adopt(first)
	h.adopt(second)
	if len(h.early) != 2 {
		t.Fatalf("%d connections are kept", len(h.early))
	}
	if h.stop() {
		t.Error("the process has served")
	}
	h.abandon()
	if !firstClosed() || !secondClosed() || len(h.early) != 0 {
		t.Error("a connection is open")
	}
	if h.begin() || (*followed)(h).Serving() {
		t.Error("a stopped process begins")
	}
	deaf, _ := made(t, Config{})
	unwanted, closed := received()
	h = &hotRestart{s: deaf}
	for range 2 {
		if !h.begin() {
			t.Error("a process does not begin")
		}
	}
	if !(*followed)(h).Serving() || !h.stop() {
		t.Error("a process does not serve")
	} else if h.adopt(unwanted); !closed() {
		t.Error("a connection without an input is open")
	}
}

// TestNotReadyProcesses expects successors to be refused before a process is initialized,
// and once it is replaced.
func TestNotReadyProcesses(t *testing.T) {
	s, _ := made(t, Config{})
	f := (*followed)(&hotRestart{s: s})
	if err := f.Ready(); err == nil || !strings.Contains(err.Error(), "still initializing") {
		t.Error(err)
	}
	if o := (hotrestart.Origin{Start: time.Unix(1, 0), Generation: 7}); true {
		if (*hotRestart)(f).setOrigin(o); f.Origin() != o || s.gauges.generation.Value() != 7 {
			t.Errorf("%+v", f.Origin())
		}
	}
	s.initialize()
	if err := f.Ready(); err != nil {
		t.Error(err)
	}
	f.replaced = true
	if err := f.Ready(); err == nil || !strings.Contains(err.Error(), "already being replaced") {
		t.Error(err)
	}
}

// TestRefusedConnectionsAreLogged expects one line of each connection that no listener
// takes, whether it comes before or while the process serves.
func TestRefusedConnectionsAreLogged(t *testing.T) {
	s, log := made(t, Config{StatsD: &statsd.Config{}})
	h := &hotRestart{s: s}
	adopt := func() *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		h.adopt(hotrestart.Connection{File: r, Address: "tcp://nobody:1"})
		return r
	}
	early := adopt()
	if got := log.String(); strings.Contains(got, "cannot take over connection") {
		t.Errorf("before the process serves: %s", got)
	}
	if !h.begin() || len(h.early) != 0 {
		t.Errorf("%d connections are kept", len(h.early))
	}
	late := adopt()
	if got := strings.Count(log.String(), "cannot take over connection"); got != 2 {
		t.Errorf("%d of 2 refused connections are logged", got)
	}
	for _, f := range []*os.File{early, late} {
		if !errors.Is(f.Close(), os.ErrClosed) {
			t.Error("a connection is open")
		}
	}
}

// TestReplacedProcessesEnd expects a server whose successor serves without it to drain,
// and to end when its time is up.
func TestReplacedProcessesEnd(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		s, _ := made(t, Config{})
		h := &hotRestart{s: s, cfg: HotRestart{ParentShutdownTime: limit}}
		f := (*followed)(h)
		if h.stopTimer() {
			t.Error("a process is replaced at first")
		}
		f.Lost(true)
		if !f.drained.Load() || !s.life.Draining(false) {
			t.Error("a replaced process does not drain")
		}
		if limit == 0 {
			<-s.quit
		}
		if !h.stopTimer() {
			t.Error("the process is not replaced")
		}
		select {
		case <-s.quit:
			if limit > 0 {
				t.Error("the process ends before its time")
			}
		default:
		}
	}
}

// TestPortsResume expects ports to accept again after a successor is lost.
func TestPortsResume(t *testing.T) {
	s, _ := made(t, Config{Listeners: []Listener{{Name: "a", Address: "127.0.0.1:0", Handle: func(context.Context, net.Conn) {}}}})
	if err := s.bindPorts(); err != nil {
		t.Fatal(err)
	}
	f := (*followed)(&hotRestart{s: s})
	f.Drain()
	f.Lost(false)
	if f.drained.Load() || s.life.Draining(false) || s.life.Draining(true) {
		t.Error("the server drains without a successor")
	}
	c, err := net.Dial("tcp", s.ports[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := s.ports[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Close()
}

// unhelpful is a process that refuses successors, or has no sockets for them.
type unhelpful struct {
	hotrestart.Process
	ready, sockets error
}

func (u unhelpful) Ready() error { return u.ready }
func (u unhelpful) Origin() hotrestart.Origin {
	return hotrestart.Origin{Start: time.Unix(1, 0), Generation: 4}
}
func (u unhelpful) Sockets() ([]hotrestart.Socket, error) { return nil, u.sockets }
func (u unhelpful) Lost(bool)                             {}

// TestUnhelpfulPredecessors expects a successor to end if it is refused, and to go on
// alone if its predecessor has died.
func TestUnhelpfulPredecessors(t *testing.T) {
	if hotrestart.Version() == "disabled" {
		t.Skip("no hot restarts here")
	}
	join := func(path string) (*Server, string, error) {
		s, log := made(t, Config{HotRestart: &HotRestart{SocketPath: path, RestartEpoch: 1}})
		err := s.hot.join()
		return s, log.String(), err
	}
	for _, u := range []unhelpful{{ready: errors.New("not now")}, {sockets: errors.New("not now")}} {
		path := filepath.Join(t.TempDir(), "hot")
		p, err := hotrestart.Listen(hotrestart.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, u) }()
		if s, _, err := join(path); err == nil || !strings.Contains(err.Error(), "not now") || s.hot.before != nil {
			t.Errorf("refused: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(t.TempDir(), "hot")
	ln, err := net.Listen("unix", path+"_parent_0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := ln.Accept()
		_ = ln.Close()
		if err == nil {
			_ = c.Close()
		}
	}()
	if s, log, err := join(path); err != nil || s.hot.before != nil || !strings.Contains(log, "the previous server is gone; continuing without it") {
		t.Errorf("died: %v, %s", err, log)
	}
}

// TestUptimeOfAllEpochs is never shorter than that of this process, also if the clock was
// set back since the first one started.
func TestUptimeOfAllEpochs(t *testing.T) {
	now := time.Now()
	for began, want := range map[time.Duration]time.Duration{-time.Hour: time.Hour, time.Hour: time.Minute} {
		s := &Server{start: now.Add(-time.Minute), hot: new(hotRestart)}
		s.hot.origin.Start = now.Add(began).Round(0) // as from another process
		if got := s.uptime(now); got != want {
			t.Errorf("began %v from now: up for %v, want %v", began, got, want)
		}
	}
}

// bystander is a predecessor that counts what its successor acknowledges.
type bystander struct {
	hotrestart.Process
	commit, stats func()
	acked         *atomic.Int64
	lost          chan bool
}

func (bystander) Ready() error { return nil }
func (bystander) Origin() hotrestart.Origin {
	return hotrestart.Origin{Start: time.Unix(1, 0), Generation: 1}
}
func (bystander) Sockets() ([]hotrestart.Socket, error) { return nil, nil }
func (bystander) Parcels() []flush.Parcel               { return nil }
func (bystander) Usage() hotrestart.Usage               { return hotrestart.Usage{} }
func (b bystander) Commit()                             { b.acked.Store(0); b.commit() }
func (bystander) Drain()                                {}
func (b bystander) Acknowledged()                       { b.acked.Add(1) }
func (b bystander) Lost(replaced bool)                  { b.lost <- replaced }
func (b bystander) Stats(yield func(*store.ExportedStat) bool) {
	b.stats()
	yield(&store.ExportedStat{Name: "hits", Delta: 5})
	yield(&store.ExportedStat{Name: "load", Kind: store.KindGauge, Value: 4})
}

// besideAParent returns a server that has joined a predecessor, and the predecessor.
func besideAParent(t *testing.T, prepare func(*hotRestart, *bystander)) (*Server, *hotrestart.Parent, bystander) {
	t.Helper()
	if hotrestart.Version() == "disabled" {
		t.Skip("no hot restarts here")
	}
	path := filepath.Join(t.TempDir(), "hot")
	p, err := hotrestart.Listen(hotrestart.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := made(t, Config{HotRestart: &HotRestart{SocketPath: path, RestartEpoch: 1}})
	b := bystander{commit: func() {}, stats: func() {}, acked: new(atomic.Int64), lost: make(chan bool, 1)}
	prepare(s.hot, &b)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, b) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := s.hot.join(); err != nil {
		t.Fatal(err)
	}
	return s, p, b
}

// TestStoppedInATakeOver: a successor that is stopped before it serves ends without an
// error. It never serves, and the predecessor keeps all increments.
func TestStoppedInATakeOver(t *testing.T) {
	for name, stop := range map[string]func(*hotRestart){
		"in the commit": func(h *hotRestart) { h.stop(); h.abandon() },
		"just after it": func(h *hotRestart) { h.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			joined := make(chan struct{})
			s, _, b := besideAParent(t, func(h *hotRestart, b *bystander) {
				b.commit = func() {
					<-joined
					stop(h)
				}
			})
			close(joined)
			s.commit(func() {})
			if live, err := s.hot.warm(t.Context(), nil); live != nil || err != nil {
				t.Errorf("the process goes live: %t, %v", live != nil, err)
			}
			s.hot.part()
			if <-b.lost || b.acked.Load() != 0 || (*followed)(s.hot).Serving() {
				t.Errorf("the process serves, or has acknowledged %d batches", b.acked.Load())
			}
		})
	}
}

// TestStoppedWithItsParent: a successor that is stopped before it serves, at the same time
// as its predecessor, serves what that one hands over, until it has flushed it.
func TestStoppedWithItsParent(t *testing.T) {
	for _, asked := range []bool{true, false} {
		var hits *store.Counter
		s, p, b := besideAParent(t, func(h *hotRestart, b *bystander) {
			hits = h.s.store.Root().Counter("hits")
			b.stats = func() {
				if asked {
					h.stop()
				}
			}
		})
		h, handed := p.Part(), make(chan error, 1)
		go func() { handed <- h.Finish(b) }()
		if asked { // before the process knows that it is stopped
			watch := make(chan time.Time, 1)
			watch <- time.Time{}
			if live, err := s.hot.warm(t.Context(), watch); live != nil || err != nil {
				t.Errorf("the process goes live: %t, %v", live != nil, err)
			}
		}
		s.hot.part()
		if err := <-handed; err != nil {
			t.Errorf("the predecessor keeps its stats: %v", err)
		}
		if got := hits.Value(); got != 5 || !(*followed)(s.hot).Serving() {
			t.Errorf("the process serves: %t, with %d of 5 increments", (*followed)(s.hot).Serving(), got)
		}
	}
}

// TestGaugesOfAnEndedParent: the gauges of a predecessor that ends before its time go with
// it.
func TestGaugesOfAnEndedParent(t *testing.T) {
	s, p, b := besideAParent(t, func(h *hotRestart, _ *bystander) { h.cfg.ParentShutdownTime = time.Hour })
	s.commit(func() {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.hot.run(ctx) }()
	waittest.Until(t, "the gauge is taken over", func() bool { return s.store.Has(false, "load") })
	if err := p.Part().Finish(b); err != nil {
		t.Error(err)
	}
	waittest.Until(t, "the gauge ends", func() bool { return !s.store.Has(false, "load") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// leaver is a predecessor that ends as soon as it has greeted its successor.
type leaver struct {
	bystander
	p *hotrestart.Parent
}

func (l leaver) Origin() hotrestart.Origin {
	go func() {
		_ = l.p.Part().Finish(l) // fails without a successor
		l.p.Close()
	}()
	return l.bystander.Origin()
}

// TestParentEndsBeforeItsSockets: its counters go on, and its gauges end with it.
func TestParentEndsBeforeItsSockets(t *testing.T) {
	if hotrestart.Version() == "disabled" {
		t.Skip("no hot restarts here")
	}
	for tries := range 20 {
		path := filepath.Join(t.TempDir(), "hot")
		p, err := hotrestart.Listen(hotrestart.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		s, log := made(t, Config{HotRestart: &HotRestart{SocketPath: path, RestartEpoch: 1}})
		hits := s.store.Root().Counter("hits")
		l := leaver{bystander{commit: func() {}, stats: func() {}, acked: new(atomic.Int64), lost: make(chan bool, 1)}, p}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, l) }()
		if err := s.hot.join(); err != nil {
			t.Fatal(err)
		}
		s.commit(func() {})
		if live, _ := s.hot.warm(t.Context(), nil); live == nil || !(*followed)(s.hot).Serving() {
			t.Error("the process does not go live")
		}
		if got := hits.Value(); got != 5 {
			t.Errorf("a counter has %d, want 5", got)
		}
		if s.store.Has(false, "load") {
			t.Error("the gauge of the ended process is shown")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "continuing without it") {
			return
		}
		t.Logf("try %d: the successor was faster", tries)
	}
	t.Error("the parent never ends first")
}

// hitSink is a sink that adds up the increments of the counter hits.
type hitSink struct{ n atomic.Uint64 }

func (*hitSink) Name() string { return "hits" }

func (h *hitSink) Flush(s *store.Snapshot) error {
	for c, delta := range s.CounterChanges {
		if c.Name() == "hits" {
			h.n.Add(delta)
		}
	}
	return nil
}

// TestHeirThatCannotBind: a successor whose address is taken flushes what a predecessor that
// ended meanwhile has handed over.
func TestHeirThatCannotBind(t *testing.T) {
	if hotrestart.Version() == "disabled" {
		t.Skip("no hot restarts here")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for tries := range 20 {
		path := filepath.Join(t.TempDir(), "hot")
		p, err := hotrestart.Listen(hotrestart.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		sink := new(hitSink)
		s, log := made(t, Config{
			HotRestart: &HotRestart{SocketPath: path, RestartEpoch: 1}, Flush: flush.Config{Sinks: []flush.Sink{sink}},
			StatsD: &statsd.Config{Listeners: []statsd.ListenerConfig{{Address: "tcp://" + taken.Addr().String()}}},
		})
		s.store.Root().Counter("hits")
		l := leaver{bystander{commit: func() {}, stats: func() {}, acked: new(atomic.Int64), lost: make(chan bool, 1)}, p}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, l) }()
		if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("an address that is taken: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if l.acked.Load() > 0 {
			if got := sink.n.Load(); got != 5 {
				t.Errorf("%d increments are flushed, want 5", got)
			}
		}
		if strings.Contains(log.String(), "continuing without it") {
			return
		}
		t.Logf("try %d: the successor was faster", tries)
	}
	t.Error("the parent never ends first")
}
