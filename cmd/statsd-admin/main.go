// Command statsd-admin runs the stats engine, its StatsD input and the
// administration interface.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/dlclark/regexp2/v2"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

// version and revision are set by the linker.
var (
	version  = "unknown"
	revision = "unknown"
)

func main() {
	// The limit on one match of a backtracking filter is as exact as this clock,
	// which the engine has for the whole process.
	regexp2.SetTimeoutCheckPeriod(10 * time.Millisecond)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, hardware: runtime.NumCPU()}
	p.newDaemon = func(o *Options, c *bootstrap.Config) (daemon, error) {
		sockets, err := passedSockets(os.Getenv, os.Getpid(), os.NewFile)
		if err != nil {
			return nil, err
		}
		limitMemory(os.Getenv, os.ReadFile)
		paceCollector(os.Getenv)
		if w := prepare(o); w != "" {
			o.warn(w)
		}
		manager, err := newServiceManager(os.Getenv, os.Getpid())
		if err != nil {
			o.warn(err.Error())
		}
		d, err := newInstance(o, c, sockets)
		if err != nil || manager == nil {
			return d, err
		}
		return manager.supervise(d.(instance)), nil
	}
	if p.subcommand(os.Args[1:]) == nil { // signals end subcommands at once
		p.signals, p.notifyStop = notify()
	}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// notify returns the signals of this process that [serve] handles, and a function after
// which they include those to stop. Until then these end the process at once: reading
// a configuration from a pipe can take forever.
func notify() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, reopenSignal, upgradeSignal, syscall.SIGHUP)
	return signals, func() { signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT) }
}

// program is the command with everything it touches outside.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	hardware       int // CPUs of this machine
	signals        <-chan os.Signal
	notifyStop     func() // makes signals include those to stop; may be nil
	// newDaemon makes the server.
	newDaemon func(*Options, *bootstrap.Config) (daemon, error)
}

// run does what args ask for and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	return p.exitStatus(p.do(ctx, args))
}

func (p *program) do(ctx context.Context, args []string) error {
	if c := p.subcommand(args); c != nil {
		return p.runCommand(ctx, c, args[1:])
	}
	o, request, err := parseOptions(args, p.hardware)
	if err != nil {
		return err
	}
	switch request {
	case showHelp:
		return p.print(p.usage())
	case showVersion:
		return p.print("statsd-admin  version: " + buildVersion() + "\n")
	case showHotRestartVersion:
		fmt.Fprintln(p.stderr, hotRestartVersion(o))
		return nil
	}
	if err := o.Exporter.check(); err != nil {
		return err
	}
	cfg, err := loadConfig(o)
	if err != nil {
		var invalid *bootstrap.Errors
		if errors.As(err, &invalid) && o.Mode == ModeValidate {
			p.warnings(o.Warnings, invalid.Warnings)
		}
		return err
	}
	for _, w := range missing(cfg) {
		o.warn(w)
	}
	if o.Mode == ModeValidate {
		p.warnings(o.Warnings, cfg.Warnings)
		if err := check(o, cfg, p.stderr); err != nil {
			return err
		}
		return p.print("configuration '" + configName(o) + "' OK\n")
	}
	if p.notifyStop != nil {
		p.notifyStop()
	}
	d, err := p.newDaemon(o, cfg)
	if err != nil {
		return err
	}
	return serve(ctx, d, p.signals)
}

// print writes the output of a command that has no other.
func (p *program) print(text string) error {
	_, err := io.WriteString(p.stdout, text)
	return prefixed(err)
}

func (p *program) warnings(lists ...[]string) {
	for _, line := range slices.Concat(lists...) {
		fmt.Fprintln(p.stderr, "warning: "+line)
	}
}

// hotRestartVersion is what --hot-restart-version prints.
func hotRestartVersion(o *Options) string {
	if o.DisableHotRestart {
		return "disabled"
	}
	return server.HotRestartVersion()
}

// loadConfig reads the configuration that the options name.
func loadConfig(o *Options) (*bootstrap.Config, error) {
	cfg, err := bootstrap.Load(
		bootstrap.Source{Path: o.ConfigPath, YAML: o.ConfigYAML},
		bootstrap.Options{Product: o.Product, AllowUnknownFields: o.AllowUnknownStaticFields, CheckFiles: o.Mode == ModeValidate},
	)
	if err != nil {
		return nil, err
	}
	if cfg.LogFormat != "" && o.LogFormatSet {
		//lint:ignore ST1005 the text is part of the interface
		return nil, errors.New("error: Only one of ApplicationLogConfig.log_format or CLI option --log-format can be specified.")
	}
	return cfg, nil
}

// missing returns warnings about absent sections without which the daemon does
// little: a file replaces the defaults as a whole.
func missing(c *bootstrap.Config) []string {
	var out []string
	if c.Admin.Address.IsZero() {
		out = append(out, "no administration interface: admin.address is not set")
	}
	if !c.StatsD.Enabled && c.StaticResources.Node == nil && c.DynamicResources.Node == nil {
		out = append(out, "no StatsD listener: the section statsd is missing")
	}
	return out
}

// configName is what messages call the configuration.
func configName(o *Options) string {
	switch {
	case o.Exporter != nil:
		return cmp.Or(o.Exporter.MappingConfig, "command line")
	case o.ConfigPath != "":
		return o.ConfigPath
	case o.ConfigYAML != "":
		return "--config-yaml"
	}
	return "embedded default"
}

// buildVersion returns revision/version/tree state/build type/TLS library.
func buildVersion() string {
	rev, tree := source()
	return fmt.Sprintf("%s/%s/%s/RELEASE/%s", rev, version, tree, runtime.Version())
}

// source returns the commit and the tree state of the build.
func source() (rev, tree string) {
	var settings []debug.BuildSetting
	if info, ok := debug.ReadBuildInfo(); ok {
		settings = info.Settings
	}
	return sourceOf(settings, revision)
}

// sourceOf returns the commit and the tree state in the settings of a build. A revision
// that the linker has set stays.
func sourceOf(settings []debug.BuildSetting, revision string) (rev, tree string) {
	rev, tree = revision, "Unknown"
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && rev == "unknown":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			tree = "Modified"
		case s.Key == "vcs.modified":
			tree = "Clean"
		}
	}
	return rev, tree
}
