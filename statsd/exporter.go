package statsd

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// ExporterNamespace is the first segment of the names behind
// [Config.ExporterMetrics]. A store that lists it among the namespaces of its
// naming shows the names without it, as statsd_exporter does.
const ExporterNamespace = "compat"

// exporterMetrics mirrors the self-metrics under the names of statsd_exporter,
// for dashboards and alerts written for it.
//
// statsd_exporter has an event queue, which this server lacks: a batch of lines
// counts as a flush of the queue. The series cache counts as the mapping cache.
type exporterMetrics struct {
	scope  *store.Scope
	totals map[string]*exporterTotal
}

// exporterTotal is a counter with the total it was set to.
type exporterTotal struct {
	counter *store.Counter
	added   uint64
}

// conflictedMetric is a metric that got samples of another type.
type conflictedMetric struct {
	typ, metric string
}

const (
	maxConflicted = 1000    // metrics with a series each
	otherMetrics  = "other" // all further metrics
)

// noteConflict counts a conflict of kinds. r.mu must be held.
func (r *registry) noteConflict(cl report.Conflict) {
	metric, _ := r.shown(cl.Name, nil)
	c := conflictedMetric{exporterType(cl.Group), metric}
	if _, ok := r.conflicted[c]; !ok && len(r.conflicted) >= maxConflicted {
		c.metric = otherMetrics
	}
	r.conflicted[c]++
}

// exporterType returns the event type for a group.
func exporterType(group string) string {
	if group == histograms.String() {
		return "observer"
	}
	return group
}

// exporterReason returns the reason for r in statsd_exporter.
func exporterReason(r line.Reason) string {
	switch r {
	case line.BadValue:
		return "malformed_value"
	case line.BadSampleRate:
		return "invalid_sample_factor"
	case line.MixedTagStyles:
		return "mixed_tagging_styles"
	case line.MissingColon, line.MissingPipe, line.EmptyName, line.InvalidUTF8:
		return "malformed_line"
	case line.BadType:
		return "illegal_event"
	}
	return "malformed_component"
}

func newExporterMetrics(st *store.Store) *exporterMetrics {
	return &exporterMetrics{scope: st.Own().Scope(ExporterNamespace), totals: make(map[string]*exporterTotal)}
}

// total sets the total of a counter to n. labels alternate names and values.
func (e *exporterMetrics) total(n uint64, name string, labels ...string) {
	key := name + "\x00" + strings.Join(labels, "\x00")
	t := e.totals[key]
	if t == nil {
		t = &exporterTotal{counter: e.scope.Counter(name, exporterTags(labels)...)}
		e.totals[key] = t
	}
	t.counter.Add(n - t.added)
	t.added = n
}

func (e *exporterMetrics) gauge(n int, name string, labels ...string) {
	e.scope.GaugeWithMode(name, store.NeverImport, exporterTags(labels)...).Set(uint64(n))
}

func exporterTags(labels []string) (out []tags.Tag) {
	for i := 0; i < len(labels); i += 2 {
		out = append(out, tags.Tag{Name: labels[i], Value: labels[i+1]})
	}
	return out
}

// update copies the current self-metrics of s.
func (e *exporterMetrics) update(s *Server) {
	e.updateListeners(s.snapshotListeners())
	f := s.metrics
	events := make(map[string]uint64)
	for t, c := range f.byType {
		events[exporterType(groupOf(line.Type(t)).String())] += c.Total()
	}
	sum := uint64(0)
	for typ, n := range events {
		e.total(n, "statsd_exporter_events_total", "type", typ)
		sum += n
	}
	mapped, dropped := f.actions[0].Total(), f.actions[1].Total()
	e.total(sum-min(sum, mapped+dropped), "statsd_exporter_events_unmapped_total")
	batches := uint64(0)
	for _, w := range s.allWorkers() {
		batches += w.batches()
	}
	e.total(batches, "statsd_exporter_event_queue_flushed_total")
	for i, outcome := range []string{"success", "failure"} {
		e.total(f.reloads[i].Total(), "statsd_exporter_config_reloads_total", "outcome", outcome)
	}
	e.gauge(int(f.rules.Value()), "statsd_exporter_loaded_mappings")
	e.total(mapped, "statsd_exporter_events_actions_total", "action", "map")
	e.total(dropped, "statsd_exporter_events_actions_total", "action", "drop")
	e.updateSeries(s.registry)
	e.gauge(int(f.cacheEntries.Value()), "statsd_metric_mapper_cache_length")
	e.total(f.hits.Total()+f.misses.Total(), "statsd_metric_mapper_cache_gets_total")
	e.total(f.hits.Total(), "statsd_metric_mapper_cache_hits_total")
}

