package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/healthlistener"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/server/profiler"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/process"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/eventlog"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// CommandLine holds the command line options shown by /server_info.
type CommandLine = admin.CommandLine

// Config configures a [Server]. The zero value is a server that flushes a store and
// has no port.
type Config struct {
	// Store holds the stats. If nil, the server creates one.
	Store *store.Store
	// Admin configures the admin server. Without an address it has no port, but works
	// through [admin.Server.ServeHTTP] and [admin.Server.Request]. The server sets
	// its store, its flusher and the sources that are nil.
	Admin admin.Config
	// AdminTLS holds the certificate files of an admin port with TLS. They are shown
	// by /certs, and reloaded by Reload and when they change. If nil, Admin.TLS
	// applies.
	AdminTLS *certs.Files
	// FilePosition returns the position in the configuration that names a file, for
	// errors about its contents, or "" if unknown. Optional.
	FilePosition func(path string) string
	// AdminTokens is a file of tokens in the format of [admin.ParseTokens], accepted
	// in addition to Admin.Auth. It is reloaded by Reload and when it
	// changes. Optional.
	AdminTokens string
	// IgnoreGlobalLimit exempts the admin port from the runtime value
	// overload.global_downstream_max_connections.
	IgnoreGlobalLimit bool
	// AdminAddressPath is a file to write the bound address to, before the server serves.
	// If that fails, the server logs a critical message, removes a file with
	// another address and goes on.
	AdminAddressPath string
	// Flush is the schedule of flushes. The server sets its Store and Logger, and
	// extends Before and Initialized.
	Flush flush.Config
	// HistoryBytes limits the memory of the history of stats. Default 64 MiB; negative
	// means no history.
	HistoryBytes int
	// HotRestart lets a successor process take over from the server, and the server
	// from its predecessor. Default: off.
	HotRestart *HotRestart
	// CircuitStream configures the event stream for circuit breaker dashboards. If
	// nil, there is none.
	CircuitStream *CircuitStream
	// Sinks create sinks for flushed stats, in addition to Flush.Sinks, that need the
	// server's store or logger, or that connect to a cluster. Their number is not limited,
	// unlike in configuration files: each keeps what its own queue may hold, and has some
	// twenty metrics that all sinks report.
	Sinks []NewSink
	// HealthListeners are the listeners that answer health checks.
	HealthListeners []HealthListener
	// StatsD configures the StatsD input; the server sets its store. If nil, there is
	// none.
	StatsD *statsd.Config
	// StatsDTLS maps indexes of StatsD.Listeners to certificate files. They are shown
	// by /certs and reloaded by Reload.
	StatsDTLS map[int]certs.Files
	// StatsDRules is the source of the mapping rules of StatsD, in place of
	// StatsD.Rules. Optional.
	StatsDRules *RulesSource
	// Layers are the layers of runtime values; later ones take precedence. If nil,
	// there is one layer named admin, which /runtime_modify changes.
	Layers []layers.Layer
	// Clusters are the upstream clusters.
	Clusters Clusters
	// Listeners are the listeners of the embedding program, such as a proxy.
	Listeners []Listener
	// Loggers holds the loggers that /logging shows. By default they come from
	// package logctl, at level info, and write to standard error.
	Loggers *logctl.Registry
	// LogFile is reopened together with the access logs. Optional.
	LogFile interface{ Reopen() error }
	// AccessLogs are the access logs of admin requests.
	AccessLogs []accesslog.Config
	// Lifecycle configures drains and the health switch. The server sets its gauge
	// and Logger.
	Lifecycle lifecycle.Config

	// ProfilePath is the output file of /cpuprofiler and /heapprofiler.
	ProfilePath string
	// OnPanic, if set, is called for every recovered panic with the name of the guard
	// and the panic value. Panics are always logged and counted in
	// server.recovered_panics. It must be safe for concurrent use.
	OnPanic func(where string, value any)
	// TraceMutexes makes /contention report mutex wait times. It enables the mutex
	// profile of the Go runtime, which is global to the process.
	TraceMutexes bool
	// ProcessStats adds the metrics of package store/process to the store. Expositions
	// put the product in front of their names, unless naming.Rules.Bare of the store
	// lists "process" and "go".
	ProcessStats bool
	// Version is the build version shown by /server_info.
	Version string
	// StatsVersion is the value of the gauge server.version.
	StatsVersion uint64
	// UnknownFields is the number of unknown configuration fields that were skipped.
	UnknownFields uint64
	// ServiceCluster selects the subdirectories of disk layers of runtime values.
	ServiceCluster string
	// Endpoints are added to the admin port.
	Endpoints []admin.Endpoint
	// Extend holds functions that [New] calls last, in order. New returns their
	// errors.
	Extend []func(*Server) error
	// CommandLine and Node are shown by /server_info.
	CommandLine admin.CommandLine
	Node        *admin.Node
	// DefaultCommandLine is CommandLine without arguments. The live pages show what
	// differs from it.
	DefaultCommandLine admin.CommandLine
}

