package server

import (
	"net"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/profiler"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// fillSources connects the admin port with the packages that own its data. It keeps
// the sources set by the embedding program.
func (s *Server) fillSources(src *admin.Sources) {
	unlessSet(&src.State, func() string { return s.life.State().String() })
	unlessSet(&src.Info, s.Info)
	unlessSet(&src.HotRestartVersion, s.hot.version)
	unlessSet(&src.Quit, s.Quit)
	unlessSet(&src.Listeners, s.listeners.List)
	unlessSet(&src.Certificates, s.certs.List)
	unlessSet[admin.Clusters](&src.Clusters, s.clusters)
	unlessSet(&src.Unready, s.unready)
	unlessSet(&src.ReopenLogs, s.ReopenLogs)
	unlessSet(&src.FlushTime, s.flusher.Took)
	unlessSet[admin.Health](&src.Health, s.life)
	unlessSet[admin.Drains](&src.Drains, s.listeners)
	unlessSet[admin.Runtime](&src.Runtime, s.runtime)
	unlessSet[admin.Loggers](&src.Loggers, s.loggers)
	unlessSet(&src.StatsStream, s.deltas)
	unlessSet(&src.History, s.history)
	if src.Contention == nil && s.cfg.TraceMutexes {
		runtime.SetMutexProfileFraction(1)
		src.Contention = s.Contention
	}
	if s.statsd != nil {
		unlessSet[admin.Ingest](&src.Ingest, s.statsd)
	}
	if s.hasRules() {
		unlessSet(&src.ReloadMapping, s.reloadRules)
	}
	if len(s.cfg.Sinks)+len(s.cfg.Flush.Sinks) > 0 {
		unlessSet(&src.Sinks, s.flusher.Sinks)
	}
	if path := s.cfg.ProfilePath; path != "" {
		cpu, heap := profiler.New(path)
		if src.CPUProfiler == nil {
			s.cpu, src.CPUProfiler = cpu, cpu
		}
		unlessSet[admin.Profiler](&src.HeapProfiler, heap)
	}
}

// unlessSet sets a source that the embedding program has not set.
func unlessSet[T any](source *T, value T) {
	if reflect.ValueOf(source).Elem().IsZero() {
		*source = value
	}
}

// endProfile writes a running CPU profile at shutdown.
func (s *Server) endProfile() {
	if s.cpu == nil {
		return
	}
	if _, err := s.cpu.Stop(); err != nil {
		s.log.Error("cannot write the CPU profile", "error", err)
	}
}

// Info returns the contents of /server_info except for the state, which Lifecycle
// has.
func (s *Server) Info() admin.ServerInfo {
	line := s.cfg.CommandLine
	if s.hot != nil {
		line.BaseID = uint64(s.hot.baseID.Load())
	}
	return admin.ServerInfo{
		Version:                s.cfg.Version,
		UptimeCurrentEpoch:     time.Since(s.start),
		UptimeAllEpochs:        s.uptime(time.Now()),
		CommandLine:            line,
		DefaultCommandLine:     s.cfg.DefaultCommandLine,
		Node:                   s.cfg.Node,
		HotRestartInitializing: s.hot != nil && s.hot.cfg.RestartEpoch > 0 && !s.life.Initialized(),
		PortableCounters:       !percpu.CanHold(),
	}
}

// statsdListener returns the registry entry of a StatsD listener.
func (s *Server) statsdListener(l report.ListenerInfo) listeners.Listener {
	out := listeners.Listener{
		Name:      l.Name,
		Direction: listeners.Inbound,
		Stop:      func() { s.statsd.StopListener(l.Name) },
	}
	protocol, place, _ := strings.Cut(l.Address, "://")
	if strings.HasPrefix(protocol, "unix") {
		out.Addresses = []config.Address{{Pipe: place}}
		return out
	}
	var addr net.Addr
	if strings.HasPrefix(protocol, "udp") {
		out.Protocol = listeners.UDP
		addr, _ = net.ResolveUDPAddr("udp", place)
	} else {
		addr, _ = net.ResolveTCPAddr("tcp", place)
	}
	out.Addresses = []config.Address{listeners.FromNet(addr)}
	return out
}

// Contention returns how long goroutines of the process have waited for mutexes, and
// false unless Config.TraceMutexes is set. The current wait is approximated by the
// call site with the longest average wait.
func (s *Server) Contention() (admin.Contention, bool) {
	if !s.cfg.TraceMutexes {
		return admin.Contention{}, false
	}
	records := make([]runtime.BlockProfileRecord, 64)
	for {
		n, ok := runtime.MutexProfile(records)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.BlockProfileRecord, n+n/4+16)
	}
	var out admin.Contention
	var longest int64
	for _, r := range records {
		out.Contentions += uint64(r.Count)
		out.LifetimeWaitCycles += uint64(r.Cycles)
		if r.Count > 0 {
			longest = max(longest, r.Cycles/r.Count)
		}
	}
	out.CurrentWaitCycles = uint64(longest)
	return out, true
}
