package bootstrap

import (
	"encoding/base64"
	"io/fs"
	"math"
	"net/netip"
	"net/url"
	"path"
	"strconv"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"go.yaml.in/yaml/v4"
)

// Admin holds the settings of the administration listener.
type Admin struct {
	Address Address // zero: no administration server

	AccessLog   []AccessLog
	ProfilePath string // output of the profilers; default /var/log/{product}/{product}.prof

	admin.Config          // without the fields here
	IgnoreGlobalConnLimit bool
	CircuitStreamAny      bool     // the circuit event stream is for all origins, not only allowed ones
	Tap                   bool     // tap is set: /tap exists
	TapIDs                []string // of the tap extensions in static_resources; if there is one, /tap exists
	Limits                AdminLimits

	Auth *AdminAuth   // nil: every client may do all
	TLS  *certs.Files // nil: no TLS
}

// Address is where a listener binds; @name instead of a path is an abstract socket.
type Address struct {
	config.Address
	Mode fs.FileMode // of the unix socket; default 0600
}

// endpoint returns the address as other packages take it.
func (a Address) endpoint() string {
	if a.Pipe != "" {
		return "unix:" + a.Pipe
	}
	return a.String()
}

// AccessLog is one file that requests are logged to.
type AccessLog struct {
	accesslog.Config
}

// AdminLimits bounds the cost of requests. In each field -1 means no limit.
type AdminLimits struct {
	admin.Limits
	CircuitStreams int // default 16
}

func defaultAdmin(product string) Admin {
	return Admin{
		ProfilePath: path.Join("/var/log", product, product+".prof"),
		Limits:      AdminLimits{admin.DefaultLimits(), 16},
	}
}

func (a *Admin) set(d *decoder, n *yaml.Node, path string) {
	var logPath string
	var metrics Address
	seen := d.message(n, path, []field{
		{"address", a.Address.set},
		{"metrics_address", metrics.set},
		{"access_log_path", outputFile(&logPath)},
		{"access_log", list(&a.AccessLog, func(l *AccessLog) setter { return l.set })},
		{"profile_path", text(&a.ProfilePath)},
		{"socket_options", list(&a.SocketOptions, socketOption)},
		{"ignore_global_conn_limit", boolean(&a.IgnoreGlobalConnLimit)},
		{"allow_paths", list((*[]match.Matcher)(&a.AllowPaths), matcher)},
		{"mode", enum(&a.Mode, "full, read_only, metrics_only", admin.ModeFull, admin.ModeReadOnly, admin.ModeMetricsOnly)},
		{"host_check", enum(&a.HostCheck, "auto, strict, off", admin.HostAuto, admin.HostStrict, admin.HostOff)},
		{"allowed_hosts", texts(&a.AllowedHosts)},
		{"allowed_origins", list(&a.AllowedOrigins, origin)},
		{"cors_read_origins", list(&a.ReadOrigins, origin)},
		{"circuit_stream_cors", enum(&a.CircuitStreamAny, "same, any", false, true)},
		{"redact_untyped", not(&a.ShowUntyped)},
		{"debug_endpoints", boolean(&a.DebugEndpoints)},
		{"tap", func(d *decoder, n *yaml.Node, path string) {
			a.Tap = true
			d.message(n, path, nil)
		}},
		{"socket_group", text(&a.SocketGroup)},
		{"limits", a.Limits.set},
		{"auth", func(d *decoder, n *yaml.Node, path string) {
			a.Auth = new(AdminAuth)
			a.Auth.set(d, n, path)
		}},
		{"tls", func(d *decoder, n *yaml.Node, path string) {
			a.TLS = new(certs.Files)
			setAdminTLS(a.TLS)(d, n, path)
		}},
	})
	a.checkSecurity(d, seen, path)
	if n, ok := seen["metrics_address"]; ok {
		a.MetricsAddress = metrics.endpoint()
		switch at := join(path, "metrics_address"); {
		case a.Address.IsZero():
			d.errorf(n, at, "only with address")
		case metrics.Pipe != "":
			d.errorf(n, at, "only of kind socket_address")
		}
	}
	if logPath != "" && logPath != "/dev/null" {
		a.AccessLog = append([]AccessLog{{Config: accesslog.Config{Path: logPath}}}, a.AccessLog...)
	}
	if n, ok := seen["socket_group"]; ok && a.Address.Pipe == "" {
		d.errorf(n, join(path, "socket_group"), "only for an address of kind pipe")
	}
	if n, ok := seen["host_check"]; ok && a.HostCheck == admin.HostOff {
		d.warnf(n, join(path, "host_check"), "off: web pages may reach this server by a name that they control")
	}
}

