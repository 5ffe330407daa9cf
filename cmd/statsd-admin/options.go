package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/statsd-admin/statsd-admin/internal/spelling"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Options are the effective command-line options: parsed, checked, with
// defaults filled in.
type Options struct {
	// CommandLine are the options that /server_info shows, ConfigYAML with its secrets.
	server.CommandLine

	Product            string
	ConcurrencySet     bool
	ComponentLevels    map[string]logctl.Level // of ComponentLogLevel
	LogFormatSet       bool
	UseFakeSymbolTable bool

	// Exporter is set by flags of statsd_exporter, in place of its own flags.
	Exporter *Exporter

	// Args are the arguments that were parsed, without the program's name.
	Args []string
	// Warnings are lines to log once logging works.
	Warnings []string
}

// What the command does, as the server information shows it.
const (
	ModeServe    = "Serve"
	ModeValidate = "Validate"
	ModeInitOnly = "InitOnly"
)

// request is the action that the command line asks for.
type request int

const (
	runServer request = iota
	showHelp
	showVersion
	showHotRestartVersion
)

// uint32Value is a flag value in [0, 2^32).
type uint32Value uint32

func (v *uint32Value) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not an integer in [0, %d]", s, uint32(math.MaxUint32))
	}
	*v = uint32Value(n)
	return nil
}
func (v *uint32Value) String() string { return strconv.FormatUint(uint64(*v), 10) }
func (v *uint32Value) Type() string   { return "uint32" }

// listValue is a flag that may be given several times. Commas do not separate values.
type listValue []string

func (v *listValue) Set(s string) error { *v = append(*v, s); return nil }
func (v *listValue) String() string     { return strings.Join(*v, " ") }
func (v *listValue) Type() string       { return "text" }

// rawOptions are flags that are checked after parsing.
type rawOptions struct {
	mode, logLevel, drainStrategy, socketMode, disableExtensions string
	fileFlushMs, drainSeconds, parentShutdownSeconds             uint32Value
	maxStats, maxNameLength, fakeSymbolTable                     uint32Value
	concurrency, baseID, epoch, flushKB                          uint32Value
	cpuset, allowUnknown                                         bool
	help, version, hotRestartVersion                             bool
	statsTags                                                    listValue
}

