package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/nofollow"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// HotRestart are the settings of hot restarts: a new process takes over the
// sockets, connections and counters of a running one. The fields have the names
// of the command line options.
type HotRestart struct {
	// SocketPath is what the names of the sockets begin with that the
	// processes meet at; @ in front makes them abstract. Required.
	SocketPath string
	// SocketMode is the mode of sockets in the file system. Default 0600.
	SocketMode fs.FileMode
	// BaseID tells apart servers that run side by side. With 0 and epoch 0, a
	// server that finds it taken runs without hot restarts; otherwise that is
	// an error.
	BaseID uint32
	// UseDynamicBaseID picks a base id that is free.
	UseDynamicBaseID bool
	// BaseIDPath is a file that the base id is written to.
	BaseIDPath string
	// RestartEpoch is 0 for the first process, and one more for each that
	// follows.
	RestartEpoch uint32
	// SkipOnNoParent starts afresh when there is no process to follow.
	SkipOnNoParent bool
	// SkipParentStats leaves the stats of the process before alone.
	SkipParentStats bool
	// ParentShutdownTime is after how long the process before is ended.
	ParentShutdownTime time.Duration
}

// HotRestartVersion returns the version of the hot restart protocol, "disabled"
// if the system cannot do it.
func HotRestartVersion() string { return hotrestart.Version() }

// hotRestart is a server's part in a line of processes. A nil one has none.
type hotRestart struct {
	s      *Server
	cfg    HotRestart
	baseID atomic.Uint32

	ports  map[string]*os.File // taken over, by their keys
	post   *hotrestart.Parent  // where a successor asks; nil: there can be none
	before *hotrestart.Child   // the process before; nil: there was none
	parent sync.Once           // ends the process before
	ending context.CancelFunc  // ends the flushes
	ended  <-chan struct{}     // closed when they have ended

	imports *store.Import
	export  *store.Export // what a successor gets; nil until it asks
	leaving atomic.Bool   // the admin port was closed for a successor

	mu     sync.Mutex        // guards the rest
	origin hotrestart.Origin // of the line, with the own generation
	alone  *time.Timer       // ends this process, whose successor was lost
}

// makeHotRestart prepares for a place in a line of processes.
func (s *Server) makeHotRestart() error {
	c := s.cfg.HotRestart
	if c == nil {
		return nil
	}
	if c.SocketPath == "" {
		return errors.New("server: hot restart needs a socket path")
	}
	if c.UseDynamicBaseID && c.RestartEpoch > 0 {
		return fmt.Errorf("server: restart epoch %d cannot be used with a dynamic base id", c.RestartEpoch)
	}
	s.hot = &hotRestart{s: s, cfg: *c}
	s.hot.setOrigin(hotrestart.Origin{Start: s.start, Generation: 1})
	s.hot.baseID.Store(c.BaseID)
	s.gauges.epoch.Set(uint64(c.RestartEpoch))
	return nil
}

func (h *hotRestart) at() hotrestart.Config {
	return hotrestart.Config{
		Path: h.cfg.SocketPath, Mode: h.cfg.SocketMode, BaseID: h.baseID.Load(), Epoch: h.cfg.RestartEpoch, Logger: h.s.log,
	}
}

