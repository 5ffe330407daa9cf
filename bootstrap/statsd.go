package bootstrap

import (
	"io/fs"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/statsd"
	"go.yaml.in/yaml/v4"
)

// StatsD holds the settings of the StatsD input.
type StatsD struct {
	Enabled   bool             // the section is present
	Listeners []StatsDListener // default: udp and tcp on 127.0.0.1:8125

	Parse        StatsDParse
	Limits       statsd.Limits
	TTL          statsd.TTL
	Prefix       string // put in front of every name
	ExtractTags  bool   // tag rules are for received names without tags too
	Exposition   StatsDExposition
	EventsKept   int    // default 100
	ChecksKept   int    // default 1000
	CheckGauges  bool   // service checks also as gauges
	KeepRejected bool   // default true: the last rejected lines can be seen
	SelfMetrics  string // none (default) or statsd_exporter: whose names the figures about the input have besides their own
}

// StatsDNetwork is the transport of a listener.
type StatsDNetwork string

// The transports.
const (
	NetworkUDP        StatsDNetwork = "udp"
	NetworkTCP        StatsDNetwork = "tcp"
	NetworkUnixgram   StatsDNetwork = "unixgram"
	NetworkUnixstream StatsDNetwork = "unixstream" // frames with a length in front
	NetworkUnixlines  StatsDNetwork = "unixlines"  // lines
)

// StatsDListener is one socket that accepts StatsD lines.
type StatsDListener struct {
	statsd.ListenerConfig
	Network StatsDNetwork
	IP      string       // udp, tcp: "4" or "6" when the address names one of them
	Host    netip.Addr   // udp, tcp; invalid: all addresses
	Port    uint16       // udp, tcp
	Path    string       // unix sockets; @name is abstract
	Files   *certs.Files // tcp: of TLS; nil: plain
}

// StatsDParse says which dialects of the line are understood.
type StatsDParse struct {
	DogStatsD bool // all dialects default to true
	Influx    bool
	Librato   bool
	SignalFX  bool
	Graphite  bool

	GaugeSigns       GaugeSigns       // default delta
	NegativeCounters NegativeCounters // default reject
	GaugeCounters    match.List       // with NegativeGauge: names of the counters that it is for
	Container        ContainerField   // default drop
}

// GaugeSigns says what +5 and -5 do to a gauge.
type GaugeSigns string

// The meanings of a signed gauge value.
const (
	SignsDelta    GaugeSigns = "delta"
	SignsAbsolute GaugeSigns = "absolute"
)

// NegativeCounters says what happens to a negative counter value.
type NegativeCounters string

// The treatments of negative counter values.
const (
	NegativeReject NegativeCounters = "reject"
	NegativeGauge  NegativeCounters = "gauge" // series that are named are gauges from the beginning
)

// ContainerField says what happens to the container field of a line.
type ContainerField string

// The treatments of the container field.
const (
	ContainerDrop ContainerField = "drop"
	ContainerTag  ContainerField = "tag"
)

// StatsDExposition says how series look in the exposition format.
type StatsDExposition struct {
	Prefix        string
	CounterSuffix string // none (default) or total
	TimerUnit     string // ms (default) or s
	Observer      string // histogram (default) or summary
	TypeConflict  string // suffix (default) or reject
	OpenMetrics   string // fallback (default): for clients that accept no text format; or prefer
	Compat        string // none (default) or statsd_exporter
}

func defaultStatsD() StatsD {
	return StatsD{
		Parse: StatsDParse{
			DogStatsD: true, Influx: true, Librato: true, SignalFX: true, Graphite: true,
			GaugeSigns: SignsDelta, NegativeCounters: NegativeReject, Container: ContainerDrop,
		},
		Limits: statsd.DefaultLimits(),
		Exposition: StatsDExposition{
			CounterSuffix: "none", TimerUnit: "ms", Observer: "histogram", TypeConflict: "suffix", OpenMetrics: "fallback", Compat: "none",
		},
		EventsKept: 100, ChecksKept: 1000, KeepRejected: true, SelfMetrics: "none",
	}
}

