package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/nofollow"
	"github.com/statsd-admin/statsd-admin/internal/unixsock"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// HotRestart configures hot restarts: a new process takes over the sockets,
// connections and counters of a running one. The fields are named after the command
// line options.
type HotRestart struct {
	// SocketPath is the prefix of the names of the sockets over which the processes
	// communicate. A leading @ makes them abstract. Required.
	SocketPath string
	// SocketMode is the mode of sockets in the file system. Default 0600.
	SocketMode fs.FileMode
	// BaseID distinguishes servers that run side by side. If ID 0 is taken and the
	// epoch is 0, the server runs without hot restarts; any other ID that is taken is
	// an error.
	BaseID uint32
	// UseDynamicBaseID picks a free base ID.
	UseDynamicBaseID bool
	// BaseIDPath is the file to write the base ID to.
	BaseIDPath string
	// RestartEpoch is 0 for the first process, and one higher for each
	// successor.
	RestartEpoch uint32
	// SkipOnNoParent starts without a predecessor if there is none, instead of
	// failing.
	SkipOnNoParent bool
	// SkipParentStats does not take over the stats of the predecessor.
	SkipParentStats bool
	// ParentShutdownTime is the time after which the predecessor is shut down.
	ParentShutdownTime time.Duration
}

// HotRestartVersion returns the version of the hot restart protocol, or "disabled" if
// the system does not support it.
func HotRestartVersion() string { return hotrestart.Version() }

// hotRestart links a server to its predecessor and successor. It is nil for a server
// without hot restarts.
type hotRestart struct {
	s      *Server
	cfg    HotRestart
	baseID atomic.Uint32

	ports   map[string]*os.File // inherited sockets by key
	next    *hotrestart.Parent  // accepts the successor; nil if none is possible
	before  *hotrestart.Child   // connection to the predecessor or nil
	parent  sync.Once           // shuts down the predecessor
	ready   chan func()         // receives the function that makes the server live
	imports *store.Import       // imports the predecessor's stats
	dropped []*unixsock.Path    // of the predecessor's sockets that are no longer configured
	refused map[string]int      // parcels of the predecessor's sinks that no sink takes, by sink

	// State of the successor. Its requests arrive one at a time, so no lock is
	// needed.
	export    *store.Export // nil until it requests stats
	committed bool          // it has taken over flushing
	drained   atomic.Bool   // it has taken over serving

	mu       sync.Mutex              // guards the rest
	origin   hotrestart.Origin       // start of the first process, and this generation
	serving  bool                    // this process serves
	stopped  bool                    // stopped before it served
	early    []hotrestart.Connection // received before it served
	replaced bool                    // the successor serves, but its connection is lost
	alone    *time.Timer             // shuts down a replaced process
}

func (s *Server) makeHotRestart() error {
	c := s.cfg.HotRestart
	if c == nil {
		return nil
	}
	if c.SocketPath == "" {
		return errors.New("server: hot restart requires a socket path")
	}
	if c.UseDynamicBaseID && c.RestartEpoch > 0 {
		return fmt.Errorf("server: restart epoch %d cannot be used with a dynamic base id", c.RestartEpoch)
	}
	s.hot = &hotRestart{s: s, cfg: *c, ready: make(chan func(), 1)}
	s.hot.setOrigin(hotrestart.Origin{Start: s.start, Generation: 1})
	s.hot.baseID.Store(c.BaseID)
	if err := s.hot.at().Check(); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.gauges.epoch.Set(uint64(c.RestartEpoch))
	return nil
}

func (h *hotRestart) at() hotrestart.Config {
	return hotrestart.Config{
		Path: h.cfg.SocketPath, Mode: h.cfg.SocketMode, BaseID: h.baseID.Load(), Epoch: h.cfg.RestartEpoch, Logger: h.s.log,
	}
}

