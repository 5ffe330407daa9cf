// Package remotewrite sends stats to Prometheus, or to any other receiver of
// its remote write protocol.
//
// Version 2.0 of the protocol is tried first: it has native histograms, start
// times and metadata. A receiver that does not support it gets version 1.0,
// with histograms as series of cumulative buckets, and new counters preceded by
// a 0 at their start time.
//
// Names and labels are as in the exposition formats. Values are totals, so a
// repeated or lost request does not distort them. A series that ends gets a
// stale marker, as do all series when the program ends.
package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/totals"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Version is a version of the protocol.
type Version uint8

// The versions.
const (
	Newest   Version = 0 // 2.0 unless the receiver does not support it
	Version1 Version = 1
	Version2 Version = 2
)

// Histograms is the form of histograms.
type Histograms uint8

// The forms of histograms.
const (
	ByVersion Histograms = iota // Native in version 2.0, Classic in 1.0
	Native                      // one series with exponential buckets
	Classic                     // a series for each bound
	Both
)

// Limits and defaults of [Config].
const (
	DefaultShards  = 4
	MaxShards      = 64
	DefaultBatch   = 2000
	DefaultRefresh = time.Minute
)

// maxBody is the size from which a request is complete.
const maxBody = 1 << 20

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is
	// "remote_write". Tags become labels of every series, unless a stat has a tag
	// of the name.
	sinkqueue.Options
	// HTTP is the receiver and how to reach it.
	HTTP sinkhttp.Config
	// Version is the version of the protocol. Default Newest.
	Version Version
	// Histograms is the form of histograms. Default ByVersion.
	Histograms Histograms
	// Shards is the number of concurrent requests, 1 to 64; a series belongs to
	// one shard. Default 4.
	Shards int
	// Batch is the number of samples in a request. Default 2000.
	Batch int
	// Refresh is how often series without changes are sent. Default 1 minute;
	// negative means at each report.
	Refresh time.Duration
}

// Sink is a [flush.Sink] that writes remotely. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg     Config
	queue   *sinkqueue.Queue
	client  *sinkhttp.Client
	version atomic.Uint32 // that is in use
	again   atomic.Bool   // histograms were left out, so the next report has all series

	// Of Flush.
	names   *namer
	batches []batch // by shard
	walk    totals.Walk
	counts  []uint64
}

var (
	_ flush.Runner     = (*Sink)(nil)
	_ flush.TotalsSink = (*Sink)(nil)
)

// New checks cfg and returns a sink. Nothing is sent before Run.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("remotewrite", "remote_write"); err != nil {
		return nil, err
	}
	cfg.Shards = cmp.Or(cfg.Shards, DefaultShards)
	cfg.Batch = cmp.Or(cfg.Batch, DefaultBatch)
	cfg.Refresh = cmp.Or(cfg.Refresh, DefaultRefresh)
	switch {
	case cfg.Shards < 1 || cfg.Shards > MaxShards:
		return nil, fmt.Errorf("remotewrite: %d shards, want 1 to %d", cfg.Shards, MaxShards)
	case cfg.Batch < 1:
		return nil, fmt.Errorf("remotewrite: a batch of %d samples", cfg.Batch)
	}
	cfg.HTTP.Connections = cfg.Shards
	client, err := sinkhttp.New(cfg.HTTP)
	if err != nil {
		return nil, fmt.Errorf("remotewrite: %w", err)
	}
	cfg.Resend = true // totals can be written twice
	s := &Sink{
		cfg: cfg, client: client, walk: totals.Walk{Filter: cfg.Filter, Refresh: cfg.Refresh}, names: newNamer(cfg.Store, cfg.Prefix, cfg.Tags), batches: make([]batch, cfg.Shards),
	}
	s.version.Store(uint32(cfg.Version))
	if cfg.Version == Newest {
		s.version.Store(uint32(Version2))
	}
	s.queue = sinkqueue.New(sinkqueue.Config{
		Options: cfg.Options, Kind: "remote_write", Target: client.Target(), Shards: cfg.Shards, Send: s.send, Ended: client.Close,
	})
	s.Sender = s.queue.Sender()
	return s, nil
}

