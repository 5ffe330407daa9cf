// Package otlp exports stats as OpenTelemetry metrics over HTTP, or over any other
// [Transport]; a Client of package sinkgrpc is one for gRPC.
//
// Counters are exported as monotonic sums, gauges as gauges, and histograms as
// exponential histograms computed from the bins, or as histograms with explicit
// bounds. Values are cumulative, or increments since the last report. Names
// keep their dots, and tags are attributes.
package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/totals"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Defaults of [Config].
const (
	DefaultBatch   = 2000
	DefaultRefresh = time.Minute
)

// maxBody is the size from which a request is complete.
const maxBody = 1 << 20

// The gRPC method of an OpenTelemetry Collector, and its default port.
const (
	GRPCMethod = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
	GRPCPort   = "4317"
)

// Transport carries requests to a receiver.
type Transport interface {
	// Export sends an encoded ExportMetricsServiceRequest and returns the encoded
	// response. Errors are as in [sinkqueue.Config].
	Export(ctx context.Context, request []byte) (response []byte, err error)
	// Target is where requests go, without secrets.
	Target() string
	Close()
}

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is "otlp".
	// Tags become attributes of every point.
	sinkqueue.Options
	// HTTP is the receiver and how to reach it, if Transport is nil. A URL without
	// a path gets /v1/metrics.
	HTTP sinkhttp.Config
	// Gzip compresses requests over HTTP.
	Gzip bool
	// Transport carries the requests. Default: HTTP.
	Transport Transport
	// Delta sends increments since the last report. Default: cumulative values.
	Delta bool
	// Explicit sends histograms with the bounds of their layouts. Default:
	// exponential histograms.
	Explicit bool
	// Resource are the attributes of the resource. Default: service.name, the
	// product name of the store. It is added unless it is set.
	Resource []tags.Tag
	// Batch is the number of points in a request. Default 2000.
	Batch int
	// Refresh is how often cumulative values without changes are sent. Default 1
	// minute; negative means at each report.
	Refresh time.Duration
}

// Sink is a [flush.Sink] that exports metrics. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg       Config
	queue     *sinkqueue.Queue
	transport Transport
	warned    time.Time // of send: when it last logged that points were rejected

	// Of Flush.
	walk  totals.Walk
	batch batch
	began int64 // of the interval, Unix time in milliseconds
	name  []byte
	one   metric       // of the last stat without pattern
	own   [10][][]byte // the tags of the sink as attributes, by their field
	key   []byte

	patterns sinkqueue.Patterns[pattern]
}

// pattern is what the points of many stats have in common.
type pattern struct {
	metric metric
	keys   [][]byte // of attributes, encoded, by tag; empty: another tag has the name
	own    []byte   // encoded attributes of the sink
}

// The fields of the attributes of points.
const (
	attributesNumber      = 7
	attributesExponential = 1
	attributesExplicit    = 9
)

var (
	_ flush.Runner     = (*Sink)(nil)
	_ flush.TotalsSink = (*Sink)(nil)
)

// New checks cfg and returns a sink. Nothing is sent before Run.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("otlp", "otlp"); err != nil {
		return nil, err
	}
	if cfg.Batch <= 0 {
		cfg.Batch = DefaultBatch
	}
	cfg.Refresh = cmp.Or(cfg.Refresh, DefaultRefresh)
	if cfg.Transport == nil {
		t, err := newHTTP(cfg.HTTP, cfg.Gzip)
		if err != nil {
			return nil, fmt.Errorf("otlp: %w", err)
		}
		cfg.Transport = t
	}
	if !slices.ContainsFunc(cfg.Resource, func(t tags.Tag) bool { return t.Name == "service.name" }) {
		cfg.Resource = append([]tags.Tag{{Name: "service.name", Value: cfg.Store.Product()}}, cfg.Resource...)
	}
	cfg.Resend = cfg.Resend || !cfg.Delta // totals can be sent twice
	s := &Sink{
		cfg: cfg, transport: cfg.Transport, walk: totals.Walk{Filter: cfg.Filter, Refresh: cfg.Refresh},
		began: cfg.Store.LastFlush().UnixMilli(),
	}
	var resource []byte
	for _, t := range cfg.Resource {
		resource = append(resource, fixed(1, t)...)
	}
	s.batch = batch{
		head:  protobuf.AppendBytes(nil, 1, resource),
		scope: protobuf.AppendBytes(nil, 1, protobuf.AppendBytes(nil, 1, "statsd-admin")), delta: cfg.Delta,
	}
	for _, field := range []int{attributesNumber, attributesExponential, attributesExplicit} {
		for _, t := range cfg.Tags {
			s.own[field] = append(s.own[field], fixed(field, t))
		}
	}
	q := sinkqueue.Config{Options: cfg.Options, Kind: "otlp", Target: s.transport.Target(), Send: s.send, Ended: s.transport.Close}
	if cfg.Delta {
		q.Increments, q.Observations = increments, observations
	}
	s.queue = sinkqueue.New(q)
	s.Sender = s.queue.Sender()
	return s, nil
}

