package statsd

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// metrics are the metrics of one listener.
type listenerMetrics struct {
	root *store.Scope
	tag  tags.Tag

	packets, bytes, lines, samples    *store.Counter
	tagErrors, unknown, beyond, ahead *store.Counter
	truncated, drops, refused         *store.Counter
	connections                       *store.Counter
	readErrors                        *store.Counter
	active, queueBytes, rcvbuf        *store.Gauge
	linesPerPacket, batchSize         *store.Histogram

	applied, limited, events atomic.Uint64 // lines; events are events and checks, part of applied
	tags                     atomic.Uint64
	dropped                  *store.Counter // by mapping rules
	relayOnly                *store.Counter // nil unless all lines are relayed only

	mu       sync.Mutex // guards the making of counters that only rarely exist
	rejected [line.Reasons]atomic.Pointer[store.Counter]
	ended    map[string]*store.Counter // connections by why they were refused or closed
}

// metricHelp has the help texts of the metrics.
var metricHelp = map[string]string{
	"ingest.packets":                   "Received datagrams, or frames of streams.",
	"ingest.bytes":                     "Received bytes.",
	"ingest.lines":                     "Received lines.",
	"ingest.samples":                   "Samples in accepted lines.",
	"ingest.samples_by_type":           "Samples in accepted lines, by type.",
	"ingest.tag_errors":                "Malformed tags in accepted lines.",
	"ingest.unknown_fields":            "Unknown fields in accepted lines.",
	"ingest.values_out_of_range":       "Observations that were clamped to the range of histograms.",
	"ingest.read_errors":               "Failed reads from sockets.",
	"ingest.dropped_by_rule":           "Lines dropped by mapping rules or filters.",
	"ingest.lines_per_packet":          "Lines in a packet.",
	"ingest.batch_size":                "Datagrams received with one system call.",
	"ingest.truncated":                 "Datagrams that were longer than the buffer.",
	"ingest.kernel_drops":              "Datagrams that the kernel dropped because the receive buffer was full.",
	"ingest.packets_refused":           "Datagrams from addresses that are not allowed.",
	"ingest.queue_bytes":               "Bytes that wait in the receive buffer.",
	"ingest.rcvbuf_bytes":              "Size of the receive buffer.",
	"ingest.connections_total":         "Accepted connections.",
	"ingest.connections_active":        "Open connections.",
	"ingest.connections_refused":       "Refused connections, by reason.",
	"ingest.connections_closed":        "Connections that the server closed, by reason.",
	"ingest.relay_only":                "Lines that were relayed and not counted.",
	"ingest.rejected":                  "Rejected lines, by reason.",
	"ingest.future_timestamps":         "Samples of gauges with a timestamp over a minute ahead of the clock.",
	"ingest.busy_seconds":              "Seconds that a reader was busy, sampled.",
	"ingest.raw_table_hits":            "Lines whose series was found by their text.",
	"ingest.raw_table_misses":          "Lines that had to be parsed.",
	"ingest.raw_table_evicted":         "Entries evicted from the table of texts of series.",
	"ingest.raw_table_entries":         "Entries of the table of texts of series.",
	"ingest.memory.used":               "Bytes that received series take.",
	"ingest.memory.limit":              "Limit of the bytes that received series take.",
	"ingest.collisions":                "Received names that collide with another name of a metric.",
	"ingest.type_conflicts":            "Samples whose name has series of another type.",
	"ingest.filtered":                  "Samples dropped by a filter.",
	"ingest.tag_values_replaced":       "Received series whose tag value was over the limit of a tag.",
	"ingest.mapping.samples":           "Samples that mapping rules mapped or dropped.",
	"ingest.mapping.dropped_unmatched": "Samples dropped because no mapping rule matches.",
	"ingest.mapping.rules":             "Mapping rules in use.",
	"ingest.mapping.reloads":           "Reloads of mapping rules, by outcome.",
	"ingest.series":                    "Received series, by kind.",
	"ingest.series_created":            "Created series, by kind.",
	"ingest.series_expired":            "Series that ended after their time to live, by kind.",
	"ingest.limited":                   "Lines that a limit rejected.",
	"ingest.limit_near":                "1 if more than 80 % of a limit is used.",
	"ingest.events":                    "Received events, by alert type.",
	"ingest.service_checks":            "Received service checks, by status.",
	"server.recovered_panics":          "Panics that ended only the request or component in which they happened.",
}