// NeedsTotals reports that the sink sends totals and marks series that end.
func (s *Sink) NeedsTotals() bool { return true }

// Version returns the version of the protocol that is in use.
func (s *Sink) Version() Version { return Version(s.version.Load()) }

// Flush queues the samples of a flush. It does not wait for the network.
func (s *Sink) Flush(snap *store.Snapshot) error {
	for i := range s.batches {
		s.batches[i].reset(s.Version(), s.walk.Before(), s.names.seed)
	}
	if s.again.Swap(false) {
		s.walk.Again()
	}
	s.walk.Flush(snap, visitor{s})
	for i := range s.batches {
		s.queueBatch(i)
	}
	return nil
}

// visitor adds the series of stats to the batches of a sink.
type visitor struct{ *Sink }

// Write adds the series of the stat under c with its value as of the flush. It does
// nothing for a stat that is younger.
func (s visitor) Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, at int64) {
	if k == store.KindHistogram {
		if h, ok := snap.Histogram(c); ok && h.Used {
			s.histogram(c, h.Cumulative, at)
		}
		return
	}
	value, ok := snap.Value(c)
	if !ok {
		return
	}
	out := sample{value: value, at: at}
	if k == store.KindCounter {
		out.start = totals.Start(c, at)
	}
	s.scalar(c, k, out)
}

// End adds a stale marker to the series of the stat under c.
func (s visitor) End(c *store.Cursor, k store.Kind, at int64) {
	if k == store.KindHistogram {
		s.histogram(c, nil, at)
		return
	}
	s.scalar(c, k, sample{value: staleMarker(), at: at})
}

// scalar adds a sample of the counter or gauge under c.
func (s *Sink) scalar(c *store.Cursor, k store.Kind, out sample) {
	if p := c.Pattern(); p != nil && c.Series() == nil {
		s.patterned(c, p, out)
		return
	}
	if !s.read(c, k) {
		return
	}
	shard := s.shard(s.names.hash())
	s.batches[shard].add(s.names.all("", ""), s.metadata(c, k), out)
	s.full(shard)
}

// patterned adds a sample of the counter or gauge under c, whose pattern is p.
func (s *Sink) patterned(c *store.Cursor, p *store.Pattern, out sample) {
	m, known := s.names.patterns.Of(p)
	if !known {
		s.names.learn(m, c, len(p.Tags()), len(s.batches))
		m.meta = s.metadata(c, c.Kind())
	}
	if m.none {
		s.queue.Skipped()
		return
	}
	shard := s.shard(s.names.fill(m, c.Values(p)))
	s.batches[shard].addPattern(m, &m.shards[shard], out)
	s.full(shard)
}

// metadata returns the metadata of the stat under c.
func (s *Sink) metadata(c *store.Cursor, k store.Kind) metadata {
	d := s.cfg.Store.DescriptionOf(c)
	return metadata{kindType(k, d), d.Help, d.Unit}
}

// shard returns the shard of a series, and of all others of a histogram, for its hash.
func (s *Sink) shard(hash uint64) int { return int(hash >> 32 % uint64(len(s.batches))) }

// read makes the series of the stat under c current.
func (s *Sink) read(c *store.Cursor, k store.Kind) bool {
	if s.names.read(c, k) {
		return true
	}
	s.queue.Skipped()
	return false
}

// forms reports in which forms a batch has histograms.
func (s *Sink) forms(b *batch) (native, classic bool) {
	switch s.cfg.Histograms {
	case Native:
		return true, false
	case Classic:
		return false, true
	case Both:
		return true, true
	}
	return b.version == Version2, b.version != Version2
}

// unit returns what values of the histogram under c are divided by.
func (s *Sink) unit(c *store.Cursor) float64 {
	if c.Network() && s.names.rules.NetworkSeconds && c.Histogram().Layout().Unit() == histogram.Milliseconds {
		return 1000
	}
	return 1
}