// NewSink returns a sink for the stats of a store. dial connects to a host of a
// cluster for gRPC calls; it can be used from the first flush on.
type NewSink func(st *store.Store, log *slog.Logger, dial ClusterDialer) (flush.Sink, error)

// ClusterDialer connects to a host of a cluster.
type ClusterDialer func(ctx context.Context, cluster string) (net.Conn, error)

// Server is a server. Use [New]. Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	start time.Time
	log   *slog.Logger

	store     *store.Store
	loggers   *logctl.Registry
	life      *lifecycle.Server
	runtime   *layers.Loader
	clusters  *upstream.Manager
	transport *transport.Factory // for clusters
	control   Control            // nil without control planes
	events    *eventlog.Logs     // for clusters
	outliers  *eventlog.File     // part of events; optional
	listeners *listeners.Registry
	ports     []*port
	portTLS   []*certs.Server // by index of cfg.Listeners; nil without TLS
	certs     *certinfo.Registry
	statsd    *statsd.Server // nil without StatsD input
	admin     *admin.Server  // nil without an admin port
	flusher   *flush.Scheduler
	access    []*accesslog.Logger
	lost      lostLines // lost by access
	tls       []*certs.Server
	tokens    *tokenFile // optional
	health    []*healthlistener.Listener
	circuit   *eventstream.Stream // optional
	deltas    *deltastream.Stream
	history   *history.History // nil: off
	sinkFiles []interface{ Reopen() error }
	// eventSinks are sinks that send the lines of events and service checks.
	eventSinks []interface{ Event(line []byte) }
	gauges     selfStats
	collision  collisionLog
	guard      guard.Guard // reports panics to onPanic
	obsolete   deprecations
	hot        *hotRestart   // nil without hot restarts
	rulesMu    sync.Mutex    // serializes reloads of mapping rules
	rulesSeen  string        // stamps of the file of mapping rules at the start
	cpu        *profiler.CPU // of the admin port; optional

	unknownLogged atomic.Pointer[time.Time] // see NoteUnknownFields

	serving  chan struct{} // closed when the server accepts and flushes
	live     chan struct{} // closed once the server is initialized
	quit     chan struct{} // closed by Quit
	quitOnce sync.Once
	bound    sync.Once
	bindErr  error
}

// logger returns the logger of a component. Panics that the component recovers
// from are counted and reported.
func (s *Server) logger(name string) *slog.Logger {
	return guard.Observe(s.loggers.Logger(name), func(where string, value any) {
		s.gauges.panics.Inc()
		s.onPanic(where, value)
	})
}

// onPanic reports a panic to the program. The admin port and the StatsD input count
// their own panics.
func (s *Server) onPanic(where string, value any) {
	if s.cfg.OnPanic != nil {
		s.cfg.OnPanic(where, value)
	}
}

// New returns a server for cfg. It binds and starts nothing; see [Server.Listen] and
// [Server.Run].
func New(cfg Config) (*Server, error) { return assemble(cfg, eventlog.New()) }

