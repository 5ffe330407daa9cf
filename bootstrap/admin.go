package bootstrap

import (
	"io/fs"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// Admin holds the settings of the administration listener.
type Admin struct {
	Address Address // zero: no administration server

	AccessLog   []AccessLog
	ProfilePath string // output of the profilers; default /var/log/{product}/{product}.prof

	SocketOptions         []SocketOption
	IgnoreGlobalConnLimit bool
	AllowPaths            []StringMatcher // empty: all paths

	Mode              AdminMode     // default full
	HostCheck         HostCheckMode // default auto
	AllowedHosts      []string      // names, or *.suffix
	AllowedOrigins    []string      // scheme://host[:port]
	CORSReadOrigins   []string
	CircuitStreamCORS CORSMode // default same
	RedactUntyped     bool     // default true
	DebugEndpoints    bool
	SocketGroup       string // group of a unix socket; empty: the process' own
	Limits            AdminLimits

	Auth *AdminAuth // nil: everybody who reaches the port may do all
	TLS  *AdminTLS  // nil: no TLS
}

// Address is where a listener binds: an IP address and port, or a unix socket.
type Address struct {
	IP   netip.Addr
	Port uint16
	Pipe string      // path of a unix socket; @name is abstract
	Mode fs.FileMode // of the unix socket; default 0600
}

// IsZero reports whether no address was configured.
func (a Address) IsZero() bool { return !a.IP.IsValid() && a.Pipe == "" }

// String returns ip:port, [ip]:port or the path of the socket.
func (a Address) String() string {
	switch {
	case a.Pipe != "":
		return a.Pipe
	case a.IP.IsValid():
		return netip.AddrPortFrom(a.IP, a.Port).String()
	}
	return ""
}

// AccessLog is one file that requests are logged to.
type AccessLog struct {
	Path   string
	Format string // empty: the default line
	// JSON, unless nil, are the members of a JSON line in place of Format.
	// Values are formats, numbers, booleans, nil, and lists and objects of them.
	JSON map[string]any
	// Typed keeps numbers of the request as numbers, and shows what is missing
	// as null. Else all formats give texts, with - for what is missing.
	Typed bool
	// OmitEmpty leaves out what is missing.
	OmitEmpty bool
	// Filter says which requests are logged. Nil: all.
	Filter *AccessFilter
	// Source is where it is configured; unset for access_log_path.
	Source Raw
}

// SocketOption is one option of the listening socket.
type SocketOption struct {
	Description string
	Level       int
	Name        int
	IntValue    int
	BufValue    string // as written
	State       string // STATE_PREBIND, STATE_BOUND, STATE_LISTENING
}

// AdminMode says how much of the interface exists.
type AdminMode string

// The modes of the administration interface.
const (
	ModeFull        AdminMode = "full"
	ModeReadOnly    AdminMode = "read_only"
	ModeMetricsOnly AdminMode = "metrics_only"
)

// HostCheckMode says which Host headers are accepted.
type HostCheckMode string

// The modes of the host check.
const (
	HostCheckAuto   HostCheckMode = "auto"
	HostCheckStrict HostCheckMode = "strict"
	HostCheckOff    HostCheckMode = "off"
)

// CORSMode says which origins may read the circuit event stream.
type CORSMode string

// The modes of the event stream's access control.
const (
	CORSSame CORSMode = "same" // callers without Origin, and allowed origins
	CORSAny  CORSMode = "any"
)

// AdminLimits bounds what requests may cost. In each field -1 means no limit.
type AdminLimits struct {
	HeaderBytes     int // default 8 KiB
	TargetBytes     int // default 8 KiB
	BodyBytes       int // default 64 KiB
	Headers         int // default 64
	QueryParameters int // default 128
	QueryValueBytes int // default 4 KiB

	Connections           int           // default 1024
	ConnectionsPerAddress int           // default 256; not on unix sockets
	ReadTimeout           time.Duration // default 5s
	IdleTimeout           time.Duration // default 60s
	StreamStall           time.Duration // default 10s
	ResponseTime          time.Duration // default 120s
	ShutdownTime          time.Duration // for running requests at the end; default 5s

	HeavyRunning int           // default 4
	HeavyWaiting int           // default 16
	HeavyWait    time.Duration // default 2s
	Compressors  int           // default 4

	RegexBytes    int           // default 1024
	RegexProgram  int           // default 10000 instructions
	RegexBudget   time.Duration // default 2s
	RegexParallel int           // default 4

	CircuitStreams int // default 16
	AuditEntries   int // default 1000
}

func defaultAdmin(product string) Admin {
	return Admin{
		ProfilePath:       path.Join("/var/log", product, product+".prof"),
		Mode:              ModeFull,
		HostCheck:         HostCheckAuto,
		CircuitStreamCORS: CORSSame,
		RedactUntyped:     true,
		Limits: AdminLimits{
			HeaderBytes: 8 << 10, TargetBytes: 8 << 10, BodyBytes: 64 << 10,
			Headers: 64, QueryParameters: 128, QueryValueBytes: 4 << 10,
			Connections: 1024, ConnectionsPerAddress: 256,
			ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute, StreamStall: 10 * time.Second, ResponseTime: 2 * time.Minute, ShutdownTime: 5 * time.Second,
			HeavyRunning: 4, HeavyWaiting: 16, HeavyWait: 2 * time.Second, Compressors: 4,
			RegexBytes: 1024, RegexProgram: 10000, RegexBudget: 2 * time.Second, RegexParallel: 4,
			CircuitStreams: 16, AuditEntries: 1000,
		},
	}
}

func (a *Admin) set(d *decoder, n *yaml.Node, path string) {
	var logPath string
	seen := d.message(n, path, []field{
		{"address", a.Address.set},
		{"access_log_path", outputFile(&logPath)},
		{"access_log", list(&a.AccessLog, func(l *AccessLog) setter { return l.set })},
		{"profile_path", text(&a.ProfilePath)},
		{"socket_options", list(&a.SocketOptions, func(o *SocketOption) setter { return o.set })},
		{"ignore_global_conn_limit", boolean(&a.IgnoreGlobalConnLimit)},
		{"allow_paths", list(&a.AllowPaths, func(m *StringMatcher) setter { return m.set })},
		{"mode", choice(&a.Mode, ModeFull, ModeReadOnly, ModeMetricsOnly)},
		{"host_check", choice(&a.HostCheck, HostCheckAuto, HostCheckStrict, HostCheckOff)},
		{"allowed_hosts", texts(&a.AllowedHosts)},
		{"allowed_origins", list(&a.AllowedOrigins, origin)},
		{"cors_read_origins", list(&a.CORSReadOrigins, origin)},
		{"circuit_stream_cors", choice(&a.CircuitStreamCORS, CORSSame, CORSAny)},
		{"redact_untyped", boolean(&a.RedactUntyped)},
		{"debug_endpoints", boolean(&a.DebugEndpoints)},
		{"socket_group", text(&a.SocketGroup)},
		{"limits", a.Limits.set},
		{"auth", func(d *decoder, n *yaml.Node, path string) {
			a.Auth = new(AdminAuth)
			a.Auth.set(d, n, path)
		}},
		{"tls", func(d *decoder, n *yaml.Node, path string) {
			a.TLS = new(AdminTLS)
			a.TLS.set(d, n, path)
		}},
	})
	a.checkSecurity(d, seen, path)
	if logPath != "" && logPath != "/dev/null" {
		a.AccessLog = append([]AccessLog{{Path: logPath}}, a.AccessLog...)
	}
	if n, ok := seen["socket_group"]; ok && a.Address.Pipe == "" {
		d.errorf(n, join(path, "socket_group"), "only for an address of kind pipe")
	}
	if n, ok := seen["host_check"]; ok && a.HostCheck == HostCheckOff {
		d.warnf(n, join(path, "host_check"), "off: web pages may reach this server by a name that they control")
	}
}

// origin decodes a web origin as browsers send it.
func origin(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			if u, err := url.Parse(n.Value); err == nil && u.Host != "" && u.Scheme+"://"+u.Host == n.Value {
				*to = n.Value
				return
			}
		}
		d.errorf(n, path, "%s is not an origin such as https://example.net or http://10.0.0.1:8080", d.show(n, path))
	}
}