// histogram adds the series of the histogram under c, which are stale markers if st is
// nil.
func (s *Sink) histogram(c *store.Cursor, st *histogram.Stats, at int64) {
	if !s.read(c, store.KindHistogram) {
		return
	}
	d := s.cfg.Store.DescriptionOf(c)
	m := metadata{typeHistogram, d.Help, d.Unit}
	var start int64
	if st != nil {
		start = totals.Start(c, at)
	}
	shard := s.shard(s.names.hash())
	b := &s.batches[shard]
	native, classic := s.forms(b)
	unit := s.unit(c)
	if native {
		b.addNative(s.names.all("", ""), m, st, unit, at, start)
	}
	if classic {
		value := func(x float64) sample {
			if st == nil {
				x = staleMarker()
			}
			return sample{x, at, start}
		}
		bounds := c.Histogram().Layout().Bounds()
		var sum, count float64
		if st != nil {
			s.counts = st.AppendCumulative(s.counts[:0])
			sum, count = st.Sum()/unit, float64(st.Count())
		}
		for i, bound := range bounds {
			x := 0.0
			if st != nil {
				x = float64(s.counts[i])
			}
			b.add(s.names.all("_bucket", strconv.FormatFloat(bound/unit, 'g', -1, 64)), m, value(x))
		}
		b.add(s.names.all("_bucket", "+Inf"), m, value(count))
		b.add(s.names.all("_sum", ""), m, value(sum))
		b.add(s.names.all("_count", ""), m, value(count))
	}
	s.full(shard)
}

// staleMarker returns the NaN that ends a series.
func staleMarker() float64 { return math.Float64frombits(0x7ff0000000000002) }

// full queues the batch of a shard if it is complete.
func (s *Sink) full(shard int) {
	if b := &s.batches[shard]; b.samples >= s.cfg.Batch || len(b.symbols.table)+len(b.series) >= maxBody {
		s.queueBatch(shard)
	}
}

func (s *Sink) queueBatch(shard int) {
	b := &s.batches[shard]
	if b.samples == 0 {
		return
	}
	s.queue.AddTo(shard, b.packet(), b.samples)
	b.reset(b.version, b.since, s.names.seed)
}

// send makes one attempt to send a packet; see [sinkqueue.Config].
func (s *Sink) send(ctx context.Context, data []byte) (int, error) {
	p, err := unpack(data)
	if err != nil {
		return 0, errors.Join(err, sinkqueue.ErrRefused)
	}
	for {
		if p.version == Version2 && s.Version() == Version1 {
			if p, err = downgrade(p, s.cfg.Histograms == Native || s.cfg.Histograms == Both); err != nil {
				return 0, errors.Join(err, sinkqueue.ErrRefused)
			}
			s.again.Store(true)
		}
		answer, err := s.client.Post(ctx, headers(p.version), p.body)
		if err != nil {
			return 0, err
		}
		if p.version == Version2 && s.cfg.Version == Newest && unknown(answer) {
			s.version.Store(uint32(Version1))
			continue
		}
		if err := answer.Err(true); err != nil {
			return 0, err
		}
		if p.version == Version2 {
			s.queue.Rejected(max(0, p.samples-written(answer)))
		}
		return len(data), nil
	}
}

func headers(v Version) http.Header {
	h := http.Header{
		"Content-Encoding": {"snappy"}, "Content-Type": {"application/x-protobuf"}, versionHeader: {"0.1.0"},
	}
	if v == Version2 {
		h["Content-Type"] = []string{"application/x-protobuf;proto=io.prometheus.write.v2.Request"}
		h[versionHeader] = []string{"2.0.0"}
	}
	return h
}

const (
	versionHeader    = "X-Prometheus-Remote-Write-Version"
	samplesHeader    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsHeader = "X-Prometheus-Remote-Write-Histograms-Written"
)

// unknown reports whether the answer to a request of version 2.0 shows that the
// receiver knows only version 1.0: its status says so, or it lacks the count of written
// samples.
func unknown(a *sinkhttp.Answer) bool {
	return a.Status == http.StatusUnsupportedMediaType || a.Status/100 == 2 && a.Header.Get(samplesHeader) == ""
}

// written returns how many samples and histograms the receiver has written.
func written(a *sinkhttp.Answer) int {
	n, _ := strconv.Atoi(a.Header.Get(samplesHeader))
	h, _ := strconv.Atoi(a.Header.Get(histogramsHeader))
	return n + h
}