// NeedsTotals reports whether the sink sends totals and marks series that end.
func (s *Sink) NeedsTotals() bool { return !s.cfg.Delta }

// Flush queues the points of a flush. It does not wait for the network.
func (s *Sink) Flush(snap *store.Snapshot) error {
	if s.cfg.Delta {
		s.deltas(snap)
	} else {
		s.walk.Flush(snap, visitor{s})
	}
	s.queueBatch()
	return nil
}

// deltas adds what happened since the last report.
func (s *Sink) deltas(snap *store.Snapshot) {
	at := totals.After(s.began, 1, snap.Time.UnixMilli())
	interval := max(snap.Interval.Milliseconds(), 1)
	if at < s.began || at-s.began > interval+1000 { // the clock was set
		s.began = at - interval
	}
	owed, f := s.queue.Owed(), &s.cfg.Filter
	f.Counters(snap, func(c *store.Cursor, n uint64) {
		if !s.begin(c, fieldSum, attributesNumber) {
			return
		}
		if owed != nil {
			s.key = append(append(append(s.key[:0], s.batch.name...), 0), s.batch.metrics[s.batch.point:]...)
			n += owed.Take(s.key)
		}
		s.batch.whole(s.began, at, n)
		s.full()
	})
	for key, n := range owed {
		name, attrs, _ := bytes.Cut([]byte(key), []byte{0})
		s.one.set(name, store.Description{})
		s.batch.open(nil, &s.one, fieldSum)
		s.batch.begin()
		s.batch.metrics = append(s.batch.metrics, attrs...)
		s.batch.whole(s.began, at, n)
		s.full()
	}
	f.ChangedGauges(snap, func(c *store.Cursor) { s.gauge(c, c.Float(), at) })
	f.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) { s.histogram(c, h.Interval, s.began, at) })
	s.began = at
}

// visitor adds cumulative points.
type visitor struct{ *Sink }

// Write adds the point of the stat under c as of the flush. It does nothing for a stat
// that is younger.
func (s visitor) Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, at int64) {
	switch k {
	case store.KindHistogram:
		if h, ok := snap.Histogram(c); ok && h.Used {
			s.histogram(c, h.Cumulative, totals.Start(c, at), at)
		}
	case store.KindCounter:
		if n, ok := snap.Total(c); ok && s.begin(c, fieldSum, attributesNumber) {
			s.batch.whole(totals.Start(c, at), at, n)
			s.full()
		}
	default:
		if x, ok := snap.Value(c); ok {
			s.gauge(c, x, at)
		}
	}
}

// End adds a point without a value.
func (s visitor) End(c *store.Cursor, k store.Kind, at int64) {
	field := fieldGauge
	switch k {
	case store.KindHistogram:
		s.histogram(c, nil, 0, at)
		return
	case store.KindCounter:
		field = fieldSum
	}
	if s.begin(c, field, attributesNumber) {
		s.batch.end(protobuf.AppendUint(times(s.batch.metrics, 0, at), 8, noValue)) // the series ends
		s.full()
	}
}

func (s *Sink) gauge(c *store.Cursor, x float64, at int64) {
	if s.begin(c, fieldGauge, attributesNumber) {
		s.batch.double(0, at, x)
		s.full()
	}
}

// histogram adds a point of the histogram under c, without a value if st is nil.
func (s *Sink) histogram(c *store.Cursor, st *histogram.Stats, start, at int64) {
	if s.cfg.Explicit {
		if s.begin(c, fieldHistogram, attributesExplicit) {
			s.batch.explicit(st, start, at)
			s.full()
		}
		return
	}
	if s.begin(c, fieldExponential, attributesExponential) {
		s.batch.exponential(st, start, at)
		s.full()
	}
}

// units are the codes of UCUM for the units of histograms.
var units = map[histogram.Unit]string{
	histogram.Bytes: "By", histogram.Microseconds: "us", histogram.Milliseconds: "ms", histogram.Percent: "1", histogram.Seconds: "s",
}

// begin starts a point of the stat under c, with its attributes in a field, in a metric
// of a type. It returns false if nothing is left of the name.
func (s *Sink) begin(c *store.Cursor, field, attributes int) bool {
	b := &s.batch
	if p := c.Pattern(); p != nil && field == fieldSum {
		m, known := s.patterns.Of(p)
		if !known {
			s.learn(m, c, p, attributes)
		}
		if family := p.Family(); family != b.family || field != b.field {
			b.open(family, &m.metric, field)
		}
		b.begin()
		for i, v := range c.Values(p) {
			if key := m.keys[i]; len(key) > 0 {
				b.metrics = attribute(b.metrics, attributes, key, v)
			}
		}
		b.metrics = append(b.metrics, m.own...)
		return true
	}
	if family := c.Family(); family == nil || family != b.family || field != b.field {
		if !s.describe(&s.one, c) {
			return false
		}
		b.open(family, &s.one, field)
	}
	b.begin()
	labels, plain := c.Labels(), c.Plain()
	for i, l := range labels {
		if i > 0 && slices.ContainsFunc(labels[:i], func(x store.Label) bool { return x.Name == l.Name }) {
			continue
		}
		if !plain {
			l.Value = protobuf.Text(l.Value)
		}
		b.metrics = attribute(b.metrics, attributes, l.Name.Derived(naming.SlotAttribute, attributeKey), l.Value)
	}
	for i, own := range s.own[attributes] {
		name := s.cfg.Tags[i].Name
		if !slices.ContainsFunc(labels, func(l store.Label) bool { return l.Name.String() == name }) {
			b.metrics = append(b.metrics, own...)
		}
	}
	return true
}

