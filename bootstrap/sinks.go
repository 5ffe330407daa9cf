package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/graphite"
	"github.com/statsd-admin/statsd-admin/flush/jsonlines"
	"github.com/statsd-admin/statsd-admin/flush/metricsservice"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkgrpc"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"go.yaml.in/yaml/v4"
)

// Sink is an entry of the list sinks, of exactly one kind.
type Sink struct {
	Options sinkqueue.Options // the name is empty if it is not set

	StatsD      *statsdsink.Config
	RemoteWrite *remotewrite.Config
	OTLP        *otlp.Config
	Graphite    *graphite.Config
	JSONLines   *jsonlines.Config
	Metrics     *metricsservice.Config

	kind     string     // of sinkKinds, unless the name is set
	grpc     bool       // of OTLP
	tls      sinkTLS    // of sinks over HTTP and gRPC
	cluster  string     // of the receiver, if it is one
	interval *yaml.Node // of Options.Interval
	path     string     // of interval

	address     *yaml.Node // of StatsD.Address
	addressPath string
}

// sinkKinds are the keys of which a sink has one.
var sinkKinds = []string{"statsd", "remote_write", "otlp", "graphite", "json_lines", "metrics_service"}

// create makes the sink with the options o.
func (s *Sink) create(o sinkqueue.Options, dial server.ClusterDialer) (flush.Sink, error) {
	tls, err := s.tls.config()
	if err != nil {
		return nil, err
	}
	switch {
	case s.StatsD != nil:
		c := *s.StatsD
		c.Options, c.Dial = o, s.dialer(dial)
		return created(statsdsink.New(c))
	case s.RemoteWrite != nil:
		c := *s.RemoteWrite
		c.Options, c.HTTP.TLS = o, tls
		return created(remotewrite.New(c))
	case s.OTLP != nil:
		c := *s.OTLP
		c.Options, c.HTTP.TLS = o, tls
		if s.grpc {
			if c.Transport, err = sinkgrpc.New(sinkgrpc.Config{Config: c.HTTP, Gzip: c.Gzip, Method: otlp.GRPCMethod, Port: otlp.GRPCPort, Dial: s.dialer(dial)}); err != nil {
				return nil, err
			}
		}
		return created(otlp.New(c))
	case s.Graphite != nil:
		c := *s.Graphite
		c.Options = o
		return created(graphite.New(c))
	case s.JSONLines != nil:
		c := *s.JSONLines
		c.Options = o
		return created(jsonlines.New(c))
	}
	c := *s.Metrics
	c.Options, c.Receiver.TLS, c.Dial = o, tls, s.dialer(dial)
	return created(metricsservice.New(c))
}

// dialer returns a function that connects to the cluster of the receiver, nil if it is
// none.
func (s *Sink) dialer(dial server.ClusterDialer) func(context.Context) (net.Conn, error) {
	if s.cluster == "" {
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) { return dial(ctx, s.cluster) }
}

// created returns a sink as the interface.
func created[S flush.Sink](sink S, err error) (flush.Sink, error) { return sink, err }

