package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"go.yaml.in/yaml/v4"
)

// Stats holds everything about the stats engine, its flush and its sinks.
type Stats struct {
	Tags              []tags.Spec
	UseAllDefaultTags bool                     // default true
	TagOverrides      bool                     // configured tags go before default tags of the same name
	OwnPrefix         string                   // of the server's own stats
	UniqueSeries      bool                     // names that differ in replaced bytes only get distinct metric names
	Reject            func(name string) bool   // nil: none
	Histograms        []store.HistogramSetting // the first match wins

	HistoryBytes int // of the history of stats, default 64 MiB; 0: none

	FlushInterval    time.Duration // default 5s; 0 with FlushOnAdmin
	FlushOnAdmin     bool
	EvictionInterval time.Duration // 0: never
	Sinks            []StatsSink

	ServerVersion    int64 // value of the gauge server.version
	ServerVersionSet bool
}

// StatsSink names a sink for flushed stats.
type StatsSink struct {
	Kind   string // one of the known names, without product prefix: statsd, dog_statsd, …
	Config Raw    // typed_config; unset when absent

	Buckets int   // of the circuit event stream; 0: the default
	Out     *Sink // a sink that sends, else nil
}

// statsSinkKinds are the sinks that exist by name.
var statsSinkKinds = []string{
	"statsd", "dog_statsd", "graphite_statsd", "metrics_service", "hystrix", "circuit_stream", "open_telemetry", "wasm",
}

const (
	minFlushInterval = time.Millisecond
	maxFlushInterval = 5 * time.Minute // exclusive
)

func (s *Stats) setConfig(d *decoder, n *yaml.Node, path string) {
	d.message(n, path, []field{
		{"stats_tags", list(&s.Tags, statsTag)},
		{"use_all_default_tags", boolean(&s.UseAllDefaultTags)},
		{"allow_default_tag_overrides", boolean(&s.TagOverrides)},
		{"stats_matcher", s.setMatcher},
		{"unique_series", boolean(&s.UniqueSeries)},
		{"own_prefix", s.setOwnPrefix},
		{"history_bytes", size(&s.HistoryBytes, 0, 1<<40)},
		{"histogram_bucket_settings", list(&s.Histograms, histogramSetting)},
	})
}

func (s *Stats) setFlushOnAdmin(d *decoder, n *yaml.Node, path string) {
	boolean(&s.FlushOnAdmin)(d, n, path)
	if n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "false") {
		d.errorf(n, path, "must be true if present")
	}
}

func (s *Stats) setServerVersion(d *decoder, n *yaml.Node, path string) {
	whole(&s.ServerVersion, 0, 1<<63-1)(d, n, path)
	s.ServerVersionSet = true
}

// setOwnPrefix accepts segments with dots between.
func (s *Stats) setOwnPrefix(d *decoder, n *yaml.Node, path string) {
	before := len(d.errs)
	nonEmpty(&s.OwnPrefix)(d, n, path)
	if len(d.errs) > before {
		return
	}
	for segment := range strings.SplitSeq(s.OwnPrefix, ".") {
		odd := strings.IndexFunc(segment, func(r rune) bool {
			return r != '_' && r != '-' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9')
		})
		if segment == "" || odd >= 0 {
			d.errorf(n, path, "%q is not a prefix of names; want letters, digits, '_' and '-', with single dots between", s.OwnPrefix)
			return
		}
	}
}

// check looks at the fields that depend on each other.
func (s *Stats) check(d *decoder, seen map[string]*yaml.Node) {
	_, interval := seen["stats_flush_interval"]
	if at, ok := seen["stats_flush_on_admin"]; ok && interval {
		d.errorf(at, "stats_flush_on_admin", "Only one of stats_flush_interval or stats_flush_on_admin should be set!")
	}
	if s.FlushOnAdmin && !interval {
		s.FlushInterval = 0
	}
	if at, ok := seen["stats_eviction_interval"]; ok {
		switch {
		case s.FlushInterval == 0:
			d.errorf(at, "stats_eviction_interval", "cannot be used with stats_flush_on_admin")
		case s.EvictionInterval%s.FlushInterval != 0:
			d.errorf(at, "stats_eviction_interval", "%s is not a multiple of the flush interval %s", s.EvictionInterval, s.FlushInterval)
		}
	}
}

// statsTag decodes one rule of tag extraction.
func statsTag(t *tags.Spec) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var fixed string
		seen := d.message(n, path, []field{
			{"tag_name", text(&t.Name)},
			{"regex", func(d *decoder, n *yaml.Node, path string) {
				if n.Kind == yaml.ScalarNode && n.Value == "" {
					return // as if it were absent: the default rule of this name
				}
				regex(&t.Regex)(d, n, path)
			}},
			{"tokens", func(d *decoder, n *yaml.Node, path string) {
				text(&t.Tokens)(d, n, path)
				if err := tags.CheckTokens(t.Tokens); err != nil {
					d.errorf(n, path, "%v", err)
				}
			}},
			{"fixed_value", text(&fixed)},
		})
		if d.oneOf(n, path, seen, false, "regex", "tokens", "fixed_value") == "fixed_value" {
			t.Fixed = &fixed
		}
		if t.Name == "" && n.Kind == yaml.MappingNode {
			d.errorf(n, join(path, "tag_name"), "tag_name cannot be empty")
		}
	}
}

