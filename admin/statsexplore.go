package admin

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// exploreOrders are the values of the parameter by of /stats/explore.
var exploreOrders = [...]string{store.BySeries: "series", store.ByNew: "new", store.ByRate: "rate", store.BySamples: "samples", store.ByBytes: "bytes", store.ByName: "name"}

func (s *Server) exploreRow() Endpoint {
	return Endpoint{Path: "/stats/explore", Group: groupStats, Help: "count stats by the next segment of their names, or by tag: series, age, rate, memory",
		Heavy: true, CPUBound: true, Serve: s.statsExplore, Params: []Param{
			{Name: "prefix", Help: "beginning of the names, such as cluster."},
			{Name: "tag", Help: "group by the values of this tag"},
			{Name: "tags", Help: "show the tags of the stats", Kind: ParamFlag},
			{Name: "by", Help: "order", Kind: ParamChoice, Choices: exploreOrders[:]},
			{Name: "limit", Help: "number of groups to show, at most 1000; 50 if empty"}, textOrJSON,
		}}
}

// Explored is the answer of [Server.Explore].
type Explored struct {
	store.Explored

	Rates    bool // rates are known
	Received bool // samples are known
	// Senders are the addresses whose lines created the newest received stats,
	// by the name of the prefix group, most stats first.
	Senders map[string][]report.NameCount
	// Overflowed are the names of groups with a name that has reached a limit.
	Overflowed map[string]bool
	// Limits are the limits on received stats that are nearly reached.
	Limits []report.Limit
}

// exploredTime is the age of stats that count as new.
const exploredTime = time.Minute

// ExploreReady reports whether [Server.Explore] answers at once a question about the
// names, or the values of a tag. If not, it begins to prepare that in the background.
func (s *Server) ExploreReady(tag string) bool {
	if s.exploring.Load() {
		return false
	}
	if s.explorer.Ready(tag) {
		return true
	}
	if s.exploring.CompareAndSwap(false, true) {
		go func() {
			s.guard.Run("preparation of the explorer", func() {
				defer s.exploring.Store(false)
				s.explorer.Prepare(tag)
			})
		}()
	}
	return false
}

// Explore answers a query about the names of the stats; see [store.Explorer].
// It sets the fields Since, Rates and Samples of q.
func (s *Server) Explore(q store.Explore) (Explored, error) {
	out := Explored{Rates: s.src.History != nil, Received: s.src.Ingest != nil}
	var recent report.Recent
	if out.Received {
		recent = s.src.Ingest.Recent()
	}
	switch {
	case q.By == store.ByRate && !out.Rates:
		return out, badRequest("by=rate needs the history, which is off\n")
	case q.By == store.BySamples && !out.Received:
		return out, badRequest("by=samples needs a StatsD input, and there is none\n")
	case q.By == store.BySamples && q.Tag != "":
		return out, badRequest("by=samples is not possible with tag: samples are counted by name\n")
	}
	q.Since = s.now().Add(-exploredTime)
	if out.Rates {
		q.Rates = s.src.History.LastRates
	}
	for _, x := range recent.Samples {
		q.Samples = append(q.Samples, store.Sampled(x))
	}
	var err error
	if out.Explored, err = s.explorer.Explore(q); err != nil { // it is store.ErrTooManySeries
		return out, badRequest(fmt.Sprintf("tag and prefix: more than 50000 stats have the prefix %s; give a longer one, or none\n", quoted(q.Prefix)))
	}
	out.Limits = recent.Limits
	if q.Tag == "" {
		out.attribute(q.Prefix, &recent)
	}
	return out, nil
}