// join takes this process's place in the line: it binds the socket for the next
// one, and takes the sockets of the one before.
func (h *hotRestart) join() (err error) {
	if h == nil {
		return nil
	}
	if h.post, err = h.listen(); err != nil {
		return err
	}
	if h.cfg.BaseIDPath != "" {
		if err := writeFile(h.cfg.BaseIDPath, strconv.FormatUint(uint64(h.baseID.Load()), 10)); err != nil {
			return fmt.Errorf("server: file for the base id: %w", err)
		}
	}
	if h.cfg.RestartEpoch == 0 {
		return nil
	}
	heir := hotrestart.Heir{Connection: h.adopt}
	if !h.cfg.SkipParentStats {
		var find func(*store.ExportedStat) any
		if h.s.statsd != nil {
			find = h.s.statsd.Import
		}
		h.imports = h.s.store.NewImport(find)
		heir.Stat = func(stat *store.ExportedStat) {
			if err := h.imports.Add(stat); err != nil {
				h.s.log.Debug("hot restart: stat is not taken over", "error", err)
			}
		}
	}
	h.before, err = hotrestart.Dial(h.at(), heir)
	if errors.Is(err, hotrestart.ErrNoParent) && h.cfg.SkipOnNoParent {
		h.s.log.Warn("hot restart: there is no server to follow; starting afresh", "epoch", h.cfg.RestartEpoch)
		return nil
	}
	if errors.Is(err, hotrestart.ErrNoParent) {
		return fmt.Errorf("%w; start with --restart-epoch 0, or with --skip-hot-restart-on-no-parent", err)
	}
	if err != nil {
		return err
	}
	h.setOrigin(hotrestart.Origin{Start: h.before.Origin().Start, Generation: h.before.Origin().Generation + 1})
	sockets, err := h.before.Sockets()
	if err != nil {
		return err
	}
	var lines []statsd.ListenerSockets
	h.ports = make(map[string]*os.File)
	for _, s := range h.s.inheritHealth(sockets) {
		switch {
		case strings.HasPrefix(s.Address, portPrefix) && len(s.Files) == 1 && h.ports[s.Address] == nil:
			h.ports[s.Address] = s.Files[0]
		case h.s.statsd != nil:
			lines = append(lines, statsd.ListenerSockets(s))
		default:
			for _, f := range s.Files {
				_ = f.Close() // there is nobody to serve it
			}
		}
	}
	n := 0
	if h.s.statsd != nil {
		n = h.s.statsd.Inherit(lines)
	}
	h.s.log.Info("hot restart: sockets taken over", "statsd listeners", n, "other listeners", len(h.ports))
	return nil
}

// takePorts returns the sockets of listeners that were taken over, which belong to
// the caller.
func (h *hotRestart) takePorts() map[string]*os.File {
	if h == nil {
		return nil
	}
	taken := h.ports
	h.ports = nil
	return taken
}

// setOrigin notes where the line began.
func (h *hotRestart) setOrigin(o hotrestart.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.origin = o
	h.s.gauges.generation.Set(o.Generation)
}

// began returns when the first process of the line was started.
func (s *Server) began() time.Time {
	if s.hot == nil {
		return s.start
	}
	s.hot.mu.Lock()
	defer s.hot.mu.Unlock()
	return s.hot.origin.Start
}

// listen binds the socket for the next process.
func (h *hotRestart) listen() (*hotrestart.Parent, error) {
	const tries = 100
	for range tries {
		if h.cfg.UseDynamicBaseID {
			h.baseID.Store(rand.Uint32())
		}
		post, err := hotrestart.Listen(h.at())
		taken := errors.Is(err, hotrestart.ErrInUse)
		switch {
		case err == nil:
			return post, nil
		case taken && h.cfg.UseDynamicBaseID:
			continue
		case taken && h.cfg.BaseID == 0 && h.cfg.RestartEpoch == 0:
			h.s.log.Warn("hot restart is not available: another server has base id 0; give this one a --base-id of its own, or --use-dynamic-base-id")
			return nil, nil
		}
		return nil, err
	}
	return nil, fmt.Errorf("server: no free base id in %d tries", tries)
}

// writeFile writes a file that must not be a link.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|nofollow.Flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// close ends what join began, for servers that do not get to run.
func (h *hotRestart) close() {
	if h == nil {
		return
	}
	if h.post != nil {
		h.post.Close()
	}
	if h.before != nil {
		h.before.Close()
	}
}

// adopt goes on with a connection of the process before.
func (h *hotRestart) adopt(c hotrestart.Connection) {
	if h.s.statsd == nil {
		_ = c.File.Close() // there is nobody to serve it
		return
	}
	if err := h.s.statsd.Adopt(statsd.Connection(c)); err != nil {
		h.s.log.Warn("hot restart: connection is not taken over", "error", err)
	}
}

