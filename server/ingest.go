package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// ingest shows the StatsD input to the admin port.
type ingest struct {
	*statsd.Server
	absolute bool // signs of gauges mean negative values, not changes
	ttl      statsd.TTL
}

// expiry says what becomes of series that get no samples any more.
func (g ingest) expiry() string {
	if g.ttl == (statsd.TTL{}) {
		return "off: series stay until they are forgotten or the server ends; statsd.ttl sets how long they stay without samples"
	}
	var said []string
	for _, k := range []struct {
		kind string
		ttl  time.Duration
	}{{"counter", g.ttl.Counter}, {"gauge", g.ttl.Gauge}, {"histogram", g.ttl.Histogram}, {"set", g.ttl.Set}} {
		if k.ttl == 0 {
			said = append(said, k.kind+" never")
		} else {
			said = append(said, k.kind+" after "+k.ttl.String())
		}
	}
	return "series without samples go: " + strings.Join(said, ", ")
}

// Explanation says what a line means, and ExplainedSample what one of its
// samples does.
type (
	Explanation     = admin.IngestExplanation
	ExplainedSample = admin.IngestSample
)

// Explainer returns a function that says what would become of a line in a
// server of this configuration that has received nothing yet. It binds nothing;
// where the file has no statsd section its defaults hold. The function may be
// called by any number of goroutines.
func Explainer(c *bootstrap.Config, boot Boot) (func(line []byte) Explanation, error) {
	opts, err := StoreOptions(c, boot.Product, boot.Tags, boot.FakeSymbols)
	if err != nil {
		return nil, err
	}
	cfg, err := statsdConfig(&c.StatsD)
	if err != nil {
		return nil, err
	}
	cfg.Store, cfg.Listeners = store.New(opts), nil
	s, err := statsd.New(cfg)
	if err != nil {
		return nil, err
	}
	return ingest{Server: s, absolute: cfg.Parse.AbsoluteGauges}.Explain, nil
}

// Report implements [admin.Ingest].
func (g ingest) Report() admin.IngestReport {
	r := g.Server.Report()
	return admin.IngestReport{
		Listeners: each(r.Listeners, ingestListener),
		Rejected: each(r.Rejected, func(x statsd.RejectedReport) admin.IngestRejected {
			last := each(x.Last, func(l statsd.RejectedLine) admin.IngestLine { return admin.IngestLine(l) })
			return admin.IngestRejected{Reason: x.Reason, Count: x.Count, Last: last}
		}),
		Limits:     each(r.Limits, func(x statsd.LimitReport) admin.IngestLimit { return admin.IngestLimit(x) }),
		Series:     each(r.Series, func(x statsd.KindReport) admin.IngestKind { return admin.IngestKind(x) }),
		Expiry:     g.expiry(),
		RawEntries: r.RawEntries, RawHits: r.RawHits, RawMisses: r.RawMisses, RawEvicted: r.RawEvicted,
		Collisions: r.Collisions, TypeConflicts: r.TypeConflicts,
		Clashes:    each(r.Clashes, func(x statsd.Clash) admin.IngestClash { return admin.IngestClash(x) }),
		TopSeries:  each(r.TopSeries, ingestCount),
		TopSamples: each(r.TopSamples, func(x statsd.NameRate) admin.IngestRate { return admin.IngestRate(x) }),
		Newest:     each(r.Newest, func(x statsd.NewSeries) admin.IngestSeries { return admin.IngestSeries(x) }),
		TopTags:    each(r.TopTags, ingestCount),
		Events: each(r.Events, func(x statsd.ReceivedEvent) admin.IngestEvent {
			e := ingestEvent(&x.Notice)
			e.Received = x.Received
			return e
		}),
		Checks: each(r.Checks, func(x statsd.ReceivedCheck) admin.IngestCheck {
			c := ingestCheck(&x.State)
			c.Received = x.Received
			return c
		}),
		StreamBusySeconds: r.StreamBusySeconds, UnixQueue: r.UnixQueue,
	}
}

// each returns what f makes of the elements of in.
func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

func ingestCount(x statsd.NameCount) admin.IngestCount { return admin.IngestCount(x) }

func ingestListener(l statsd.ListenerReport) admin.IngestListener {
	return admin.IngestListener{
		Name: l.Name, Protocol: l.Protocol, Address: l.Address, Readers: l.Readers, TLS: l.TLS,
		Packets: l.Packets, Bytes: l.Bytes, Lines: l.Lines, Samples: l.Samples,
		Applied: l.Applied, Notices: l.Notices, Limited: l.Limited, Rejected: l.Rejected,
		TagErrors: l.TagErrors, UnknownFields: l.UnknownFields, ValuesOutOfRange: l.ValuesOutOfRange,
		Truncated: l.Truncated, KernelDrops: l.KernelDrops, PacketsRefused: l.PacketsRefused, ReadErrors: l.ReadErrors,
		QueueBytes: l.QueueBytes, QueueLimit: l.QueueLimit, RcvBufAsked: l.RcvBufAsked, RcvBufBytes: l.RcvBufBytes,
		Connections: l.Connections, ConnectionsTotal: l.ConnectionsTotal, Ended: l.Ended,
		LinesPerPacket: l.LinesPerPacket, BusySeconds: l.BusySeconds,
	}
}

func ingestEvent(n *line.Notice) admin.IngestEvent {
	return admin.IngestEvent{
		Title: n.Title, Text: n.Text, Time: n.Time, Host: n.Host, Key: n.Key,
		Priority: n.Priority, Source: n.Source, Alert: n.Alert, Tags: n.Tags,
	}
}

func ingestCheck(c *line.State) admin.IngestCheck {
	return admin.IngestCheck{Name: c.Name, Status: c.Status, Time: c.Time, Host: c.Host, Message: c.Message, Tags: c.Tags}
}

// Explain implements [admin.Ingest].
func (g ingest) Explain(text []byte) admin.IngestExplanation {
	x := g.Server.Explain(text)
	out := admin.IngestExplanation{
		Kind: x.Kind, Reason: x.Reason, Offset: x.Offset,
		Name: x.Name, TagErrors: x.TagErrors, UnknownFields: x.UnknownFields,
	}
	for _, t := range x.Tags {
		out.Tags = append(out.Tags, admin.IngestTag(t))
	}
	for _, s := range x.Samples {
		out.Samples = append(out.Samples, admin.IngestSample{
			Type: s.Type, Kind: s.Kind, Rate: s.Rate, Member: s.Member, Stat: s.Stat, Series: s.Series, Known: s.Known, Limit: s.Limit,
			Values: each(s.Values, func(v line.Value) string { return number(v, s.Kind == "gauge" && !g.absolute) }),
		})
	}
	if x.Event != nil {
		e := ingestEvent(x.Event)
		out.Event = &e
	}
	if x.Check != nil {
		c := ingestCheck(x.Check)
		out.Check = &c
	}
	return out
}

// number writes a value, without an exponent unless it is far from 1. Where a
// sign makes it relative it keeps a plus.
func number(v line.Value, relative bool) string {
	format := byte('f')
	if size := math.Abs(v.Number); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	text := strconv.FormatFloat(v.Number, format, -1, 64)
	if relative && v.Signed && v.Number >= 0 {
		text = "+" + text
	}
	return text
}