// join connects this process to its neighbors: it binds the socket for the successor
// and receives the sockets of the predecessor.
func (h *hotRestart) join() (err error) {
	if h == nil {
		return nil
	}
	if h.next, err = h.listen(); err != nil {
		return err
	}
	if h.cfg.BaseIDPath != "" {
		if err := writeFile(h.cfg.BaseIDPath, strconv.FormatUint(uint64(h.baseID.Load()), 10)); err != nil {
			return fmt.Errorf("server: base id file: %w", err)
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
				h.s.log.Debug("hot restart: cannot import stat", "error", err)
			}
		}
		h.refused = map[string]int{}
		to.Parcel = h.inherit
	}
	before, err := hotrestart.Dial(h.at(), to)
	if errors.Is(err, hotrestart.ErrNoParent) && h.cfg.SkipOnNoParent {
		h.s.log.Warn("hot restart: no running server to take over from; starting from scratch", "epoch", h.cfg.RestartEpoch)
		return nil
	}
	if errors.Is(err, hotrestart.ErrNoParent) {
		return fmt.Errorf("%w; start with --restart-epoch 0, or with --skip-hot-restart-on-no-parent", err)
	}
	if parentEnded(err) {
		h.goOnAlone(err)
		return nil
	}
	if err != nil {
		return err
	}
	h.setOrigin(hotrestart.Origin{Start: before.Origin().Start, Generation: before.Origin().Generation + 1})
	sockets, err := before.Sockets()
	if err != nil && !parentEnded(err) {
		before.Close()
		return err
	}
	h.before = before
	if err != nil { // it may have handed over its connections and stats
		h.goOnAlone(err)
	}
	h.distribute(sockets)
	return nil
}

// relay returns the relay of received lines, nil if there is none.
func (s *Server) relay() *relay.Relay {
	if s.statsd == nil {
		return nil
	}
	return s.statsd.Relay()
}

// inherit passes what a sink or relay of the predecessor has not delivered to the sink or
// target of the same name. The predecessor hands it over in its last batch.
func (h *hotRestart) inherit(p flush.Parcel) {
	if r := h.s.relay(); !h.s.flusher.Inherit(p) && (r == nil || !r.Inherit(p)) {
		h.refused[p.Sink]++
	}
}

// goOnAlone waits until the addresses of a predecessor that is ending are free.
func (h *hotRestart) goOnAlone(why error) {
	hotrestart.AwaitEnd(h.at())
	h.s.log.Warn("hot restart: the previous server is gone; continuing without it", "error", why)
}

// parentEnded reports whether an error means that the predecessor has ended, so that
// this process continues without it.
func parentEnded(err error) bool {
	return errors.Is(err, hotrestart.ErrEnded) || errors.Is(err, hotrestart.ErrDied)
}

// distribute gives each listener its inherited sockets, and closes the sockets of
// listeners that are no longer configured. Their paths stay until the predecessor has ended.
func (h *hotRestart) distribute(sockets []hotrestart.Socket) {
	var lines []statsd.ListenerSockets
	h.ports = make(map[string]*os.File)
	for _, s := range h.s.inheritHealth(sockets) {
		switch {
		case len(s.Files) == 1 && strings.HasPrefix(s.Address, portPrefix) && h.ports[s.Address] == nil:
			h.ports[s.Address] = s.Files[0]
		case len(s.Files) == 1 && h.s.admin != nil && s.Address == adminPrefix+h.s.cfg.Admin.Address:
			h.s.admin.Inherit(s.Files[0])
		case len(s.Files) == 1 && h.s.admin != nil && s.Address == metricsPrefix+h.s.cfg.Admin.MetricsAddress:
			h.s.admin.InheritMetrics(s.Files[0])
		case h.s.statsd != nil && slices.ContainsFunc(h.s.cfg.StatsD.Listeners, func(l statsd.ListenerConfig) bool { return l.Address == s.Address }):
			lines = append(lines, statsd.ListenerSockets(s))
		default:
			for _, f := range s.Files {
				_ = f.Close()
			}
			if p, err := unixsock.Claim(socketPath(s.Address)); err == nil {
				h.dropped = append(h.dropped, p)
			}
		}
	}
	n := 0
	if h.s.statsd != nil {
		n = h.s.statsd.Inherit(lines)
	}
	h.s.log.Info("hot restart: sockets taken over", "statsd_listeners", n, "other_listeners", len(h.ports))
}

