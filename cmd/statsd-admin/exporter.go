package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// Exporter are the settings from flags of statsd_exporter that the configuration does
// not have.
type Exporter struct {
	TelemetryPath string
	Lifecycle     bool   // serve /-/reload and /-/quit
	MappingConfig string // file with mapping rules; "" if there are none
}

// maxMapping is the largest mapping file, in bytes.
const maxMapping = 64 << 20

// check returns an error if the file with mapping rules cannot be read. Later errors
// would name a place in the configuration made of the flags. e may be nil.
func (e *Exporter) check() error {
	if e == nil || e.MappingConfig == "" {
		return nil
	}
	if _, err := boundedfile.Read(e.MappingConfig, maxMapping); err != nil {
		return fmt.Errorf("error: --statsd.mapping-config: %w", err)
	}
	return nil
}

// exporterFlags are the texts of flags of statsd_exporter.
type exporterFlags struct {
	Exporter
	web, udp, tcp, unixgram, unixMode string
	logLevel, logFormat, relay        string
	relayBytes                        uint
	readBuffer                        int
	checkConfig                       bool
	hosts                             []string
}

// The limits of --statsd.relay.packet-length, of which the upper one is the payload of
// UDP over IPv4, and of the host.
const (
	minRelayBytes = 64
	maxRelayBytes = 65507
	maxHostBytes  = 253 // of a name in DNS
)

// The patterns of log lines that --log.format names.
const (
	logfmtPattern = `time=%Y-%m-%dT%T.%e%z level=%l source=%g:%# component=%n msg="%j"`
	jsonPattern   = `{"time":"%Y-%m-%dT%T.%e%z","level":"%l","source":"%g:%#","component":"%n","msg":"%j"}`
)

// exporterFlagSet defines the flags of statsd_exporter, except --help and --version,
// which the program has in any case.
func exporterFlagSet(r *exporterFlags) *pflag.FlagSet {
	fs := newFlagSet("")
	fs.StringVar(&r.web, "web.listen-address", ":9102", "`host:port` of metrics and the administration interface")
	fs.StringVar(&r.TelemetryPath, "web.telemetry-path", "/metrics", "`path` of metrics")
	fs.BoolVar(&r.Lifecycle, "web.enable-lifecycle", false, "accept POST /-/reload, POST /-/quit and the other mutations of the administration interface")
	fs.StringSliceVar(&r.hosts, "web.allowed-hosts", nil, "further host `names` of the server, such as statsd.example.com or *.example.com; not a flag of statsd_exporter")
	fs.StringVar(&r.udp, "statsd.listen-udp", ":9125", "`host:port` that receives lines over UDP; empty for none")
	fs.StringVar(&r.tcp, "statsd.listen-tcp", ":9125", "`host:port` that receives lines over TCP; empty for none")
	fs.StringVar(&r.unixgram, "statsd.listen-unixgram", "", "`path` of a unix datagram socket that receives lines; empty for none")
	fs.StringVar(&r.unixMode, "statsd.unixsocket-mode", "755", "octal `mode` of this socket")
	fs.StringVar(&r.MappingConfig, "statsd.mapping-config", "", "`file` with mapping rules")
	fs.IntVar(&r.readBuffer, "statsd.read-buffer", 0, "`bytes` of the receive buffer of datagram sockets; 0 for the default")
	for _, dialect := range exporterDialects {
		fs.Bool("statsd.parse-"+dialect.flag+"-tags", true, "parse tags of "+dialect.title)
	}
	fs.StringVar(&r.relay, "statsd.relay.address", "", "`host:port` that gets a copy of every received line over UDP; empty for none")
	fs.UintVar(&r.relayBytes, "statsd.relay.packet-length", 1400, "`bytes` of a relayed packet; a longer line is sent alone")
	fs.BoolVar(&r.checkConfig, "check-config", false, "check the mapping rules and exit")
	fs.StringVar(&r.logLevel, "log.level", "info", "lowest `level` of log lines")
	fs.StringVar(&r.logFormat, "log.format", "logfmt", "`format` of log lines")
	choices(fs, "log.level", "debug", "info", "warn", "error")
	choices(fs, "log.format", "logfmt", "json")

	const none = "accepted, has no effect: "
	ineffective := newFlagSet("")
	ineffective.Int("statsd.cache-size", 1000, none+"`number` of cached names")
	ineffective.String("statsd.cache-type", "lru", none+"`kind` of the cache")
	ineffective.Uint("statsd.event-queue-size", 10000, none+"`number` of queued events")
	ineffective.Int("statsd.event-flush-threshold", 1000, none+"`number` of events of a batch")
	ineffective.Duration("statsd.event-flush-interval", 200e6, none+"`time` between batches")
	ineffective.Int("statsd.udp-packet-queue-size", 10000, none+"`number` of queued packets")
	ineffective.String("debug.dump-fsm", "", none+"`file` for the state machine of the rules")
	choices(ineffective, "statsd.cache-type", "lru", "random")
	ineffective.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[withoutEffect] = nil
		fs.AddFlag(f)
	})
	return fs
}

