package admin

import (
	"slices"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// builtin returns the rows of the server itself. All are fixed.
func (s *Server) builtin() (*endpoints, error) {
	runtimeValues, levels, health, lookups := s.runtimeSettings(), s.loggerSettings(), s.healthSettings(), s.lookupSettings()
	rows := []Endpoint{
		{Path: "/audit", Group: groupConfig, Help: "show the latest changes, refused ones too, and temporary settings", Serve: s.showAudit, Params: []Param{
			textOrJSON, {Name: "limit", Help: "number of entries to show; 20 if empty"},
		}},
		{Path: "/audit/undo", Group: groupConfig, Help: "restore the values before a change", Mutates: true, Role: RoleOperate, Serial: true, DryRun: true, Serve: s.undo,
			Params: []Param{{Name: "id", Help: "number of the change in the audit log"}}},
		{Path: "/bundle", Group: groupDebug, Help: "download a support archive, without secrets", Mutates: true, Serve: s.showBundle, Params: []Param{
			{Name: "cpu", Help: "length of a CPU profile, such as 5s, at most 30s; without one if empty"},
		}},
		{Path: "/certs", Group: groupClusters, Help: "show loaded certificates", Serve: s.certs},
		{Path: "/contention", Group: groupDebug, Help: "show mutex contention (if traced)", Serve: s.contention},
		{Path: "/cpuprofiler", Group: groupDebug, Help: "start or stop the CPU profiler", Mutates: true, Serve: s.cpuProfiler, Params: []Param{enable}, OpenParams: true},
		{Path: "/drain_listeners", Group: groupState, Help: "stop listeners", Mutates: true, Destructive: true, DryRun: true, Role: RoleOperate, Serve: s.drainListeners, Params: []Param{
			{Name: "graceful", Help: "wait for the drain time first", Kind: ParamFlag},
			{Name: "skip_exit", Help: "with graceful: keep listeners open after the drain time", Kind: ParamFlag},
			{Name: "inboundonly", Help: "only inbound listeners", Kind: ParamFlag},
		}},
		{Path: "/healthcheck/fail", Group: groupState, Help: "make inbound health checks fail", Mutates: true, Role: RoleOperate, DryRun: true, Settings: health, Serve: s.healthcheckFail},
		{Path: "/healthcheck/ok", Group: groupState, Help: "let inbound health checks pass again", Mutates: true, Role: RoleOperate, DryRun: true, Settings: health, Serve: s.healthcheckOK},
		{Path: "/favicon.ico", Help: "icon of the pages", Hidden: true, Serve: s.favicon},
		{Path: "/heap_dump", Group: groupDebug, Help: "download a heap profile", Role: RoleAdmin, Heavy: true, Serve: s.heapDump},
		{Path: "/heapprofiler", Group: groupDebug, Help: "start or stop the heap profiler", Mutates: true, Serve: s.heapProfiler, Params: []Param{enable}, OpenParams: true},
		{Path: "/help", Group: groupDebug, Help: "list all commands", Serve: s.help},
		{Path: "/hot_restart_version", Group: groupState, Help: "show the version of the hot restart protocol", Serve: s.hotRestartVersion},
		{Path: "/init_dump", Group: groupState, Help: "show pending init targets", Serve: s.initDump, Params: []Param{
			{Name: "mask", Help: "components to show, such as listener or cluster: component,component; all if empty"},
		}},
		{Path: "/listeners", Group: groupClusters, Help: "show listeners and their addresses", Serve: s.showListeners, Params: []Param{textOrJSON}},
		{Path: "/live", Group: groupState, Help: "report whether the process is alive", metrics: true, critical: true, neverDisabled: true, Serve: s.live},
		{Path: "/logging", Group: groupLogging, Help: "show and change log levels", Mutates: true, Role: RoleOperate, DryRun: true, Settings: levels, OpenParams: true, Serve: s.logging, Params: []Param{
			{Name: "paths", Help: "several changes: name:level,name:level"},
			{Name: "level", Help: "level of all loggers", Kind: ParamChoice, Choices: append([]string{""}, logctl.Levels()...)},
		}},
		{Path: "/memory", Group: groupDebug, Help: "show memory use in bytes", Serve: s.memory},
		{Path: "/quitquitquit", Group: groupState, Help: "shut the server down", Mutates: true, Destructive: true, Serve: s.quit},
		{Path: "/ready", Group: groupState, Help: "show the state; 200 if the server is live, else 503", metrics: true, critical: true, neverDisabled: true, Serve: s.ready},
		{Path: "/reopen_logs", Group: groupLogging, Help: "reopen all log files", Mutates: true, Role: RoleOperate, Serve: s.reopenLogs},
		{Path: "/reset_counters", Group: groupStats, Help: "set all counters to zero", Mutates: true, Role: RoleOperate, Serial: true, DryRun: true, Serve: s.resetCounters,
			Params: []Param{{Name: "filter", Help: "regular expression; reset only counters whose name it matches"}}},
		{Path: "/runtime", Group: groupConfig, Help: "show runtime values", Serve: s.runtime, also: []string{"format"}},
		{Path: "/runtime_modify", Group: groupConfig, Help: "change runtime values: key=value&key=value; an empty value removes an override",
			Mutates: true, Role: RoleOperate, DryRun: true, Settings: runtimeValues, Serve: s.runtimeModify, OpenParams: true, pair: true},
		{Path: "/server_info", Group: groupState, Help: "show version, state, options and uptime", critical: true, Serve: s.serverInfo},
		{Path: "/stats", Group: groupStats, Help: "show stats", Heavy: true, CPUBound: true, metrics: true, neverDisabled: true, Serve: s.stats, Params: s.statsParams(true), also: []string{"prom_protobuf"}},
		{Path: "/stats/metrics", Group: groupStats, Aliases: []string{"/stats/prometheus", "/metrics"}, Help: "show stats in the text exposition format",
			Heavy: true, CPUBound: true, metrics: true, neverDisabled: true, Serve: s.statsMetrics, Params: s.statsParams(false), also: []string{"prom_protobuf", "format", "type"}},
		{Path: "/stats/recentlookups", Group: groupStats, Help: "show recently looked-up stat names", Serve: s.lookups},
		{Path: "/stats/recentlookups/clear", Group: groupStats, Help: "clear the recorded lookups and their count", Mutates: true, Role: RoleOperate, Serial: true, DryRun: true, Serve: s.lookupsClear},
		{Path: "/stats/recentlookups/disable", Group: groupStats, Help: "stop recording lookups", Mutates: true, Role: RoleOperate, DryRun: true, Settings: lookups, Serve: s.lookupsDisable},
		{Path: "/stats/recentlookups/enable", Group: groupStats, Help: "start recording lookups", Mutates: true, Role: RoleOperate, DryRun: true, Settings: lookups, Serve: s.lookupsEnable},
	}
	if s.product == "envoy" {
		for i := range rows {
			if rows[i].Path == "/stats/metrics" {
				rows[i].Path, rows[i].Aliases = "/stats/prometheus", []string{"/stats/metrics", "/metrics"}
			}
		}
	}
	home := &Endpoint{Path: "/", Help: "home page", Serve: s.showHome, Fixed: true}
	table := newEndpoints([]*Endpoint{home})
	for _, row := range slices.Concat(rows, s.liveRows(), s.ingestRows(), s.sinkRows(), s.configRows(), s.debugRows()) {
		row.Fixed = true
		var err error
		if table, err = table.with(row); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// Parameters of several endpoints.
var (
	textOrJSON = Param{Name: "format", Help: "output format", Kind: ParamChoice, Choices: []string{"text", "json"}}
	enable     = Param{Name: "enable", Help: "start or stop", Kind: ParamChoice, Choices: []string{"y", "n"}}
)