func (a *Address) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"socket_address", a.setSocket},
		{"pipe", a.setPipe},
	})
	d.oneOf(n, path, seen, true, "socket_address", "pipe")
}

func (a *Address) setSocket(d *decoder, n *yaml.Node, path string) {
	var address, protocol string
	seen := d.message(n, path, []field{
		{"protocol", choice(&protocol, "TCP")},
		{"address", text(&address)},
		{"port_value", whole(&a.Port, 0, 65535)},
		{"named_port", absent},
		{"resolver_name", absent},
		{"ipv4_compat", ignored},
	})
	d.require(n, path, seen, "address", "port_value")
	if at, ok := seen["address"]; ok && address != "" {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			d.errorf(at, join(path, "address"), "%s is not an IP address such as 127.0.0.1 or ::1", d.show(at, path))
			return
		}
		a.IP = ip
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
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			base := 0 // 0600, 0o600 and 384 as numbers
			if n.Tag == "!!str" {
				base = 8 // "0600" and "600"
			}
			if v, err := strconv.ParseUint(n.Value, base, 32); err == nil && v <= 0o777 {
				*to = int(v)
				return
			}
		}
		d.errorf(n, path, "%s is not a file mode in [0, 0777]", d.show(n, path))
	}
}

func (o *SocketOption) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"description", text(&o.Description)},
		{"level", whole(&o.Level, 0, 1<<31-1)},
		{"name", whole(&o.Name, 0, 1<<31-1)},
		{"int_value", whole(&o.IntValue, -1<<31, 1<<31-1)},
		{"buf_value", text(&o.BufValue)},
		{"state", choice(&o.State, "STATE_PREBIND", "STATE_BOUND", "STATE_LISTENING")},
		{"type", ignored},
	})
	d.oneOf(n, path, seen, true, "int_value", "buf_value")
	if o.State == "" {
		o.State = "STATE_PREBIND"
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
			l.Filter = new(AccessFilter)
			l.Filter.set(d, n, path)
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
		l.Source = Raw{Node: seen[kind], Path: join(path, kind), doc: d.doc}
	}
	if typeName == "" || kind == "" {
		return
	}
	if fixed := accessLogTypes[typeName]; fixed != "" {
		l.Path = fixed
	}
	if l.Path == "" {
		d.errorf(seen[kind], join(join(path, kind), "path"), "required field is not set")
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
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if !isNull(n.Content[i+1]) {
			seen[snakeCase(n.Content[i].Value)] = n.Content[i+1]
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
		{"header_bytes", limit(&l.HeaderBytes)},
		{"target_bytes", limit(&l.TargetBytes)},
		{"body_bytes", limit(&l.BodyBytes)},
		{"headers", limit(&l.Headers)},
		{"query_parameters", limit(&l.QueryParameters)},
		{"query_value_bytes", limit(&l.QueryValueBytes)},
		{"connections", limit(&l.Connections)},
		{"connections_per_address", limit(&l.ConnectionsPerAddress)},
		{"read_timeout", timeLimit(&l.ReadTimeout)},
		{"idle_timeout", timeLimit(&l.IdleTimeout)},
		{"stream_stall", timeLimit(&l.StreamStall)},
		{"response_time", timeLimit(&l.ResponseTime)},
		{"shutdown_time", timeLimit(&l.ShutdownTime)},
		{"heavy_running", limit(&l.HeavyRunning)},
		{"heavy_waiting", limit(&l.HeavyWaiting)},
		{"heavy_wait", timeLimit(&l.HeavyWait)},
		{"compressors", limit(&l.Compressors)},
		{"regex_bytes", limit(&l.RegexBytes)},
		{"regex_program", limit(&l.RegexProgram)},
		{"regex_budget", timeLimit(&l.RegexBudget)},
		{"regex_parallel", limit(&l.RegexParallel)},
		{"circuit_streams", limit(&l.CircuitStreams)},
		{"audit_entries", limit(&l.AuditEntries)},
	})
}
