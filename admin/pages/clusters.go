package pages

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/markup"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// clusterRow is what the board shows of a cluster.
type clusterRow struct {
	name, observability, version string
	api                          bool
	healthy, degraded, unhealthy int
	reasons                      map[status.Flags]int // hosts by flag; nil if all are healthy
	checked                      time.Time            // last health check of any host; zero if there was none
	failing                      time.Time            // when the checks of an unhealthy host began to fail; zero if none does
	breakers                     [2]status.BreakerLimits
	use                          [2]status.BreakerUse
	outlier                      *status.OutlierRates
	key                          float64      // a value by which clusters are sorted
	unfolded                     *markup.Page // the hosts below the row; nil if they are folded
}

func (c *clusterRow) hosts() int { return c.healthy + c.degraded + c.unhealthy }

// summarize counts the hosts of a cluster by their health.
func summarize(c *status.Cluster) clusterRow {
	out := clusterRow{name: c.Name, observability: c.ObservabilityName, version: c.Version, api: c.AddedViaAPI, breakers: c.Breakers, use: c.InUse}
	if c.Outlier != nil {
		rates := *c.Outlier
		out.outlier = &rates
	}
	if c.Hosts == nil {
		return out
	}
	c.Hosts(func(host *status.Host) bool {
		switch host.Health.Health() {
		case status.Healthy:
			out.healthy++
		case status.Degraded:
			out.degraded++
		default:
			out.unhealthy++
		}
		if check := host.Check; check != nil {
			if check.Time.After(out.checked) {
				out.checked = check.Time
			}
			if check.Failed && host.Health.Health() == status.Unhealthy && (out.failing.IsZero() || check.Since.Before(out.failing)) {
				out.failing = check.Since
			}
		}
		for flag := status.Flags(1); host.Health >= flag; flag <<= 1 {
			if host.Health&flag != 0 {
				if out.reasons == nil {
					out.reasons = make(map[status.Flags]int)
				}
				out.reasons[flag]++
			}
		}
		return true
	})
	return out
}

// flagWords explain the health flags, in their order.
var flagWords = [...]struct {
	flag status.Flags
	word string
	help string
}{
	{status.FailedActiveHC, "failed active health check", "the host fails the health checks of the server, or is new and was not checked yet"},
	{status.FailedOutlierCheck, "ejected as outlier", "the outlier detector took the host out because of its errors"},
	{status.FailedEDSHealth, "unhealthy by discovery", "the assignment says UNHEALTHY or TIMEOUT"},
	{status.DegradedActiveHC, "degraded by health check", "the last passed health check said that the host is degraded"},
	{status.DegradedEDSHealth, "degraded by discovery", "the assignment says DEGRADED"},
	{status.PendingDynamicRemoval, "gone from discovery", "discovery no longer has the host; it stays until it fails a health check"},
	{status.PendingActiveHC, "waiting for first check", "the host is new and gets no traffic before its first health check"},
	{status.ExcludedViaImmediateHCFail, "excluded on request", "the host asked to be excluded at once"},
	{status.ActiveHCTimeout, "health check timed out", "the last failed health check was a timeout"},
	{status.EDSStatusDraining, "draining by discovery", "the assignment says DRAINING"},
}