// setMatcher reads which stats exist.
func (s *Stats) setMatcher(d *decoder, n *yaml.Node, path string) {
	patterns := func(to *match.List) setter {
		return func(d *decoder, n *yaml.Node, path string) {
			d.message(n, path, []field{{"patterns", list((*[]match.Matcher)(to), matcher)}})
			if len(*to) == 0 {
				d.errorf(n, join(path, "patterns"), "at least one pattern must be set")
			}
		}
	}
	var all bool
	var excluded, included match.List
	seen := d.message(n, path, []field{
		{"reject_all", boolean(&all)},
		{"exclusion_list", patterns(&excluded)},
		{"inclusion_list", patterns(&included)},
	})
	switch d.oneOf(n, path, seen, true, "reject_all", "exclusion_list", "inclusion_list") {
	case "reject_all":
		if all {
			s.Reject = func(string) bool { return true }
		}
	case "exclusion_list":
		s.Reject = excluded.Match
	case "inclusion_list":
		s.Reject = func(name string) bool { return !included.Match(name) }
	}
}

// maxBins is the largest number of bins to begin with that servers which set
// them aside allow.
const maxBins = 46082

// setBins checks the initial number of bins of a histogram. It has no effect: bins
// are added as values arrive.
func setBins(d *decoder, n *yaml.Node, path string) {
	var bins int
	whole(&bins, 1, maxBins)(d, n, path)
	d.warnf(n, path, "accepted, but has no effect: bins are made as values come")
}

// histogramSetting decodes the settings of the histograms whose name matches.
func histogramSetting(h *store.HistogramSetting) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var m match.Matcher
		seen := d.message(n, path, []field{
			{"match", matcher(&m)},
			{"buckets", list(&h.Buckets, func(to *float64) setter { return number(to, 0, 1e300) })},
			{"bins", setBins},
			{"significant_digits", whole(&h.SignificantDigits, 1, 5)},
		})
		d.require(n, path, seen, "match")
		given := make(map[float64]bool, len(h.Buckets))
		for i, bound := range h.Buckets {
			at := fmt.Sprintf("%s.buckets[%d]", path, i)
			switch {
			case bound <= 0:
				d.errorf(seen["buckets"].Content[i], at, "%v is not greater than 0", bound)
			case given[bound]:
				d.errorf(seen["buckets"].Content[i], at, "%v comes twice", bound)
			}
			given[bound] = true
		}
		slices.Sort(h.Buckets)
		h.Match = m.Match
	}
}

func (s *StatsSink) set(d *decoder, n *yaml.Node, path string) {
	var name string
	seen := d.message(n, path, []field{
		{"name", text(&name)},
		{"typed_config", raw(&s.Config)},
		{"config", raw(&s.Config)},
	})
	d.require(n, path, seen, "name")
	at, ok := seen["name"]
	if !ok {
		return
	}
	s.Kind = name
	for _, prefix := range []string{d.product + ".", "proxy.", "envoy."} {
		s.Kind = strings.TrimPrefix(s.Kind, prefix)
	}
	s.Kind = strings.TrimPrefix(s.Kind, "stat_sinks.")
	if !slices.Contains(statsSinkKinds, s.Kind) {
		d.errorf(at, join(path, "name"), "%s is not a known sink; known: %s, with or without %s.stat_sinks. in front",
			d.show(at, path), strings.Join(statsSinkKinds, ", "), d.product)
	}
	if format, ok := statsdFormats[s.Kind]; ok {
		s.setStatsD(d, format)
	}
	switch s.Kind {
	case "open_telemetry":
		s.setOpenTelemetry(d)
	case "metrics_service":
		s.setMetricsService(d)
	}
	if slices.Contains(statsSinkKinds, s.Kind) && !s.CircuitStream() && s.Out == nil {
		d.warnf(at, join(path, "name"), "accepted, but nothing is sent: there is no such sink in this build")
	}
	if s.CircuitStream() && s.Config.Node != nil {
		d.message(s.Config.Node, s.Config.Path, []field{
			{"@type", func(*decoder, *yaml.Node, string) {}}, // the name implies it
			{"num_buckets", whole(&s.Buckets, 0, 1<<16-1)},
		})
	}
}

// CircuitStream reports whether the sink is that of the circuit event stream.
func (s *StatsSink) CircuitStream() bool { return s.Kind == "hystrix" || s.Kind == "circuit_stream" }
