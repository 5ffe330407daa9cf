package server

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/store"
)

// selfStats are the server's own stats, under "server.".
type selfStats struct {
	live        *store.Gauge
	initialized *store.Histogram

	uptime, concurrency, allocated, heapSize, physical, state,
	parentConnections, totalConnections, version, daysUntilCertExpires, secondsUntilOCSPExpires,
	epoch, generation, recentLookups, fips *store.Gauge
	panics, staticUnknown, dynamicUnknown, wip, bugs, assertions *store.Counter
	collisions                                                   *store.Gauge
}

func (g *selfStats) init(sc *store.Scope, cfg Config) {
	// These gauges cover all processes of a chain of restarts. Each process sets the
	// whole value, so the parent's value must not be added.
	own := func(name string) *store.Gauge { return sc.GaugeWithMode(name, store.NeverImport) }
	summed := func(name string) *store.Gauge { return sc.Gauge(name) }
	product := sc.Store().Product()
	sc.Help(map[string]string{
		"live": "1 if the server is live.", "initialization_time_ms": "Time from the start until the server was live.",
		"uptime": "Seconds since the first process of a chain of hot restarts started.", "concurrency": "Number of workers.",
		"memory_allocated": "Bytes of allocated heap memory.", "memory_heap_size": "Bytes of reserved heap memory.",
		"memory_physical_size": "Bytes of physical memory in use.", "state": "State of the server: 0 live, 1 draining, 2 before and 3 during initialization.",
		"parent_connections": "Open connections of the parent process of a hot restart.", "total_connections": "Open connections of this process and its parent.",
		"version": "Version of the server as a number.", "days_until_first_cert_expiring": "Days until the first certificate expires.",
		"seconds_until_first_ocsp_response_expiring": "Seconds until the first OCSP response expires.",
		"hot_restart_epoch":                          "Restart epoch of this process.", "hot_restart_generation": "Position of this process in a chain of hot restarts, from 1.",
		"stats_recent_lookups": "Recent lookups of stats by name.", "compilation_settings.fips_mode": "1 if the program was built for FIPS.",
		"recovered_panics":      "Panics that ended only the request or component in which they happened.",
		"static_unknown_fields": "Unknown fields of the configuration file.", "dynamic_unknown_fields": "Unknown fields of updates.",
		"wip_protos": "Uses of fields that are work in progress.", product + "_bug_failures": "Failed checks that show a bug.",
		"debug_assertion_failures": "Failed assertions of debug builds.", "stats_series_collisions": "Stats that share a series with another one.",
	})
	*g = selfStats{
		live: own("live"), initialized: sc.Histogram("initialization_time_ms", store.Milliseconds),
		uptime: own("uptime"), concurrency: own("concurrency"), allocated: summed("memory_allocated"),
		heapSize: summed("memory_heap_size"), physical: summed("memory_physical_size"), state: own("state"),
		parentConnections: own("parent_connections"), totalConnections: own("total_connections"),
		version: own("version"), daysUntilCertExpires: own("days_until_first_cert_expiring"),
		secondsUntilOCSPExpires: own("seconds_until_first_ocsp_response_expiring"),
		epoch:                   own("hot_restart_epoch"), generation: own("hot_restart_generation"),
		recentLookups: own("stats_recent_lookups"), fips: own("compilation_settings.fips_mode"),
		panics: sc.Counter("recovered_panics"), staticUnknown: sc.Counter("static_unknown_fields"), dynamicUnknown: sc.Counter("dynamic_unknown_fields"),
		wip: sc.Counter("wip_protos"), bugs: sc.Counter(product + "_bug_failures"),
		assertions: sc.Counter("debug_assertion_failures"),
		collisions: own("stats_series_collisions"),
	}
	g.concurrency.Set(uint64(max(int(cfg.CommandLine.Concurrency), 1)))
	if cfg.CommandLine.Concurrency == 0 {
		g.concurrency.Set(uint64(runtime.GOMAXPROCS(0)))
	}
	g.version.Set(cfg.StatsVersion)
	g.epoch.Set(uint64(cfg.CommandLine.RestartEpoch))
	g.generation.Set(1)
	g.fips.Set(0)
	g.staticUnknown.Add(cfg.UnknownFields)
}

// refresh updates the gauges before a flush.
func (s *Server) refresh(now time.Time) {
	g := &s.gauges
	g.uptime.Set(uint64(s.uptime(now) / time.Second))
	s.hot.refresh(g, s.connections())
	s.refreshMemory()
	g.state.Set(uint64(s.life.State()))
	g.recentLookups.Set(s.store.Symbols().RecentTotal())
	g.collisions.Set(s.store.Collisions())
	s.collision.look(s.store, now, s.log)
	s.refreshLost()
	days, _ := s.certs.DaysUntilFirstExpiring()
	g.daysUntilCertExpires.Set(days)
	if seconds, known := s.certs.SecondsUntilFirstOCSPExpiring(); known {
		g.secondsUntilOCSPExpires.Set(seconds)
	}
	for _, p := range s.ports {
		p.refresh()
	}
}

// refreshMemory updates the gauges of the memory.
func (s *Server) refreshMemory() {
	m := admin.ProcessMemory()
	s.gauges.allocated.Set(m.Allocated)
	s.gauges.heapSize.Set(m.HeapSize)
	s.gauges.physical.Set(m.TotalPhysicalBytes)
}

// notePortable logs that increments are slower than they can be.
func notePortable(log *slog.Logger, perProcessor bool) {
	if !perProcessor {
		log.Info("counters use atomics only: the words for each processor are not verified on this build",
			"go", runtime.Version(), "arch", runtime.GOARCH)
	}
}
