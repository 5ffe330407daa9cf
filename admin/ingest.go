package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Ingest receives StatsD lines; *statsd.Server implements it.
type Ingest interface {
	Report() report.Report
	// Recent returns the part of a report that needs no walk over the names.
	// Report visits each name.
	Recent() report.Recent
	// NearLimits returns the limits that a received stat's name and tags have nearly
	// reached. The name is that of the store, without tags.
	NearLimits(name string, tgs []tags.Tag) []report.Limit
	// Explain describes how a line would be handled, without applying it.
	Explain(line []byte) report.Explanation
	// Forget removes the received stats whose full name satisfies match and
	// returns their number.
	Forget(match func(name string) bool) int
	// Matching returns how many stats Forget would remove.
	Matching(match func(name string) bool) int
	// Mapping describes the mapping rules and how often each matched.
	Mapping() report.Mapping
}

// ingestRows returns the endpoints for StatsD input.
func (s *Server) ingestRows() []Endpoint {
	if s.src.Ingest == nil {
		return nil
	}
	limit := Param{Name: "limit", Help: "number of entries to show of each list; 20 if empty"}
	rows := []Endpoint{
		{Path: "/ingest", Group: groupStatsD, Help: "show the StatsD input: listeners, limits, rejected lines", Serve: s.ingest, Params: []Param{
			textOrJSON, {Name: "top", Help: "names to show; all lists if empty", Kind: ParamChoice, Choices: []string{"", "series", "samples", "new"}},
			limit, {Name: "listener", Help: "only this listener"},
		}},
		{Path: "/ingest/events", Group: groupStatsD, Help: "show the last events and service checks", Serve: s.ingestEvents, Params: []Param{textOrJSON, limit}},
		{Path: "/ingest/explain", Group: groupStatsD, Help: "explain how a StatsD line is interpreted", Serve: s.ingestExplain, maxValue: maxExplained,
			Params: []Param{{Name: "line", Help: "the line"}, textOrJSON}},
		{Path: "/ingest/forget", Group: groupStatsD, Help: "remove received stats by name or prefix", Mutates: true, Serial: true, DryRun: true, Serve: s.ingestForget, Params: []Param{
			{Name: "name", Help: "full name of a stat"}, {Name: "prefix", Help: "prefix of the names of stats"},
		}},
		{Path: "/ingest/mapping", Group: groupStatsD, Help: "show the mapping rules and their matches", Serve: s.ingestMapping, Params: []Param{
			textOrJSON, {Name: "show", Help: "rules to show", Kind: ParamChoice, Choices: []string{"all", "unused", "shadowed"}},
		}},
	}
	if s.src.ReloadMapping != nil {
		rows = append(rows, Endpoint{Path: "/ingest/reload", Group: groupStatsD, Help: "reload the mapping rules", Mutates: true, Role: RoleOperate, Serial: true, Serve: s.ingestReload})
	}
	return rows
}

// maxExplained is the longest line that /ingest/explain accepts.
const maxExplained = 8 << 10

func listLimit(q Query) (int, error) {
	text := q.Value("limit")
	if text == "" {
		return 20, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest("limit must be a non-negative integer\n")
	}
	return n, nil
}