// learn sets m for the pattern p, which is that of the stat under c.
func (s *Sink) learn(m *pattern, c *store.Cursor, p *store.Pattern, attributes int) {
	s.describe(&m.metric, c)
	m.keys, m.own = m.keys[:0], m.own[:0]
	names := p.Tags()
	for i, name := range names {
		var key []byte
		if !slices.Contains(names[:i], name) {
			key = name.Derived(naming.SlotAttribute, attributeKey)
		}
		m.keys = append(m.keys, key)
	}
	for i, own := range s.own[attributes] {
		if !slices.ContainsFunc(names, func(n *store.Name) bool { return n.String() == s.cfg.Tags[i].Name }) {
			m.own = append(m.own, own...)
		}
	}
}

// describe sets m to the metric of the stat under c. It returns false, and counts, if
// nothing is left of its name.
func (s *Sink) describe(m *metric, c *store.Cursor) bool {
	s.name = s.cfg.AppendName(s.name[:0], c)
	if len(s.name) == 0 {
		s.queue.Skipped()
		return false
	}
	s.name = protobuf.Text(s.name)
	for i, b := range s.name {
		if b == 0 { // separates the name in keys
			s.name[i] = '_'
		}
	}
	d := s.cfg.Store.DescriptionOf(c)
	if d.Unit == "" && c.Kind() == store.KindHistogram {
		d.Unit = units[c.Histogram().Layout().Unit()]
	}
	m.set(s.name, d)
	return true
}

// full queues the batch if it is complete.
func (s *Sink) full() {
	if s.batch.points >= s.cfg.Batch || len(s.batch.metrics) >= maxBody {
		s.queueBatch()
	}
}

func (s *Sink) queueBatch() {
	if n := s.batch.points; n > 0 {
		s.queue.Add(s.batch.request(), n)
	}
}

// send makes one attempt to send a request; see [sinkqueue.Config].
func (s *Sink) send(ctx context.Context, request []byte) (int, error) {
	response, err := s.transport.Export(ctx, request)
	if err != nil {
		return 0, err
	}
	each(response, 1, func(partial []byte) { // partial_success
		var rejected uint64
		var text []byte
		protobuf.Fields(partial, func(f protobuf.Field) {
			switch f.Number {
			case 1:
				rejected = f.Value
			case 2:
				text = f.Bytes
			}
		})
		s.queue.Rejected(int(min(rejected, 1<<31)))
		if now := time.Now(); s.cfg.Logger != nil && now.Sub(s.warned) >= time.Minute { // some receivers reject a part of each request
			s.warned = now
			s.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "sink: the receiver accepted a part", slog.String("sink", s.cfg.Name),
				slog.Uint64("rejected", rejected), slog.String("message", string(protobuf.Text(text[:min(len(text), 512)]))))
		}
	})
	return len(request), nil
}

// increments calls yield for each increment in a request.
func increments(request []byte, yield func(key []byte, n uint64)) {
	var key []byte
	visit(request, func(name, attrs []byte, n uint64) {
		if n > 0 {
			key = append(append(append(key[:0], name...), 0), attrs...)
			yield(key, n)
		}
	}, func(uint64) {})
}

// observations returns the number of values that the histograms of a request have.
func observations(request []byte) (n uint64) {
	visit(request, func(_, _ []byte, _ uint64) {}, func(count uint64) { n += count })
	return n
}

// overHTTP carries requests over HTTP.
type overHTTP struct {
	*sinkhttp.Client
	gzip bool
}

func newHTTP(cfg sinkhttp.Config, compress bool) (Transport, error) {
	u, err := sinkhttp.CheckURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/metrics"
		cfg.URL = u.String()
	}
	c, err := sinkhttp.New(cfg)
	return overHTTP{c, compress}, err
}

// Export posts a request.
func (h overHTTP) Export(ctx context.Context, request []byte) ([]byte, error) {
	header := http.Header{"Content-Type": {"application/x-protobuf"}}
	if h.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(request) // a buffer takes all
		_ = w.Close()
		header["Content-Encoding"], request = []string{"gzip"}, b.Bytes()
	}
	answer, err := h.Post(ctx, header, request)
	if err != nil {
		return nil, err
	}
	if err := answer.Err(false); err != nil {
		return nil, err
	}
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); kind != "application/x-protobuf" {
		return nil, nil
	}
	return answer.Body, nil
}