// listenAdmin binds the admin port. The process before gives it up at the last
// moment, when nothing else can go wrong.
func (s *Server) listenAdmin() error {
	if s.hot == nil || s.hot.before == nil {
		return s.admin.Listen()
	}
	if err := s.hot.before.CloseAdmin(); err != nil {
		return err
	}
	const tries, pause = 40, 50 * time.Millisecond
	for i := 1; ; i++ {
		err := s.admin.Listen()
		if i == tries || !errors.Is(err, admin.ErrAddressInUse) {
			return err
		}
		time.Sleep(pause)
	}
}

// runAdmin serves the admin port. When it was closed for a successor, requests
// that do not end are no reason to end this process.
func (s *Server) runAdmin(ctx context.Context) error {
	if !s.hasAdminPort() {
		<-ctx.Done()
		return s.admin.Close()
	}
	err := s.admin.Run(ctx)
	if err != nil && s.hot != nil && s.hot.leaving.Load() {
		s.log.Warn("hot restart: admin port", "error", err)
		return nil
	}
	return err
}

// inherit takes over the stats so far, before anything is received here: a
// relative change of a gauge needs its value.
func (h *hotRestart) inherit() {
	if h != nil {
		h.askStats(time.Time{})
	}
}

// askStats takes what changed in the stats of the process before. It runs
// before each flush.
func (h *hotRestart) askStats(time.Time) {
	if h.before == nil || h.imports == nil {
		return
	}
	if err := h.before.Stats(); err != nil {
		h.endParent()
	}
}

// endParent ends the process before, which hands over its connections and last
// stats, and forgets it. It returns when that is done, also to those who come
// second.
func (h *hotRestart) endParent() {
	if h == nil || h.before == nil {
		return
	}
	h.parent.Do(func() {
		err := h.before.Terminate()
		h.before.Close()
		if h.imports != nil {
			h.imports.Close()
		}
		h.s.log.Info("hot restart: the server before has ended", "epoch", h.cfg.RestartEpoch-1)
		if err != nil && !errors.Is(err, hotrestart.ErrGone) {
			h.s.log.Warn("hot restart: the server before did not end in good order", "error", err)
		}
	})
}