func head[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// tail returns the last n elements in reverse order.
func tail[T any](list []T, n int) []T {
	out := slices.Clone(list[max(0, len(list)-n):])
	slices.Reverse(out)
	return out
}

func (s *Server) ingest(w *Response, r *Request) error {
	limit, err := listLimit(r.query)
	if err != nil {
		return err
	}
	top := r.query.Value("top")
	if top != "" && top != "series" && top != "samples" && top != "new" {
		return badRequest("usage: /ingest?top=(series|samples|new)\n")
	}
	rep := s.src.Ingest.Report()
	name := r.query.Value("listener")
	if name != "" {
		rep.Listeners = slices.DeleteFunc(rep.Listeners, func(l report.Listener) bool { return l.Name != name })
		if len(rep.Listeners) == 0 {
			return badRequest("no such listener: " + quoted(name) + "\n")
		}
	}
	if r.bundled { // without the texts of clients
		for i := range rep.Rejected {
			rep.Rejected[i].Last = nil
		}
	}
	p := newFacts(r)
	listOf(p, "listeners", rep.Listeners, p.listener)
	if len(rep.Relay) > 0 {
		listOf(p, "relay", rep.Relay, p.relayTarget)
	}
	listOf(p, "rejected", rep.Rejected, func(x report.Rejected) { p.rejected(x, name, limit) })
	listOf(p, "limits", rep.Limits, func(x report.Limit) {
		p.string("name", x.Name)
		if x.Max >= 0 {
			p.number("max", uint64(x.Max))
		}
		p.number("use", uint64(max(x.Use, 0)))
		p.number("limited", x.Limited)
	})
	listOf(p, "series", rep.Series, func(x report.Kind) {
		p.string("kind", x.Kind)
		p.number("series", uint64(max(x.Series, 0)))
		p.number("created", x.Created)
		p.number("expired", x.Expired)
	})
	p.optional("expiry", rep.Expiry)
	p.object("series_cache", func() {
		p.number("entries", rep.Cache.Entries)
		p.number("hits", rep.Cache.Hits)
		p.number("misses", rep.Cache.Misses)
		p.number("evicted", rep.Cache.Evicted)
	})
	p.float("stream_busy_seconds", rep.StreamBusySeconds)
	p.positive("unix_queue_datagrams", uint64(rep.UnixQueue))
	p.number("collisions", rep.Collisions)
	p.number("type_conflicts", rep.TypeConflicts)
	listOf(p, "conflicts", head(rep.Conflicts, limit), func(x report.Conflict) {
		p.time("time", x.Time)
		p.string("name", x.Name)
		p.string("kind", x.Group)
		p.optional("other", x.Other)
		p.string("what", x.What)
	})
	p.top(&rep, top, limit)
	return p.send(w)
}

// top writes the lists of top names.
func (p *facts) top(rep *report.Report, which string, limit int) {
	if which == "" || which == "series" {
		listOf(p, "top_series", head(rep.TopSeries, limit), p.count)
		listOf(p, "top_tags", head(rep.TopTags, limit), p.count)
	}
	if which == "" || which == "samples" {
		listOf(p, "top_samples", head(rep.TopSamples, limit), func(x report.NameRate) {
			p.string("name", x.Name)
			p.float("per_second", x.PerSecond)
		})
	}
	if which == "" || which == "new" {
		listOf(p, "newest", tail(rep.Newest, limit), func(x report.NewSeries) {
			p.time("time", x.Time)
			p.string("name", x.Name)
			p.string("kind", x.Kind)
			p.optional("tags", x.Tags)
			p.optional("sender", x.Sender)
		})
	}
}

func (p *facts) count(x report.NameCount) {
	p.string("name", x.Name)
	p.number("count", x.Count)
}

func (p *facts) listener(l report.Listener) {
	p.string("name", l.Name)
	p.string("protocol", l.Protocol)
	p.string("address", l.Address)
	datagrams := l.Readers > 0
	if datagrams {
		p.number("readers", uint64(l.Readers))
	} else {
		p.bool("tls", l.TLS)
	}
	if datagrams || l.LinesPerPacket != nil {
		p.number("packets", l.Packets)
	}
	p.number("bytes", l.Bytes)
	p.number("lines", l.Lines)
	p.number("samples", l.Samples)
	p.number("applied", l.Applied)
	p.number("events_and_checks", l.Events)
	p.number("limited", l.Limited)
	p.number("dropped_by_rule", l.Dropped)
	p.positive("relay_only", l.RelayOnly)
	p.counts("rejected", l.Rejected)
	p.number("tag_errors", l.TagErrors)
	p.number("unknown_fields", l.UnknownFields)
	p.number("values_out_of_range", l.ValuesOutOfRange)
	p.number("future_timestamps", l.FutureTimestamps)
	if datagrams {
		p.number("truncated", l.Truncated)
		p.number("kernel_drops", l.KernelDrops)
		p.number("packets_refused", l.PacketsRefused)
	}
	p.number("read_errors", l.ReadErrors)
	if datagrams {
		p.number("queue_bytes", l.QueueBytes)
		p.number("queue_limit_bytes", l.QueueLimit)
		p.number("rcvbuf_asked_bytes", l.RcvBufAsked)
		p.number("rcvbuf_bytes", l.RcvBufBytes)
	} else {
		p.number("connections", l.Connections)
		p.number("connections_total", l.ConnectionsTotal)
		p.counts("connections_ended", l.Ended)
	}
	if q := l.LinesPerPacket; q != nil && q.Count > 0 {
		p.object("lines_per_packet", func() {
			p.float("p50", q.P50)
			p.float("p99", q.P99)
			p.float("p100", q.Max)
		})
	}
	if datagrams {
		p.float("busy_seconds", l.BusySeconds)
	}
}

func (p *facts) relayTarget(x report.RelayTarget) {
	p.string("target", x.Name)
	if x.Address != x.Name {
		p.string("address", x.Address)
	}
	p.string("mode", x.Mode)
	p.bool("up", x.Up)
	p.object("lines", func() {
		p.number("accepted", x.Accepted)
		p.number("moved_in", x.MovedIn)
		p.number("moved_out", x.MovedOut)
		p.number("sent", x.Sent)
		p.number("dropped", x.Dropped)
		p.number("ambiguous", x.Ambiguous)
		p.number("rejected", x.Rejected)
		p.number("too_long", x.Long)
		p.number("queued", uint64(max(x.Queued, 0)))
	})
	p.number("packets_sent", x.Packets)
	p.number("bytes_sent", x.Bytes)
	p.number("packets_lost", x.LostPackets)
	p.number("failed_attempts", x.Failed)
	p.number("connections", x.Connections)
	p.number("queue_bytes", uint64(max(x.QueueBytes, 0)))
	p.number("queue_limit_bytes", uint64(max(x.QueueLimit, 0)))
	p.float("queue_age_seconds", x.QueueAge.Seconds())
	if x.LastError != "" {
		p.lastError(x.LastError, x.LastErrorAt)
	}
}

// counts writes named numbers sorted by name.
func (p *facts) counts(name string, counts map[string]uint64) {
	p.object(name, func() {
		for _, key := range slices.Sorted(maps.Keys(counts)) {
			p.number(key, counts[key])
		}
	})
}

// rejected writes a reason and its most recent lines, newest first. If listener is
// set, only lines of that listener are written.
func (p *facts) rejected(x report.Rejected, listener string, limit int) {
	p.string("reason", x.Reason)
	p.number("count", x.Count)
	lines := slices.DeleteFunc(slices.Clone(x.Last), func(l report.RejectedLine) bool { return listener != "" && l.Listener != listener })
	listOf(p, "last", tail(lines, limit), func(l report.RejectedLine) {
		p.time("time", l.Time)
		p.string("listener", l.Listener)
		p.optional("source", l.Source)
		p.string("line", l.Line)
	})
}

func (s *Server) ingestEvents(w *Response, r *Request) error {
	limit, err := listLimit(r.query)
	if err != nil {
		return err
	}
	rep := s.src.Ingest.Report()
	p := newFacts(r)
	listOf(p, "events", tail(rep.Events, limit), func(e report.Event) {
		p.time("received", e.Received)
		p.event(&e.Event)
	})
	listOf(p, "service_checks", tail(rep.Checks, limit), func(c report.ServiceCheck) {
		p.time("received", c.Received)
		p.check(&c.ServiceCheck)
	})
	return p.send(w)
}

func (p *facts) event(e *line.Event) {
	p.string("title", e.Title)
	p.string("text", e.Text)
	if e.Time != 0 {
		p.time("time", time.Unix(e.Time, 0))
	}
	p.optional("host", e.Host)
	p.optional("aggregation_key", e.Key)
	p.optional("priority", e.Priority)
	p.optional("source_type", e.Source)
	p.optional("alert_type", e.Alert)
	p.strings("tags", e.Tags)
}

// checkStatus are the names of service check states.
var checkStatus = [...]string{"ok", "warning", "critical", "unknown"}

func (p *facts) check(c *line.ServiceCheck) {
	p.string("name", c.Name)
	status := "unknown"
	if 0 <= c.Status && c.Status < len(checkStatus) {
		status = checkStatus[c.Status]
	}
	p.string("status", status)
	if c.Time != 0 {
		p.time("time", time.Unix(c.Time, 0))
	}
	p.optional("host", c.Host)
	p.optional("message", c.Message)
	p.strings("tags", c.Tags)
}

func (s *Server) ingestExplain(w *Response, r *Request) error {
	text := r.query.Value("line")
	if text == "" {
		return badRequest("usage: /ingest/explain?line=<line, percent-encoded>\n")
	}
	x := s.src.Ingest.Explain([]byte(text))
	p := newFacts(r)
	p.string("line", text)
	p.string("kind", x.Kind)
	if x.Reason != "" {
		p.string("rejected", x.Reason)
		p.number("offset", uint64(max(x.Offset, 0)))
		return p.send(w)
	}
	switch {
	case x.Event != nil:
		p.object("event", func() { p.event(x.Event) })
	case x.Check != nil:
		p.object("service_check", func() { p.check(x.Check) })
	case x.Kind == "metric":
		p.string("name", x.Name)
		listOf(p, "tags", x.Tags, func(t tags.Tag) {
			p.string("name", t.Name)
			p.optional("value", t.Value)
		})
		p.number("tag_errors", uint64(max(x.TagErrors, 0)))
		listOf(p, "samples", x.Samples, p.sample)
	}
	p.number("unknown_fields", uint64(max(x.UnknownFields, 0)))
	return p.send(w)
}

func (p *facts) sample(x report.Sample) {
	p.string("type", x.Type)
	p.string("kind", x.Kind)
	if x.Kind == "set" {
		p.string("member", x.Member)
	} else {
		p.strings("values", x.Values)
	}
	p.float("rate", x.Rate)
	p.optional("stat", x.Stat)
	p.optional("series", x.Series)
	p.optional("series_unit", x.Unit)
	p.bool("known", x.Known)
	p.optional("limit", x.Limit)
	if x.Rule != nil {
		p.object("rule", func() { p.rule(x.Rule) })
	}
	p.optional("filter", x.Filter)
	p.flag("dropped", x.Dropped)
}

func (p *facts) rule(r *report.Rule) {
	p.number("number", uint64(max(r.Number, 0)))
	p.string("match", r.Match)
	p.optional("position", r.Position)
	if r.Scale != nil {
		p.float("scale", *r.Scale)
	}
}

// ingestMapping shows the mapping rules.
func (s *Server) ingestMapping(w *Response, r *Request) error {
	show := r.query.Value("show")
	if show != "" && show != "all" && show != "unused" && show != "shadowed" {
		return badRequest("usage: /ingest/mapping?show=(all|unused|shadowed)\n")
	}
	m := s.src.Ingest.Mapping()
	p := newFacts(r)
	p.number("rules", uint64(len(m.Rules)))
	p.number("samples_mapped", m.Mapped)
	p.number("samples_dropped", m.Dropped)
	p.number("samples_dropped_unmatched", m.Unmatched)
	p.number("reloads", m.Reloads)
	p.number("failed_reloads", m.FailedReloads)
	p.moment("last_reload", m.Reloaded)
	p.optional("error", m.Error)
	order := "first_in_file"
	if m.MostLiteral {
		order = "most_literal"
	}
	p.string("globs", order)
	unmatched := "keep"
	if m.DropUnmatched {
		unmatched = "drop"
	}
	p.string("unmatched", unmatched)
	rules := slices.DeleteFunc(m.Rules, func(u report.RuleUse) bool {
		return show == "unused" && u.Matches > 0 || show == "shadowed" && u.ShadowedBy == 0
	})
	listOf(p, "mappings", rules, func(u report.RuleUse) {
		p.rule(&u.Rule)
		if u.Regex {
			p.string("match_type", "regex")
		}
		p.optional("match_metric_type", u.Kind)
		if u.Drops {
			p.string("action", "drop")
		} else {
			p.string("name", u.Name)
		}
		p.number("matches", u.Matches)
		p.positive("shadowed_by", uint64(u.ShadowedBy))
		p.flag("unused", u.ShadowedBy == 0 && u.Matches == 0)
		p.moment("last_match", u.Last)
	})
	return p.send(w)
}

// ingestReload reloads the mapping rules.
func (s *Server) ingestReload(w *Response, r *Request) error {
	before := s.src.Ingest.Mapping()
	if err := s.src.ReloadMapping(); err != nil {
		return &Error{Status: 400, Msg: "the current mapping rules stay: " + err.Error() + "\n"}
	}
	after := len(s.src.Ingest.Mapping().Rules)
	r.Changed("mapping rules", strconv.Itoa(len(before.Rules)), strconv.Itoa(after))
	return w.text(200, fmt.Sprintf("OK, %d mapping rules\n", after))
}

// ingestForget removes received stats by name or prefix.
func (s *Server) ingestForget(w *Response, r *Request) error {
	name, prefix := r.query.Value("name"), r.query.Value("prefix")
	if (name == "") == (prefix == "") {
		return badRequest("usage: /ingest/forget?name=<full name> or /ingest/forget?prefix=<beginning of names>\n")
	}
	match := func(n string) bool { return n == name }
	if prefix != "" {
		match = func(n string) bool { return strings.HasPrefix(n, prefix) }
	}
	if r.DryRun() {
		r.Changed("received stats "+quoted(name+prefix), strconv.Itoa(s.src.Ingest.Matching(match)), "0")
		return nil
	}
	n := s.src.Ingest.Forget(match)
	r.Changed("received stats "+quoted(name+prefix), strconv.Itoa(n), "0")
	text := fmt.Sprintf("OK, removed %d series\n", n)
	if n == 0 && prefix == "" {
		if near := s.NearestStat(name, true); near != "" {
			text += "did you mean " + quoted(near) + ", or the prefix " + quoted(name+".") + "?\n"
		}
	}
	return w.text(200, text)
}
