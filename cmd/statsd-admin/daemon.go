package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// instance is the daemon that the command runs.
type instance struct {
	*server.Server
	initOnly bool
	upgrader *upgrader
}

// newInstance assembles the daemon from options, configuration and passed sockets.
func newInstance(o *Options, c *bootstrap.Config, sockets []passedSocket) (daemon, error) {
	cfg, err := serverConfig(o, c)
	if err != nil {
		return nil, err
	}
	if cfg.Loggers, err = newLoggers(o, c); err != nil {
		return nil, err
	}
	cfg.LogFile = cfg.Loggers
	if err := activate(&cfg, c, sockets); err != nil {
		return nil, err
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
	return instance{s, o.Mode == ModeInitOnly, newUpgrader(o, s.Logger("main"))}, nil
}

// serverConfig returns the configuration of the server, without loggers.
func serverConfig(o *Options, c *bootstrap.Config) (server.Config, error) {
	defaults, err := defaultOptions(o)
	if err != nil {
		return server.Config{}, err
	}
	boot := bootstrap.Startup{
		FakeSymbols: o.UseFakeSymbolTable,
		CommandLine: shownOptions(o), DefaultCommandLine: defaults.CommandLine, Version: buildVersion(), Environment: os.LookupEnv,
	}
	for _, tag := range o.StatsTags {
		name, value, _ := strings.Cut(tag, ":")
		boot.Tags = append(boot.Tags, tags.Tag{Name: name, Value: value})
	}
	cfg, err := c.Server(boot)
	cfg.ProcessStats = true
	if cfg.StatsD != nil {
		cfg.StatsD.ProcessMemory = environmentMemory(os.Getenv)
		cfg.StatsD.Version = version
		cfg.StatsD.Revision, _ = source()
	}
	if o.Exporter != nil {
		cfg.Extend = append(cfg.Extend, o.Exporter.serve)
	}
	return cfg, err
}

// check returns the errors of a start that can be found without changing anything.
// Warnings go to stderr.
func check(o *Options, c *bootstrap.Config, stderr io.Writer) error {
	cfg, err := serverConfig(o, c)
	if err != nil {
		return err
	}
	if o.LogPath != "" {
		if err := logfile.Check(o.LogPath); err != nil {
			return fmt.Errorf("error: log path %q: %w", o.LogPath, err)
		}
	}
	toStderr := *o
	toStderr.LogPath = ""
	if _, err := newLoggers(&toStderr, c); err != nil {
		return err
	}
	if cfg.Loggers, err = logctl.New(logctl.Config{Level: logctl.Warning, Format: "warning: %v", Output: stderr}); err != nil {
		return err
	}
	return server.Check(cfg)
}

// newLoggers returns the loggers that the options and the file ask for.
func newLoggers(o *Options, c *bootstrap.Config) (*logctl.Registry, error) {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return nil, err
	}
	log := logctl.Config{
		Level: level, Levels: o.ComponentLevels, FineGrain: o.EnableFineGrainLogging,
		Format: o.LogFormat, Path: o.LogPath,
	}
	if c.LogFormat != "" {
		log.Format = c.LogFormat
	}
	return logctl.New(log)
}

// Run serves, or with --mode init_only initializes and ends.
func (i instance) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-i.Initialized():
			if i.initOnly {
				stop()
				return
			}
			debug.FreeOSMemory()
			dropStartPages()
		case <-ctx.Done():
		}
	}()
	return i.Server.Run(ctx)
}

// ReopenLogs reopens all logs and prints errors to standard error.
func (i instance) ReopenLogs() {
	if err := i.Server.ReopenLogs(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Upgrade implements [daemon].
func (i instance) Upgrade() { i.upgrader.upgrade() }

// defaultOptions returns the options of a start without arguments, on this machine and with
// the product name of o, which is part of some.
func defaultOptions(o *Options) (*Options, error) {
	hardware := 1
	if !o.ConcurrencySet {
		hardware = int(o.Concurrency)
	}
	defaults, _, err := parseOptions([]string{"--product-name", o.Product}, hardware)
	return defaults, err
}

// shownOptions returns the options for /server_info.
func shownOptions(o *Options) server.CommandLine {
	line := o.CommandLine
	line.ConfigYAML = bootstrap.Shown(o.ConfigYAML)
	return line
}