// flagSet defines every flag once; parsing and --help both read it.
func flagSet(o *Options, r *rawOptions) *pflag.FlagSet {
	fs := newFlagSet("")

	fs.StringVarP(&o.ConfigPath, "config-path", "c", "", "configuration `file`: .yaml, .yml, .pb, .pb_text, or else JSON; without it and --config-yaml an embedded default is used")
	fs.StringVar(&o.ConfigYAML, "config-yaml", "", "YAML or JSON `text` merged over the file")
	fs.StringVar(&r.mode, "mode", "serve", "what to do: serve; validate: check the configuration and exit; init_only: initialize and exit")
	fs.StringVar(&o.Product, "product-name", tags.DefaultProduct, "`name` used in metric prefixes, tags, headers and paths; envoy makes a drop-in for tools made for it")
	fs.StringVar(&o.AdminAddressPath, "admin-address-path", "", "`file` to which the bound administration address is written; if that fails, the server logs a critical message and goes on")
	fs.StringVar(&o.LocalAddressIPVersion, "local-address-ip-version", "v4", "IP version shown by the server, v4 or v6; it has no other effect")
	r.baseID = uint32Value(o.BaseID)
	fs.Var(&r.baseID, "base-id", "hot restart `number`: servers with different ones can run side by side")
	fs.BoolVar(&o.UseDynamicBaseID, "use-dynamic-base-id", false, "pick a free base id")
	fs.StringVar(&o.BaseIDPath, "base-id-path", "", "`file` to which the base id is written")
	r.concurrency = uint32Value(o.Concurrency)
	fs.Var(&r.concurrency, "concurrency", "`number` of workers; 0 means 1")
	fs.BoolVar(&r.cpuset, "cpuset-threads", false, "as many workers as the CPU affinity allows")
	fs.StringVarP(&r.logLevel, "log-level", "l", "info", "`level` of all loggers: [trace][debug][info][warning|warn][error][critical][off]")
	fs.StringVar(&o.ComponentLogLevel, "component-log-level", "", "levels of single loggers: `name:level,name:level`")
	fs.StringVar(&o.LogPath, "log-path", "", "log `file`; default: standard error. Reopened on SIGUSR1")
	fs.StringVar(&o.LogFormat, "log-format", logctl.DefaultFormat, "`pattern` of log lines")
	fs.BoolVar(&o.LogFormatEscaped, "log-format-escaped", false, "escape control sequences in log lines; always on")
	fs.BoolVar(&o.LogStacktraceSingleEntry, "log-stacktrace-single-entry", false, "write a stack trace as one log line; always on")
	fs.BoolVar(&o.EnableFineGrainLogging, "enable-fine-grain-logging", false, "name loggers by source file")
	fs.Var(&r.epoch, "restart-epoch", "hot restart `number`: 0 for the first server")
	fs.BoolVar(&r.hotRestartVersion, "hot-restart-version", false, "print the hot restart version and exit")
	fs.StringVar(&o.ServiceCluster, "service-cluster", "", "overrides node.cluster")
	fs.StringVar(&o.ServiceNode, "service-node", "", "overrides node.id")
	fs.StringVar(&o.ServiceZone, "service-zone", "", "overrides node.locality.zone")
	r.fileFlushMs, r.flushKB = 10000, 64
	fs.Var(&r.fileFlushMs, "file-flush-interval-msec", "`milliseconds` after which access logs are written")
	fs.Var(&r.flushKB, "file-flush-min-size-kb", "buffered `kilobytes` at which access logs are written")
	r.drainSeconds, r.parentShutdownSeconds = 600, 900
	fs.Var(&r.drainSeconds, "drain-time-s", "`seconds` of a graceful drain")
	fs.StringVar(&r.drainStrategy, "drain-strategy", "gradual", "when connections are closed during a drain: gradual or immediate")
	fs.Var(&r.parentShutdownSeconds, "parent-shutdown-time-s", "`seconds` after which the parent process is ended in a hot restart")
	fs.BoolVar(&o.DisableHotRestart, "disable-hot-restart", false, "no hot restart")
	fs.BoolVar(&o.EnableMutexTracing, "enable-mutex-tracing", false, "trace waits for locks, shown by /contention")
	fs.BoolVar(&r.allowUnknown, "allow-unknown-fields", false, "deprecated: --allow-unknown-static-fields")
	fs.BoolVar(&o.AllowUnknownStaticFields, "allow-unknown-static-fields", false, "skip and count unknown fields of the configuration")
	fs.BoolVar(&o.RejectUnknownDynamicFields, "reject-unknown-dynamic-fields", false, "reject updates with unknown fields")
	fs.BoolVar(&o.IgnoreUnknownDynamicFields, "ignore-unknown-dynamic-fields", false, "neither log nor count unknown fields of updates")
	fs.StringVar(&r.disableExtensions, "disable-extensions", "", "`list` of category/name, separated by commas")
	fs.StringVar(&o.SocketPath, "socket-path", "", "`path` of the hot restart sockets; @ in front: abstract; default @{product}_domain_socket")
	fs.StringVar(&r.socketMode, "socket-mode", "600", "octal `mode` of the hot restart sockets")
	fs.BoolVar(&o.EnableCoreDump, "enable-core-dump", false, "allow core dumps")
	fs.Var(&r.statsTags, "stats-tag", "`name:value` that every stat gets; repeatable")
	fs.BoolVar(&o.SkipHotRestartOnNoParent, "skip-hot-restart-on-no-parent", false, "start afresh when there is no parent to take over from")
	fs.BoolVar(&o.SkipHotRestartParentStats, "skip-hot-restart-parent-stats", false, "do not take over the parent's stats")
	fs.BoolVar(&o.SkipDeprecatedLogs, "skip-deprecated-logs", false, "do not log uses of deprecated fields")
	fs.Var(&r.fakeSymbolTable, "use-fake-symbol-table", "1 turns off shared symbols of stat names, and with them recent lookups; `0 or 1`")
	r.maxStats, r.maxNameLength = 16384, 60
	fs.Var(&r.maxStats, "max-stats", "accepted, has no effect: `number` of stats")
	fs.Var(&r.maxNameLength, "max-obj-name-len", "accepted, has no effect: `bytes` of a name")
	choices(fs, "mode", "serve", "validate", "init_only")
	choices(fs, "local-address-ip-version", "v4", "v6")
	choices(fs, "log-level", "trace", "debug", "info", "warning", "error", "critical", "off")
	choices(fs, "drain-strategy", "gradual", "immediate")
	fs.BoolVar(&r.version, "version", false, "print the version and exit")
	fs.BoolVarP(&r.help, "help", "h", false, "print this help and exit")
	return fs
}