// attribute assigns senders and overflows to groups.
func (out *Explored) attribute(prefix string, recent *report.Recent) {
	out.Senders, out.Overflowed = make(map[string][]report.NameCount), make(map[string]bool)
	groups := make(map[string]bool, len(out.Groups))
	for _, g := range out.Groups {
		groups[g.Name] = true
	}
	// group returns the group of a name without tags.
	group := func(name string) string {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			return ""
		}
		segment, _, deeper := strings.Cut(rest, ".")
		if name = prefix + segment; !deeper && groups[name] {
			return name
		}
		return name + "."
	}
	for _, name := range recent.Overflowed {
		out.Overflowed[group(name)] = true
	}
	for _, x := range recent.Newest {
		host := x.Sender
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if name := group(x.Name); host != "" && groups[name] {
			list := out.Senders[name]
			n := slices.IndexFunc(list, func(c report.NameCount) bool { return c.Name == host })
			if n < 0 {
				n, list = len(list), append(list, report.NameCount{Name: host})
			}
			list[n].Count++
			out.Senders[name] = list
		}
	}
	for _, list := range out.Senders {
		slices.SortFunc(list, func(a, b report.NameCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
		})
	}
}

// parseExplore reads the parameters prefix, tag, by and limit. Without limit the answer
// has so many groups.
func parseExplore(q Query, limit int) (out store.Explore, err error) {
	out = store.Explore{Prefix: q.Value("prefix"), Tag: q.Value("tag"), Limit: limit}
	if by := q.Value("by"); by != "" {
		n := slices.Index(exploreOrders[:], by)
		if n < 0 {
			return out, badRequest("usage: /stats/explore?by=(" + strings.Join(exploreOrders[:], "|") + ")\n")
		}
		out.By = store.By(n)
	}
	if text := q.Value("limit"); text != "" {
		if out.Limit, err = strconv.Atoi(text); err != nil || out.Limit < 0 || out.Limit > 1000 {
			return out, badRequest(fmt.Sprintf("limit: %.40q is not an integer from 0 to 1000\n", text))
		}
	}
	return out, nil
}

func (s *Server) statsExplore(w *Response, r *Request) error {
	q, err := parseExplore(r.query, 50)
	if err != nil {
		return err
	}
	q.Tags = r.query.Has("tags")
	got, err := s.Explore(q)
	if err != nil {
		return err
	}
	p := newFacts(r)
	if p.json {
		p.number("v", 1)
	}
	p.string("prefix", q.Prefix)
	p.optional("tag", q.Tag)
	p.string("by", exploreOrders[q.By])
	p.object("total", func() { p.group(&got, &got.Total) })
	listOf(p, "groups", got.Groups, func(g store.Group) {
		p.string("name", g.Name)
		p.flag("full_name", g.Leaf)
		p.group(&got, &g)
		if list := got.Senders[g.Name]; len(list) > 0 {
			var names []string
			for _, c := range head(list, 3) {
				names = append(names, c.Name)
			}
			p.strings("senders", names)
		}
		p.flag("overflow", got.Overflowed[g.Name])
	})
	p.object("others", func() { p.group(&got, &got.Others) })
	p.bool("complete", got.Complete)
	p.number("compared", uint64(got.Found))
	if !got.Complete {
		p.number("larger_than", uint64(got.Bound))
	}
	if q.Tags {
		listOf(p, "tags", got.Tags, func(t store.TagCount) {
			p.string("name", t.Name)
			p.number("series", uint64(t.Series))
			p.number("values", uint64(t.Values))
			p.flag("estimated", !t.Exact)
		})
	}
	p.nearLimits(got.Limits)
	return p.send(w)
}

// group writes the sums of a group.
func (p *facts) group(x *Explored, g *store.Group) {
	p.number("series", uint64(g.Series))
	p.number("new", uint64(g.New))
	p.number("bytes", g.Bytes)
	if x.Rates {
		p.float("per_second", thousandths(g.PerSecond))
	}
	if x.Received && g.Samples > 0 {
		p.float("samples_per_second", thousandths(g.Samples))
	}
	p.moment("first_seen", g.First)
	p.moment("last_new", g.Last)
}

// nearLimits writes limits that are nearly reached.
func (p *facts) nearLimits(list []report.Limit) {
	listOf(p, "limits_nearly_reached", list, func(l report.Limit) {
		p.string("name", l.Name)
		p.number("max", uint64(l.Max))
		p.number("use", uint64(max(l.Use, 0)))
	})
}