// updateSeries copies the numbers of series.
func (e *exporterMetrics) updateSeries(r *registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	observers, others := "histogram", "summary"
	if f := r.cfg.Histograms; f != nil && len(f.Quantiles) > 0 {
		observers, others = others, observers
	}
	e.gauge(r.perGroup[counters], "statsd_exporter_metrics_total", "type", "counter")
	e.gauge(r.perGroup[gauges]+r.perGroup[sets], "statsd_exporter_metrics_total", "type", "gauge")
	e.gauge(r.perGroup[histograms], "statsd_exporter_metrics_total", "type", observers)
	e.gauge(0, "statsd_exporter_metrics_total", "type", others)
	for c, n := range r.conflicted {
		e.total(n, "statsd_exporter_events_conflict_total", "type", c.typ, "metric_name", c.metric)
	}
}

// updateListeners copies the sums over all listeners.
func (e *exporterMetrics) updateListeners(all []*listener) {
	var udpPackets, udpDrops, connections, connectionErrors, longLines, unixPackets uint64
	var lines, samples, tgs, tagErrors uint64
	var rejected [line.Reasons]uint64
	for _, l := range all {
		f := l.metrics
		for r := range f.rejected {
			if c := f.rejected[r].Load(); c != nil {
				rejected[r] += c.Total()
			}
		}
		lines += f.lines.Total()
		samples += f.samples.Total()
		tgs += f.tags.Load()
		tagErrors += f.tagErrors.Total()
		switch {
		case l.addr.network == "unixgram":
			unixPackets += f.packets.Total()
		case l.addr.framing == datagrams:
			udpPackets += f.packets.Total()
			udpDrops += f.drops.Total()
		case !l.addr.unix():
			connections += f.connections.Total()
			connectionErrors += f.readErrors.Total() + f.endedTotal("closed error")
			if c := f.rejected[line.LineTooLong].Load(); c != nil {
				longLines += c.Total()
			}
		}
	}
	e.total(udpPackets, "statsd_exporter_udp_packets_total")
	e.total(udpDrops, "statsd_exporter_udp_packet_drops_total")
	e.total(connections, "statsd_exporter_tcp_connections_total")
	e.total(connectionErrors, "statsd_exporter_tcp_connection_errors_total")
	e.total(longLines, "statsd_exporter_tcp_too_long_lines_total")
	e.total(unixPackets, "statsd_exporter_unixgram_packets_total")
	e.total(lines, "statsd_exporter_lines_total")
	e.total(samples, "statsd_exporter_samples_total")
	e.total(tgs, "statsd_exporter_tags_total")
	e.total(tagErrors, "statsd_exporter_tag_errors_total")
	errors := make(map[string]uint64)
	for r, n := range rejected {
		if r != int(line.OK) {
			errors[exporterReason(line.Reason(r))] += n
		}
	}
	for reason, n := range errors {
		e.total(n, "statsd_exporter_sample_errors_total", "reason", reason)
	}
	e.total(rejected[line.NegativeCounter], "statsd_exporter_events_error_total", "reason", "illegal_negative_counter")
	e.total(rejected[line.EmptyName], "statsd_exporter_events_error_total", "reason", "empty_metric_name")
}

// endedTotal returns the number of connections with an outcome such as "closed
// eof".
func (f *listenerMetrics) endedTotal(how string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.ended[how]; c != nil {
		return c.Total()
	}
	return 0
}

// batches returns the number of batches that w received.
func (w *worker) batches() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visits
}