// parseOptions parses a command line without the program's name. hardware is
// the number of workers when none is asked for. The error may hold several
// lines, one per error.
func parseOptions(args []string, hardware int) (*Options, request, error) {
	switch own, exporter := flagFamilies(args); {
	case exporter != "" && own != "":
		return nil, runServer, fmt.Errorf("error: %s is a flag of statsd_exporter and %s is not; use flags of one program", exporter, own)
	case exporter != "":
		return parseExporterOptions(args, hardware)
	}
	o := &Options{CommandLine: server.CommandLine{Concurrency: uint32(max(1, hardware))}}
	var r rawOptions
	fs := flagSet(o, &r)
	if err := parseFlags(fs, args); err != nil {
		return nil, runServer, err
	}
	switch {
	case r.help:
		return o, showHelp, nil
	case r.version:
		return o, showVersion, nil
	}
	o.LogFormatSet = fs.Changed("log-format")
	o.Args = args
	if dash := fs.ArgsLenAtDash(); dash >= 0 {
		o.Args = args[:len(args)-fs.NArg()-1]
	}
	if err := errors.Join(
		o.setMode(r),
		o.setLogging(r),
		o.setProcess(r, fs),
		o.setHotRestart(r, fs),
		o.setStats(r),
	); err != nil {
		return nil, runServer, err
	}
	if r.hotRestartVersion {
		return o, showHotRestartVersion, nil
	}
	return o, runServer, nil
}

// parseFlags parses args, which must be flags up to any "--".
func parseFlags(fs *pflag.FlagSet, args []string) error {
	if err := flagError(fs, fs.Parse(args)); err != nil {
		return err
	}
	rest := fs.Args()
	if dash := fs.ArgsLenAtDash(); dash >= 0 {
		rest = rest[:dash]
	}
	if len(rest) > 0 {
		return fmt.Errorf("error: Couldn't find match for argument: %s%s", cmp.Or(rest[0], "''"), suggestion(nearestArgument(fs, rest[0])))
	}
	return nil
}

// nearestArgument returns the subcommand that a misspelled one was probably meant to be,
// or the flag or mode for which someone forgot the dashes, or --config-path in front of
// the name of a configuration file.
func nearestArgument(fs *pflag.FlagSet, word string) string {
	if fs.Lookup(word) != nil {
		return "--" + word
	}
	if word == "validate" || word == "init_only" {
		return "--mode " + word
	}
	if fs.Lookup("config-path") != nil && slices.Contains([]string{".yaml", ".yml", ".json", ".pb", ".pb_text"}, filepath.Ext(word)) {
		return "--config-path " + word
	}
	return spelling.Nearest(word, func(yield func(string) bool) {
		for _, c := range new(program).commands() {
			if !yield(c.name) {
				return
			}
		}
	}, len(word)/3)
}