func (s *Sink) set(d *decoder, n *yaml.Node, path string) {
	o := &s.Options
	fields := []field{
		{"name", nonEmpty(&o.Name)},
		{"filters", s.setFilters},
		{"prefix", text(&o.Prefix)},
		{"tags", tagMap(&o.Tags)},
		{"interval", func(d *decoder, n *yaml.Node, path string) {
			period(&o.Interval, time.Millisecond, 24*time.Hour)(d, n, path)
			s.interval, s.path = n, path
		}},
		{"queue", nested(
			field{"max_bytes", size(&o.QueueBytes, 64<<10, 64<<30)},
			field{"max_age", period(&o.QueueAge, time.Second, 30*24*time.Hour)},
		)},
		{"on_ambiguous", enum(&o.Resend, "drop, resend", false, true)},
		{"statsd", s.setStatsD},
		{"remote_write", s.setRemoteWrite},
		{"otlp", s.setOTLP},
		{"graphite", s.setGraphite},
		{"json_lines", s.setJSONLines},
		{"metrics_service", s.setMetricsService},
	}
	seen := d.message(n, path, fields)
	s.kind = d.oneOf(n, path, seen, true, sinkKinds...)
	if _, ok := seen["remote_write"]; ok && !slices.ContainsFunc(o.Tags, func(t tags.Tag) bool { return t.Name == "instance" }) {
		d.warnf(seen["remote_write"], join(path, "tags"), "without a tag instance, two servers would write the same series")
	}
	if at, ok := seen["tags"]; ok && s.kind == "statsd" && s.StatsD.Format == statsdsink.Plain && len(o.Tags) > 0 {
		d.errorf(at, join(path, "tags"), "the format plain has no tags; use the format dogstatsd or graphite")
	}
	if at, ok := seen["tags"]; ok && s.kind == "graphite" && !s.Graphite.Tagged && len(o.Tags) > 0 {
		d.errorf(at, join(path, "tags"), "lines have no tags; set graphite.tagged to true")
	}
}

// check reports an interval that is not a multiple of that of flushes, which is 0 if
// requests flush.
func (s *Sink) check(d *decoder, flushes time.Duration, own []StatsDListener) {
	if s.StatsD != nil && s.address != nil && s.Options.Filter.Origin != sinkqueue.Own {
		if l := receivedBy(string(s.StatsD.Network)+"://"+s.StatsD.Address, own); l != "" {
			d.errorf(s.address, s.addressPath, "%q is the listener %s of this server: it would receive and send the same stats at each flush; want the address of another server, or filters: {origin: own}", s.StatsD.Address, l)
		}
	}
	switch {
	case s.interval == nil || s.Options.Interval == 0:
	case flushes == 0:
		d.errorf(s.interval, s.path, "cannot be used with stats_flush_on_admin")
	case s.Options.Interval%flushes != 0:
		d.errorf(s.interval, s.path, "%s is not a multiple of the flush interval %s", s.Options.Interval, flushes)
	}
}

func (s *Sink) setFilters(d *decoder, n *yaml.Node, path string) {
	f := &s.Options.Filter
	var kinds []store.Kind
	d.message(n, path, []field{
		{"include", list((*[]match.Matcher)(&f.Include), matcher)},
		{"exclude", list((*[]match.Matcher)(&f.Exclude), matcher)},
		{"kinds", list(&kinds, func(k *store.Kind) setter {
			return enum(k, "counter, gauge, histogram", store.KindCounter, store.KindGauge, store.KindHistogram)
		})},
		{"origin", enum(&f.Origin, "all, received, own", sinkqueue.AnyOrigin, sinkqueue.Received, sinkqueue.Own)},
	})
	f.Kinds = kinds
}

// tagMap reads a mapping of tag names to values, in the order of names.
func tagMap(to *[]tags.Tag) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			d.errorf(n, path, "%s is not a mapping of names to values", d.show(n, path))
			return
		}
		for key, value := range conftree.Pairs(n) {
			t := tags.Tag{Name: key.Value}
			at := join(path, conftree.Key(t.Name, false))
			text(&t.Value)(d, value, at)
			if t.Name == "" {
				d.errorf(key, path, "the name of a tag is empty")
			}
			*to = append(*to, t)
		}
		slices.SortFunc(*to, func(a, b tags.Tag) int { return strings.Compare(a.Name, b.Name) })
	}
}