// withoutEffect is the annotation of a flag that changes nothing.
const withoutEffect = "without effect"

// exporterDialects maps flags of statsd_exporter to fields of statsd.parse.
var exporterDialects = [...]struct{ flag, field, title string }{
	{"dogstatsd", "dogstatsd", "DogStatsD"},
	{"influxdb", "influx", "InfluxDB"},
	{"librato", "librato", "Librato"},
	{"signalfx", "signalfx", "SignalFX"},
}

// flagFamilies returns the first flag of args that only this program has, and the
// first that only statsd_exporter has, as they are written; "" for none.
func flagFamilies(args []string) (own, exporter string) {
	ours, theirs := daemonFlags(), exporterFlagSet(new(exporterFlags))
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		long, isLong := strings.CutPrefix(name, "--")
		var f *pflag.Flag
		switch {
		case isLong:
			if f = ours.Lookup(long); f == nil && (strings.Contains(long, ".") || theirs.Lookup(strings.TrimPrefix(long, "no-")) != nil) {
				exporter = cmp.Or(exporter, name)
				f = theirs.Lookup(long)
				break
			}
			if f != nil && f.Name != "help" && f.Name != "version" {
				own = cmp.Or(own, name)
			}
		case len(name) > 1 && name[0] == '-':
			if f = ours.ShorthandLookup(name[1:2]); f != nil && f.Name != "help" {
				own = cmp.Or(own, name[:2])
			}
			hasValue = hasValue || len(name) > 2
		}
		if f != nil && f.NoOptDefVal == "" && !hasValue {
			i++ // its value
		}
	}
	return own, exporter
}

// parseExporterOptions parses a command line with flags of statsd_exporter. The
// options have a configuration that behaves as that program does.
func parseExporterOptions(args []string, hardware int) (*Options, request, error) {
	o, _, err := parseOptions(nil, hardware)
	if err != nil {
		return nil, runServer, err
	}
	var r exporterFlags
	fs := exporterFlagSet(&r)
	version := fs.Bool("version", false, "")
	help := fs.BoolP("help", "h", false, "")
	if err := parseFlags(fs, withoutNegations(fs, args)); err != nil {
		return nil, runServer, err
	}
	switch {
	case *help:
		return o, showHelp, nil
	case *version:
		return o, showVersion, nil
	}
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		if allowed := f.Annotations[choicesOf]; len(allowed) > 0 && !slices.Contains(allowed, f.Value.String()) {
			errs = append(errs, fmt.Errorf("error: --%s: %q is not one of %s", f.Name, f.Value, strings.Join(allowed, ", ")))
		}
		if _, ok := f.Annotations[withoutEffect]; ok && f.Changed {
			o.warn("--" + f.Name + " is accepted, but has no effect")
		}
	})
	o.ConfigYAML, err = r.config(fs)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, runServer, err
	}
	level, err := parseLevel(r.logLevel)
	if err != nil {
		return nil, runServer, err
	}
	o.LogLevel = level.String()
	o.LogFormat, o.LogFormatSet = logfmtPattern, true
	if r.logFormat == "json" {
		o.LogFormat = jsonPattern
	}
	if r.checkConfig {
		o.Mode = ModeValidate
	}
	o.DisableHotRestart = true // several can run side by side, as of statsd_exporter
	o.Args, o.Exporter = args, &r.Exporter
	return o, runServer, nil
}

// withoutNegations returns args with --flag=false in place of --no-flag.
func withoutNegations(fs *pflag.FlagSet, args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		name, ok := strings.CutPrefix(a, "--no-")
		if f := fs.Lookup(name); ok && f != nil && f.NoOptDefVal == "true" {
			args[i] = "--" + name + "=false"
		}
	}
	return args
}