// origin decodes a web origin as browsers send it.
func origin(to *string) setter {
	return scalar(to, func(n *yaml.Node) (string, bool) {
		u, err := url.Parse(n.Value)
		return n.Value, err == nil && u.Host != "" && u.Scheme+"://"+u.Host == n.Value
	}, "an origin such as https://example.net or http://10.0.0.1:8080")
}

func (a *Address) set(d *decoder, n *yaml.Node, path string) {
	if at, err := netip.ParseAddrPort(n.Value); err == nil && n.Kind == yaml.ScalarNode {
		d.errorf(n, path, "%s is not a mapping; want {socket_address: {address: \"%s\", port_value: %d}}", d.show(n, path), at.Addr(), at.Port())
		return
	}
	seen := d.message(n, path, []field{
		{"socket_address", a.setSocket},
		{"pipe", a.setPipe},
	})
	d.oneOf(n, path, seen, true, "socket_address", "pipe")
}

func (a *Address) setSocket(d *decoder, n *yaml.Node, path string) {
	var address, protocol string
	var port uint16
	seen := d.message(n, path, []field{
		{"protocol", choice(&protocol, "TCP")},
		{"address", nonEmpty(&address)},
		{"port_value", whole(&port, 0, 65535)},
		{"named_port", absent},
		{"resolver_name", absent},
		{"ipv4_compat", ignored},
	})
	d.require(n, path, seen, "address", "port_value")
	if at, ok := seen["address"]; ok && address != "" {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			d.errorf(at, join(path, "address"), "%s is not an IP address such as 127.0.0.1 or ::1", d.show(at, path))
		} else {
			a.IP = netip.AddrPortFrom(ip, port)
		}
	}
}

// maxSocketPath is what fits in the address of a unix socket on Linux.
const maxSocketPath = 107

func (a *Address) setPipe(d *decoder, n *yaml.Node, path string) {
	mode := 0o600
	seen := d.message(n, path, []field{
		{"path", text(&a.Pipe)},
		{"mode", fileMode(&mode)},
	})
	d.require(n, path, seen, "path")
	a.Mode = fs.FileMode(mode)
	if at, ok := seen["path"]; ok {
		checkSocketPath(d, at, join(path, "path"), a.Pipe)
	}
}

// checkSocketPath reports a path that no unix socket can have.
func checkSocketPath(d *decoder, n *yaml.Node, path, socket string) {
	if socket == "" || len(socket) > maxSocketPath || (socket[0] != '/' && socket[0] != '@') {
		d.errorf(n, path, "%s is not a socket address: want /path or @name of at most %d bytes", d.show(n, path), maxSocketPath)
	}
}

// fileMode decodes permission bits: a number as the message form has it, or
// octal digits in quotes.
func fileMode(to *int) setter {
	return scalar(to, func(n *yaml.Node) (int, bool) {
		base := 0 // 0600, 0o600 and 384 as numbers
		if n.Tag == "!!str" {
			base = 8 // "0600" and "600"
		}
		v, err := strconv.ParseUint(n.Value, base, 32)
		return int(v), err == nil && v <= 0o777
	}, "a file mode in [0, 0777]")
}

// socketOption decodes one option of the listening socket.
func socketOption(o *admin.SocketOption) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var description, state string
		seen := d.message(n, path, []field{
			{"description", text(&description)},
			{"level", whole(&o.Level, 0, 1<<31-1)},
			{"name", whole(&o.Name, 0, 1<<31-1)},
			{"int_value", whole(&o.Int, -1<<31, 1<<31-1)},
			{"buf_value", func(d *decoder, n *yaml.Node, path string) {
				var err error
				if o.Bytes, err = base64.StdEncoding.DecodeString(n.Value); err != nil || n.Kind != yaml.ScalarNode {
					d.errorf(n, path, "not base64")
				}
			}},
			{"state", choice(&state, "STATE_PREBIND", "STATE_BOUND", "STATE_LISTENING")},
			{"type", ignored},
		})
		d.oneOf(n, path, seen, true, "int_value", "buf_value")
		o.Prebind = state == "" || state == "STATE_PREBIND"
	}
}

// accessLogTypes maps the type of an access logger to the path it writes to;
// empty where the configuration names the path.
var accessLogTypes = map[string]string{
	"FileAccessLog":   "",
	"StdoutAccessLog": "/dev/stdout",
	"StderrAccessLog": "/dev/stderr",
}