func (s *Sink) setStatsD(d *decoder, n *yaml.Node, path string) {
	c := &statsdsink.Config{Network: statsdsink.UDP, Format: statsdsink.Plain, Timers: statsdsink.Values}
	s.StatsD = c
	seen := d.message(n, path, []field{
		{"protocol", choice(&c.Network, statsdsink.UDP, statsdsink.TCP, statsdsink.Unixgram, statsdsink.Unixstream, statsdsink.Unixlines)},
		{"address", text(&c.Address)},
		{"format", choice(&c.Format, statsdsink.Plain, statsdsink.DogStatsD, statsdsink.Graphite, statsdsink.Influx, statsdsink.Librato, statsdsink.SignalFX)},
		{"max_packet_bytes", size(&c.PacketBytes, 1, 16<<20)},
		{"final_newline", boolean(&c.FinalNewline)},
		{"zero_deltas", boolean(&c.ZeroDeltas)},
		{"gauges", enum(&c.ChangedGauges, "all, changed", false, true)},
		{"gauge_signs", enum(&c.AbsoluteGauges, "delta, absolute", false, true)},
		{"timers", choice(&c.Timers, statsdsink.Values, statsdsink.Summary, statsdsink.None)},
		{"events", boolean(&c.Events)},
	})
	d.require(n, path, seen, "address")
	if at, ok := seen["max_packet_bytes"]; ok && c.Network == statsdsink.UDP {
		checkDatagram(d, at, join(path, "max_packet_bytes"), c.PacketBytes)
	}
	switch at, ok := seen["events"]; {
	case !ok:
		c.Events = c.Format == statsdsink.DogStatsD
	case c.Events && c.Format != statsdsink.DogStatsD:
		d.errorf(at, join(path, "events"), "lines of the format %s have no events; only dogstatsd has", c.Format)
	}
	at, ok := seen["address"]
	if !ok {
		return
	}
	s.address, s.addressPath = at, join(path, "address")
	if c.Network != statsdsink.UDP && c.Network != statsdsink.TCP {
		checkSocketPath(d, at, join(path, "address"), c.Address)
		return
	}
	checkHostPort(d, at, join(path, "address"), c.Address, "127.0.0.1:8125")
}

// checkDatagram checks the size of packets that are sent over UDP.
func checkDatagram(d *decoder, n *yaml.Node, path string, bytes int) {
	if bytes > maxDatagram {
		d.errorf(n, path, "a datagram of UDP has at most %d bytes", maxDatagram)
	}
}

const maxDatagram = 65507 // the longest payload over IPv4

func (s *Sink) setGraphite(d *decoder, n *yaml.Node, path string) {
	c := &graphite.Config{Layout: graphite.Plain}
	s.Graphite = c
	seen := d.message(n, path, []field{
		{"address", text(&c.Address)},
		{"layout", choice(&c.Layout, graphite.Plain, graphite.Modern, graphite.Legacy)},
		{"tagged", boolean(&c.Tagged)},
		{"percentiles", percentiles(&c.Percentiles, 0.01, 99.99, graphite.MaxPercentiles)},
		{"zero_deltas", boolean(&c.ZeroDeltas)},
		{"timeout", period(&c.Timeout, time.Millisecond, time.Hour)},
	})
	d.require(n, path, seen, "address")
	if at, ok := seen["address"]; ok {
		checkHostPort(d, at, join(path, "address"), c.Address, "127.0.0.1:2003")
	}
}

func (s *Sink) setJSONLines(d *decoder, n *yaml.Node, path string) {
	c := &jsonlines.Config{}
	s.JSONLines = c
	seen := d.message(n, path, []field{
		{"path", outputFile(&c.Path)},
		{"percentiles", percentiles(&c.Percentiles, 0, 100, jsonlines.MaxPercentiles)},
	})
	d.require(n, path, seen, "path")
	if at, ok := seen["path"]; ok && c.Path == "" {
		d.errorf(at, join(path, "path"), "must not be empty")
	}
}

// percentiles decodes a list of percentages.
func percentiles(to *[]float64, least, most float64, limit int) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		list(to, func(to *float64) setter { return number(to, least, most) })(d, n, path)
		if len(*to) > limit {
			d.errorf(n, path, "%d percentiles; at most %d are allowed", len(*to), limit)
		}
	}
}

