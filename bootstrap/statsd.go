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

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
	"go.yaml.in/yaml/v4"
)

// StatsD holds the settings of the StatsD input.
type StatsD struct {
	Enabled   bool             // the section is present
	Listeners []StatsDListener // default: udp and tcp on 127.0.0.1:8125

	statsd.Config // without store, listeners and rules

	Mapping StatsDMapping

	Naming            naming.Rules // metric names of received stats
	PreferOpenMetrics bool         // also for clients that accept a text format
	OmitCreated       bool         // no samples _created in OpenMetrics
}

// StatsDListener is one socket that accepts StatsD lines.
type StatsDListener struct {
	statsd.ListenerConfig
	Network sinkqueue.Network
	IP      string       // udp, tcp: "4" or "6" when the address names one of them
	Host    netip.Addr   // udp, tcp; invalid: all addresses
	Port    uint16       // udp, tcp
	Path    string       // unix sockets; @name is abstract
	Files   *certs.Files // tcp: of TLS; nil: plain
}

func defaultStatsD() StatsD {
	return StatsD{Config: statsd.Config{Limits: statsd.DefaultLimits(), SetWindow: 10 * time.Minute, RelayLoopCheck: relay.DefaultLoopCheck, Events: 100, Checks: 1000}}
}

// setTTL decodes the times to live by kind, or one for all kinds.
func (s *StatsD) setTTL(d *decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode {
		period(&s.TTL.Counter, 0, forever)(d, n, path)
		s.TTL.Gauge, s.TTL.Histogram, s.TTL.Set = s.TTL.Counter, s.TTL.Counter, s.TTL.Counter
		return
	}
	d.message(n, path, []field{
		{"counter", period(&s.TTL.Counter, 0, forever)},
		{"gauge", period(&s.TTL.Gauge, 0, forever)},
		{"histogram", period(&s.TTL.Histogram, 0, forever)},
		{"set", period(&s.TTL.Set, 0, forever)},
	})
}

func (s *StatsD) set(d *decoder, n *yaml.Node, path string) {
	s.Enabled = true
	var targets []relayTarget
	seen := d.message(n, path, []field{
		{"listeners", list(&s.Listeners, func(l *StatsDListener) setter { return l.set })},
		{"parse", s.setParse},
		{"limits", statsdLimits(&s.Limits)},
		{"ttl", s.setTTL},
		{"prefix", text(&s.Prefix)},
		{"extract_tags", boolean(&s.ExtractTags)},
		{"exposition", s.setExposition},
		{"events", nested(field{"keep", whole(&s.Events, 0, 100_000)})},
		{"service_checks", nested(
			field{"keep", whole(&s.Checks, 0, 100_000)},
			field{"gauge", boolean(&s.CheckGauges)},
		)},
		{"keep_rejected", not(&s.ForgetRejected)},
		{"filters", s.setFilters},
		{"mapping", s.Mapping.set},
		{"relay", s.setRelay(&targets)},
		{"relay_only", boolean(&s.RelayOnly)},
		{"relay_loop_check", s.setLoopCheck},
		{"self_metrics", enum(&s.ExporterMetrics, "none, statsd_exporter", false, true)},
	})
	s.Prefix = oneline.Clean(s.Prefix)
	for _, kept := range []*int{&s.Events, &s.Checks} {
		if *kept == 0 {
			*kept = -1 // none; 0 would be the default
		}
	}
	if unit := member(seen["exposition"], "timer_unit"); s.Mapping.Given() && (unit == nil || conftree.IsNull(unit)) {
		s.Naming.NetworkSeconds = true // as users of mapping files expect
	}
	if s.RelayOnly && len(s.Relay) == 0 {
		d.errorf(seen["relay_only"], join(path, "relay_only"), "every line would be dropped: relay is not set")
	}
	if s.ExporterMetrics {
		s.Naming.Namespaces = append(s.Naming.Namespaces, statsd.ExporterNamespace)
	}
	if _, given := seen["listeners"]; !given && n.Kind == yaml.MappingNode {
		port := uint16(8125)
		for _, network := range []sinkqueue.Network{sinkqueue.UDP, sinkqueue.TCP} {
			l := StatsDListener{Network: network, Host: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: port}
			l.Address = string(network) + "://127.0.0.1:8125"
			s.Listeners = append(s.Listeners, l)
		}
	}
	s.checkLoops(d, targets)
	names := make(map[string]bool)
	for i, l := range s.Listeners {
		if l.Name != "" && names[l.Name] {
			at := seen["listeners"].Content[i]
			d.errorf(at, path+".listeners["+strconv.Itoa(i)+"]", "second listener named %q", l.Name)
		}
		names[l.Name] = true
	}
}

