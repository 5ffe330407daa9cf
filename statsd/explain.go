package statsd

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Explain describes how a line would be handled, without applying it. It is
// safe for concurrent use.
func (s *Server) Explain(text []byte) report.Explanation {
	if i := slices.Index(text, '\n'); i >= 0 {
		text = text[:i]
	}
	var l line.Line
	r := s.parser.Split(&l, text)
	e := report.Explanation{Kind: [...]string{"blank", "metric", "event", "service_check"}[l.Kind]}
	if r == line.OK {
		switch l.Kind {
		case line.KindMetric:
			r = s.explainMetric(&l, &e)
		case line.KindEvent:
			var n line.Event
			if n, r = s.parser.ParseEvent(&l); r == line.OK {
				e.Event, e.UnknownFields, e.TagErrors = &n, n.Unknown, l.TagErrors
			}
		case line.KindServiceCheck:
			var c line.ServiceCheck
			if c, r = s.parser.ParseServiceCheck(&l); r == line.OK {
				e.Check, e.UnknownFields, e.TagErrors = &c, c.Unknown, l.TagErrors
			}
		}
	}
	if r != line.OK {
		e.Reason = r.String()
		e.Offset = cap(text) - cap(l.Text) + l.At
	}
	return e
}

func (s *Server) explainMetric(l *line.Line, e *report.Explanation) line.Reason {
	if r := s.parser.Identify(l); r != line.OK {
		return r
	}
	e.Name, e.TagErrors, e.UnknownFields = string(l.Name), l.TagErrors, l.Unknown
	for _, t := range l.Tags {
		e.Tags = append(e.Tags, tags.Tag{Name: string(t.Key), Value: string(t.Value)})
	}
	l.SignedCounters = s.registry.gaugeBacked(l.Name)
	if r := s.parser.Numbers(l); r != line.OK {
		return r
	}
	for _, sample := range l.Samples {
		x := report.Sample{Type: sample.Type.String(), Rate: sample.Rate}
		if sample.Type == line.Set {
			x.Member = string(sample.Text)
		}
		if r := s.registry.explain(l, sample.Type, &x, e.Samples); r != line.OK {
			return r
		}
		for _, v := range l.Values[sample.From:sample.To] {
			x.Values = append(x.Values, number(v, x.Kind == gauges.String() && s.relative(v)))
		}
		e.Samples = append(e.Samples, x)
	}
	return line.OK
}

// number formats a value, without an exponent unless it is very small or large.
// A relative value keeps its plus sign.
func number(v line.Value, relative bool) string {
	format := byte('f')
	if size := math.Abs(v.Number); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	text := strconv.FormatFloat(v.Number, format, -1, 64)
	if relative && v.Number >= 0 {
		text = "+" + text
	}
	return text
}

// explain fills in the stat of a sample of l that follows the samples in
// before.
func (r *registry) explain(l *line.Line, typ line.Type, x *report.Sample, before []report.Sample) line.Reason {
	rules := r.rules.Load()
	w := r.want(rules, l.Name, l.Tags, typ, false)
	x.Kind = w.group.String()
	x.Rule, x.Filter, x.Dropped = rules.describe(w.rule), w.rule.filter(), w.dropped
	if w.dropped || w.reason != line.OK {
		return w.reason
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known, reason := r.place(&w, func(*store.Counter, report.Conflict) {})
	if reason != line.OK {
		return reason
	}
	x.Known = known
	if !known {
		if lim := r.exceeded(&w, r.cfg.Now()); lim != noLimit {
			x.Limit = lim.String()
		}
	}
	x.Stat = r.fullName(&w)
	for _, b := range before {
		if b.Stat == x.Stat && b.Kind != x.Kind {
			// The earlier sample would give the name another kind.
			w.name += "_" + w.group.String()
			x.Stat = r.fullName(&w)
		}
	}
	x.Series = r.series(&w)
	if typ == line.Timer {
		x.Unit = "milliseconds"
		if r.naming.NetworkSeconds {
			x.Unit = "seconds"
		}
	}
	return line.OK
}

// fullName returns the name of w in the store.
func (r *registry) fullName(w *wanted) string {
	if len(w.tags) == 0 {
		return r.full(w.name)
	}
	var buf [256]byte
	b := append(buf[:0], r.full(w.name)...)
	for _, t := range w.tags {
		b = append(append(b, '.'), t.Name...)
		if t.Value != "" {
			b = append(append(b, '.'), t.Value...)
		}
	}
	return string(b)
}

func (r *registry) series(w *wanted) string {
	metric, labels := r.shown(w.name, w.tags)
	if w.group == counters && r.naming.NetworkTotal && !strings.HasSuffix(metric, "_total") {
		metric += "_total"
	}
	var b strings.Builder
	b.WriteString(metric + "{")
	for i, l := range r.labels(labels) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.Name + `="` + labelEscapes.Replace(l.Value) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

// labels returns the labels that the exposition makes of tags, in its order.
func (r *registry) labels(tgs []tags.Tag) []tags.Tag {
	out := make([]tags.Tag, 0, len(tgs))
	var buf [64]byte
	for _, t := range tgs {
		l := tags.Tag{Name: t.Name, Value: t.Value}
		if b := r.naming.AppendLabel(buf[:0], t.Name); string(b) != t.Name {
			l.Name = string(b)
		}
		if slices.ContainsFunc(out, func(o tags.Tag) bool { return o.Name == l.Name }) {
			l.Name = distinct(l.Name, out)
		}
		l.Value = cmp.Or(l.Value, "true")
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b tags.Tag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// distinct returns name as the exposition changes it if taken have it.
func distinct(name string, taken []tags.Tag) string {
	var names [][]byte
	for _, t := range taken {
		names = append(names, []byte(t.Name))
	}
	return string(naming.DistinctLabel([]byte(name), names))
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