func (r *exporterFlags) config(fs *pflag.FlagSet) (string, error) {
	var errs []error
	address := func(flag, text string) (host string, port uint64) {
		host, port, err := hostPort(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("error: --%s: %w", flag, err))
		}
		return host, port
	}
	type object = map[string]any
	host, port := address("web.listen-address", r.web)
	mode := "read_only"
	if r.Lifecycle {
		mode = "full"
	}
	listeners := []object{}
	if r.udp != "" {
		host, port := address("statsd.listen-udp", r.udp)
		listeners = append(listeners, r.withBuffer(object{"address": "udp://" + net.JoinHostPort(host, strconv.FormatUint(port, 10))}))
	}
	if r.tcp != "" {
		host, port := address("statsd.listen-tcp", r.tcp)
		listeners = append(listeners, object{"address": "tcp://" + net.JoinHostPort(host, strconv.FormatUint(port, 10))})
	}
	if path := r.unixgram; path != "" {
		if path[0] != '@' {
			var err error
			path, err = filepath.Abs(path)
			errs = append(errs, err)
		}
		if bits, err := strconv.ParseUint(r.unixMode, 8, 32); err != nil || bits > 0o777 {
			errs = append(errs, fmt.Errorf("error: --statsd.unixsocket-mode: %q is not an octal mode in [0, 777]", r.unixMode))
		}
		listeners = append(listeners, r.withBuffer(object{"address": "unixgram://" + path, "mode": r.unixMode}))
	}
	if len(listeners) == 0 {
		errs = append(errs, errors.New("error: at least one of --statsd.listen-udp, --statsd.listen-tcp and --statsd.listen-unixgram must not be empty"))
	}
	if r.readBuffer != 0 && (r.readBuffer < 1024 || r.readBuffer > 1<<30) {
		errs = append(errs, fmt.Errorf("error: --statsd.read-buffer: %d is neither 0 nor in [1024, %d]", r.readBuffer, 1<<30))
	}
	parse := object{"graphite": false, "container": "tag"} // as statsd_exporter
	for _, d := range exporterDialects {
		on, err := fs.GetBool("statsd.parse-" + d.flag + "-tags")
		errs = append(errs, err)
		parse[d.field] = on
	}
	statsd := object{
		"listeners":    listeners,
		"parse":        parse,
		"exposition":   object{"compat": "statsd_exporter", "timer_unit": "s", "observer": "summary"},
		"self_metrics": "statsd_exporter",
	}
	if r.MappingConfig != "" {
		statsd["mapping"] = object{"file": r.MappingConfig}
	}
	if r.relay != "" {
		target, err := r.relayTarget()
		errs = append(errs, err)
		statsd["relay"] = []object{{"invalid": true, "targets": []object{target}}} // including rejected lines, as statsd_exporter
		statsd["relay_loop_check"] = "0s"                                          // only received lines, as statsd_exporter
	}
	admin := object{"address": object{"socket_address": object{"address": host, "port_value": port}}, "mode": mode}
	if len(r.hosts) > 0 {
		admin["allowed_hosts"] = r.hosts
	}
	text, err := json.MarshalIndent(object{
		"admin":  admin,
		"statsd": statsd,
		// Timers are shown from the next flush on.
		"stats_flush_interval": "1s",
	}, "", " ")
	return string(text) + "\n", errors.Join(append(errs, err)...)
}

// relayTarget returns the server that gets a copy of the lines. Its host is resolved
// when it is connected to.
func (r *exporterFlags) relayTarget() (map[string]any, error) {
	host, port, err := splitHostPort(r.relay)
	switch {
	case err != nil:
	case len(host) > maxHostBytes:
		err = fmt.Errorf("a host of %d bytes is longer than %d", len(host), maxHostBytes)
	case port == 0:
		err = fmt.Errorf("%q: port 0 is not in [1, 65535]", r.relay)
	case r.relayBytes < minRelayBytes || r.relayBytes > maxRelayBytes:
		return nil, fmt.Errorf("error: --statsd.relay.packet-length: %d is not in [%d, %d]", r.relayBytes, minRelayBytes, maxRelayBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("error: --statsd.relay.address: %w", err)
	}
	address := net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.FormatUint(port, 10))
	return map[string]any{"address": "udp://" + address, "name": r.relay, "max_packet_bytes": r.relayBytes}, nil
}

// withBuffer sets the receive buffer of a listener.
func (r *exporterFlags) withBuffer(listener map[string]any) map[string]any {
	if r.readBuffer != 0 {
		listener["rcvbuf"] = r.readBuffer
	}
	return listener
}

// hostPort splits an address. Names are resolved; without a host it is that of all
// interfaces.
func hostPort(text string) (host string, port uint64, err error) {
	host, port, err = splitHostPort(text)
	if err != nil {
		return "", 0, err
	}
	if host == "" {
		return "0.0.0.0", port, nil
	}
	ip, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return "", 0, fmt.Errorf("%q: %w", text, err)
	}
	return ip.String(), port, nil
}

// splitHostPort splits an address. The host may be empty.
func splitHostPort(text string) (host string, port uint64, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not host:port", text)
	}
	if port, err = strconv.ParseUint(number, 10, 16); err != nil {
		return "", 0, fmt.Errorf("%q: port %q is not in [0, 65535]", text, number)
	}
	return host, port, nil
}