// listenerFields says which fields make sense on which transport.
var listenerFields = map[string][]sinkqueue.Network{
	"readers":          {sinkqueue.UDP, sinkqueue.Unixgram},
	"rcvbuf":           {sinkqueue.UDP, sinkqueue.Unixgram},
	"max_packet_bytes": {sinkqueue.UDP, sinkqueue.Unixgram, sinkqueue.Unixstream},
	"max_connections":  {sinkqueue.TCP, sinkqueue.Unixstream, sinkqueue.Unixlines},
	"max_per_address":  {sinkqueue.TCP},
	"idle_timeout":     {sinkqueue.TCP, sinkqueue.Unixstream, sinkqueue.Unixlines},
	"allowed_cidrs":    {sinkqueue.UDP, sinkqueue.TCP},
	"mode":             {sinkqueue.Unixgram, sinkqueue.Unixstream, sinkqueue.Unixlines},
	"owner":            {sinkqueue.Unixgram, sinkqueue.Unixstream, sinkqueue.Unixlines},
	"group":            {sinkqueue.Unixgram, sinkqueue.Unixstream, sinkqueue.Unixlines},
	"tls":              {sinkqueue.TCP},
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
		d.readsCertificates(n, path, t)
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
		bad("not a string")
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
	switch network := sinkqueue.Network(network); network {
	case sinkqueue.UDP, sinkqueue.TCP:
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
	case sinkqueue.Unixgram, sinkqueue.Unixstream, sinkqueue.Unixlines:
		l.Network, l.Path = network, rest
		checkSocketPath(d, n, path, rest)
	default:
		bad("unknown network")
	}
}

func (s *StatsD) setParse(d *decoder, n *yaml.Node, path string) {
	p := &s.Parse
	style := func(bits line.Styles) setter {
		return func(d *decoder, n *yaml.Node, path string) {
			on := p.Off&bits == 0
			boolean(&on)(d, n, path)
			if p.Off |= bits; on {
				p.Off &^= bits
			}
		}
	}
	var gauges bool
	var counters match.List
	seen := d.message(n, path, []field{
		{"dogstatsd", style(line.DogStatsD)},
		{"influx", style(line.Influx)},
		{"librato", style(line.Librato)},
		{"signalfx", style(line.SignalFX)},
		{"graphite", style(line.Graphite)},
		{"gauge_signs", enum(&p.AbsoluteGauges, "delta, absolute", false, true)},
		{"negative_counters", enum(&gauges, "reject, gauge", false, true)},
		{"gauge_counters", list((*[]match.Matcher)(&counters), matcher)},
		{"container", enum(&p.TagContainer, "drop, tag", false, true)},
	})
	switch named := len(counters) > 0; {
	case gauges && !named:
		d.errorf(seen["negative_counters"], join(path, "negative_counters"), "gauge is only for the counters that gauge_counters names, and it names none")
	case !gauges && named:
		d.errorf(seen["gauge_counters"], join(path, "gauge_counters"), "has no effect unless negative_counters is gauge")
	case gauges:
		s.GaugeBacked = counters.Match
	}
}

// statsdLimits returns the table of the limits of senders.
func statsdLimits(l *statsd.Limits) setter {
	return nested([]field{
		{"line_bytes", sizeLimit(&l.LineBytes, math.MaxInt32)},
		{"lines_per_packet", limit(&l.LinesPerPacket)},
		{"name_bytes", sizeLimit(&l.NameBytes, math.MaxInt32)},
		{"segments", limit(&l.Segments)},
		{"tags", limit(&l.Tags)},
		{"tag_key_bytes", sizeLimit(&l.TagKeyBytes, math.MaxInt32)},
		{"tag_value_bytes", sizeLimit(&l.TagValueBytes, math.MaxInt32)},
		{"series", limit(&l.Series)},
		{"series_per_first_segment", limit(&l.FirstSegment)},
		{"series_per_name", limit(&l.SeriesPerName)},
		{"new_series_per_second", limit(&l.NewPerSecond)},
		{"sets", limit(&l.Sets)},
		{"values_per_tag_key", limit(&l.ValuesPerTagKey)},
		{"memory_bytes", sizeLimit(&l.MemoryBytes, math.MaxInt)},
	}...)
}

func (s *StatsD) setExposition(d *decoder, n *yaml.Node, path string) {
	// Quantiles with a sliding window, as the exposition shows summaries.
	summaries := &store.HistogramForm{Quantiles: []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}}
	age := s.SetWindow
	seen := d.message(n, path, []field{
		{"prefix", text(&s.Naming.NetworkPrefix)},
		{"counter_suffix", enum(&s.Naming.NetworkTotal, "none, total", false, true)},
		{"timer_unit", enum(&s.Naming.NetworkSeconds, "ms, s", false, true)},
		{"observer", enum(&s.Histograms, "histogram, summary", nil, summaries)},
		{"max_age", period(&age, 0, 24*time.Hour)},
		{"openmetrics", enum(&s.PreferOpenMetrics, "fallback, prefer", false, true)},
		{"openmetrics_created", enum(&s.OmitCreated, "include, omit", false, true)},
		{"type_conflict", enum(&s.RejectConflicts, "suffix, reject", false, true)},
		{"compat", enum(&s.Parse.Exporter, "none, statsd_exporter", false, true)},
	})
	if at, ok := seen["max_age"]; ok && age != 0 && age < 5*time.Second {
		d.errorf(at, join(path, "max_age"), "%v is neither 0 nor 5 seconds or more", age)
	}
	summaries.Window = age
	if s.SetWindow = age; age == 0 {
		s.SetWindow = -1 // 0 would be the default
	}
	if s.Parse.Exporter {
		s.Naming.NetworkRunes = true
		summaries.Quantiles = []float64{0.5, 0.9, 0.99}
		if _, given := seen["type_conflict"]; !given {
			s.RejectConflicts = true
		}
	}
}
