package admin

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/spelling"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func (s *Server) explainRow() Endpoint {
	return Endpoint{Path: "/stats/explain", Group: groupStats, Help: "explain a stat: its tags rule by rule, exposition, origin, last change, sinks",
		Heavy: true, CPUBound: true, Serve: s.statsExplain, Params: []Param{{Name: "name", Help: "full name of the stat"}, textOrJSON}}
}

func (s *Server) statsExplain(w *Response, r *Request) error {
	name := r.query.Value("name")
	if name == "" {
		return badRequest("usage: /stats/explain?name=<full name>\n")
	}
	p := newFacts(r)
	if !s.explain(p, name) {
		return s.noStat(w, name)
	}
	return p.send(w)
}

// noStat answers that a stat does not exist, with a name that was probably meant.
func (s *Server) noStat(w *Response, name string) error {
	text := "there is no such stat\n"
	if near := s.NearestStat(name, false); near != "" {
		text += "did you mean " + quoted(near) + "?\n"
	}
	return w.text(404, text)
}

// explain writes the facts about a stat. It reports whether the stat exists.
func (s *Server) explain(p *facts, name string) (found bool) {
	v := s.store.View()
	defer v.Close()
	c, found := v.Find(name)
	if !found {
		return false
	}
	family := name
	if f := c.Family(); f != nil {
		family = f.String()
	}
	p.string("name", name)
	p.string("kind", c.Kind().Word())
	about, origin := s.store.Descriptions()[family], "program"
	if c.Network() {
		about, origin = s.store.NetworkDescription(family), "statsd"
	}
	unit := about.Unit
	if c.Kind() == store.KindHistogram && unit == "" {
		unit = c.Histogram().Layout().Unit().String()
	}
	p.optional("unit", unit)
	p.optional("help", about.Help)
	p.string("created_by", origin)
	p.moment("created", c.Created())
	p.moment("counted_since", c.Since())
	p.bool("used", c.Used())
	p.bool("hidden", c.Hidden())
	p.string("name_without_tags", family)
	p.tagSteps(&c)
	p.exposition(v, &c)
	if s.src.History != nil && c.Kind() != store.KindText {
		p.object("history", func() { p.lastChange(s.src.History, &c) })
	}
	if s.src.Sinks != nil {
		var sinks []string
		for _, x := range s.src.Sinks() {
			sinks = append(sinks, x.Name)
		}
		slices.Sort(sinks)
		p.strings("sinks", sinks)
	}
	if c.Network() && s.src.Ingest != nil {
		p.nearLimits(s.src.Ingest.NearLimits(family, c.AppendTags(nil)))
	}
	return true
}

// tagSteps writes the tags of the stat under c and the rules that yielded them.
func (p *facts) tagSteps(c *store.Cursor) {
	steps, given := c.TagSteps()
	if given {
		for _, t := range c.AppendTags(nil) {
			steps = append(steps, tags.Step{Tag: t})
		}
	}
	listOf(p, "tags", steps, func(t tags.Step) {
		p.string("name", t.Name)
		p.string("value", t.Value)
		switch {
		case given:
			p.string("rule", "given")
		case t.Regex != "":
			p.string("rule", "regex")
			p.string("regex", t.Regex)
		case t.Tokens != "":
			p.string("rule", "tokens")
			p.string("tokens", t.Tokens)
		default:
			p.string("rule", "fixed")
		}
		p.optional("removed", t.Removed)
	})
}

// exposition writes the lines of the stat under c as a scrape gets them.
func (p *facts) exposition(v *store.View, c *store.Cursor) {
	var text bytes.Buffer
	_ = render.ExpositionOf(&text, v, c, render.Options{}) // a buffer takes all
	var samples []string
	name, kind := "", ""
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch comment, isType := strings.CutPrefix(line, "# TYPE "); {
		case isType:
			name, kind, _ = strings.Cut(comment, " ")
		case !strings.HasPrefix(line, "#"):
			samples = append(samples, line)
		}
	}
	if name == "" {
		return // no format can show the name
	}
	p.object("exposition", func() {
		p.string("name", name)
		p.string("type", kind)
		if sp := c.Series(); sp != nil {
			p.optional("suffix", sp.Suffix)
			p.flag("merged", sp.Merged)
		}
		p.lines("lines", samples)
	})
}

func (p *facts) lines(name string, list []string) {
	if p.json {
		p.w.Key(name).Strings(list)
		return
	}
	p.line(name)
	p.text = append(p.text, '\n')
	for _, line := range list {
		p.text = append(p.text, strings.Repeat(" ", 2*p.depth+2)...)
		p.text = append(append(append(p.text, "- "...), quoted(line)...), '\n')
	}
}

// lastChange writes the last change and the rate of the stat under c.
func (p *facts) lastChange(h *history.History, c *store.Cursor) {
	points, complete := h.Series(c, time.Time{})
	points = slices.DeleteFunc(points, func(x history.Point) bool { return !x.Exists })
	p.time("complete_since", complete)
	for _, x := range slices.Backward(points) {
		if x.Delta != 0 || x.Stats != nil && x.Stats.Count() > 0 {
			p.time("last_change", x.End)
			break
		}
	}
	if n := len(points); n > 0 {
		p.float("per_second", points[n-1].PerSecond(c))
	}
}

// Bounds of the search for a suggestion.
const (
	searchedStats = 100_000 // names
	searchedBytes = 1 << 24 // pairs of bytes that are compared
)

// NearestStat returns an existing name that continues name, as with the tags of a
// series, or the probable name if it is misspelled, or "". It searches a part
// of the names, or of the received ones, if there are many.
func (s *Server) NearestStat(name string, received bool) string {
	if name == "" {
		return ""
	}
	v := s.store.View()
	defer v.Close()
	limit := min(len(name)/4, 6)
	longer := ""
	near := spelling.Nearest(name, func(yield func(string) bool) {
		left, effort := searchedStats, searchedBytes
		var buf []byte
		for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
			c := v.ByName(set) // one for all steps, since it is on the heap
			for ; c.Next() && left > 0; left-- {
				if received && !c.Network() {
					continue
				}
				buf = c.AppendName(buf[:0])
				if len(buf) > len(name) && buf[len(name)] == '.' && string(buf[:len(name)]) == name {
					longer = string(buf)
					return
				}
				if max(len(buf)-len(name), len(name)-len(buf)) > limit {
					continue
				}
				if effort -= len(buf) * len(name); effort < 0 || !yield(string(buf)) {
					return
				}
			}
		}
	}, limit)
	return cmp.Or(longer, near)
}
