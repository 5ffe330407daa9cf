package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// instance is the daemon that the command runs.
type instance struct {
	*server.Server
	initOnly bool
}

// newInstance puts the daemon together from options and configuration.
func newInstance(o *Options, c *bootstrap.Config) (daemon, error) {
	var fixed []tags.Tag
	for _, t := range o.StatsTags {
		fixed = append(fixed, tags.Tag{Name: t.Name, Value: t.Value})
	}
	cfg, err := server.FromBootstrap(c, o.Product, fixed, o.UseFakeSymbolTable)
	if err != nil {
		return nil, err
	}
	if err := setLoggers(&cfg, o, c); err != nil {
		return nil, err
	}
	cfg.AdminAddressPath = o.AdminAddressPath
	cfg.TraceMutexes = o.EnableMutexTracing
	cfg.Version = buildVersion()
	cfg.Options = shownOptions(o)
	cfg.Lifecycle.DrainTime = o.DrainTime
	if o.DrainTime == 0 {
		cfg.Lifecycle.DrainTime = -1
	}
	if o.DrainStrategy == lifecycle.Immediate.String() {
		cfg.Lifecycle.Strategy = lifecycle.Immediate
	}
	if o.ServiceCluster != "" {
		cfg.ServiceCluster, cfg.Node.Cluster = o.ServiceCluster, o.ServiceCluster
	}
	if o.ServiceNode != "" {
		cfg.Node.ID = o.ServiceNode
	}
	if o.ServiceZone != "" {
		cfg.Node.Zone = o.ServiceZone
	}
	for i := range cfg.AccessLogs {
		cfg.AccessLogs[i].FlushInterval = o.FileFlushInterval
		cfg.AccessLogs[i].FlushBytes = int(o.FileFlushMinSizeKB) << 10
	}
	s, err := server.New(cfg)
	if err != nil {
		return nil, err
	}
	for _, w := range append(o.Warnings, c.Warnings...) {
		s.Logger("config").Warn(w)
	}
	for _, f := range c.UnknownFields {
		s.Logger("config").Warn("skipped unknown field: " + f)
	}
	return instance{s, o.Mode == ModeInitOnly}, nil
}

// setLoggers fills in the loggers that the options ask for.
func setLoggers(cfg *server.Config, o *Options, c *bootstrap.Config) error {
	log := logctl.Config{Level: o.LogLevel, Format: o.LogFormat, FineGrain: o.EnableFineGrainLogging, Levels: map[string]logctl.Level{}}
	if c.LogFormat != "" {
		log.Format = c.LogFormat
	}
	for _, l := range o.ComponentLevels {
		log.Levels[l.Name] = l.Level
	}
	if o.LogPath != "" {
		f, err := logfile.Open(o.LogPath, logfile.Options{})
		if err != nil {
			return err
		}
		log.Output, cfg.LogFile = f, f
	}
	var err error
	cfg.Loggers, err = logctl.New(log)
	return err
}

// Run serves, or with --mode init_only initialises and ends.
func (i instance) Run(ctx context.Context) error {
	if !i.initOnly {
		return i.Server.Run(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	i.Lifecycle().Initialize(stop)
	return i.Server.Run(ctx)
}

// ReopenLogs reopens all logs and says what could not be opened.
func (i instance) ReopenLogs() {
	if err := i.Server.ReopenLogs(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// shownOptions is what /server_info shows of the options.
func shownOptions(o *Options) admin.Options {
	out := admin.Options{
		BaseID: uint64(o.BaseID), Concurrency: o.Concurrency, ConfigPath: o.ConfigPath, ConfigYAML: o.ConfigYAML,
		AllowUnknownStaticFields: o.AllowUnknownStaticFields, AdminAddressPath: o.AdminAddressPath,
		LocalAddressIPVersion: o.LocalAddressIPVersion, LogLevel: o.LogLevel.String(), ComponentLogLevel: o.ComponentLogLevel,
		LogFormat: o.LogFormat, LogPath: o.LogPath,
		ServiceCluster: o.ServiceCluster, ServiceNode: o.ServiceNode, ServiceZone: o.ServiceZone,
		FileFlushInterval: o.FileFlushInterval, DrainTime: o.DrainTime, ParentShutdownTime: o.ParentShutdownTime,
		Mode: string(o.Mode), DisableHotRestart: o.DisableHotRestart, EnableMutexTracing: o.EnableMutexTracing,
		RestartEpoch: o.RestartEpoch, CPUSetThreads: o.CpusetThreads,
		RejectUnknownDynamicFields: o.RejectUnknownDynamicFields, LogFormatEscaped: o.LogFormatEscaped,
		DisabledExtensions: o.DisabledExtensions, IgnoreUnknownDynamicFields: o.IgnoreUnknownDynamicFields,
		UseDynamicBaseID: o.UseDynamicBaseID, BaseIDPath: o.BaseIDPath, DrainStrategy: o.DrainStrategy,
		EnableFineGrainLogging: o.EnableFineGrainLogging, SocketPath: o.SocketPath, SocketMode: o.SocketMode,
		EnableCoreDump: o.EnableCoreDump, SkipHotRestartOnNoParent: o.SkipHotRestartOnNoParent,
		SkipHotRestartParentStats: o.SkipHotRestartParentStats, SkipDeprecatedLogs: o.SkipDeprecatedLogs,
		FileFlushMinSize: o.FileFlushMinSizeKB, LogStacktraceSingleEntry: o.LogStacktraceSingleEntry,
	}
	for _, t := range o.StatsTags {
		out.StatsTags = append(out.StatsTags, strings.Join([]string{t.Name, t.Value}, ":"))
	}
	return out
}