// checkHostPort reports an address that is not host:port.
func checkHostPort(d *decoder, n *yaml.Node, path, address, example string) {
	host, port, err := net.SplitHostPort(address)
	if number, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || number == 0 || host == "" {
		hint := ""
		if strings.Contains(address, "://") {
			hint = "; the transport is not part of it"
		}
		d.errorf(n, path, "%s is not host:port, such as %s%s", d.show(n, path), example, hint)
	}
}

// statsdFormats holds the formats of the sinks of Envoy's bootstrap that send lines.
var statsdFormats = map[string]statsdsink.Format{
	"statsd": statsdsink.Plain, "dog_statsd": statsdsink.DogStatsD, "graphite_statsd": statsdsink.Graphite,
}

// envoyTCPBytes is how much Envoy's sink writes to a TCP connection at a time.
const envoyTCPBytes = 16 << 10

// setStatsD reads the typed_config of Envoy's sinks. They send one line per
// datagram by default, and counters that did not grow too. Without an address and a
// cluster, Out stays nil.
func (s *StatsSink) setStatsD(d *decoder, format statsdsink.Format) {
	if s.Config.Node == nil {
		return
	}
	c := statsdsink.Config{Format: format, ZeroDeltas: true, PacketBytes: 1}
	prefix, cluster := d.product, ""
	var address Address
	fields := []field{
		{"@type", accepted},
		{"address", address.set},
		{"prefix", text(&prefix)},
	}
	if format == statsdsink.Plain {
		fields = append(fields, field{"tcp_cluster_name", text(&cluster)})
	} else {
		fields = append(fields, field{"max_bytes_per_datagram", whole(&c.PacketBytes, 1, 1<<20)})
	}
	d.message(s.Config.Node, s.Config.Path, fields)
	prefix = cmp.Or(prefix, d.product)
	switch {
	case cluster != "":
		c.Network, c.Address, c.PacketBytes = statsdsink.TCP, cluster, envoyTCPBytes
	case address.Pipe != "":
		c.Network, c.Address = statsdsink.Unixgram, address.Pipe
	case !address.IsZero():
		c.Network, c.Address = statsdsink.UDP, address.String()
	default:
		return
	}
	s.Out = &Sink{Options: sinkqueue.Options{Name: s.Kind, Prefix: prefix}, StatsD: &c, cluster: cluster}
}

// maxSinks bounds the sinks of a file. Each has some twenty metrics, which all of them
// report, so the work of a flush grows with the square of their number.
const maxSinks = 256

// sinksOf returns the sinks of the file, with unique names: the given ones or the kinds,
// and with a number behind it from the second sink of a name on.
func sinksOf(c *Config) (all []*Sink) {
	given, used := map[string]bool{}, map[string]bool{}
	for i := range c.Sinks {
		all = append(all, &c.Sinks[i])
		given[c.Sinks[i].Options.Name] = true
	}
	for i := range c.Stats.Sinks {
		if out := c.Stats.Sinks[i].Out; out != nil {
			all = append(all, out)
		}
	}
	for i, s := range all {
		named := *s
		base := cmp.Or(s.Options.Name, s.kind)
		name := base
		for n := 2; used[name] || given[name] && name != s.Options.Name; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		used[name], named.Options.Name = true, name
		if named.Metrics != nil {
			m := *named.Metrics
			m.NodeID, m.NodeCluster = c.Node.ID, c.Node.Cluster
			named.Metrics = &m
		}
		all[i] = &named
	}
	return all
}

// newSinks returns the functions that make the sinks of the file.
func newSinks(c *Config) (all []server.NewSink) {
	for _, s := range sinksOf(c) {
		all = append(all, func(st *store.Store, log *slog.Logger, dial server.ClusterDialer) (flush.Sink, error) {
			o := s.Options
			o.Store, o.Logger = st, log
			return s.create(o, dial)
		})
	}
	return all
}
