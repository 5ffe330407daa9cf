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
	// BaseID distinguishes servers that run side by side. With 0 and epoch 0, a
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

// hotRestart is the part of a server in a line of processes. A nil one stands
// alone.
type hotRestart struct {
	s      *Server
	cfg    HotRestart
	baseID atomic.Uint32

	ports   map[string]*os.File // inherited, by their keys
	next    *hotrestart.Parent  // where a successor connects; nil: there can be none
	before  *hotrestart.Child   // the process before; nil: there was none
	parent  sync.Once           // ends the process before
	ready   chan func()         // gets the function that makes the server live once it could be
	imports *store.Import       // of the stats of the process before

	// Of the successor; guarded by the order of its questions.
	export    *store.Export // nil before it asks for stats
	committed bool          // it flushes the stats
	drained   atomic.Bool   // it serves

	mu       sync.Mutex              // guards the rest
	origin   hotrestart.Origin       // of the line, with the own generation
	serving  bool                    // this process serves: it has none before or has taken over
	stopped  bool                    // it ends without ever having served
	early    []hotrestart.Connection // that came before it served
	replaced bool                    // a successor serves that this process has lost
	alone    *time.Timer             // ends a process that is replaced
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
	s.hot = &hotRestart{s: s, cfg: *c, ready: make(chan func(), 1)}
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

// join takes the place of this process in the line: it binds the socket for the
// next one, and gets the sockets of the one before.
func (h *hotRestart) join() (err error) {
	if h == nil {
		return nil
	}
	if h.next, err = h.listen(); err != nil {
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
	to := hotrestart.Successor{Connection: h.adopt}
	if !h.cfg.SkipParentStats {
		var find func(*store.ExportedStat) any
		if h.s.statsd != nil {
			find = h.s.statsd.Import
		}
		h.imports = h.s.store.NewImport(find)
		to.Stat = func(stat *store.ExportedStat) {
			if err := h.imports.Add(stat); err != nil {
				h.s.log.Debug("hot restart: stat is not imported", "error", err)
			}
		}
	}
	before, err := hotrestart.Dial(h.at(), to)
	if errors.Is(err, hotrestart.ErrNoParent) && h.cfg.SkipOnNoParent {
		h.s.log.Warn("hot restart: there is no server to follow; starting afresh", "epoch", h.cfg.RestartEpoch)
		return nil
	}
	if errors.Is(err, hotrestart.ErrNoParent) {
		return fmt.Errorf("%w; start with --restart-epoch 0, or with --skip-hot-restart-on-no-parent", err)
	}
	if parentEnded(err) {
		h.s.log.Warn("hot restart: the server before is gone; starting without it", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	h.setOrigin(hotrestart.Origin{Start: before.Origin().Start, Generation: before.Origin().Generation + 1})
	sockets, err := before.Sockets()
	if parentEnded(err) {
		before.Close()
		before.AwaitEnd() // its addresses are free then
		h.s.log.Warn("hot restart: the server before is gone; starting without it", "error", err)
		return nil
	}
	if err != nil {
		before.Close()
		return err
	}
	h.before = before
	h.distribute(sockets)
	return nil
}

// parentEnded reports whether an error means that the process before has ended,
// so that this one goes on alone.
func parentEnded(err error) bool {
	return errors.Is(err, hotrestart.ErrEnded) || errors.Is(err, hotrestart.ErrDied)
}

// distribute gives each listener its inherited sockets, and closes the sockets
// of listeners that the configuration does not have any more.
func (h *hotRestart) distribute(sockets []hotrestart.Socket) {
	var lines []statsd.ListenerSockets
	h.ports = make(map[string]*os.File)
	for _, s := range h.s.inheritHealth(sockets) {
		switch {
		case len(s.Files) == 1 && strings.HasPrefix(s.Address, portPrefix) && h.ports[s.Address] == nil:
			h.ports[s.Address] = s.Files[0]
		case len(s.Files) == 1 && h.s.admin != nil && s.Address == adminPrefix+h.s.cfg.Admin.Address:
			h.s.admin.Inherit(s.Files[0])
		case h.s.statsd != nil:
			lines = append(lines, statsd.ListenerSockets(s))
		default:
			for _, f := range s.Files {
				_ = f.Close()
			}
		}
	}
	n := 0
	if h.s.statsd != nil {
		n = h.s.statsd.Inherit(lines)
	}
	h.s.log.Info("hot restart: sockets taken over", "statsd listeners", n, "other listeners", len(h.ports))
}

// adminPrefix begins the address of the admin port's socket, in front of the
// configured one.
const adminPrefix = "admin "

// takePorts returns the inherited sockets of ports. The caller owns them.
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
		next, err := hotrestart.Listen(h.at())
		taken := errors.Is(err, hotrestart.ErrInUse)
		switch {
		case err == nil:
			return next, nil
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

// close undoes join, for servers that do not get to run.
func (h *hotRestart) close() {
	if h == nil {
		return
	}
	h.abandon()
	for _, f := range h.takePorts() {
		_ = f.Close()
	}
}

// abandon ends the part of a process that has not served. The one before goes on
// as if there had been none.
func (h *hotRestart) abandon() {
	if h.next != nil {
		h.next.Close() // before the connection: it is the sign that this process lives
	}
	if h.before != nil {
		h.before.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.early {
		_ = c.File.Close()
	}
	h.early = nil
}

// adopt goes on with a connection of the process before, as soon as this one
// serves.
func (h *hotRestart) adopt(c hotrestart.Connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.s.statsd == nil || h.stopped {
		_ = c.File.Close()
		return
	}
	if !h.serving {
		h.early = append(h.early, c)
		return
	}
	h.adoptNow(c)
}

func (h *hotRestart) adoptNow(c hotrestart.Connection) {
	if err := h.s.statsd.Adopt(statsd.Connection(c)); err != nil {
		h.s.log.Warn("hot restart: connection is not taken over", "error", err)
	}
}

// begin makes the server accept and flush, once. It reports false if the server
// is ending.
func (h *hotRestart) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	if h.serving {
		return true
	}
	h.serving = true
	h.s.keepPaths(false)
	close(h.s.serving)
	for _, c := range h.early {
		h.adoptNow(c)
	}
	h.early = nil
	return true
}

// stop reports whether the server has served. If it has not, it never will.
func (h *hotRestart) stop() (served bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = !h.serving
	return h.serving
}

// keepPaths sets whether the paths of unix sockets are left to another process
// when they are closed.
func (s *Server) keepPaths(keep bool) {
	for _, l := range s.health {
		l.KeepPath(keep)
	}
	if s.admin != nil {
		s.admin.KeepPath(keep)
	}
}

// runAdmin serves the admin port. After a successor has taken over, requests that
// do not end are no error.
func (s *Server) runAdmin(ctx context.Context) error {
	if !s.hasAdminPort() {
		<-ctx.Done()
		return s.admin.Close()
	}
	s.writeAddress()
	err := s.admin.Run(ctx)
	if err != nil && s.hot != nil && s.hot.drained.Load() {
		s.log.Warn("hot restart: admin port", "error", err)
		return nil
	}
	return err
}

// askStats fetches what changed in the stats of the process before. It runs
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
// stats. It returns when that is done; only the first call does it.
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

// run runs while the server does: it takes over from the process before, ends
// that one when its time has expired, and answers the process that comes next.
func (h *hotRestart) run(ctx context.Context) error {
	var next sync.WaitGroup
	defer next.Wait()
	if h.next != nil {
		next.Go(func() {
			h.s.guard.Run("hot restart", func() {
				if err := h.next.Run(ctx, (*followed)(h)); err != nil {
					h.s.log.Error("hot restart: no process can follow this server", "error", err)
				}
			})
		})
	}
	if h.before == nil {
		return nil
	}
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	live, err := h.warm(ctx, watch.C)
	if live == nil {
		if err != nil && !h.stop() {
			h.abandon()
		}
		return err
	}
	live()
	if err == nil {
		err = h.before.Drain()
	}
	if err != nil {
		h.endParent()
		return nil
	}
	expired := time.NewTimer(h.cfg.ParentShutdownTime)
	defer expired.Stop()
	for {
		select {
		case <-watch.C:
			if h.before.Watch() == nil {
				continue
			}
			h.endParent()
		case <-expired.C:
			h.endParent()
		case <-ctx.Done():
		}
		return nil
	}
}

// warm waits until the server could be live, and takes over. It returns the
// function that makes it live, nil if it ends instead. With that, an error means
// that there is no process before any more.
func (h *hotRestart) warm(ctx context.Context, watch <-chan time.Time) (live func(), err error) {
	for {
		select {
		case live = <-h.ready:
			if err == nil {
				err = h.takeOver()
			}
		case <-watch:
			if err != nil {
				continue
			}
			err = h.before.Watch()
		case <-ctx.Done():
			return nil, nil
		}
		if err != nil && !parentEnded(err) {
			return nil, fmt.Errorf("server: the running server does not hand over: %w", err)
		}
		if err != nil {
			h.endParent()
		}
		if (err != nil || live != nil) && !h.begin() {
			return nil, nil
		}
		if live != nil {
			return live, err
		}
	}
}

// takeOver gets the stats of the process before, first a copy of all while it
// goes on, and then the changes since, together with the duty to flush them.
func (h *hotRestart) takeOver() error {
	if h.imports != nil {
		if err := h.before.Stats(); err != nil {
			return err
		}
	}
	return h.before.Commit()
}

// watchEvery is how often to look whether the process before has ended by
// itself: its connections wait meanwhile.
const watchEvery = 200 * time.Millisecond

// commit makes a server live that is ready for it, after it has taken over if it
// follows another one.
func (s *Server) commit(live func()) {
	if s.hot == nil || s.hot.before == nil {
		live()
		return
	}
	s.hot.ready <- live
}

// part hands over the open connections at the end of the server. The function
// that it returns hands over the last stats, after all input has ended.
func (h *hotRestart) part() (finish func() error) {
	nothing := func() error { return nil }
	if h == nil {
		return nothing
	}
	if !h.stop() {
		h.abandon()
		return nothing
	}
	replaced := h.stopTimer()
	h.endParent()
	if h.next == nil {
		return nothing
	}
	handoff := h.next.Part()
	if handoff == nil && !replaced {
		return nothing
	}
	h.s.keepPaths(true)
	st := h.s.statsd
	if st != nil {
		st.HandOver()
	}
	if handoff == nil {
		return nothing
	}
	if st != nil {
		st.TakeConnections(func(c statsd.Connection) bool { return handoff.Connection(hotrestart.Connection(c)) })
	}
	return func() error {
		if err := handoff.Finish((*followed)(h)); err != nil {
			h.s.log.Warn("hot restart: not all could be handed over", "error", err)
			h.s.flusher.Resume() // which flushes the rest
		}
		return nil
	}
}

// stopTimer prevents the end of a process that is replaced, and reports whether
// it is.
func (h *hotRestart) stopTimer() (replaced bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone != nil {
		h.alone.Stop()
	}
	return h.replaced
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
	if h == nil || h.next == nil {
		return "disabled"
	}
	return hotrestart.Version()
}

// followed is the side of a server that a successor sees.
type followed hotRestart

var _ hotrestart.Process = (*followed)(nil)

func (f *followed) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.s.life.Initialized():
		return errors.New("the running server is still initializing")
	case f.replaced:
		return errors.New("the running server is replaced by another one")
	}
	return nil
}

func (f *followed) Serving() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving
}

func (f *followed) Origin() hotrestart.Origin {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origin
}

// Sockets also ends the process before this one: a line has two processes at the
// same time.
func (f *followed) Sockets() ([]hotrestart.Socket, error) {
	(*hotRestart)(f).endParent()
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
	if f.s.hasAdminPort() {
		file, err := f.s.admin.File()
		if err != nil {
			return nil, err
		}
		out = append(out, hotrestart.Socket{Address: adminPrefix + f.s.cfg.Admin.Address, Files: []*os.File{file}})
	}
	return out, nil
}

func (f *followed) Stats(yield func(*store.ExportedStat) bool) {
	if f.export == nil {
		f.export = f.s.store.NewExport()
	}
	if f.s.statsd == nil {
		if f.committed {
			f.s.refresh(time.Now())
		}
		f.export.Next(yield)
		return
	}
	if f.committed { // there is no flush that would do it
		now := time.Now()
		f.s.refresh(now)
		f.s.statsd.Flush(now)
	}
	f.export.Next(func(h *store.ExportedStat) bool { return f.s.statsd.IsSet(h) || yield(h) })
}

func (f *followed) Commit() {
	f.s.flusher.Suspend()
	if f.export == nil {
		f.export = f.s.store.NewExport()
	}
	f.export.Cut()
	f.committed = true
}

func (f *followed) Acknowledged() {
	if f.committed {
		f.export.Ack()
	}
}

func (f *followed) Figures() hotrestart.Figures {
	return hotrestart.Figures{Memory: admin.ProcessMemory().Allocated, Connections: f.s.connections()}
}

func (f *followed) Drain() {
	f.drained.Store(true)
	f.s.life.StartDrain(false, nil)
	if f.s.statsd != nil {
		f.s.statsd.Pause()
	}
	for _, p := range f.s.ports {
		p.gate.Shut()
	}
	for _, l := range f.s.health {
		l.Pause()
	}
	if f.s.admin != nil {
		f.s.admin.Pause()
	}
	f.s.log.Info("hot restart: the next server has taken over")
}

func (f *followed) Terminate() { f.s.Quit() }

// Lost makes the server whole again, or ends it if its successor goes on without
// it.
func (f *followed) Lost(replaced bool) {
	committed := f.committed
	f.export, f.committed = nil, false
	if committed {
		f.s.flusher.Resume()
	}
	if replaced {
		if !f.drained.Load() {
			f.Drain()
		}
		f.s.log.Error("hot restart: the next server has taken over and left; this one ends after the parent shutdown time",
			"time", f.cfg.ParentShutdownTime)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.replaced = true
		f.alone = time.AfterFunc(f.cfg.ParentShutdownTime, f.s.Quit)
		return
	}
	if f.drained.Swap(false) {
		f.s.life.EndDrain()
		if f.s.statsd != nil {
			f.s.statsd.Resume()
		}
		for _, p := range f.s.ports {
			p.gate.Open()
		}
		for _, l := range f.s.health {
			l.Resume()
		}
		if f.s.admin != nil {
			f.s.admin.Resume()
		}
	}
	f.s.log.Error("hot restart: the next server went away; this one goes on", "committed", committed)
}