// socketPath returns the path of a unix socket with that key, "" for other sockets.
func socketPath(key string) string {
	for _, prefix := range []string{"health unix:", adminPrefix + "unix:", "unixgram://", "unixstream://", "unixlines://"} {
		if path, ok := strings.CutPrefix(key, prefix); ok && !strings.HasPrefix(path, "@") {
			return path
		}
	}
	return ""
}

// adminPrefix precedes the configured address in the key of the admin port's socket.
const adminPrefix = "admin "

// metricsPrefix is that of the socket of admin.Config.MetricsAddress.
const metricsPrefix = "metrics "

// takePorts returns the inherited sockets of ports. The caller owns them.
func (h *hotRestart) takePorts() map[string]*os.File {
	if h == nil {
		return nil
	}
	taken := h.ports
	h.ports = nil
	return taken
}

// setOrigin sets the start time and the generation.
func (h *hotRestart) setOrigin(o hotrestart.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.origin = o
	h.s.gauges.generation.Set(o.Generation)
}

// began returns the start time of the first process.
func (s *Server) began() time.Time {
	if s.hot == nil {
		return s.start
	}
	s.hot.mu.Lock()
	defer s.hot.mu.Unlock()
	return s.hot.origin.Start
}

// uptime returns the time since the first process started. Only the wall clock spans
// processes; if it was set back, the result is the time since this one started.
func (s *Server) uptime(now time.Time) time.Duration {
	return max(now.Sub(s.began()), now.Sub(s.start))
}

// listen binds the socket for the successor.
func (h *hotRestart) listen() (*hotrestart.Parent, error) {
	if h.cfg.UseDynamicBaseID {
		h.baseID.Store(rand.Uint32()) // one of so many is free
	}
	next, err := hotrestart.Listen(h.at())
	if errors.Is(err, hotrestart.ErrInUse) && h.cfg.BaseID == 0 && h.cfg.RestartEpoch == 0 && !h.cfg.UseDynamicBaseID {
		h.s.log.Warn("hot restart is not available: another server uses base id 0; set a different --base-id or --use-dynamic-base-id")
		return nil, nil
	}
	return next, err
}

// writeFile writes a file. It fails for a symbolic link, and for a pipe without a reader.
// A file that has the text already keeps it on a full disk.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|nofollow.Flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() != int64(len(text)) {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	return errors.Join(err, f.Close())
}

// removeOther removes a regular file unless it has the text.
func removeOther(path, text string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if b, err := boundedfile.Read(path, len(text)); err == nil && string(b) == text {
		return nil
	}
	return os.Remove(path)
}

// close undoes join, for a server that does not run.
func (h *hotRestart) close() {
	if h == nil {
		return
	}
	h.abandon()
	for _, f := range h.takePorts() {
		_ = f.Close()
	}
}

