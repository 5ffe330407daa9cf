package admin

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/statsd-admin/statsd-admin/render"
)

// statsFormat is an output format of /stats.
type statsFormat uint8

const (
	formatText statsFormat = iota
	formatJSON
	formatHTML
	formatActiveHTML
	formatMetrics
)

// statsQuery holds the parsed parameters of /stats.
type statsQuery struct {
	format     statsFormat
	exposition render.Format // with formatMetrics; see negotiate
	protobuf   bool          // ask for it whatever the request accepts
	pattern    string        // of the filter, "" for none
	options    render.Options
}

// parseStats parses the parameters of /stats. Only the first value of a parameter
// counts, and an empty one is ignored; flags are set by their name alone. The first
// error, in the order of the checks, is returned. metricsOnly is set for the path
// that has one format; there a format parameter is validated but ignored.
func (s *Server) parseStats(q Query, metricsOnly bool) (*statsQuery, error) {
	out := &statsQuery{pattern: q.Value("filter")}
	o := &out.options
	o.PreferOpenMetrics, o.OmitCreated = s.cfg.PreferOpenMetrics, s.cfg.OmitCreated
	o.UsedOnly, o.TextReadouts, out.protobuf = q.Has("usedonly"), q.Has("text_readouts"), q.Has("prom_protobuf")
	if q.Has("invert_filter") && out.pattern == "" {
		return nil, badRequest("invert_filter requires filter\n")
	}
	if out.pattern != "" {
		filter, err := s.filter(out.pattern, q.Has("invert_filter"))
		if err != nil {
			return nil, err
		}
		o.Filter = filter
	}
	if !choose(q.Value("histogram_buckets"), &o.Buckets, map[string]render.Buckets{"": render.Default,
		"cumulative": render.Cumulative, "disjoint": render.Disjoint, "detailed": render.Detailed, "hdr": render.HDR,
		"summary": render.Summary, "none": render.Summary, "prometheusnative": render.Native}) {
		return nil, badRequest("usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary)\n")
	}
	if !choose(q.Value("type"), &o.Type, map[string]render.Type{"": render.All, "All": render.All, "Counters": render.Counters,
		"Gauges": render.Gauges, "Histograms": render.Histograms, "TextReadouts": render.TextReadouts}) {
		return nil, badRequest("invalid &type= param")
	}
	if !choose(q.Value("hidden"), &o.Hidden, map[string]render.Hidden{"": render.HiddenExclude,
		"exclude": render.HiddenExclude, "include": render.HiddenInclude, "only": render.HiddenOnly}) {
		return nil, badRequest("usage: /stats?hidden=(include|only|exclude)\n\n")
	}
	if !choose(q.Value("format"), &out.format, map[string]statsFormat{"": formatText, "text": formatText, "json": formatJSON,
		"html": formatHTML, "active-html": formatActiveHTML, "metrics": formatMetrics, "prometheus": formatMetrics}) {
		return nil, badRequest("usage: /stats?format=(html|active-html|json|" + s.metricsFormat() + "|text)\n\n")
	}
	if metricsOnly {
		out.format = formatMetrics
	}
	switch {
	case out.format == formatMetrics && (o.Buckets == render.Disjoint || o.Buckets == render.Detailed || o.Buckets == render.HDR):
		return nil, badRequest("unsupported prometheus histogram bucket mode")
	case out.format == formatActiveHTML:
		return nil, badRequest("active-html is not supported, use format=html\n")
	}
	return out, nil
}

// negotiate chooses among the exposition formats by what the header Accept says.
func (q *statsQuery) negotiate(accept string) error {
	if q.format != formatMetrics {
		return nil
	}
	q.exposition, q.options.Escaping = render.Negotiate(accept, &q.options)
	if q.protobuf {
		q.exposition = render.FormatProtobuf
	}
	if q.options.Buckets == render.Native && q.exposition != render.FormatProtobuf {
		return badRequest("unsupported prometheusnative histogram type when not using protobuf exposition format")
	}
	return nil
}

// choose sets to to what name stands for, and reports false for an unknown one.
func choose[T any](name string, to *T, values map[string]T) bool {
	v, ok := values[name]
	if ok {
		*to = v
	}
	return ok
}

// metricsFormat is how the product spells the exposition format.
func (s *Server) metricsFormat() string {
	if s.product == "envoy" {
		return "prometheus"
	}
	return "metrics"
}