// run is at work while the server is: it lets the process before drain, ends it
// when its time is over, and answers the process that comes next.
func (h *hotRestart) run(ctx context.Context) error {
	var next sync.WaitGroup
	defer next.Wait()
	if h.post != nil {
		next.Go(func() {
			h.s.guard.Run("hot restart", func() {
				if err := h.post.Run(ctx, (*followed)(h)); err != nil {
					h.s.log.Error("hot restart: nobody can follow this server", "error", err)
				}
			})
		})
	}
	if h.before == nil {
		return nil
	}
	// Until this server is ready to serve, the one before does.
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	for live := false; !live; {
		select {
		case <-h.s.live:
			live = true
		case <-watch.C:
			if h.before.Watch() != nil {
				h.endParent()
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
	if err := h.before.Drain(); err != nil {
		h.endParent()
		return nil
	}
	over := time.NewTimer(h.cfg.ParentShutdownTime)
	defer over.Stop()
	for {
		select {
		case <-watch.C:
			if h.before.Watch() == nil {
				continue
			}
			h.endParent()
		case <-over.C:
			h.endParent()
		case <-ctx.Done():
		}
		return nil
	}
}

// watchEvery is how often to look whether the process before has ended by
// itself: its connections wait meanwhile.
const watchEvery = 200 * time.Millisecond

// part hands over the open connections at the end of the server. What it
// returns hands over the last stats, once nothing comes in any more.
func (h *hotRestart) part() (finish func() error) {
	nothing := func() error { return nil }
	if h == nil {
		return nothing
	}
	h.stopTimer()
	h.endParent()
	if h.post == nil {
		return nothing
	}
	parting := h.post.Part()
	if parting == nil {
		return nothing
	}
	if st := h.s.statsd; st != nil {
		st.HandOver()
		st.TakeConnections(func(c statsd.Connection) bool { return parting.Connection(hotrestart.Connection(c)) })
	}
	return func() error {
		if err := parting.Finish((*followed)(h)); err != nil {
			h.s.log.Warn("hot restart: not all could be handed over", "error", err)
		}
		return nil
	}
}

func (h *hotRestart) stopTimer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone != nil {
		h.alone.Stop()
	}
}

// refresh brings the gauges about the line up to date, before a flush.
func (h *hotRestart) refresh(g *selfStats, own uint64) {
	var of uint64
	if h != nil && h.before != nil {
		of = h.before.Figures().Connections
	}
	g.parentConnections.Set(of)
	g.totalConnections.Set(own + of)
}

// connections returns how many connections of listeners are open.
func (s *Server) connections() uint64 {
	n := int64(0)
	for _, p := range s.ports {
		n += p.open.Load()
	}
	if s.statsd != nil {
		n += int64(s.statsd.Connections())
	}
	return uint64(max(n, 0))
}

// version is what /hot_restart_version shows.
func (h *hotRestart) version() string {
	if h == nil || h.post == nil {
		return "disabled"
	}
	return hotrestart.Version()
}

// followed is the side of a server that a successor sees.
type followed hotRestart

var _ hotrestart.Process = (*followed)(nil)

func (f *followed) Ready() error {
	if !f.s.life.Initialized() {
		return errors.New("the running server is still initializing")
	}
	(*hotRestart)(f).stopTimer()
	return nil
}

func (f *followed) Origin() hotrestart.Origin {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origin
}

func (f *followed) Sockets() ([]hotrestart.Socket, error) {
	out := f.s.healthSockets()
	if f.s.statsd != nil {
		all, err := f.s.statsd.Sockets()
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			out = append(out, hotrestart.Socket(s))
		}
	}
	for _, p := range f.s.ports {
		if so, ok := p.socket(); ok {
			out = append(out, so)
		}
	}
	return out, nil
}

// CloseAdmin also ends the process before this one: a line has two processes at
// a time.
func (f *followed) CloseAdmin() {
	(*hotRestart)(f).endParent()
	if !f.s.hasAdminPort() {
		return
	}
	f.leaving.Store(true)
	closed := make(chan error, 1)
	go func() {
		f.s.guard.Run("end of the admin port", func() { closed <- f.s.admin.Close() })
	}()
	select {
	case err := <-closed:
		if err != nil {
			f.s.log.Warn("hot restart: admin port", "error", err)
		}
	case <-time.After(time.Second): // the port is closed; requests are still answered
	}
}

func (f *followed) Stats(yield func(*store.ExportedStat) bool) {
	if f.export == nil {
		// The last flush gives the sinks of this process what is theirs.
		f.ending()
		select {
		case <-f.ended:
		case <-time.After(3 * time.Second): // the flush is over; a sink still works on it
		}
		f.export = f.s.store.NewExport()
		f.export.Cut()
	}
	defer f.export.Ack()
	now := time.Now()
	f.s.refresh(now)
	if f.s.statsd == nil {
		f.export.Next(yield)
		return
	}
	f.s.statsd.Flush(now)
	f.export.Next(func(h *store.ExportedStat) bool { return f.s.statsd.IsSet(h) || yield(h) })
	f.s.statsd.Sweep(false)
}

func (f *followed) Figures() hotrestart.Figures {
	return hotrestart.Figures{Memory: admin.ProcessMemory().Allocated, Connections: f.s.connections()}
}

func (f *followed) Drain() {
	f.s.life.StartDrain(false, nil)
	if f.s.statsd != nil {
		f.s.statsd.HandOver()
	}
	f.s.closePorts()
	f.s.stopHealth()
	f.s.log.Info("hot restart: the next server has taken over")
}

func (f *followed) Terminate() { f.s.Quit() }

func (f *followed) Lost(drained bool) {
	if !drained {
		f.s.log.Error("hot restart: the next server went away before it took over")
		return
	}
	f.s.log.Error("hot restart: the next server went away; this one ends after the parent shutdown time unless another one comes",
		"time", f.cfg.ParentShutdownTime)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alone = time.AfterFunc(f.cfg.ParentShutdownTime, f.s.Quit)
}
