// Package metricsservice sends stats to a metrics service of Envoy's API,
// envoy.service.metrics.v3.MetricsService, over gRPC.
//
// Counters are sent as totals or as increments since the last report, gauges as
// values, histograms as summaries and histograms of the interval. Each report
// is a separate stream, whose end the receiver confirms, so lost reports are
// detected. Package sinkqueue describes what happens to increments while the
// receiver is down.
package metricsservice

import (
	"bytes"
	"context"
	"fmt"
	"net"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkgrpc"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/totals"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// method is the gRPC method that takes reports.
const method = "/envoy.service.metrics.v3.MetricsService/StreamMetrics"

// maxPacket is the size from which a packet is complete. Receivers accept 4 MiB by
// default.
const maxPacket = 1 << 20

// Histograms is the form of histograms.
type Histograms uint8

// The forms of histograms.
const (
	Both      Histograms = iota // a summary and a histogram
	Summaries                   // quantiles
	Buckets                     // buckets with the bounds of the layout
)

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is
	// "metrics_service". Tags are labels of every stat that has no tag of the name.
	sinkqueue.Options
	// Receiver is the service and how to reach it: http://host:port, or https.
	Receiver sinkhttp.Config
	// Dial opens connections; see [sinkgrpc.Config].
	Dial func(ctx context.Context) (net.Conn, error)
	// NodeID and NodeCluster identify this process in each report.
	NodeID, NodeCluster string
	// Delta sends increments of counters since the last report. Default: totals,
	// of all counters.
	Delta bool
	// Histograms is the form of histograms. Default Both.
	Histograms Histograms
	// FullNames leaves tags in the names of stats. Default: they are labels.
	FullNames bool
}

// Sink is a [flush.Sink] that sends reports. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg        Config
	queue      *sinkqueue.Queue
	client     *sinkgrpc.Client
	identifier []byte // the field of a message

	// Of Flush.
	walk   totals.Walk
	batch  batch
	name   []byte
	labels []byte // encoded, of the described stat
	key    []byte
}

var (
	_ flush.Runner     = (*Sink)(nil)
	_ flush.TotalsSink = (*Sink)(nil)
)

// New checks cfg and returns a sink. Nothing is sent before Run.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("metricsservice", "metrics_service"); err != nil {
		return nil, err
	}
	cfg.Receiver.UserAgent = cfg.Store.Product()
	client, err := sinkgrpc.New(sinkgrpc.Config{Config: cfg.Receiver, Method: method, Dial: cfg.Dial})
	if err != nil {
		return nil, fmt.Errorf("metricsservice: %w", err)
	}
	s := &Sink{cfg: cfg, client: client, walk: totals.Walk{Filter: cfg.Filter, Refresh: -1}}
	node := protobuf.AppendBytes(nil, 1, cfg.NodeID)
	node = protobuf.AppendBytes(node, 2, cfg.NodeCluster)
	node = protobuf.AppendBytes(node, 6, cfg.Store.Product()) // user_agent_name
	s.identifier = protobuf.AppendBytes(nil, 1, protobuf.AppendBytes(nil, 1, node))
	q := sinkqueue.Config{
		Options: cfg.Options, Kind: "metrics_service", Target: client.Target(), Send: s.send, Ended: client.Close, Observations: s.observations,
	}
	if cfg.Delta {
		q.Increments = increments
	}
	s.queue = sinkqueue.New(q)
	s.Sender = s.queue.Sender()
	return s, nil
}

// NeedsTotals reports whether the sink sends totals, also a last time of counters that end.
func (s *Sink) NeedsTotals() bool { return !s.cfg.Delta }

// send makes one attempt to send a packet; see [sinkqueue.Config].
func (s *Sink) send(ctx context.Context, packet []byte) (int, error) {
	message := append(append(make([]byte, 0, len(s.identifier)+len(packet)), s.identifier...), packet...)
	if _, err := s.client.Export(ctx, message); err != nil {
		return 0, err
	}
	return len(packet), nil
}

// Flush queues the report of a flush. It does not wait for the network.
func (s *Sink) Flush(snap *store.Snapshot) error {
	at := snap.Time.UnixMilli()
	if s.cfg.Delta {
		s.increments(snap, at)
	} else {
		s.walk.Flush(snap, visitor{s})
	}
	s.cfg.Filter.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) { s.histogram(c, h.Interval, at) })
	s.queueBatch()
	return nil
}