// statsParams lists the parameters of /stats, or of the path that has one
// format.
func (s *Server) statsParams(formats bool) []Param {
	choice := func(name, help string, choices ...string) Param {
		return Param{Name: name, Help: help, Kind: ParamChoice, Choices: append([]string{""}, choices...)}
	}
	params := []Param{
		{Name: "usedonly", Help: "only stats that were updated", Kind: ParamFlag},
		{Name: "filter", Help: "regular expression that matches part of the name"},
		{Name: "invert_filter", Help: "show the stats that the filter does not match", Kind: ParamFlag},
	}
	if formats {
		params = append(params,
			Param{Name: "format", Help: "output format", Kind: ParamChoice, Choices: []string{"text", "json", "html", s.metricsFormat()}},
			choice("type", "kind of stats", "All", "Counters", "Gauges", "Histograms", "TextReadouts"),
			choice("histogram_buckets", "form of histograms; quantiles if empty", "cumulative", "disjoint", "detailed", "summary", "hdr"))
	} else {
		params = append(params, choice("histogram_buckets", "form of histograms", "cumulative", "summary"))
	}
	if formats && s.src.History != nil {
		params = append(params, pastParams()...)
	}
	return append(params,
		choice("hidden", "how to treat hidden stats", "include", "only", "exclude"),
		Param{Name: "text_readouts", Help: "with format=" + s.metricsFormat() + ": show text readouts", Kind: ParamFlag})
}

// FilterEngine returns the engine of the filters of /stats, which a runtime key selects.
func (s *Server) FilterEngine() render.Engine {
	if s.src.Runtime != nil && !s.src.Runtime.Snapshot().Bool(s.product+".reloadable_features.admin_stats_filter_use_re2", true) {
		return render.ECMAScript
	}
	return render.RE2
}

// filter compiles the pattern of a filter, or takes it from those kept.
func (s *Server) filter(pattern string, invert bool) (*render.Filter, error) {
	engine := s.FilterEngine()
	f, err := s.filters.get(filterKey{engine, pattern, invert})
	if err != nil {
		return nil, filterError(engine, err)
	}
	return f, nil
}

// filterError returns the answer to a filter that does not compile.
func filterError(engine render.Engine, err error) *Error {
	switch {
	case errors.Is(err, render.ErrTooComplex):
		return badRequest(strings.TrimPrefix(err.Error(), "render: ") + "\n")
	case engine == render.ECMAScript:
		return badRequest(`Invalid regex: "` + strings.TrimPrefix(err.Error(), render.ErrSyntax.Error()+": ") + "\"\n")
	}
	return badRequest("Invalid re2 regex")
}

// filterCache keeps the filters asked for last, since a filter remembers which
// names it matches.
type filterCache struct {
	limits render.FilterLimits

	mu      sync.Mutex
	entries []filterEntry // latest use last
}

type filterKey struct {
	engine  render.Engine
	pattern string
	invert  bool
}

type filterEntry struct {
	key    filterKey
	filter *render.Filter
}

// At most so many filters are kept, of so many bytes. The one in use always is.
const (
	cachedFilters     = 64
	cachedFilterBytes = 32 << 20
)

func (c *filterCache) get(key filterKey) (*render.Filter, error) {
	if f := c.take(key, nil); f != nil {
		return f, nil
	}
	compile := render.NewFilter
	if key.invert {
		compile = render.NewInvertedFilter
	}
	f, err := compile(key.engine, key.pattern, c.limits)
	if err != nil {
		return nil, err
	}
	return c.take(key, f), nil
}

// take returns the filter of key and notes its use; if there is none it puts
// made, unless that is nil, in its place.
func (c *filterCache) take(key filterKey, made *render.Filter) *render.Filter {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := filterEntry{key, made}
	if i := slices.IndexFunc(c.entries, func(old filterEntry) bool { return old.key == key }); i >= 0 {
		e = c.entries[i]
		c.entries = slices.Delete(c.entries, i, i+1)
	}
	if e.filter == nil {
		return nil
	}
	c.entries = append(c.entries, e)
	first, size := len(c.entries)-1, e.filter.Bytes() // filters grow while they are used
	for first > 0 && len(c.entries)-first < cachedFilters {
		if size += c.entries[first-1].filter.Bytes(); size > cachedFilterBytes {
			break
		}
		first--
	}
	c.entries = slices.Delete(c.entries, 0, first)
	return e.filter
}