func (l *AccessLog) set(d *decoder, n *yaml.Node, path string) {
	var name string
	errs := len(d.errs)
	body := []field{
		{"path", outputFile(&l.Path)},
		{"format", text(&l.Format)},
		{"log_format", l.setFormat},
		{"json_format", structure(&l.JSON)},
		{"typed_json_format", l.setTyped},
	}
	var typeName string
	seen := d.message(n, path, []field{
		{"name", text(&name)},
		{"filter", func(d *decoder, n *yaml.Node, path string) {
			accessFilter(&l.Filter)(d, n, path)
		}},
		{"typed_config", func(d *decoder, n *yaml.Node, path string) {
			types := make(map[string][]field, len(accessLogTypes))
			for t, fixed := range accessLogTypes {
				types[t] = body
				if fixed != "" {
					types[t] = body[2:3] // only log_format
				}
			}
			typeName = d.typedConfig(n, path, types)
		}},
		{"config", func(d *decoder, n *yaml.Node, path string) {
			d.message(n, path, body[:2])
			typeName = "FileAccessLog"
		}},
	})
	kind := d.oneOf(n, path, seen, true, "typed_config", "config")
	if kind != "" {
		l.checkFormats(d, seen[kind], join(path, kind))
	}
	if typeName == "" || kind == "" {
		return
	}
	if fixed := accessLogTypes[typeName]; fixed != "" {
		l.Path = fixed
	}
	if l.Path == "" && !d.misspelled(join(path, kind), "path") {
		d.errorf(seen[kind], join(join(path, kind), "path"), "required field is not set")
	}
	if len(d.errs) > errs {
		return
	}
	if err := accesslog.Check(l.Config); err != nil {
		d.errorf(seen[kind], join(path, kind), "%s", cutPackage(err.Error()))
	}
}

// setTyped reads the members of a JSON line that keeps the types of values.
func (l *AccessLog) setTyped(d *decoder, n *yaml.Node, path string) {
	structure(&l.JSON)(d, n, path)
	l.Typed = true
}

// checkFormats reports a body with more than one format.
func (l *AccessLog) checkFormats(d *decoder, n *yaml.Node, path string) {
	seen := make(map[string]*yaml.Node)
	if n.Kind == yaml.MappingNode {
		for key, value := range conftree.Pairs(n) {
			if !conftree.IsNull(value) {
				seen[conftree.SnakeCase(key.Value)] = value
			}
		}
	}
	d.oneOf(n, path, seen, false, "format", "json_format", "typed_json_format", "log_format")
}

// setFormat reads the newer form of a format.
func (l *AccessLog) setFormat(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"text_format", text(&l.Format)},
		{"text_format_source", nested(
			field{"inline_string", text(&l.Format)},
			field{"filename", absent},
			field{"environment_variable", absent},
		)},
		{"json_format", l.setTyped},
		{"omit_empty_values", boolean(&l.OmitEmpty)},
		{"content_type", ignored},
		{"formatters", absent},
	})
	d.oneOf(n, path, seen, true, "text_format", "text_format_source", "json_format")
}

func (l *AdminLimits) set(d *decoder, n *yaml.Node, path string) {
	d.message(n, path, []field{
		{"header_bytes", sizeLimit(&l.HeaderBytes, math.MaxInt32)},
		{"target_bytes", sizeLimit(&l.TargetBytes, math.MaxInt32)},
		{"body_bytes", sizeLimit(&l.BodyBytes, math.MaxInt32)},
		{"headers", limit(&l.Headers)},
		{"query_parameters", limit(&l.QueryParams)},
		{"query_value_bytes", sizeLimit(&l.QueryValue, math.MaxInt32)},
		{"connections", limit(&l.Connections)},
		{"connections_per_address", limit(&l.ConnectionsPerPeer)},
		{"read_timeout", timeLimit(&l.ReadTimeout)},
		{"idle_timeout", timeLimit(&l.IdleTimeout)},
		{"stream_stall", timeLimit(&l.StreamStall)},
		{"response_time", timeLimit(&l.ResponseTime)},
		{"shutdown_time", timeLimit(&l.ShutdownTime)},
		{"heavy_running", limit(&l.HeavyRunning)},
		{"heavy_waiting", limit(&l.HeavyWaiting)},
		{"heavy_wait", timeLimit(&l.HeavyWait)},
		{"compressors", limit(&l.Compressors)},
		{"regex_bytes", sizeLimit(&l.RegexBytes, math.MaxInt32)},
		{"regex_program", limit(&l.RegexProgram)},
		{"regex_budget", timeLimit(&l.RegexBudget)},
		{"regex_parallel", limit(&l.RegexParallel)},
		{"circuit_streams", limit(&l.CircuitStreams)},
		{"stats_streams", limit(&l.StatsStreams)},
		{"audit_entries", limit(&l.AuditEntries)},
		{"audit_bytes", sizeLimit(&l.AuditBytes, math.MaxInt32)},
	})
}