// increments adds the changes of counters, including the owed ones, and all gauges.
func (s *Sink) increments(snap *store.Snapshot, at int64) {
	owed := s.queue.Owed()
	s.cfg.Filter.Counters(snap, func(c *store.Cursor, n uint64) {
		if s.describe(c) {
			s.key = append(append(append(s.key[:0], s.name...), 0), s.labels...)
			s.scalar(s.name, s.labels, typeCounter, float64(n+owed.Take(s.key)), at)
		}
	})
	for key, n := range owed {
		name, labels, _ := bytes.Cut([]byte(key), []byte{0})
		s.scalar(name, labels, typeCounter, float64(n), at)
	}
	v := s.cfg.Store.View()
	defer v.Close()
	s.cfg.Filter.Used(v, store.KindGauge, func(c *store.Cursor) {
		if s.describe(c) {
			s.scalar(s.name, s.labels, typeGauge, c.Float(), at)
		}
	})
}

// visitor adds totals and gauges.
type visitor struct{ *Sink }

// Write adds the counter or gauge under c with its value as of the flush. It does
// nothing for a stat that is younger, and for histograms.
func (s visitor) Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, at int64) {
	typ := uint64(typeGauge)
	switch k {
	case store.KindCounter:
		typ = typeCounter
	case store.KindHistogram:
		return
	}
	if x, ok := snap.Value(c); ok && s.describe(c) {
		s.scalar(s.name, s.labels, typ, x, at)
	}
}

// End does nothing: reports have no mark for the end of a series.
func (visitor) End(*store.Cursor, store.Kind, int64) {}

// describe reads the name and the labels of the stat under c. It returns false, and
// counts, if the stat has no name.
func (s *Sink) describe(c *store.Cursor) bool {
	if s.cfg.FullNames {
		s.name = s.name[:0]
		if s.cfg.Prefix != "" {
			s.name = append(append(s.name, s.cfg.Prefix...), '.')
		}
		s.name = c.AppendName(s.name)
	} else {
		s.name = s.cfg.AppendName(s.name[:0], c)
	}
	if len(s.name) == 0 {
		s.queue.Skipped()
		return false
	}
	s.name = protobuf.Text(s.name)
	s.labels = s.labels[:0]
	if !s.cfg.FullNames {
		s.cfg.EachTag(c, func(name string, value []byte) {
			s.labels = protobuf.AppendPair(s.labels, 1, protobuf.Text([]byte(name)), protobuf.Text(value))
		})
		return true
	}
	for _, t := range s.cfg.Tags {
		s.labels = protobuf.AppendPair(s.labels, 1, t.Name, []byte(t.Value))
	}
	return true
}

func (s *Sink) scalar(name, labels []byte, typ uint64, x float64, at int64) {
	s.batch.open(name, typ)
	s.batch.scalar(labels, x, at)
	s.full()
}

// histogram adds the values of an interval of the histogram under c.
func (s *Sink) histogram(c *store.Cursor, h *histogram.Stats, at int64) {
	if !s.describe(c) {
		return
	}
	if s.cfg.Histograms != Buckets {
		s.batch.open(s.name, typeSummary)
		s.batch.summary(s.labels, h, at)
	}
	if s.cfg.Histograms != Summaries {
		s.batch.open(s.name, typeHistogram)
		s.batch.histogram(s.labels, h, at)
	}
	s.full()
}

// full queues the batch if it is complete.
func (s *Sink) full() {
	if len(s.batch.families)+len(s.batch.data) >= maxPacket {
		s.queueBatch()
	}
}

func (s *Sink) queueBatch() {
	if n := s.batch.metrics; n > 0 {
		s.queue.Add(s.batch.packet(), n)
	}
}

// observations returns the number of values of the histograms in a packet.
func (s *Sink) observations(packet []byte) (n uint64) {
	counted := uint64(typeSummary)
	if s.cfg.Histograms == Buckets {
		counted = typeHistogram
	}
	visit(packet, func(_ []byte, typ uint64, m metric) {
		if typ == counted {
			n += m.count
		}
	})
	return n
}