func newListenerMetrics(root *store.Scope, listener string, a address) *listenerMetrics {
	t := tags.Tag{Name: "listener", Value: oneline.Clean(listener)}
	f := &listenerMetrics{
		root:       root,
		tag:        t,
		packets:    root.Counter("ingest.packets", t),
		bytes:      root.Counter("ingest.bytes", t),
		lines:      root.Counter("ingest.lines", t),
		samples:    root.Counter("ingest.samples", t),
		tagErrors:  root.Counter("ingest.tag_errors", t),
		unknown:    root.Counter("ingest.unknown_fields", t),
		beyond:     root.Counter("ingest.values_out_of_range", t),
		ahead:      root.Counter("ingest.future_timestamps", t),
		readErrors: root.Counter("ingest.read_errors", t),
		dropped:    root.Counter("ingest.dropped_by_rule", t),
		ended:      make(map[string]*store.Counter),
	}
	if a.framing != lines {
		f.linesPerPacket = root.Histogram("ingest.lines_per_packet", store.Unspecified, t)
	}
	if a.framing == datagrams {
		f.batchSize = root.Histogram("ingest.batch_size", store.Unspecified, t)
		f.truncated = root.Counter("ingest.truncated", t)
		f.drops = root.Counter("ingest.kernel_drops", t)
		f.refused = root.Counter("ingest.packets_refused", t)
		f.queueBytes = root.GaugeWithMode("ingest.queue_bytes", store.NeverImport, t)
		f.rcvbuf = root.GaugeWithMode("ingest.rcvbuf_bytes", store.NeverImport, t)
	} else {
		f.connections = root.Counter("ingest.connections_total", t)
		f.active = root.GaugeWithMode("ingest.connections_active", store.NeverImport, t)
	}
	return f
}

// countRelayOnly adds the metric of a server that only relays.
func (f *listenerMetrics) countRelayOnly() { f.relayOnly = f.root.Counter("ingest.relay_only", f.tag) }

func (f *listenerMetrics) reject(r line.Reason) {
	c := f.rejected[r].Load()
	if c == nil {
		f.mu.Lock()
		c = f.root.Counter("ingest.rejected", f.tag, tags.Tag{Name: "reason", Value: r.String()})
		f.rejected[r].Store(c)
		f.mu.Unlock()
	}
	c.Inc()
}

// end counts a connection that was refused or closed, which is the word for
// what happened, and why.
func (f *listenerMetrics) end(what, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.ended[what+" "+why]
	if c == nil {
		c = f.root.Counter("ingest.connections_"+what, f.tag, tags.Tag{Name: "reason", Value: why})
		f.ended[what+" "+why] = c
	}
	c.Inc()
}

// busyTime is how long one reader has been busy. It is sampled: a clock is read
// at each busyEvery-th turn only.
type busyTime struct {
	seconds *store.Counter
	nanos   atomic.Uint64
}

func newBusyTime(root *store.Scope, reader string) *busyTime {
	return &busyTime{seconds: root.Counter("ingest.busy_seconds", tags.Tag{Name: "reader", Value: oneline.Clean(reader)})}
}

const busyEvery = 16

// add adds the time since start, which stands for busyEvery turns.
func (b *busyTime) add(start time.Time) {
	const second = uint64(time.Second)
	n := busyEvery * uint64(time.Since(start))
	now := b.nanos.Add(n)
	if s := now/second - (now-n)/second; s > 0 {
		b.seconds.Add(s)
	}
}

// value returns the time in seconds.
func (b *busyTime) value() float64 { return float64(b.nanos.Load()) / float64(time.Second) }

// tally counts in plain words what a worker does between two publications.
type tally struct {
	packets, bytes, lines, samples uint64
	applied, limited, events       uint64
	dropped                        uint64 // lines, by mapping rules
	unmatched                      uint64 // samples that are dropped because no mapping rule matches
	relayOnly                      uint64 // lines
	tags, tagErrors, unknown       uint64
	beyond                         uint64 // observations that histograms cannot hold
	ahead                          uint64 // samples of gauges with a timestamp in the future
	truncated, refused             uint64
	byType                         [line.Types]uint64
	hits, misses, evicted          uint64
}