// suggestion returns the end of an error that names the probable argument.
func suggestion(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// flagError returns an error of the parser with the text that users expect.
func flagError(fs *pflag.FlagSet, err error) error {
	var (
		unknown  *pflag.NotExistError
		noValue  *pflag.ValueRequiredError
		badValue *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return fmt.Errorf("error: Couldn't find match for argument: -%s", short)
		}
		return fmt.Errorf("error: Couldn't find match for argument: --%s%s", name, suggestion(nearestFlag(fs, name)))
	case errors.As(err, &noValue):
		return fmt.Errorf("error: Missing a value for this argument: --%s", noValue.GetFlag().Name)
	case errors.As(err, &badValue):
		return fmt.Errorf("error: Couldn't read argument value: --%s: %w", badValue.GetFlag().Name, badValue.Unwrap())
	case err != nil:
		return fmt.Errorf("error: %w", err)
	}
	return nil
}

// nearestFlag returns the flag with the fewest changed letters, or the flags that begin
// with the name, two at most, such as --token-file for --token. It returns "" if more
// than a third of the name would have to change.
func nearestFlag(fs *pflag.FlagSet, name string) string {
	var names, longer []string
	fs.VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		if strings.HasPrefix(f.Name, name) {
			longer = append(longer, f.Name)
		}
	})
	near := spelling.Nearest(name, slices.Values(names), len(name)/3)
	switch {
	case near != "":
		return "--" + near
	case len(longer) == 1 || len(longer) == 2:
		return "--" + strings.Join(longer, " or --")
	}
	return ""
}

func (o *Options) setMode(r rawOptions) error {
	modes := map[string]string{"serve": ModeServe, "validate": ModeValidate, "init_only": ModeInitOnly}
	mode, ok := modes[r.mode]
	if !ok {
		return fmt.Errorf("error: unknown mode '%s'", r.mode)
	}
	o.Mode = mode
	if !validProduct(o.Product) {
		return fmt.Errorf("error: invalid product-name '%s': want a letter, then letters, digits and _, 64 at most", o.Product)
	}
	return nil
}

