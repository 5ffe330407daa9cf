package admin

import (
	"slices"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// builtin returns the rows of the server itself. All are fixed.
func (s *Server) builtin() (*endpoints, error) {
	rows := []Endpoint{
		{Path: "/certs", Help: "show loaded certificates", Serve: s.certs},
		{Path: "/contention", Help: "show mutex contention (if traced)", Serve: s.contention},
		{Path: "/cpuprofiler", Help: "switch the CPU profiler", Mutates: true, Serve: s.cpuProfiler, Params: []Param{enable}},
		{Path: "/drain_listeners", Help: "stop listeners", Mutates: true, Destructive: true, Role: RoleOperate, Serve: s.drainListeners, Params: []Param{
			{Name: "graceful", Help: "wait for the drain time first", Kind: ParamFlag},
			{Name: "skip_exit", Help: "with graceful: do not stop at the end of the drain time", Kind: ParamFlag},
			{Name: "inboundonly", Help: "only listeners of inbound traffic", Kind: ParamFlag},
		}},
		{Path: "/healthcheck/fail", Help: "make inbound health checks fail", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.healthcheckFail},
		{Path: "/healthcheck/ok", Help: "let inbound health checks pass again", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.healthcheckOK},
		{Path: "/heap_dump", Help: "download a heap profile", Role: RoleAdmin, Heavy: true, Serve: s.heapDump},
		{Path: "/heapprofiler", Help: "switch the heap profiler", Mutates: true, Serve: s.heapProfiler, Params: []Param{enable}},
		{Path: "/help", Help: "list all commands", Serve: s.help},
		{Path: "/hot_restart_version", Help: "show the version of the hot restart protocol", Serve: s.hotRestartVersion},
		{Path: "/init_dump", Help: "show what the server still waits for", Serve: s.initDump, Params: []Param{
			{Name: "mask", Help: "components to show, such as listener or cluster: component,component; all if empty"},
		}},
		{Path: "/listeners", Help: "show listeners and their addresses", Serve: s.showListeners, Params: []Param{
			{Name: "format", Help: "output format", Kind: ParamChoice, Choices: []string{"text", "json"}},
		}},
		{Path: "/live", Help: "answer as long as the process works", metrics: true, critical: true, neverDisabled: true, Serve: s.live},
		{Path: "/logging", Help: "show and change log levels", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.logging, Params: []Param{
			{Name: "paths", Help: "several changes: name:level,name:level"},
			{Name: "level", Help: "level of all loggers", Kind: ParamChoice, Choices: append([]string{""}, logctl.Levels()...)},
		}},
		{Path: "/memory", Help: "show memory use in bytes", Serve: s.memory},
		{Path: "/quitquitquit", Help: "end the server in good order", Mutates: true, Destructive: true, Serve: s.quit},
		{Path: "/ready", Help: "show the state; 200 if the server is live, else 503", metrics: true, critical: true, neverDisabled: true, Serve: s.ready},
		{Path: "/reopen_logs", Help: "open all log files anew", Mutates: true, Role: RoleOperate, Serve: s.reopenLogs},
		{Path: "/reset_counters", Help: "set all counters to zero", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.resetCounters},
		{Path: "/runtime", Help: "show runtime values", Serve: s.runtime},
		{Path: "/runtime_modify", Help: "change runtime values: key=value&key=value; an empty value takes a change back",
			Mutates: true, Role: RoleOperate, Serial: true, Serve: s.runtimeModify},
		{Path: "/server_info", Help: "show version, state, options and uptime", critical: true, Serve: s.serverInfo},
		{Path: "/stats", Help: "show stats", Heavy: true, CPUBound: true, metrics: true, neverDisabled: true, Serve: s.stats, Params: s.statsParams(true)},
		{Path: "/stats/metrics", Aliases: []string{"/stats/prometheus"}, Help: "show stats in the text exposition format",
			Heavy: true, CPUBound: true, metrics: true, neverDisabled: true, Serve: s.statsMetrics, Params: s.statsParams(false)},
		{Path: "/stats/recentlookups", Help: "show names of stats that were looked up lately", Serve: s.lookups},
		{Path: "/stats/recentlookups/clear", Help: "forget the lookups and their number", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.lookupsClear},
		{Path: "/stats/recentlookups/disable", Help: "stop noting lookups", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.lookupsDisable},
		{Path: "/stats/recentlookups/enable", Help: "start noting lookups", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.lookupsEnable},
	}
	if s.product == "envoy" {
		for i := range rows {
			if rows[i].Path == "/stats/metrics" {
				rows[i].Path, rows[i].Aliases = "/stats/prometheus", []string{"/stats/metrics"}
			}
		}
	}
	home := &Endpoint{Path: "/", Help: "home page", Serve: s.showHome, Fixed: true}
	table := newEndpoints([]*Endpoint{home})
	for _, row := range slices.Concat(rows, s.ingestRows(), s.configRows(), s.debugRows()) {
		row.Fixed = true
		var err error
		if table, err = table.with(row); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// enable is the parameter of the profilers.
var enable = Param{Name: "enable", Help: "switch on or off", Kind: ParamChoice, Choices: []string{"y", "n"}}
