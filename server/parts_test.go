package server

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// made returns a server that does not run, and its log.
func made(t *testing.T, cfg Config) (*Server, *strings.Builder) {
	t.Helper()
	log := new(strings.Builder)
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers = loggers
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.hot.close(); s.closePorts(); _ = s.release() })
	return s, log
}

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
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestParcelsWithoutSinkAreCounted expects what no sink takes to be counted by sink.
func TestParcelsWithoutSinkAreCounted(t *testing.T) {
	s, _ := made(t, Config{StatsD: &statsd.Config{}})
	h := &hotRestart{s: s, refused: map[string]int{}}
	for _, sink := range []string{"a", "b", "a"} {
		h.inherit(hotrestart.Parcel{Sink: sink})
	}
	if want := map[string]int{"a": 2, "b": 1}; !maps.Equal(h.refused, want) {
		t.Errorf("%v, want %v", h.refused, want)
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
	late, lateClosed := received()
	h.adopt(late)
	if !firstClosed() || !secondClosed() || !lateClosed() || len(h.early) != 0 {
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
}

// TestPortsAdoptSockets gives ports sockets of the right kind and others.
func TestPortsAdoptSockets(t *testing.T) {
	dir := t.TempDir()
	file := func(l net.Listener, err error) *os.File {
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	descriptors.Check(t, "adopting sockets", func() {
		p := port{cfg: Listener{Name: "a", Address: "b:1"}}
		if err := p.adopt(file(net.Listen("unix", filepath.Join(dir, "s")))); err == nil || err.Error() != "unexpected inherited *net.UnixListener" {
			t.Error(err)
		}
		plain, err := os.Create(filepath.Join(dir, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.adopt(plain); err == nil {
			t.Error("a file is a socket")
		}
		if err := p.adopt(file(net.Listen("tcp", "127.0.0.1:0"))); err != nil {
			t.Fatal(err)
		}
		so, ok := p.socket()
		if !ok || so.Address != "listener a b:1" || len(so.Files) != 1 {
			t.Fatalf("%+v", so)
		}
		_ = so.Files[0].Close()
		_ = p.tcp.Close()
		if _, ok := p.socket(); ok {
			t.Error("a closed port has a socket")
		}
	})
}

// TestContentionCounts lets a goroutine wait for a mutex.
func TestContentionCounts(t *testing.T) {
	s, _ := made(t, Config{})
	if _, traced := s.Contention(); traced {
		t.Error("traced without the setting")
	}
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	s.cfg.TraceMutexes = true
	var c admin.Contention
	for tries := 10_000; c.Contentions == 0 && tries > 0; tries-- { // until the goroutine waits in time
		var mu sync.Mutex
		var waiting sync.WaitGroup
		mu.Lock()
		waiting.Go(func() {
			mu.Lock()
			defer mu.Unlock()
		})
		for range 1000 {
			runtime.Gosched()
		}
		mu.Unlock()
		waiting.Wait()
		c, _ = s.Contention()
	}
	if c.Contentions == 0 || c.Contentions >= 1<<40 || c.CurrentWaitCycles == 0 || c.CurrentWaitCycles > c.LifetimeWaitCycles || c.LifetimeWaitCycles >= 1<<60 {
		t.Errorf("%+v", c)
	}
}

// TestStamps expects a file's stamp to change with its size, mode and target.
func TestStamps(t *testing.T) {
	dir := t.TempDir()
	file, other, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "l")
	if got := stamps([]string{file, other}); got != "none\nnone\n" {
		t.Errorf("%q", got)
	}
	seen := map[string]bool{stamps([]string{link}): true}
	for i, change := range []func() error{
		func() error { return os.WriteFile(file, []byte("x"), 0o600) }, func() error { return os.Symlink(file, link) }, func() error { return os.WriteFile(file, []byte("xy"), 0o600) }, func() error { return os.Chmod(file, 0o640) },
		func() error { return os.Chtimes(file, time.Unix(7, 0), time.Unix(7, 1)) }, func() error { return os.Chtimes(file, time.Unix(7, 0), time.Unix(7, 2)) },
		func() error { return errors.Join(os.Rename(file, other), os.Remove(link), os.Symlink(other, link)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if now := stamps([]string{link}); seen[now] && i > 0 {
			t.Errorf("change %d: the stamp is %q again", i, now)
		} else {
			seen[now] = true
		}
	}
}

// TestUnknownFieldsOfControlPlanes rejects them, ignores them, or counts them and logs
// the first.
func TestUnknownFieldsOfControlPlanes(t *testing.T) {
	for _, x := range []struct {
		line  CommandLine
		err   string
		count uint64
		logs  int
	}{{CommandLine{RejectUnknownDynamicFields: true}, "3 unknown fields", 0, 0}, {CommandLine{IgnoreUnknownDynamicFields: true}, "", 0, 0}, {CommandLine{}, "", 6, 1}} {
		s, log := made(t, Config{CommandLine: x.line})
		for range 2 {
			if err := s.NoteUnknownFields("x", 3); errorText(err) != x.err {
				t.Errorf("%+v: %v", x.line, err)
			}
		}
		if n := s.gauges.dynamicUnknown.Total(); n != x.count || strings.Count(log.String(), "a control plane sends unknown fields") != x.logs {
			t.Errorf("%d, %s", n, log)
		}
	}
}

func TestDiscoveryNames(t *testing.T) {
	for want, c := range map[string]config.Cluster{"start": {}, "dns": {Type: config.StrictDNS}, "eds": {Type: config.EDSDiscovery}, "redis": {Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "redis"}}} {
		if got := discoveryName(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := discoveryName(&config.Cluster{Type: config.LogicalDNS}); got != "dns" {
		t.Errorf("%q", got)
	}
}

// TestHandlersMayAbort expects the panic that breaks a connection to be no error, and
// other panics to be reported.
func TestHandlersMayAbort(t *testing.T) {
	s, log := made(t, Config{})
	for _, x := range []struct {
		value, want any
		reported    bool
	}{{nil, nil, false}, {http.ErrAbortHandler, http.ErrAbortHandler, false}, {"mistake", http.ErrAbortHandler, true}} {
		log.Reset()
		var got any
		func() {
			defer func() { got = recover() }()
			defer s.abort()
			if x.value != nil {
				panic(x.value)
			}
		}()
		if got != x.want || strings.Contains(log.String(), "request of a listener") != x.reported {
			t.Errorf("%v: %v, %s", x.value, got, log)
		}
	}
}

type reopened struct{ err error }

func (r *reopened) Reopen() error { return r.err }

// TestFailedParts expects the errors of parts that a program gives to a server.
func TestFailedParts(t *testing.T) {
	failed := errors.New("failed")
	for what, cfg := range map[string]Config{
		"sink":     {Sinks: []NewSink{func(*store.Store, *slog.Logger, ClusterDialer) (flush.Sink, error) { return nil, failed }}},
		"endpoint": {Endpoints: []admin.Endpoint{{Path: "/stats"}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("a %s that fails", what)
		}
	}
	s, log := made(t, Config{LogFile: &reopened{failed}})
	s.Store().Root().Counter("twice")
	if s.Store().Root().Gauge("twice"); !strings.Contains(log.String(), "twice") {
		t.Error("the log does not say that a name is used for two kinds")
	}
	if err := s.ReopenLogs(); !errors.Is(err, failed) {
		t.Errorf("the log cannot be reopened: %v", err)
	}
}