// publish adds t to the metrics of a listener and of the server.
func (t *tally) publish(f *listenerMetrics, s *serverMetrics) {
	add := func(c *store.Counter, n uint64) {
		if n != 0 {
			c.Add(n)
		}
	}
	add(f.packets, t.packets)
	add(f.bytes, t.bytes)
	add(f.lines, t.lines)
	add(f.samples, t.samples)
	add(f.tagErrors, t.tagErrors)
	add(f.unknown, t.unknown)
	add(f.beyond, t.beyond)
	add(f.ahead, t.ahead)
	add(f.truncated, t.truncated)
	add(f.refused, t.refused)
	add(f.dropped, t.dropped)
	add(f.relayOnly, t.relayOnly)
	for i, n := range t.byType {
		add(s.byType[i], n)
	}
	add(s.hits, t.hits)
	add(s.misses, t.misses)
	add(s.evicted, t.evicted)
	add(s.unmatched, t.unmatched)
	if t.applied != 0 {
		f.applied.Add(t.applied)
	}
	if t.limited != 0 {
		f.limited.Add(t.limited)
	}
	if t.events != 0 {
		f.events.Add(t.events)
	}
	if t.tags != 0 {
		f.tags.Add(t.tags)
	}
	*t = tally{}
}

// serverMetrics are the metrics that are not of one listener.
type serverMetrics struct {
	byType                [line.Types]*store.Counter
	hits, misses, evicted *store.Counter
	cacheEntries          *store.Gauge
	memoryUsed            *store.Gauge
	memoryLimit           *store.Gauge // 0: none
	series                [groups]*store.Gauge
	created, expired      [groups]*store.Counter
	limited               [limits]*store.Counter
	near                  [limits]*store.Gauge // 1 if a limit is nearly reached; nil for limits without a measure
	collisions, conflicts *store.Counter
	events                map[string]*store.Counter // by alert type
	checks                [4]*store.Counter         // by status
	panics                *store.Counter
	actions               [2]*store.Counter // samples that rules map, and that they drop
	unmatched             *store.Counter    // samples dropped because no rule matches
	filtered              map[string]*store.Counter
	tagValuesReplaced     *store.Counter
	rules                 *store.Gauge
	reloads               [2]*store.Counter // of rules: successful, failed
}

func newServerMetrics(root *store.Scope) *serverMetrics {
	root.Help(metricHelp)
	s := &serverMetrics{
		hits:         root.Counter("ingest.raw_table_hits"),
		misses:       root.Counter("ingest.raw_table_misses"),
		evicted:      root.Counter("ingest.raw_table_evicted"),
		cacheEntries: root.GaugeWithMode("ingest.raw_table_entries", store.NeverImport),
		memoryUsed:   root.GaugeWithMode("ingest.memory.used", store.NeverImport),
		memoryLimit:  root.GaugeWithMode("ingest.memory.limit", store.NeverImport),
		collisions:   root.Counter("ingest.collisions"),
		conflicts:    root.Counter("ingest.type_conflicts"),
		events:       make(map[string]*store.Counter),
		panics:       root.Counter("server.recovered_panics"),
	}
	s.filtered = make(map[string]*store.Counter)
	for _, filter := range []string{"allow", "deny"} {
		s.filtered[filter] = root.Counter("ingest.filtered", tags.Tag{Name: "filter", Value: filter})
	}
	s.tagValuesReplaced = root.Counter("ingest.tag_values_replaced")
	for i, action := range []string{"map", "drop"} {
		s.actions[i] = root.Counter("ingest.mapping.samples", tags.Tag{Name: "action", Value: action})
	}
	s.unmatched = root.Counter("ingest.mapping.dropped_unmatched")
	s.rules = root.GaugeWithMode("ingest.mapping.rules", store.NeverImport)
	for i, outcome := range []string{"success", "failure"} {
		s.reloads[i] = root.Counter("ingest.mapping.reloads", tags.Tag{Name: "outcome", Value: outcome})
	}
	for t := range s.byType {
		s.byType[t] = root.Counter("ingest.samples_by_type", tags.Tag{Name: "type", Value: line.Type(t).String()})
	}
	for g := range groups {
		kind := tags.Tag{Name: "kind", Value: group(g).String()}
		s.series[g] = root.GaugeWithMode("ingest.series", store.NeverImport, kind)
		s.created[g] = root.Counter("ingest.series_created", kind)
		s.expired[g] = root.Counter("ingest.series_expired", kind)
	}
	for l := noLimit + 1; l < limits; l++ {
		name := tags.Tag{Name: "limit", Value: l.String()}
		s.limited[l] = root.Counter("ingest.limited", name)
		if l != limitStore {
			s.near[l] = root.GaugeWithMode("ingest.limit_near", store.NeverImport, name)
		}
	}
	for _, a := range []string{"info", "error", "warning", "success"} {
		s.events[a] = root.Counter("ingest.events", tags.Tag{Name: "alert_type", Value: a})
	}
	for i, status := range []string{"ok", "warning", "critical", "unknown"} {
		s.checks[i] = root.Counter("ingest.service_checks", tags.Tag{Name: "status", Value: status})
	}
	return s
}
