package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"go.yaml.in/yaml/v4"
)

// Sink is an entry of the list sinks.
type Sink struct {
	Name   string // default statsd
	StatsD *statsdsink.Config
}

func (s *Sink) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"name", text(&s.Name)},
		{"statsd", s.setStatsD},
	})
	d.require(n, path, seen, "statsd")
}

func (s *Sink) setStatsD(d *decoder, n *yaml.Node, path string) {
	c := &statsdsink.Config{Network: statsdsink.UDP, Format: statsdsink.Plain}
	s.StatsD = c
	seen := d.message(n, path, []field{
		{"protocol", choice(&c.Network, statsdsink.UDP, statsdsink.TCP, statsdsink.Unixgram, statsdsink.Unixstream, statsdsink.Unixlines)},
		{"address", text(&c.Address)},
		{"format", choice(&c.Format, statsdsink.Plain, statsdsink.DogStatsD, statsdsink.Graphite)},
		{"prefix", text(&c.Prefix)},
		{"max_packet_bytes", size(&c.PacketBytes, 1, 16<<20)},
	})
	d.require(n, path, seen, "address")
	at, ok := seen["address"]
	if !ok {
		return
	}
	if c.Network != statsdsink.UDP && c.Network != statsdsink.TCP {
		checkSocketPath(d, at, join(path, "address"), c.Address)
		return
	}
	host, port, err := net.SplitHostPort(c.Address)
	if number, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || number == 0 || host == "" {
		d.errorf(at, join(path, "address"), "%s is not host:port, such as 127.0.0.1:8125", d.show(at, path))
	}
}

// statsdFormats holds the formats of the sinks of Envoy's bootstrap that send lines.
var statsdFormats = map[string]statsdsink.Format{
	"statsd": statsdsink.Plain, "dog_statsd": statsdsink.DogStatsD, "graphite_statsd": statsdsink.Graphite,
}

// setStatsD reads the typed_config of Envoy's sinks. They send one line per
// datagram by default, and counters that did not grow too. Without an address,
// Out stays nil.
func (s *StatsSink) setStatsD(d *decoder, format statsdsink.Format) {
	if s.Config.Node == nil {
		return
	}
	c := statsdsink.Config{Format: format, Prefix: d.product, ZeroDeltas: true, PacketBytes: 1}
	var address Address
	fields := []field{
		{"@type", accepted},
		{"address", address.set},
		{"prefix", text(&c.Prefix)},
	}
	if format == statsdsink.Plain {
		fields = append(fields, field{"tcp_cluster_name", accepted})
	} else {
		fields = append(fields, field{"max_bytes_per_datagram", whole(&c.PacketBytes, 1, 1<<20)})
	}
	d.message(s.Config.Node, s.Config.Path, fields)
	if c.Prefix == "" {
		c.Prefix = d.product
	}
	switch {
	case address.Pipe != "":
		c.Network, c.Address = statsdsink.Unixgram, address.Pipe
	case !address.IsZero():
		c.Network, c.Address = statsdsink.UDP, address.String()
	default:
		return
	}
	s.Out = &c
}

// statsdSinks returns the sinks of the file that send StatsD lines, with unique
// names.
func statsdSinks(c *Config) (all []statsdsink.Config) {
	used := map[string]int{}
	add := func(name string, cfg statsdsink.Config) {
		used[name]++
		if n := used[name]; n > 1 {
			name = fmt.Sprintf("%s_%d", name, n)
		}
		cfg.Name = name
		all = append(all, cfg)
	}
	for _, s := range c.Sinks {
		if s.StatsD != nil {
			add(cmp.Or(s.Name, "statsd"), *s.StatsD)
		}
	}
	for _, s := range c.Stats.Sinks {
		if s.Out != nil {
			add(s.Kind, *s.Out)
		}
	}
	return all
}