// why words the reasons, the most frequent first.
func (c *clusterRow) why() string {
	type reason struct {
		n    int
		word string
	}
	var list []reason
	for _, f := range flagWords {
		if n := c.reasons[f.flag]; n > 0 {
			list = append(list, reason{n, f.word})
		}
	}
	slices.SortStableFunc(list, func(a, b reason) int { return cmp.Compare(b.n, a.n) })
	var words []string
	for _, r := range list {
		if r.n > 1 {
			r.word = strings.Replace(r.word, "health check", "health checks", 1)
		}
		words = append(words, count(r.n)+" "+r.word)
	}
	return strings.Join(words, ", ")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortClusters sorts the rows of the board. The order "health" has the clusters with
// the greatest share of unhealthy hosts first, then those with degraded ones.
func sortClusters(rows []clusterRow, o order) {
	share := func(n int, c *clusterRow) float64 { return float64(n) / float64(max(c.hosts(), 1)) }
	slices.SortStableFunc(rows, func(a, b clusterRow) int {
		r := 0
		switch o.by {
		case "health":
			r = cmp.Or(cmp.Compare(share(a.unhealthy, &a), share(b.unhealthy, &b)), cmp.Compare(a.unhealthy, b.unhealthy), cmp.Compare(share(a.degraded, &a), share(b.degraded, &b)))
		case "hosts":
			r = cmp.Compare(a.hosts(), b.hosts())
		case "name":
			r = strings.Compare(a.name, b.name)
		case "why":
			r = strings.Compare(a.why(), b.why())
		case "version":
			r = cmp.Or(cmp.Compare(boolInt(a.api), boolInt(b.api)), strings.Compare(a.version, b.version))
		default:
			r = cmp.Compare(a.key, b.key)
		}
		if o.desc {
			r = -r
		}
		return cmp.Or(r, strings.Compare(a.name, b.name))
	})
}

// keyed sets the value by which clusters are sorted. Unknown values are last.
func (v *view) keyed(rows []clusterRow, by string) {
	stats := map[string]string{"connections": "upstream_cx_active", "active": "upstream_rq_active", "requests": "upstream_rq_total"}
	var perSecond func(*store.Cursor) float64
	if by == "rate" && v.src.History != nil {
		perSecond = v.src.History.Latest().PerSecond
	}
	v.stats(func(list *store.View) {
		for i := range rows {
			c := &rows[i]
			prefix := "cluster." + c.observability + "."
			c.key = math.Inf(-1)
			switch by {
			case "p99":
				p99, _ := v.p99(list, prefix+"upstream_rq_time")
				if x, err := strconv.ParseFloat(p99, 64); err == nil {
					c.key = x
				}
			case "outlier":
				if c.outlier != nil {
					c.key = c.outlier.Average
				}
			case "rate":
				if stat, ok := list.Find(prefix + "upstream_rq_total"); ok && v.src.History != nil {
					c.key = perSecond(&stat)
				}
			case "success":
				if x, ok := success(list, prefix); ok {
					c.key = x
				}
			case "breakers":
				for p := range c.use {
					c.key = max(c.key, float64(c.use[p].Requests)/float64(max(c.breakers[p].MaxRequests, 1)))
				}
			default:
				if x, ok := number(list, prefix+stats[by]); ok {
					c.key = x
				}
			}
		}
	})
}

func showClusters(v *view) error {
	if name := v.query.Value("cluster"); name != "" {
		return v.oneCluster(name)
	}
	pattern, only := v.query.Value("filter"), v.query.Has("unhealthy")
	v.Put(h("<form class='panel pad row' method='get' action='clusters' data-live='board'><label class='grow'><span class='vh'>Filter by name, a regular expression</span><input type='search' name='filter' class='find' placeholder='Name' value='"),
		pattern, h("'></label>"))
	v.chip("unhealthy", "Unhealthy only", only)
	v.keep("sort", "dir", "rows", "open")
	v.Put(h("<button type='submit' class='primary'>Filter</button></form>\n"))
	n := v.healthNow()
	v.summary = plural(n.clusters, "cluster") + ", all hosts healthy"
	if n.clusters == 0 {
		v.summary = ""
	}
	if n.unhealthy > 0 {
		v.summary = count(n.unhealthy) + " unhealthy of " + plural(n.clusters, "cluster")
	}
	v.Put(h("<div id='board'>\n"))
	defer v.Put(h("</div>\n"))
	if n.clusters == 0 {
		return v.nothing("Clusters", "No clusters are configured. List some in ", h("<code>static_resources.clusters</code>."))
	}
	var rows []clusterRow
	open := v.names("open", mostOpen)
	err := v.site.srv.Filtered(pattern, func(f *render.Filter) error {
		var err error
		v.src.Clusters.Statuses(func(c *status.Cluster) bool {
			matches := true
			if f != nil {
				matches, err = f.Match(c.Name)
			}
			if err == nil && matches {
				if r := summarize(c); !only || r.unhealthy+r.degraded > 0 {
					if slices.Contains(open, c.Name) {
						r.unfolded = v.aside(func() { v.unfolded(c, r.hosts()) })
					}
					rows = append(rows, r)
				}
			}
			return err == nil
		})
		return err
	})
	if err != nil {
		return v.problem(err)
	}
	v.board(rows)
	return nil
}

// mostOpen limits the clusters of a board whose hosts are unfolded.
const mostOpen = 10

// fold appends the link that unfolds the hosts of a cluster in place, or folds them.
func (v *view) fold(name string, open bool) {
	names := v.names("open", mostOpen)
	if open {
		names = slices.DeleteFunc(names, func(other string) bool { return other == name })
	} else {
		names = append(names, name) // beyond the limit, the oldest one folds
	}
	v.Put(h("<a class='pin fold' aria-expanded='"), open, h("' aria-label='Hosts of "), name, h("' data-live='board' data-k='fold-"), name, h("' href='"), v.here("open", namesValue(names, mostOpen)), h("'></a>"))
}

// chip appends a checkbox that looks like a chip.
func (v *view) chip(name, label string, set bool) {
	v.choose(h("<label class='chip'><input type='checkbox'"), name, "1", label, set)
}

// choose appends a box or a button, whose element begins, for a value of a parameter.
func (v *view) choose(begin h, name, value, label string, set bool) {
	v.Put(begin, h(" name='"), name, h("' value='"), value, h("'"))
	if set {
		v.Put(h(" checked"))
	}
	v.Put(h(">"), label, h("</label>"))
}

// board appends the table of clusters.
func (v *view) board(rows []clusterRow) {
	o := v.sorted("-health", "name", "version", "-hosts", "why", "-connections", "-active", "-rate", "-requests", "success", "-p99", "-breakers", "outlier")
	switch o.by {
	case "health", "name", "version", "hosts", "why":
	default:
		v.keyed(rows, o.by)
	}
	sortClusters(rows, o)
	offset, limit := v.window("200", "100", "25")
	if offset >= len(rows) {
		offset = 0
	}
	shown := rows[offset:min(offset+limit, len(rows))]
	title := "Clusters"
	if o.by == "health" && o.desc {
		title = "Clusters, unhealthy first"
	}
	v.panel("clusters-head", title, func() {
		v.actions("clusters", url("/clusters", "format", "json", "filter", v.query.Value("filter")))
	}, func() {
		if len(rows) == 0 {
			v.unmatched("cluster")
			return
		}
		g := v.grid("clusters", "Clusters", "cards clusters", o,
			column{head: "Cluster", sort: "name"}, column{head: "Version", exported: true, sort: "version"}, column{head: "Hosts", sort: "health"}, column{head: "Why", class: "why", sort: "why"},
			column{head: "Connections", class: "num", sort: "connections"}, column{head: "Active rq", title: "running requests", class: "num spare", sort: "active"}, column{head: "Rq/s", title: "requests per second in the last flush", class: "num", sort: "rate"},
			column{head: "Requests", class: "num spare", sort: "requests"}, column{head: "Success %", title: "requests without a 5xx since the start", class: "num", sort: "success"},
			column{head: "P99", title: "99th percentile of upstream_rq_time since the start", class: "num", sort: "p99"}, column{head: "Circuit breakers, requests", class: "spare rare", sort: "breakers"}, column{head: "Outlier", title: "average success rate of hosts, and the rate below which one is ejected", class: "spare rare", sort: "outlier"}, column{head: "Last check", exported: true})
		v.stats(func(list *store.View) {
			for i := range shown {
				v.clusterRow(g, list, &shown[i])
			}
		})
		g.end()
		v.pager(offset, len(shown), len(rows), limit, narrower)
	})
}

// hostWords appends the counts of hosts in words.
func (v *view) hostWords(c *clusterRow) {
	v.Put(h("<span class='words'><b>"), count(c.healthy), h("</b> of "), count(c.hosts()), " healthy")
	if c.unhealthy > 0 {
		v.Put(h(" <span class='bad'>"), count(c.unhealthy), h(" unhealthy</span>"))
	}
	if c.degraded > 0 {
		v.Put(h(" <span class='warn'>"), count(c.degraded), h(" degraded</span>"))
	}
	v.Put(h("</span>"))
}

func (v *view) clusterRow(g *grid, list *store.View, c *clusterRow) {
	prefix := "cluster." + c.observability + "."
	version := "static"
	if c.api {
		version = strings.TrimSpace("API " + c.version)
	}
	g.row("")
	g.head(c.name, func() {
		v.fold(c.name, c.unfolded != nil)
		v.Put(h("<a class='wrap' href='"), url("clusters", "cluster", c.name), h("'>"), c.name, h("</a><span class='sub wrap'>"), version, h("</span>"))
	})
	g.cell(version, nil)
	g.cell(fmt.Sprintf("%d/%d", c.healthy, c.hosts()), func() {
		if c.hosts() == 0 {
			v.word("warn", "no hosts")
			return
		}
		v.cells(c.healthy, c.degraded, c.unhealthy)
		v.hostWords(c)
	})
	why := c.why()
	g.cell(why, func() {
		class := h("sub")
		switch {
		case c.unhealthy > 0:
			v.word("bad", why)
		case why != "":
			v.word("warn", why)
		case c.checked.IsZero():
			v.orNone("")
		default:
			class = "sub quiet"
		}
		if !c.failing.IsZero() {
			v.Put(h("<span class='sub'>"), v.lasting("failing", c.failing), h("</span>"))
		}
		if !c.checked.IsZero() {
			v.checked(class, c.checked)
		}
	})
	g.figure(list, prefix+"upstream_cx_active")
	g.figure(list, prefix+"upstream_rq_active")
	v.requests(g, list, prefix)
	g.shown(v.p99(list, prefix+"upstream_rq_time"))
	var use []string
	for p := range c.use {
		use = append(use, fmt.Sprintf("%d/%d", c.use[p].Requests, c.breakers[p].MaxRequests))
	}
	g.cell(strings.Join(use, " "), func() { v.breakers(c) })
	v.outlier(g, c.outlier)
	g.cell(isoTime(c.checked), nil)
	if c.unfolded != nil {
		g.wide("hosts", func() { v.Join(c.unfolded) })
	}
}

// requests appends the cells of the requests to a cluster: how many a second in the last
// flush, how many in all, and how many of these in percent succeeded.
func (v *view) requests(g *grid, list *store.View, prefix string) {
	c, ok := list.Find(prefix + "upstream_rq_total")
	if !ok || c.Kind() != store.KindCounter {
		for range 3 {
			g.shown("", none)
		}
		return
	}
	total := c.Float()
	past := v.spark(&c)
	if n := len(past.points); n > 0 {
		g.shown(exactValue(past.points[n-1]), numfmt.Rate(past.points[n-1]))
	} else {
		g.shown("", none)
	}
	g.num(fmt.Sprintf("%.0f", total))
	share, known := success(list, prefix)
	if !known {
		g.shown("", none)
		return
	}
	g.cell(exactValue(share), func() {
		if share < 95 {
			v.Put(h("<span class='bad'>"), numfmt.Significant(share), h("</span>"))
			return
		}
		v.Put(numfmt.Significant(share))
	})
}

// success returns the requests without a 5xx in percent.
func success(list *store.View, prefix string) (percent float64, ok bool) {
	total, ok := number(list, prefix+"upstream_rq_total")
	failed, known := number(list, prefix+"upstream_rq_5xx")
	if !ok || !known || total == 0 {
		return 0, false
	}
	return 100 * max(1-failed/total, 0), true
}

// p99 returns the 99th percentile of a histogram since the start.
func (v *view) p99(list *store.View, name string) (value, text string) {
	c, ok := list.Find(name)
	if !ok || c.Kind() != store.KindHistogram {
		return "", none
	}
	hist := c.Histogram()
	s := hist.Snapshot()
	if !s.Used {
		return "", none
	}
	x := s.Cumulative.Quantile(0.99)
	return fmt.Sprint(x), measuredText(x, hist.Layout().Unit())
}

// priorities are the names of the priorities of requests.
var priorities = [...]string{"default", "high"}

// breakers appends the use of the circuit breakers by requests of each priority.
func (v *view) breakers(c *clusterRow) {
	for p, limits := range c.breakers {
		v.Put(h("<span class='cb'><span class='sub'>"), priorities[p], h("</span>"))
		v.used(c.use[p].Requests, limits.MaxRequests)
		v.Put(h("</span>"))
	}
}

// used appends the use of a limit as a bar and in words.
func (v *view) used(n, limit uint64) {
	v.Put(h("<span class='sub'>"), count(n), " of ", limitText(limit), h("</span>"))
	if share := float64(n) / float64(max(limit, 1)); limit < noLimit {
		v.bar(share, nearLimit(share))
	}
}

// breakerTable appends the circuit breakers of both priorities.
func (v *view) breakerTable(c *status.Cluster, list *store.View) {
	v.panel("breakers-head", "Circuit breakers", func() { v.actions("breakers", url("/clusters", "format", "json", "filter", "^"+quoteMeta(c.Name)+"$")) }, func() {
		g := v.grid("breakers", "Circuit breakers of "+c.Name, "cards", order{}, column{head: "Limit"}, column{head: "Default priority"}, column{head: "High priority"}, column{head: "Rejected", class: "num"})
		for _, x := range [...]struct {
			name, rejected string
			of             func(*status.BreakerUse, *status.BreakerLimits) (use, limit uint64)
		}{
			{"Connections", "upstream_cx_overflow", func(u *status.BreakerUse, b *status.BreakerLimits) (uint64, uint64) {
				return u.Connections, b.MaxConnections
			}},
			{"Pending requests", "upstream_rq_pending_overflow", func(u *status.BreakerUse, b *status.BreakerLimits) (uint64, uint64) {
				return u.PendingRequests, b.MaxPendingRequests
			}},
			{"Requests", "", func(u *status.BreakerUse, b *status.BreakerLimits) (uint64, uint64) { return u.Requests, b.MaxRequests }},
			{"Retries", "upstream_rq_retry_overflow", func(u *status.BreakerUse, b *status.BreakerLimits) (uint64, uint64) { return u.Retries, b.MaxRetries }},
		} {
			g.row("")
			g.head(x.name, nil)
			for p := range c.Breakers {
				use, limit := x.of(&c.InUse[p], &c.Breakers[p])
				g.cell(fmt.Sprintf("%d/%d", use, limit), func() { v.used(use, limit) })
			}
			g.figure(list, "cluster."+c.ObservabilityName+"."+x.rejected)
		}
		g.end()
	})
}

// noLimit is the greatest limit, which stands for none.
const noLimit = 1<<32 - 1

// limitText words a limit; the greatest number means none.
func limitText(limit uint64) string {
	if limit >= noLimit {
		return "no limit"
	}
	return count(limit)
}

func (v *view) outlier(g *grid, o *status.OutlierRates) {
	switch {
	case o == nil:
		g.cell("", v.text(h("<span class='quiet'>off</span>")))
	case o.Average < 0:
		g.cell("-1", v.text(h("<span class='quiet'>not enough data</span>")))
	default:
		g.cell(fmt.Sprint(o.Average), func() {
			v.Put(h("<b data-value='"), exactValue(o.Average), h("'>"), numfmt.Significant(o.Average), thin, h("%</b>"))
			if o.Threshold >= 0 {
				v.Put(h("<span class='sub' data-value='"), exactValue(o.Threshold), h("'>ejects under "), numfmt.Significant(o.Threshold), h("</span>"))
			}
		})
	}
}

// oneCluster shows the hosts of a cluster.
func (v *view) oneCluster(name string) error {
	v.title = name
	found := false
	v.src.Clusters.Statuses(func(c *status.Cluster) bool {
		if found = c.Name == name; found {
			v.clusterPage(c)
		}
		return !found
	})
	if !found {
		v.status = 404
		v.title = "Clusters"
		v.note("bad", "", func() {
			v.Put("There is no cluster ", h("<code>"), name, h("</code>. <a href='clusters'>All clusters</a>"))
		})
	}
	return nil
}

func (v *view) clusterPage(c *status.Cluster) {
	sum := summarize(c)
	v.summary = fmt.Sprintf("%s of %s healthy", count(sum.healthy), plural(sum.hosts(), "host"))
	if sum.unhealthy > 0 {
		v.summary = fmt.Sprintf("%s unhealthy of %s", count(sum.unhealthy), plural(sum.hosts(), "host"))
	}
	v.Put(h("<p class='crumbs'><a href='clusters'>Clusters</a> / "), c.Name, h("</p>\n<dl class='panel pad strip'>"))
	if sum.api {
		v.fact("Added", "by API")
		v.fact("Version", c.Version)
	} else {
		v.fact("Added", "static")
	}
	if c.ObservabilityName != c.Name {
		v.fact("Name in stats", c.ObservabilityName)
	}
	v.fact("EDS service", c.EDSServiceName)
	if o := c.Outlier; o != nil {
		percent := func(name string, x float64) {
			v.Put(h("<div><dt>"), name, h("</dt><dd data-value='"), exactValue(x), h("'>"), numfmt.Significant(x), thin, h("%</dd></div>"))
		}
		if o.Average < 0 {
			v.fact("Success rate", "not enough data")
		} else {
			percent("Success rate", o.Average)
		}
		if o.Threshold >= 0 {
			percent("Ejects under", o.Threshold)
		}
	}
	v.Put(h("</dl>\n"))
	v.panel("hosts-head", "Hosts", func() {
		v.Put(h("<a class='btn' href='"), url("stats", "filter", "^cluster\\."+quoteMeta(c.ObservabilityName)+"\\."), h("'>Stats</a>"))
		v.actions("hosts", url("/clusters", "format", "json", "filter", "^"+quoteMeta(c.Name)+"$"))
	}, func() {
		if sum.hosts() == 0 {
			v.empty("The cluster has no hosts.")
			return
		}
		v.hosts(c, sum.hosts())
	})
	v.stats(func(list *store.View) { v.breakerTable(c, list) })
}