// Check returns the error that New would return. It opens no file for writing
// and starts nothing, so it does not detect errors of Listen, such as an
// address that is in use.
func Check(cfg Config) error {
	cfg.AccessLogs = slices.Clone(cfg.AccessLogs)
	for i := range cfg.AccessLogs {
		cfg.AccessLogs[i].Path = os.DevNull
	}
	s, err := assemble(cfg, eventlog.Discard())
	if err != nil {
		return err
	}
	return s.release()
}

// release closes the files opened by New, for a server that does not run.
func (s *Server) release() (err error) {
	if s.life != nil {
		s.life.Close()
	}
	if s.clusters != nil {
		s.clusters.Close()
	}
	err = s.outliers.Close()
	for _, l := range s.access {
		err = errors.Join(err, l.Close())
	}
	return err
}

// assemble builds a server, with files for host events.
func assemble(cfg Config, events *eventlog.Logs) (*Server, error) {
	s := &Server{
		cfg: cfg, start: time.Now(), store: cfg.Store, loggers: cfg.Loggers, events: events,
		serving: make(chan struct{}), live: make(chan struct{}), quit: make(chan struct{}),
	}
	if s.store == nil {
		s.store = store.New(store.Options{})
	}
	if cfg.ProcessStats {
		if _, err := process.Register(s.store); err != nil {
			return nil, err
		}
	}
	if s.loggers == nil {
		var err error
		if s.loggers, err = logctl.New(logctl.Config{}); err != nil {
			return nil, err
		}
	}
	s.gauges.init(s.store.Own().Scope("server"), cfg)
	s.log = s.logger("main")
	s.guard = guard.New(s.log)
	s.store.SetLogger(s.log)
	notePortable(s.log, percpu.CanHold())
	for _, step := range []func() error{s.makeLife, s.makeRuntime, s.securePorts, s.makeClusters, s.makeStatsD, s.makeHealth, s.makeHotRestart, s.makeCircuitStream, s.makeFlusher, s.makeAdmin, s.addCircuitStream, s.extend} {
		if err := step(); err != nil {
			_ = s.release() // err is the original cause
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) makeLife() error {
	life := s.cfg.Lifecycle
	life.Commit = s.commit
	life.Live, life.State, life.Logger = s.gauges.live, s.gauges.state, s.log
	s.life = lifecycle.New(life)
	s.certs = &certinfo.Registry{}
	sc := s.store.Own().Scope("listener_manager")
	sc.Help(map[string]string{
		"listener_added": "Added listeners.", "listener_modified": "Modified listeners.", "listener_removed": "Removed listeners.", "listener_stopped": "Stopped listeners.",
		"listener_create_success": "Listeners that were created.", "listener_create_failure": "Listeners that could not be created.",
		"total_listeners_active": "Active listeners.", "total_listeners_warming": "Listeners that are not yet active.", "total_listeners_draining": "Listeners that drain.",
	})
	s.listeners = listeners.New(listeners.Config{
		StartDrain: s.life.StartDrain,
		DrainEnd:   s.life.DrainEnd,
		Logger:     s.log,
		Stats: listeners.Stats{
			Added: sc.Counter("listener_added"), Modified: sc.Counter("listener_modified"),
			Removed: sc.Counter("listener_removed"), Stopped: sc.Counter("listener_stopped"),
			Created: sc.Counter("listener_create_success"), Refused: sc.Counter("listener_create_failure"),
			Active: sc.GaugeWithMode("total_listeners_active", store.NeverImport), Warming: sc.GaugeWithMode("total_listeners_warming", store.NeverImport),
			Draining: sc.GaugeWithMode("total_listeners_draining", store.NeverImport),
		},
	})
	return nil
}

func (s *Server) makeRuntime() (err error) {
	ls := s.cfg.Layers
	if ls == nil {
		ls = []layers.Layer{{Name: "admin", Kind: layers.Admin}}
	}
	sc := s.store.Own().Scope("runtime")
	sc.Help(map[string]string{
		"load_success": "Loads of runtime values without errors.", "load_error": "Loads of runtime values with errors.",
		"override_dir_exists": "Loads that used an override directory.", "override_dir_not_exists": "Loads that used no override directory.",
		"admin_overrides_refused": "Refused changes of runtime values over the administration interface.", "admin_overrides_active": "Runtime values set over the administration interface.",
		"num_keys": "Runtime values.", "num_layers": "Layers of runtime values.",
		"deprecated_feature_use": "Uses of deprecated options.", "deprecated_feature_seen_since_process_start": "Uses of deprecated options by this process.",
	})
	s.obsolete.init(sc, s.loggers.Logger("config"), s.cfg.CommandLine.SkipDeprecatedLogs)
	s.runtime, err = layers.New(layers.Config{
		Layers: ls, ServiceCluster: s.cfg.ServiceCluster, Logger: s.logger("runtime"),
		Changed: func() { s.clusters.RuntimeChanged() },
		Stats: layers.Stats{
			LoadSuccess: sc.Counter("load_success"), LoadError: sc.Counter("load_error"),
			OverrideDirExists:    sc.Counter("override_dir_exists"),
			OverrideDirNotExists: sc.Counter("override_dir_not_exists"),
			OverridesRefused:     sc.Counter("admin_overrides_refused"),
			AdminOverridesActive: sc.GaugeWithMode("admin_overrides_active", store.NeverImport),
			NumKeys:              sc.GaugeWithMode("num_keys", store.NeverImport),
			NumLayers:            sc.GaugeWithMode("num_layers", store.NeverImport),
		},
	})
	return err
}

func (s *Server) makeStatsD() (err error) {
	if s.cfg.StatsD == nil {
		return nil
	}
	cfg := *s.cfg.StatsD
	cfg.Store = s.store
	if cfg.Logger == nil {
		cfg.Logger = s.loggers.Logger("io")
	}
	cfg.Logger = guard.Observe(cfg.Logger, s.onPanic)
	cfg.Listeners = slices.Clone(cfg.Listeners)
	for i := range cfg.Listeners {
		files, ok := s.cfg.StatsDTLS[i]
		if !ok {
			continue
		}
		t, err := s.loadTLS(files)
		if err != nil {
			return err
		}
		cfg.Listeners[i].TLS = t.Config()
	}
	if cfg.Rules, err = s.loadRules(); err != nil {
		return err
	}
	onEvent := cfg.OnEvent
	cfg.OnEvent = func(line []byte) {
		for _, e := range s.eventSinks {
			e.Event(line)
		}
		if onEvent != nil {
			onEvent(line)
		}
	}
	s.statsd, err = statsd.New(cfg)
	return err
}

func (s *Server) makeFlusher() (err error) {
	cfg := s.cfg.Flush
	cfg.Store, cfg.Logger = s.store, s.logger("stats")
	if s.cfg.HistoryBytes >= 0 {
		s.history = history.New(history.Config{Store: s.store, Bytes: s.cfg.HistoryBytes})
		cfg.After = append(slices.Clip(cfg.After), s.history.Add)
	}
	cfg.Before = append([]func(time.Time){s.refresh}, cfg.Before...)
	if s.hot != nil {
		cfg.Before = append([]func(time.Time){s.hot.askStats}, cfg.Before...)
	}
	if s.statsd != nil {
		cfg.Before = append(cfg.Before, s.statsd.Flush)
		cfg.Sweep = s.statsd.Sweep
	}
	for i, newSink := range s.cfg.Sinks {
		if newSink == nil {
			return fmt.Errorf("server: Sinks[%d] is nil", i)
		}
		sink, err := newSink(s.store, s.logger("stats"), s.dialCluster)
		if err != nil {
			return err
		}
		cfg.Sinks = append(slices.Clip(cfg.Sinks), sink)
	}
	for _, sink := range cfg.Sinks {
		if f, ok := sink.(interface{ Reopen() error }); ok {
			s.sinkFiles = append(s.sinkFiles, f)
		}
		if e, ok := sink.(interface{ Event(line []byte) }); ok {
			s.eventSinks = append(s.eventSinks, e)
		}
	}
	initialized := cfg.Initialized
	cfg.Initialized = func() bool { return s.life.Initialized() && (initialized == nil || initialized()) }
	if cfg.OnError == nil {
		log := s.loggers.Logger("stats")
		cfg.OnError = func(sink string, err error) { log.Warn("sink failed", "sink", sink, "error", err) }
	}
	s.flusher, err = flush.New(cfg)
	return err
}

func (s *Server) makeAdmin() (err error) {
	s.deltas = deltastream.New(deltastream.Config{Store: s.store, Clients: s.cfg.Admin.Limits.StatsStreams})
	if err := s.openAccessLogs(); err != nil {
		return err
	}
	cfg := s.cfg.Admin
	cfg.Store, cfg.Flusher = s.store, s.flusher
	if cfg.Logger == nil {
		cfg.Logger = s.loggers.Logger("admin")
	}
	cfg.Logger = guard.Observe(cfg.Logger, s.onPanic)
	if other := cfg.AccessLog; len(s.access) > 0 {
		cfg.AccessLog = func(a admin.Access) {
			s.logAccess(a)
			if other != nil {
				other(a)
			}
		}
	}
	if err := s.secureAdmin(&cfg); err != nil {
		return err
	}
	s.fillSources(&cfg.Sources)
	if s.admin, err = admin.New(cfg); err != nil {
		return err
	}
	return pages.Add(s.admin)
}

// extend adds the endpoints of the configuration and calls its extensions.
func (s *Server) extend() error {
	for _, e := range s.cfg.Endpoints {
		if err := s.admin.Handle(e); err != nil {
			return err
		}
	}
	for _, f := range s.cfg.Extend {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// Started returns the time at which the server was created.
func (s *Server) Started() time.Time { return s.start }

// Config returns the configuration of the server.
func (s *Server) Config() Config { return s.cfg }

// Store returns the stats.
func (s *Server) Store() *store.Store { return s.store }

// hasAdminPort reports whether the admin server listens. Without an address it serves
// only [admin.Server.Request] and [admin.Server.ServeHTTP].
func (s *Server) hasAdminPort() bool { return s.cfg.Admin.Address != "" }

// Admin returns the admin server.
func (s *Server) Admin() *admin.Server { return s.admin }

// StatsD returns the StatsD input, or nil if there is none.
func (s *Server) StatsD() *statsd.Server { return s.statsd }

// Lifecycle returns the state of the server, its init targets and its health switch.
func (s *Server) Lifecycle() *lifecycle.Server { return s.life }

// Runtime returns the runtime values.
func (s *Server) Runtime() *layers.Loader { return s.runtime }

// Listeners returns the registry of listeners. A proxy adds its own listeners to it.
func (s *Server) Listeners() *listeners.Registry { return s.listeners }

// Certificates returns the registry of loaded certificates.
func (s *Server) Certificates() *certinfo.Registry { return s.certs }

// Logger returns the logger with the given name.
func (s *Server) Logger(name string) *slog.Logger { return s.loggers.Logger(name) }

// Loggers returns the loggers and their levels.
func (s *Server) Loggers() *logctl.Registry { return s.loggers }

// Flusher returns the schedule of flushes.
func (s *Server) Flusher() *flush.Scheduler { return s.flusher }

// Quit starts a clean shutdown, after which Run returns. It does not wait.
func (s *Server) Quit() { s.quitOnce.Do(func() { close(s.quit) }) }

// ReopenLogs reopens the log, the access logs, the host event logs and the files of
// sinks after a rotation.
func (s *Server) ReopenLogs() error {
	var errs []error
	if s.cfg.LogFile != nil {
		errs = append(errs, s.cfg.LogFile.Reopen())
	}
	for _, l := range s.access {
		errs = append(errs, l.Reopen())
	}
	for _, f := range s.sinkFiles {
		errs = append(errs, f.Reopen())
	}
	return errors.Join(append(errs, s.events.Reopen())...)
}

// Reload reloads the disk layers of runtime values, the mapping rules of the StatsD
// input, and the files of certificates and tokens. If a file is invalid, the error is logged and the previous contents stay in
// use.
func (s *Server) Reload() {
	s.runtime.Reload()
	s.reloadSecrets()
	if s.hasRules() {
		_ = s.reloadRules() // logged
	}
	if err := s.transport.Reload(); err != nil {
		s.log.Error("cannot reload cluster certificates; keeping the current ones", "error", oneLine(err))
	}
}

// Listen binds the admin port and the StatsD listeners, all or none. Run calls it if
// necessary.
func (s *Server) Listen() error {
	s.bound.Do(func() { s.bindErr = s.listen() })
	return s.bindErr
}

func (s *Server) listen() (err error) {
	defer func() {
		if err == nil {
			return
		}
		if s.hot.heir() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			err = errors.Join(err, s.flusher.Run(ended)) // a last flush
		}
		if s.statsd != nil {
			s.statsd.Close()
		}
		s.closePorts()
		s.stopHealth()
		s.hot.close()
		_ = s.release() // err is the original cause
	}()
	if err := s.hot.join(); err != nil {
		return err
	}
	if o := &s.cfg.CommandLine; s.hot == nil && o.BaseIDPath != "" {
		if err := writeFile(o.BaseIDPath, strconv.FormatUint(o.BaseID, 10)); err != nil {
			return fmt.Errorf("server: base id file: %w", err)
		}
	}
	if s.statsd != nil {
		if err := s.statsd.Listen(); err != nil {
			return err
		}
		for _, l := range s.statsd.Listeners() {
			s.log.Info("statsd listener " + nameAt(l.Name, l.Address))
			if err := s.listeners.Add(s.statsdListener(l)); err != nil {
				s.log.Warn("listener cannot be listed", "name", l.Name, "error", err)
			}
		}
	}
	s.logFlow()
	if err := s.bindPorts(); err != nil {
		return err
	}
	if err := s.listenHealth(); err != nil {
		return err
	}
	if s.hasAdminPort() {
		if err := s.admin.Listen(); err != nil {
			return err
		}
	}
	if s.hot == nil {
		s.startServing()
	} else if s.hot.before == nil {
		s.hot.begin()
	}
	return nil
}

// startServing lets the parts of the server begin that wait for a predecessor. The address
// file is complete by then.
func (s *Server) startServing() {
	s.refreshMemory() // live pages show it before the first flush
	if s.hasAdminPort() {
		s.writeAddress()
	}
	close(s.serving)
}

// writeAddress writes the bound admin address to AdminAddressPath.
func (s *Server) writeAddress() {
	path := s.cfg.AdminAddressPath
	if path == "" {
		return
	}
	address := s.admin.Addr().String()
	if err := writeFile(path, address); err != nil {
		err = errors.Join(err, removeOther(path, address))
		s.log.Log(context.Background(), logctl.Critical.Slog(),
			fmt.Sprintf("cannot open admin address output file %s for writing.", path), "error", err)
	}
}

// Run serves until ctx is done or [Server.Quit] is called. Then it stops accepting
// StatsD input, applies the input already received, flushes a last time, closes the
// admin port, logs "stopped", and returns. The error is nil after a clean shutdown. Call Run once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.quit:
			stop()
		case <-ctx.Done():
		}
	}()

	// Parts that must stop later get their own context and are stopped in order.
	var inputs, checks, background, port group
	ending := context.WithoutCancel(ctx)
	for _, g := range []*group{&inputs, &checks, &background, &port} {
		g.ctx, g.guard = ending, s.guard
		g.start()
	}

	if s.statsd != nil {
		inputs.run("statsd", stop, s.whenServing(s.statsd.Run, s.statsd.Close))
	}
	for _, p := range s.ports {
		inputs.run("listener", stop, func(ctx context.Context) error { return s.runPort(ctx, p) })
	}
	for _, l := range s.health { // during a handoff the predecessor answers
		checks.run("health listener", stop, s.whenServing(l.Run, l.Stop))
	}
	background.run("runtime", stop, s.watching("runtime values", s.runtime.Run))
	background.run("mapping rules", stop, s.watching("mapping rules", s.watchRules))
	background.run("files", stop, s.watching("certificates and tokens", s.watchSecrets))
	for _, l := range s.access {
		background.run("accesslog", stop, l.Run)
	}
	port.run("admin", stop, s.whenServing(s.runAdmin, func() { _ = s.admin.Close() }))
	var flushing group
	flushing.ctx, flushing.guard = background.ctx, s.guard
	flushing.start()
	flushing.run("flush", stop, s.whenServing(s.flusher.Run, nil))
	if s.hot != nil {
		background.run("hot restart", stop, s.hot.run)
	}
	background.run("certificates of clusters", stop, s.watching("certificates of clusters", s.transport.Run))
	if s.control != nil {
		background.run("control planes", stop, s.control.Run)
	}
	background.run("stats stream", stop, s.deltas.Run)
	background.run("clusters", stop, s.runClusters)
	background.run("event logs", stop, s.events.Run)

	<-ctx.Done()
	s.log.Info("shutting down")
	if s.circuit != nil {
		s.circuit.Close()
	}
	s.deltas.Close()
	s.life.Close()
	handOver := s.hot.part()
	// Stop everything that updates stats before the last handoff and flush.
	err := inputs.wait()
	s.clusters.CloseConnections()
	err = errors.Join(err, checks.wait(), handOver(), flushing.wait(), port.wait(), background.wait())
	s.endProfile()
	s.clusters.Close() // last, since closing removes their stats
	err = errors.Join(err, s.outliers.Close())
	for _, l := range s.access {
		err = errors.Join(err, l.Close())
	}
	s.log.Info("stopped") // the caller of Run has the error
	if c, ok := s.cfg.LogFile.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// whenServing returns a function that calls run once the server serves. If it never
// serves, the function calls otherwise, which can be nil.
func (s *Server) whenServing(run func(context.Context) error, otherwise func()) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-s.serving:
		case <-ctx.Done():
		}
		select {
		case <-s.serving: // also if both are done: the last flush is part of run
			return run(ctx)
		default:
		}
		if otherwise != nil {
			otherwise()
		}
		return nil
	}
}