// abandon withdraws a process that has not served. The predecessor continues as
// before.
func (h *hotRestart) abandon() {
	if h.next != nil {
		h.next.Close() // first, since it shows that this process is alive
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

// adopt takes over a connection of the predecessor as soon as this process serves.
func (h *hotRestart) adopt(c hotrestart.Connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.s.statsd == nil {
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
		h.s.log.Warn("hot restart: cannot take over connection", "error", err)
	}
}

// begin starts accepting and flushing, once. It reports false if the server is
// shutting down.
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
	h.s.startServing()
	for _, c := range h.early {
		h.adoptNow(c)
	}
	h.early = nil
	return true
}

// stop reports whether the server has served. If not, it never will.
func (h *hotRestart) stop() (served bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = !h.serving
	return h.serving
}

// heir reports whether the predecessor of a process that gives up before it serves has
// been stopped, too, and has handed over everything: this process alone can flush it.
func (h *hotRestart) heir() bool {
	if h == nil || h.before == nil {
		return false
	}
	_ = h.before.Watch() // the predecessor may have begun
	h.next.Close()
	h.before.Close()
	return errors.Is(h.before.Watch(), hotrestart.ErrEnded)
}

// inherits makes a process that was stopped before it served do so after all if it is
// the heir of its predecessor.
func (h *hotRestart) inherits() bool {
	if !h.heir() {
		return false
	}
	h.mu.Lock()
	h.stopped = false
	h.mu.Unlock()
	return h.begin()
}

// keepPaths sets whether the paths of unix sockets are kept for another process when
// the sockets are closed.
func (s *Server) keepPaths(keep bool) {
	for _, l := range s.health {
		l.KeepPath(keep)
	}
	if s.admin != nil {
		s.admin.KeepPath(keep)
	}
}

// runAdmin serves the admin port. After a handoff, requests that do not end in time
// are not an error.
func (s *Server) runAdmin(ctx context.Context) error {
	if !s.hasAdminPort() {
		<-ctx.Done()
		return s.admin.Close()
	}
	err := s.admin.Run(ctx)
	if err != nil && s.hot != nil && s.hot.drained.Load() {
		s.log.Warn("hot restart: admin port", "error", err)
		return nil
	}
	return err
}

// askStats fetches the changed stats of the predecessor. It runs before each flush.
func (h *hotRestart) askStats(time.Time) {
	if h.before == nil || h.imports == nil {
		return
	}
	if err := h.before.Stats(); err != nil {
		h.endParent()
	}
}

// endParent shuts down the predecessor and waits until it has handed over its
// connections and last stats. Only the first call has an effect.
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
		for sink, n := range h.refused {
			h.s.log.Warn("hot restart: nothing here can send what the previous server has not delivered", "to", sink, "packets", n)
		}
		for _, p := range h.dropped {
			p.Remove()
		}
		h.s.log.Info("hot restart: the previous server has shut down", "epoch", h.cfg.RestartEpoch-1)
		if err != nil && !errors.Is(err, hotrestart.ErrGone) {
			h.s.log.Warn("hot restart: the previous server did not shut down cleanly", "error", err)
		}
	})
}