// alphanumeric are the letters and digits of names.
const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// validProduct reports whether a name fits in metric names and header names.
func validProduct(name string) bool {
	return name != "" && len(name) <= 64 && letter(name[0]) && strings.Trim(name, alphanumeric+"_") == ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// parseLevel reads a level as the command line spells it.
func parseLevel(name string) (logctl.Level, error) {
	if name == "warn" {
		return logctl.Warning, nil
	}
	level, ok := logctl.ParseLevel(name)
	if !ok {
		return level, fmt.Errorf("error: invalid log level specified '%s'", name)
	}
	return level, nil
}

func (o *Options) setLogging(r rawOptions) error {
	var errs []error
	level, err := parseLevel(r.logLevel)
	errs = append(errs, err)
	o.LogLevel = level.String()
	if o.EnableFineGrainLogging && o.ComponentLogLevel != "" {
		errs = append(errs, errors.New("error: --component-log-level will not work with --enable-fine-grain-logging"))
		return errors.Join(errs...)
	}
	for piece := range strings.SplitSeq(o.ComponentLogLevel, ",") {
		if piece == "" {
			continue
		}
		name, level, err := parseComponentLevel(piece)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if o.ComponentLevels == nil {
			o.ComponentLevels = make(map[string]logctl.Level)
		}
		o.ComponentLevels[name] = level
	}
	return errors.Join(errs...)
}

func parseComponentLevel(piece string) (name string, level logctl.Level, err error) {
	name, word, _ := strings.Cut(piece, ":")
	if strings.Count(piece, ":") != 1 {
		return "", level, fmt.Errorf("error: component log level not correctly specified '%s'", piece)
	}
	if level, err = parseLevel(word); err != nil {
		return "", level, err
	}
	if !slices.Contains(logctl.Names(), name) {
		return "", level, fmt.Errorf("error: invalid component specified '%s'", name)
	}
	return name, level, nil
}

func (o *Options) setProcess(r rawOptions, fs *pflag.FlagSet) error {
	var errs []error
	if v := o.LocalAddressIPVersion; v != "v4" && v != "v6" {
		errs = append(errs, fmt.Errorf("error: unknown IP address version '%s'", v))
	}
	o.Concurrency, o.ConcurrencySet = max(1, uint32(r.concurrency)), fs.Changed("concurrency")
	o.CPUSetThreads = r.cpuset
	if r.cpuset && o.ConcurrencySet {
		o.CPUSetThreads = false
		o.warn("Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.")
	}
	switch r.drainStrategy {
	case "gradual":
		o.DrainStrategy = "Gradual"
	case "immediate":
		o.DrainStrategy = "Immediate"
	default:
		errs = append(errs, fmt.Errorf("error: unknown drain-strategy '%s'", r.drainStrategy))
	}
	o.DrainTime = time.Duration(r.drainSeconds) * time.Second
	o.ParentShutdownTime = time.Duration(r.parentShutdownSeconds) * time.Second
	o.FileFlushInterval = time.Duration(r.fileFlushMs) * time.Millisecond
	o.FileFlushMinSize = uint32(r.flushKB)
	if r.allowUnknown {
		o.AllowUnknownStaticFields = true
		o.warn("--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.")
	}
	for name := range strings.SplitSeq(r.disableExtensions, ",") {
		if name == "" {
			continue
		}
		o.DisabledExtensions = append(o.DisabledExtensions, name)
		if category, rest, ok := strings.Cut(name, "/"); !ok || category == "" || rest == "" {
			o.warn(fmt.Sprintf("failed to disable invalid extension name '%s'", name))
		} else {
			o.warn(fmt.Sprintf("failed to disable unknown extension '%s'", name))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) setHotRestart(r rawOptions, fs *pflag.FlagSet) error {
	var errs []error
	o.BaseID, o.RestartEpoch = uint64(r.baseID), uint32(r.epoch)
	if o.UseDynamicBaseID && o.RestartEpoch > 0 {
		errs = append(errs, fmt.Errorf("error: cannot use --restart-epoch=%d with --use-dynamic-base-id", o.RestartEpoch))
	}
	if !fs.Changed("socket-path") {
		o.SocketPath = "@" + o.Product + "_domain_socket"
	}
	if o.SocketPath == "" {
		errs = append(errs, errors.New("error: socket-path must not be empty"))
	}
	mode, err := strconv.ParseUint(r.socketMode, 8, 32)
	if err != nil || mode > 0o777 {
		errs = append(errs, fmt.Errorf("error: invalid socket-mode '%s'", r.socketMode))
	}
	if !strings.HasPrefix(o.SocketPath, "@") {
		o.SocketMode = uint32(mode)
	}
	return errors.Join(errs...)
}

// Bounds of the flags of older revisions.
const (
	maxMaxStats  = 100_000_000
	minMaxLength = 60
)

func (o *Options) setStats(r rawOptions) error {
	var errs []error
	for _, tag := range r.statsTags {
		errs = append(errs, checkStatsTag(tag))
	}
	o.StatsTags = r.statsTags
	if r.maxStats > maxMaxStats {
		errs = append(errs, fmt.Errorf("error: the 'max-stats' value specified (%d) is more than the max value of %d", r.maxStats, maxMaxStats))
	}
	if r.maxNameLength < minMaxLength {
		errs = append(errs, fmt.Errorf("error: the 'max-obj-name-len' value specified (%d) is less than the minimum value of %d", r.maxNameLength, minMaxLength))
	}
	if r.fakeSymbolTable > 1 {
		errs = append(errs, fmt.Errorf("error: invalid use-fake-symbol-table '%d': want 0 or 1", r.fakeSymbolTable))
	}
	o.UseFakeSymbolTable = r.fakeSymbolTable == 1
	return errors.Join(errs...)
}

func checkStatsTag(tag string) error {
	name, value, ok := strings.Cut(tag, ":")
	if !ok {
		return fmt.Errorf("error: misformatted stats-tag '%s'", tag)
	}
	switch {
	case strings.Trim(name, alphanumeric) != "":
		return fmt.Errorf("error: misformatted stats-tag '%s' contains invalid char in '%s'", tag, name)
	case name == "":
		return fmt.Errorf("error: misformatted stats-tag '%s'", tag)
	case strings.Contains(value, "."):
		return fmt.Errorf("error: misformatted stats-tag '%s' contains invalid char in '%s'", tag, value)
	}
	return nil
}

func (o *Options) warn(line string) { o.Warnings = append(o.Warnings, line) }