// initialize makes the server live once all init targets are ready.
func (s *Server) initialize() {
	s.life.Initialize(func() {
		s.gauges.initialized.Record(uint64(time.Since(s.start).Milliseconds()))
		s.log.Info("server is live")
		close(s.live)
	})
}

// Initialized is closed once all clusters and all other init targets registered with
// Lifecycle have become ready. The server is then live, and the listeners of the
// embedding program are served.
func (s *Server) Initialized() <-chan struct{} { return s.live }

// group runs parts of the server that are stopped together.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	guard  guard.Guard

	mu   sync.Mutex
	errs []error
}

func (g *group) start() { g.ctx, g.cancel = context.WithCancel(g.ctx) }

// run starts a part. If the part fails, failed is called. A panic stops the part but
// not the others; wait returns it as an error.
func (g *group) run(name string, failed func(), f func(context.Context) error) {
	g.done.Go(func() { g.serve(name, failed, f) })
}

func (g *group) serve(where string, failed func(), f func(context.Context) error) {
	var err error
	if !g.guard.Run(where, func() { err = f(g.ctx) }) {
		g.note(where, errors.New("stopped by a panic"))
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		g.note(where, err)
		failed()
	}
}

// note records an error of a part for wait.
func (g *group) note(where string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs = append(g.errs, fmt.Errorf("%s: %w", where, err))
}

// wait stops the parts and returns their errors.
func (g *group) wait() error {
	g.cancel()
	g.done.Wait()
	return errors.Join(g.errs...)
}
