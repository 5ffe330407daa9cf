package admin

import (
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

func (s *Server) hotRestart() string {
	if s.src.HotRestartVersion == nil {
		return "disabled"
	}
	return s.src.HotRestartVersion()
}

func (s *Server) hotRestartVersion(w *Response, _ *Request) error { return w.text(200, s.hotRestart()) }

func (s *Server) contention(w *Response, _ *Request) error {
	var c Contention
	traced := false
	if s.src.Contention != nil {
		c, traced = s.src.Contention()
	}
	if !traced {
		return w.text(200, "Mutex contention tracing is not enabled. To enable, run "+capital(s.product)+" with flag --enable-mutex-tracing.")
	}
	var j jsontext.Writer
	j.BeginObject()
	j.Key("num_contentions").Uint64(c.Contentions)
	j.Key("current_wait_cycles").Uint64(c.CurrentWaitCycles)
	j.Key("lifetime_wait_cycles").Uint64(c.LifetimeWaitCycles)
	j.EndObject()
	return w.json(j.Bytes())
}

func (s *Server) memory(w *Response, _ *Request) error {
	read := s.src.Memory
	if read == nil {
		read = ProcessMemory
	}
	m := read()
	var j jsontext.Writer
	j.BeginObject()
	j.Key("allocated").Uint64(m.Allocated)
	j.Key("heap_size").Uint64(m.HeapSize)
	j.Key("pageheap_unmapped").Uint64(m.PageheapUnmapped)
	j.Key("pageheap_free").Uint64(m.PageheapFree)
	j.Key("total_thread_cache").Uint64(m.TotalThreadCache)
	j.Key("total_physical_bytes").Uint64(m.TotalPhysicalBytes)
	j.EndObject()
	return w.json(j.Bytes())
}

func (s *Server) serverInfo(w *Response, r *Request) error {
	var info ServerInfo
	if s.src.Info != nil {
		info = s.src.Info()
	}
	var j jsontext.Writer
	j.BeginObject()
	j.Key("version").String(info.Version)
	j.Key("state").String(s.state())
	j.Key("uptime_current_epoch").Duration(info.UptimeCurrentEpoch.Truncate(1e9))
	j.Key("uptime_all_epochs").Duration(info.UptimeAllEpochs.Truncate(1e9))
	j.Key("hot_restart_version").String(s.hotRestart())
	j.Key("command_line_options")
	info.CommandLine.write(&j)
	if info.Node != nil {
		j.Key("node")
		info.Node.write(&j, s.redactsUntyped(r))
	}
	j.Key("hot_restart_initializing").Bool(info.HotRestartInitializing)
	if info.PortableCounters {
		j.Key("portable_counters").Bool(true)
	}
	j.EndObject()
	return w.json(j.Bytes())
}

func (o *CommandLine) write(j *jsontext.Writer) {
	j.BeginObject()
	j.Key("base_id").Uint64(o.BaseID)
	j.Key("concurrency").Uint32(o.Concurrency)
	j.Key("config_path").String(o.ConfigPath)
	j.Key("config_yaml").String(redact.Text(o.ConfigYAML))
	j.Key("allow_unknown_static_fields").Bool(o.AllowUnknownStaticFields)
	j.Key("admin_address_path").String(o.AdminAddressPath)
	j.Key("local_address_ip_version").String(orDefault(o.LocalAddressIPVersion, "v4"))
	j.Key("log_level").String(o.LogLevel)
	j.Key("component_log_level").String(o.ComponentLogLevel)
	j.Key("log_format").String(o.LogFormat)
	j.Key("log_path").String(o.LogPath)
	j.Key("hot_restart_version").Bool(o.HotRestartVersion)
	j.Key("service_cluster").String(o.ServiceCluster)
	j.Key("service_node").String(o.ServiceNode)
	j.Key("service_zone").String(o.ServiceZone)
	j.Key("file_flush_interval").Duration(o.FileFlushInterval)
	j.Key("drain_time").Duration(o.DrainTime)
	j.Key("parent_shutdown_time").Duration(o.ParentShutdownTime)
	j.Key("mode").String(orDefault(o.Mode, "Serve"))
	j.Key("disable_hot_restart").Bool(o.DisableHotRestart)
	j.Key("enable_mutex_tracing").Bool(o.EnableMutexTracing)
	j.Key("restart_epoch").Uint32(o.RestartEpoch)
	j.Key("cpuset_threads").Bool(o.CPUSetThreads)
	j.Key("reject_unknown_dynamic_fields").Bool(o.RejectUnknownDynamicFields)
	j.Key("log_format_escaped").Bool(o.LogFormatEscaped)
	j.Key("disabled_extensions").Strings(o.DisabledExtensions)
	j.Key("ignore_unknown_dynamic_fields").Bool(o.IgnoreUnknownDynamicFields)
	j.Key("use_dynamic_base_id").Bool(o.UseDynamicBaseID)
	j.Key("base_id_path").String(o.BaseIDPath)
	j.Key("drain_strategy").String(orDefault(o.DrainStrategy, "Gradual"))
	j.Key("enable_fine_grain_logging").Bool(o.EnableFineGrainLogging)
	j.Key("socket_path").String(o.SocketPath)
	j.Key("socket_mode").Uint32(o.SocketMode)
	j.Key("enable_core_dump").Bool(o.EnableCoreDump)
	j.Key("stats_tag").Strings(o.StatsTags)
	j.Key("skip_hot_restart_on_no_parent").Bool(o.SkipHotRestartOnNoParent)
	j.Key("skip_hot_restart_parent_stats").Bool(o.SkipHotRestartParentStats)
	j.Key("skip_deprecated_logs").Bool(o.SkipDeprecatedLogs)
	j.Key("file_flush_min_size").Uint32(o.FileFlushMinSize)
	j.Key("log_stacktrace_single_entry").Bool(o.LogStacktraceSingleEntry)
	j.EndObject()
}

func orDefault(s, byDefault string) string {
	if s == "" {
		return byDefault
	}
	return s
}

func (n *Node) write(j *jsontext.Writer, redacted bool) {
	j.BeginObject()
	j.Key("id").String(n.ID)
	j.Key("cluster").String(n.Cluster)
	j.Key("metadata")
	if redacted {
		j.Value(redact.Fields(n.Metadata))
	} else {
		j.Value(redact.Plain(n.Metadata))
	}
	if n.Region != "" || n.Zone != "" || n.SubZone != "" {
		j.Key("locality").BeginObject()
		j.Key("region").String(n.Region)
		j.Key("zone").String(n.Zone)
		j.Key("sub_zone").String(n.SubZone)
		j.EndObject()
	}
	j.Key("user_agent_name").String(n.UserAgentName)
	j.Key("user_agent_build_version").BeginObject()
	j.Key("version").BeginObject()
	j.Key("major_number").Uint32(n.MajorNumber)
	j.Key("minor_number").Uint32(n.MinorNumber)
	j.Key("patch").Uint32(n.Fix)
	j.EndObject()
	j.EndObject()
	j.Key("extensions").BeginList()
	for _, name := range n.Extensions {
		j.BeginObject()
		j.Key("name").String(name)
		j.Key("category").String("")
		j.Key("type_descriptor").String("")
		j.Key("disabled").Bool(false)
		j.Key("type_urls").Strings(nil)
		j.EndObject()
	}
	j.EndList()
	j.Key("client_features").Strings(n.ClientFeatures)
	j.Key("listening_addresses").Strings(n.ListeningAddresses)
	j.Key("dynamic_parameters").BeginObject()
	j.EndObject()
	j.EndObject()
}