func (s *StatsD) set(d *decoder, n *yaml.Node, path string) {
	s.Enabled = true
	seen := d.message(n, path, []field{
		{"listeners", list(&s.Listeners, func(l *StatsDListener) setter { return l.set })},
		{"parse", s.Parse.set},
		{"limits", statsdLimits(&s.Limits)},
		{"ttl", nested(
			field{"counter", period(&s.TTL.Counter, 0, forever)},
			field{"gauge", period(&s.TTL.Gauge, 0, forever)},
			field{"histogram", period(&s.TTL.Histogram, 0, forever)},
			field{"set", period(&s.TTL.Set, 0, forever)},
		)},
		{"prefix", text(&s.Prefix)},
		{"extract_tags", boolean(&s.ExtractTags)},
		{"exposition", s.Exposition.set},
		{"events", nested(field{"keep", whole(&s.EventsKept, 0, 100_000)})},
		{"service_checks", nested(
			field{"keep", whole(&s.ChecksKept, 0, 100_000)},
			field{"gauge", boolean(&s.CheckGauges)},
		)},
		{"keep_rejected", boolean(&s.KeepRejected)},
		{"mapping", setNoMapping},
		{"relay", absent},
		{"self_metrics", choice(&s.SelfMetrics, "none", "statsd_exporter")},
	})
	_, given := seen["listeners"]
	if !given && n.Kind == yaml.MappingNode {
		port := uint16(8125)
		for _, network := range []StatsDNetwork{NetworkUDP, NetworkTCP} {
			l := StatsDListener{Network: network, Host: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: port}
			l.Address = string(network) + "://127.0.0.1:8125"
			s.Listeners = append(s.Listeners, l)
		}
		return
	}
	names := make(map[string]bool)
	for i, l := range s.Listeners {
		if l.Name != "" && names[l.Name] {
			at := seen["listeners"].Content[i]
			d.errorf(at, path+".listeners["+strconv.Itoa(i)+"]", "second listener named %q", l.Name)
		}
		names[l.Name] = true
	}
}

// setNoMapping accepts a mapping section that maps nothing.
func setNoMapping(d *decoder, n *yaml.Node, path string) {
	d.message(n, path, []field{
		{"file", absent},
		{"watch", absent},
		{"unmatched", func(d *decoder, n *yaml.Node, path string) {
			if n.Kind != yaml.ScalarNode || n.Value != "keep" {
				absent(d, n, path)
			}
		}},
	})
}

// listenerFields says which fields make sense on which transport.
var listenerFields = map[string][]StatsDNetwork{
	"readers":          {NetworkUDP, NetworkUnixgram},
	"rcvbuf":           {NetworkUDP, NetworkUnixgram},
	"max_packet_bytes": {NetworkUDP, NetworkUnixgram, NetworkUnixstream},
	"max_connections":  {NetworkTCP, NetworkUnixstream, NetworkUnixlines},
	"max_per_address":  {NetworkTCP},
	"idle_timeout":     {NetworkTCP, NetworkUnixstream, NetworkUnixlines},
	"allowed_cidrs":    {NetworkUDP, NetworkTCP},
	"mode":             {NetworkUnixgram, NetworkUnixstream, NetworkUnixlines},
	"owner":            {NetworkUnixgram, NetworkUnixstream, NetworkUnixlines},
	"group":            {NetworkUnixgram, NetworkUnixstream, NetworkUnixlines},
	"tls":              {NetworkTCP},
}

func (l *StatsDListener) set(d *decoder, n *yaml.Node, path string) {
	mode := 0
	seen := d.message(n, path, []field{
		{"address", l.setAddress},
		{"name", nonEmpty(&l.Name)},
		{"readers", whole(&l.Readers, 0, 256)},
		{"rcvbuf", size(&l.RcvBuf, 1<<10, 1<<30)},
		{"max_packet_bytes", size(&l.PacketBytes, 512, 1<<20)},
		{"max_connections", limit(&l.Connections)},
		{"max_per_address", limit(&l.PerAddress)},
		{"idle_timeout", period(&l.IdleTimeout, 0, 24*time.Hour)},
		{"allowed_cidrs", list(&l.Allowed, cidr)},
		{"mode", fileMode(&mode)},
		{"owner", text(&l.Owner)},
		{"group", text(&l.Group)},
		{"tls", func(d *decoder, n *yaml.Node, path string) {
			l.Files = new(certs.Files)
			setTLS(l.Files)(d, n, path)
		}},
	})
	l.Mode = fs.FileMode(mode)
	d.require(n, path, seen, "address")
	if l.Network == "" {
		return
	}
	if strings.HasPrefix(l.Address, "tls://") && l.Files == nil {
		d.errorf(seen["address"], join(path, "address"), "tls:// needs the field tls: {certificate_chain, private_key}")
	}
	for name, networks := range listenerFields {
		if at, ok := seen[name]; ok && !slices.Contains(networks, l.Network) {
			d.errorf(at, join(path, name), "has no meaning for %s; only for %s", l.Network, words(networks))
		}
	}
	if at, ok := seen["name"]; ok {
		checkName(d, at, join(path, "name"), l.Name)
	}
}

// setTLS reads the files of a TLS listener.
func setTLS(t *certs.Files) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		seen := d.message(n, path, []field{
			{"certificate_chain", inputFile(&t.Chain)},
			{"private_key", inputFile(&t.Key)},
			{"client_ca", inputFile(&t.ClientCA)},
		})
		d.require(n, path, seen, "certificate_chain", "private_key")
	}
}