// run takes over from the predecessor, shuts it down when its time has expired, and
// serves the successor, until the server ends.
func (h *hotRestart) run(ctx context.Context) error {
	var next sync.WaitGroup
	defer next.Wait()
	if h.next != nil {
		next.Go(func() {
			h.s.guard.Run("hot restart", func() {
				if err := h.next.Run(ctx, (*followed)(h)); err != nil {
					h.s.log.Error("hot restart: cannot accept a successor", "error", err)
				}
			})
		})
	}
	if h.before == nil {
		return nil
	}
	watch := time.NewTicker(watchEvery)
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

// warm waits until the server is ready to go live, and takes over. It returns the
// function that makes the server live, or nil if the server is shutting down instead;
// then an error means that there is no predecessor any more.
func (h *hotRestart) warm(ctx context.Context, watch <-chan time.Time) (live func(), err error) {
	for {
		select {
		case live = <-h.ready:
			if err == nil {
				err = h.takeOver()
			}
		case <-watch:
			if err == nil {
				err = h.before.Watch()
			}
		case <-ctx.Done():
			return nil, nil
		}
		if errors.Is(err, hotrestart.ErrLeft) { // the end of this process came first
			return nil, nil
		}
		if err != nil && !parentEnded(err) {
			return nil, fmt.Errorf("server: the running server refused the handoff: %w", err)
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

// takeOver receives the stats of the predecessor: first a full copy while it keeps
// running, then the changes since, together with the duty to flush them.
func (h *hotRestart) takeOver() error {
	if h.imports != nil {
		if err := h.before.Stats(); err != nil {
			return err
		}
	}
	if err := h.before.Commit(); err != nil {
		return err
	}
	if h.imports != nil {
		h.s.log.Info("hot restart: counters and gauges taken over; histograms, summaries and sets start again")
	} else {
		h.s.log.Info("hot restart: all stats start again")
	}
	return nil
}

// watchEvery is the interval of checks whether the predecessor has ended on its own.
// Its connections wait meanwhile.
const watchEvery = 200 * time.Millisecond

// commit makes a ready server live, after it has taken over from its predecessor, if
// any.
func (s *Server) commit(live func()) {
	if s.hot == nil || s.hot.before == nil {
		live()
		return
	}
	s.hot.ready <- live
}

// part hands over the open connections at shutdown. The returned function hands over
// the last stats once all input has ended.
func (h *hotRestart) part() (finish func() error) {
	nothing := func() error { return nil }
	if h == nil {
		return nothing
	}
	if !h.stop() && !h.inherits() {
		h.abandon()
		return nothing
	}
	h.endParent()
	if h.next == nil {
		return nothing
	}
	handoff := h.next.Part()
	replaced := h.stopTimer() // a successor is not lost any more after Part
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
	lines := h.s.relay()
	if lines != nil {
		lines.HandOver()
	}
	if st != nil {
		st.TakeConnections(func(c statsd.Connection) bool { return handoff.Connection(hotrestart.Connection(c)) })
	}
	return func() error {
		err := handoff.Finish((*followed)(h))
		h.s.flusher.Release(err == nil)
		if lines != nil {
			lines.Release(err == nil)
		}
		if err != nil {
			h.s.log.Warn("hot restart: incomplete handoff", "error", err)
			h.s.flusher.Resume() // flushes the rest
		}
		return nil
	}
}

// stopTimer cancels the shutdown of a replaced process, and reports whether the
// process is replaced.
func (h *hotRestart) stopTimer() (replaced bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone != nil {
		h.alone.Stop()
	}
	return h.replaced
}

// refresh updates the gauges about restarts before a flush.
func (h *hotRestart) refresh(g *selfStats, own uint64) {
	var of uint64
	if h != nil && h.before != nil {
		of = h.before.Usage().Connections
	}
	g.parentConnections.Set(of)
	g.totalConnections.Set(own + of)
}

// connections returns the number of open connections of listeners.
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

// version returns the body of /hot_restart_version.
func (h *hotRestart) version() string {
	if h == nil || h.next == nil {
		return "disabled"
	}
	return hotrestart.Version()
}

// followed is the server as its successor sees it.
type followed hotRestart

var _ hotrestart.Process = (*followed)(nil)

func (f *followed) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.s.life.Initialized():
		return errors.New("the running server is still initializing")
	case f.replaced:
		return errors.New("the running server is already being replaced")
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

// Sockets also shuts down the predecessor, since at most two processes run at the
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
		if file, err := f.s.admin.MetricsFile(); err == nil {
			out = append(out, hotrestart.Socket{Address: metricsPrefix + f.s.cfg.Admin.MetricsAddress, Files: []*os.File{file}})
		}
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
	if f.committed { // no flush does it any more
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

// holdTime limits how long attempts of sinks that are under way delay the end. It is
// more than the timeout of sinks that send lines.
const holdTime = 3 * time.Second

func (f *followed) Parcels() []flush.Parcel {
	ctx, cancel := context.WithTimeout(context.Background(), holdTime)
	defer cancel()
	all := f.s.flusher.Hold(ctx)
	if r := f.s.relay(); r != nil {
		all = append(all, r.Hold()...)
	}
	if len(all) > 0 {
		f.s.log.Info("hot restart: handing over what sinks and the relay have not delivered", "packets", len(all))
	}
	return all
}

func (f *followed) Usage() hotrestart.Usage {
	return hotrestart.Usage{Memory: admin.ProcessMemory().Allocated, Connections: f.s.connections()}
}

func (f *followed) Drain() {
	f.drained.Store(true)
	f.s.life.StartHandoff()
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
	f.s.log.Info("hot restart: the successor has taken over")
}

func (f *followed) Terminate() { f.s.Quit() }

// Lost resumes the server, or shuts it down if its successor continues without it.
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
		f.s.log.Error("hot restart: the successor has taken over and disconnected; shutting down after the parent shutdown time",
			"time", f.cfg.ParentShutdownTime)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.replaced = true
		f.alone = time.AfterFunc(f.cfg.ParentShutdownTime, f.s.Quit)
		return
	}
	if f.drained.Swap(false) {
		f.s.life.EndHandoff()
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
	f.s.log.Error("hot restart: the successor is gone; resuming", "committed", committed)
}