// setAddress reads network://host:port or network:///path.
func (l *StatsDListener) setAddress(d *decoder, n *yaml.Node, path string) {
	bad := func(reason string) {
		d.errorf(n, path, "%s is not a listener address: %s; want udp://[host]:port, tcp://[host]:port, tls://[host]:port, unixgram:///path, unixstream:///path or unixlines:///path",
			d.show(n, path), reason)
	}
	if n.Kind != yaml.ScalarNode {
		bad("not text")
		return
	}
	l.Address = n.Value
	network, rest, ok := strings.Cut(n.Value, "://")
	switch {
	case !ok:
		bad("no ://")
		return
	case network == "tls": // says at a glance that the field tls is there
		network = "tcp"
	}
	if base := strings.TrimRight(network, "46"); len(network)-len(base) == 1 && (base == "udp" || base == "tcp") {
		network, l.IP = base, network[3:]
	}
	switch network := StatsDNetwork(network); network {
	case NetworkUDP, NetworkTCP:
		host, port, err := net.SplitHostPort(rest)
		if err != nil {
			bad("no host:port")
			return
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			bad("port not in [0, 65535]")
			return
		}
		if host != "" {
			if l.Host, err = netip.ParseAddr(host); err != nil {
				bad("the host is not an IP address")
				return
			}
			if l.IP == "4" && !l.Host.Is4() || l.IP == "6" && l.Host.Is4() {
				bad("the host is no address of IPv" + l.IP)
				return
			}
		}
		l.Port, l.Network = uint16(number), network
	case NetworkUnixgram, NetworkUnixstream, NetworkUnixlines:
		l.Network, l.Path = network, rest
		checkSocketPath(d, n, path, rest)
	default:
		bad("unknown network")
	}
}

func (p *StatsDParse) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"dogstatsd", boolean(&p.DogStatsD)},
		{"influx", boolean(&p.Influx)},
		{"librato", boolean(&p.Librato)},
		{"signalfx", boolean(&p.SignalFX)},
		{"graphite", boolean(&p.Graphite)},
		{"gauge_signs", choice(&p.GaugeSigns, SignsDelta, SignsAbsolute)},
		{"negative_counters", choice(&p.NegativeCounters, NegativeReject, NegativeGauge)},
		{"gauge_counters", list((*[]match.Matcher)(&p.GaugeCounters), matcher)},
		{"container", choice(&p.Container, ContainerDrop, ContainerTag)},
	})
	switch named := len(p.GaugeCounters) > 0; {
	case p.NegativeCounters == NegativeGauge && !named:
		d.errorf(seen["negative_counters"], join(path, "negative_counters"), "gauge is only for the counters that gauge_counters names, and it names none")
	case p.NegativeCounters == NegativeReject && named:
		d.errorf(seen["gauge_counters"], join(path, "gauge_counters"), "has no effect unless negative_counters is gauge")
	}
}

// statsdLimits returns the table of the limits of senders.
func statsdLimits(l *statsd.Limits) setter {
	return nested([]field{
		{"line_bytes", limit(&l.LineBytes)},
		{"lines_per_packet", limit(&l.LinesPerPacket)},
		{"name_bytes", limit(&l.NameBytes)},
		{"segments", limit(&l.Segments)},
		{"tags", limit(&l.Tags)},
		{"tag_key_bytes", limit(&l.TagKeyBytes)},
		{"tag_value_bytes", limit(&l.TagValueBytes)},
		{"series", limit(&l.Series)},
		{"series_per_first_segment", limit(&l.FirstSegment)},
		{"series_per_name", limit(&l.SeriesPerName)},
		{"new_series_per_second", limit(&l.NewPerSecond)},
		{"sets", limit(&l.Sets)},
		{"values_per_tag_key", limit(&l.ValuesPerTagKey)},
		{"memory_bytes", limitUpTo(&l.MemoryBytes, math.MaxInt)},
	}...)
}

func (e *StatsDExposition) set(d *decoder, n *yaml.Node, path string) {
	d.message(n, path, []field{
		{"prefix", text(&e.Prefix)},
		{"counter_suffix", choice(&e.CounterSuffix, "none", "total")},
		{"timer_unit", choice(&e.TimerUnit, "ms", "s")},
		{"observer", choice(&e.Observer, "histogram", "summary")},
		{"openmetrics", choice(&e.OpenMetrics, "fallback", "prefer")},
		{"type_conflict", choice(&e.TypeConflict, "suffix", "reject")},
		{"compat", choice(&e.Compat, "none", "statsd_exporter")},
	})
}
