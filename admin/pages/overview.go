package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func showOverview(v *view) error {
	var input *report.Report
	if v.src.Ingest != nil {
		rep := v.src.Ingest.Report()
		input = &rep
	}
	sick := v.worst(5)
	found := v.findings(input, sick)
	v.needsAttention(found)
	top := v.fastest(10)
	v.stats(func(list *store.View) { v.keyFigures(list, input, v.followOverview(list, top)) })
	v.Put(h("<div class='cols'>\n<div class='stack'>\n"))
	v.topRates(top)
	if input != nil {
		v.topNames(input)
	}
	v.Put(h("</div>\n<div class='stack'>\n"))
	v.sickClusters(sick)
	if input != nil {
		v.limits(input)
	}
	v.stats(v.adminPort)
	v.Put(h("</div>\n</div>\n"))
	v.lastChanges()
	return nil
}

// finding is something that needs attention.
type finding struct {
	meaning string
	what    string // bold
	detail  string
	page    string
	link    string
}

// lately returns the meaning and the detail of a finding about events that counters
// count: a warning until an hour after the last event, as far as the history knows, and
// then a note.
func (v *view) lately(detail string, counters ...string) (meaning, text string) {
	meaning, text = "info", strings.TrimPrefix(detail+", none in the last hour", ", ")
	v.stats(func(list *store.View) {
		for _, name := range counters {
			if c, ok := list.Find(name); !ok || !v.spark(&c).still {
				meaning, text = "warn", detail
			}
		}
	})
	return meaning, text
}

// findings returns what needs attention, the worst first.
func (v *view) findings(input *report.Report, sick []clusterRow) (found []finding) {
	if n := v.healthNow(); n.unhealthy > 0 {
		for _, c := range sick {
			if c.unhealthy > 0 {
				detail := c.why()
				if !c.failing.IsZero() {
					detail += ", " + v.lasting("failing", c.failing)
				}
				found = append(found, finding{"bad", fmt.Sprintf("Cluster %s: %d of %s unhealthy", c.name, c.unhealthy, plural(c.hosts(), "host")),
					detail, url("clusters", "cluster", c.name), "Cluster"})
			}
		}
	}
	for _, c := range v.certificates() {
		if meaning, text := expiry(c.until, v.now); meaning == "bad" || meaning == "warn" {
			found = append(found, finding{meaning, "Certificate " + c.title() + ": " + text, c.path, "certs", "Certs"})
		}
	}
	if input != nil {
		found = append(found, v.inputFindings(input)...)
	}
	found = append(found, v.sinkFindings()...)
	v.stats(func(list *store.View) {
		if x, ok := number(list, "server.admin_exposed"); ok && x > 0 {
			found = append(found, finding{"warn", "The administration port is open to other machines without authentication", "bind it to loopback, or set admin.auth", "server", "Server"})
		}
		if x, ok := number(list, deprecatedUses); ok && x > 0 {
			found = append(found, finding{"warn", plural(uint64(x), "use") + " of deprecated options", "the log names them", url("stat", "name", deprecatedUses), "Stat"})
		}
		if x, ok := number(list, skippedFlushes); ok && x > 0 {
			what := "1 flush was skipped"
			if x > 1 {
				what = count(uint64(x)) + " flushes were skipped"
			}
			meaning, detail := v.lately("the one before took longer than the interval", skippedFlushes)
			found = append(found, finding{meaning, what, detail, url("stat", "name", skippedFlushes), "Stat"})
		}
	})
	if v.src.ConfigDump != nil && v.permits("/config_dump") {
		sections := v.src.ConfigDump.Sections(false)
		for i := range sections {
			for name, why := range refused(&sections[i]) {
				found = append(found, finding{"warn", "The last update of " + name + " was refused: an older one is in use", why, url("config", "section", sections[i].Key), "Config"})
			}
		}
	}
	if v.src.Unready != nil {
		for _, u := range v.src.Unready() {
			found = append(found, finding{"info", "Not ready: " + u.Name, strings.Join(u.Targets, ", "), "server", "Server"})
		}
	}
	rank := []string{"bad", "warn", "info"}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Compare(slices.Index(rank, a.meaning), slices.Index(rank, b.meaning))
	})
	return found
}

// inputFindings returns what needs attention in the StatsD input.
func (v *view) inputFindings(input *report.Report) (found []finding) {
	for _, l := range input.Listeners {
		if l.KernelDrops > 0 {
			meaning, detail := v.lately(l.Name+", receive buffer full", "ingest.kernel_drops.listener."+l.Name)
			found = append(found, finding{meaning, "The kernel dropped " + plural(l.KernelDrops, "packet"), detail, "ingest", "Ingest"})
		}
	}
	for i := range input.Relay {
		x := &input.Relay[i]
		if !x.Up {
			found = append(found, finding{"bad", "Relay target " + x.Name + " is down", x.LastError, "ingest", "Ingest"})
		}
		if lost := relayLost(x); lost > 0 {
			of := "_lines.target." + x.Name
			meaning, detail := v.lately("", "relay.dropped"+of, "relay.ambiguous"+of, "relay.rejected"+of, "relay.long"+of)
			found = append(found, finding{meaning, "Relay target " + x.Name + " lost " + plural(lost, "line"), detail, "ingest", "Ingest"})
		}
	}
	for _, x := range input.Limits {
		if x.Max > 0 {
			if meaning := nearLimit(float64(x.Use) / float64(x.Max)); meaning != "" {
				what, detail := fmt.Sprintf("Limit %s at %d %%", limitName(x), x.Use*100/x.Max), count(x.Use)+" of "+count(x.Max)
				if x.Use >= x.Max {
					what = "Limit " + x.Name + " reached"
				}
				if x.Limited > 0 {
					detail += ", " + plural(x.Limited, "line") + " held back"
				}
				found = append(found, finding{meaning, what, detail, "ingest", "Ingest"})
				continue
			}
		}
		if x.Limited > 0 {
			meaning, detail := v.lately("", "ingest.limited.limit."+x.Name)
			found = append(found, finding{meaning, "Limit " + limitName(x) + " held back " + plural(x.Limited, "line"), detail, "ingest", "Ingest"})
		}
	}
	var rejected uint64
	var reasons []string
	for _, r := range input.Rejected {
		rejected += r.Count
		reasons = append(reasons, strings.ReplaceAll(r.Reason, "_", " ")+" "+count(r.Count))
	}
	if rejected > 0 {
		found = append(found, finding{"info", plural(rejected, "line") + " rejected", strings.Join(reasons, ", "), "ingest", "Ingest"})
	}
	return found
}

func (v *view) needsAttention(found []finding) {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.meaning]++
	}
	var words []string
	if n := counts["bad"]; n > 0 {
		words = append(words, count(n)+" critical")
	}
	if n := counts["warn"]; n > 0 {
		words = append(words, plural(n, "warning"))
	}
	v.summary = strings.Join(words, ", ")
	v.panel("attention", "Needs attention", nil, func() {
		if len(found) == 0 {
			v.fine("Nothing: no unhealthy host, no certificate near its end, no drops, no limit near")
			return
		}
		const most = 12
		v.Put(h("<ul class='list'>"))
		for _, f := range found[:min(most, len(found))] {
			v.Put(h("<li class='"), f.meaning, h("'>"))
			v.icon(f.meaning)
			v.Put(h("<b>"), f.what, h("</b> <span class='quiet'>"), f.detail, h("</span><a class='end' href='"), f.page, h("'>"), f.link, h("</a></li>\n"))
		}
		v.Put(h("</ul>\n"))
		if more := len(found) - most; more > 0 {
			v.Put(h("<p class='pad line quiet'>and "), count(more), h(" more</p>\n"))
		}
	})
}

// keyFigures appends the strip of the most important numbers.
func (v *view) keyFigures(list *store.View, input *report.Report, live bool) {
	v.Put(h("<dl class='panel kpis' aria-label='Key figures'>"))
	line := func(attributes h, past spark) {
		v.Put(h("<dd class='spark'"), attributes)
		v.sparkData(&past)
		v.Put(h(">"))
		v.sparkLine(&past)
		v.Put(h("</dd>"))
	}
	figure := func(name, page string, n uint64, unit string, note func(), sum string) {
		v.Put(h("<div><dt><a href='"), url(page), h("'>"), name, h("</a></dt><dd><span class='big'"))
		if sum != "" {
			v.Put(h(" data-sum='"), sum, h("'"))
		}
		v.Put(h(" data-value='"), n, h("'>"), count(n), h("</span> <small>"), unit, h("</small></dd><dd class='sub'>"))
		note()
		v.Put(h("</dd>"))
		if live && sum != "" {
			past := v.sumOf(list, sum)
			v.Put(h("<dd class='sub persecond' data-value='"), exactValue(past.latest), h("'>"), numfmt.Rate(past.latest), h(" /s</dd>"))
			line("", past)
		}
		v.Put(h("</div>\n"))
	}
	v.Put(h("<div><dt><a href='server'>State</a></dt><dd>"))
	v.state("word", "")
	v.Put(h("</dd>"))
	if v.src.Info != nil {
		v.Put(h("<dd class='sub'>up "))
		v.uptime(v.src.Info().UptimeCurrentEpoch)
		v.Put(h("</dd>"))
	}
	v.Put(h("</div>\n"))
	if input != nil {
		var packets, samples, lines, rejected, drops uint64
		for _, l := range input.Listeners {
			packets += l.Packets
			samples += l.Samples
			lines += l.Lines
			drops += l.KernelDrops
			for _, n := range l.Rejected {
				rejected += n
			}
		}
		figure("StatsD samples", "ingest", samples, "", func() {
			v.Put(h("lines: <span data-sum='ingest.lines.listener.' data-value='"), lines, h("'>"), count(lines), h("</span>"))
		}, "ingest.samples.listener.")
		figure("Packets", "ingest", packets, "", v.text("datagrams"), "ingest.packets.listener.")
		figure("Rejected lines", "ingest", rejected, "", v.text(plural(len(input.Rejected), "reason")), "ingest.rejected.listener.")
		figure("Kernel drops", "ingest", drops, "packets", v.text(), "ingest.kernel_drops.listener.")
	}
	n := v.healthNow()
	if n.clusters > 0 {
		figure("Unhealthy hosts", "clusters", uint64(n.bad), "of "+count(n.hosts), v.text(plural(n.clusters, "cluster")), "")
	}
	counted := func(kind render.Type) int { return render.NewWalk(list, render.Options{Type: kind}).Rest() }
	counters, gauges, histograms, texts := counted(render.Counters), counted(render.Gauges), counted(render.Histograms), counted(render.TextReadouts)
	figure("Stats", "stats", uint64(counters+gauges+histograms+texts), "",
		v.text(plural(counters, "counter"), ", ", plural(gauges, "gauge"), ", ", plural(histograms, "histogram"), ", ", plural(texts, "text")), "")
	memory := v.src.Memory()
	value, unit := numfmt.Size(float64(memory.TotalPhysicalBytes))
	c, kept := list.Find(physicalMemory)
	v.Put(h("<div><dt><a href='server'>Memory</a></dt><dd><span class='big' data-value='"), memory.TotalPhysicalBytes, h("'"))
	if kept && live {
		v.Put(h(" data-stat='"), physicalMemory, h("' data-unit='"), numfmt.SizeUnit(unit), h("'"))
	}
	v.Put(h(">"), value, h("</span> <small>"), unit, h("</small></dd><dd class='sub'>"))
	v.exact(float64(memory.Allocated), sizeText(float64(memory.Allocated)))()
	v.Put(h(" in use</dd>"))
	if kept && live {
		line(" data-spark='"+physicalMemory+"'", v.spark(&c))
	}
	v.Put(h("</div>\n"))
	if v.src.FlushTime != nil {
		took := v.src.FlushTime()
		value, unit := numfmt.Seconds(took.Seconds())
		skipped, _ := number(list, skippedFlushes)
		v.Put(h("<div><dt><a href='"), url("stats", "filter", "flush"), h("'>Last flush</a></dt><dd data-value='"), exactValue(took.Seconds()), h("'><span class='big'>"), value, h("</span> <small>"), unit,
			h("</small></dd><dd class='sub'><span data-stat='"), skippedFlushes, h("' data-value='"), uint64(skipped), h("'>"), count(uint64(skipped)), h("</span> skipped</dd></div>\n"))
	}
	if list := v.certificates(); len(list) > 0 {
		meaning, text := expiry(list[0].until, v.now)
		v.Put(h("<div><dt><a href='certs'>Next certificate</a></dt><dd>"))
		v.word(meaning, text)
		v.Put(h("</dd></div>\n"))
	}
	v.Put(h("</dl>\n"))
}

// The stats behind key figures and findings: the memory of the process, the flushes that
// were skipped because the one before took too long, and the uses of deprecated options.
const (
	physicalMemory = "server.memory_physical_size"
	skippedFlushes = "server.dropped_stat_flushes"
	deprecatedUses = "runtime.deprecated_feature_use"
)

// sumOf returns the sum of the counters whose names begin with prefix.
func (v *view) sumOf(list *store.View, prefix string) (sum spark) {
	_ = v.site.srv.Filtered("^"+quoteMeta(prefix), func(f *render.Filter) error { // without the past the line begins now
		w := render.NewWalk(list, render.Options{Type: render.Counters, Filter: f})
		for w.Next() {
			sum.add(v.spark(w.Stat()))
		}
		return w.Err()
	})
	return sum
}

// keyStats selects the stats of the server itself that move on the overview.
const keyStats = `^(ingest\.(samples|lines|packets|rejected|kernel_drops)\.listener|http\.admin|listener\.admin|admin\.|server\.(memory_physical_size|dropped_stat_flushes)$)`

// followOverview appends the address of the stream of what moves on the overview.
func (v *view) followOverview(list *store.View, top []grown) bool {
	var refs []uint64
	_ = v.site.srv.Filtered(keyStats, func(f *render.Filter) error { // without them, only the top rates move
		w := render.NewWalk(list, render.Options{Filter: f})
		for w.Next() {
			refs = append(refs, w.Stat().Ref())
		}
		return w.Err()
	})
	for _, x := range top {
		refs = append(refs, x.ref)
	}
	return v.follow(refs)
}

// grown is a stat and its growth per second in the last flush.
type grown struct {
	ref  uint64
	rate float64
}

// fastest returns the stats of any origin that grew fastest in the last flush, at most n.
// The history lists the changed ones only, so idle stats cost nothing.
func (v *view) fastest(n int) (top []grown) {
	if v.src.History == nil {
		return nil
	}
	for ref, rate := range v.src.History.LastRates {
		at, _ := slices.BinarySearchFunc(top, rate, func(x grown, rate float64) int { return cmp.Compare(rate, x.rate) })
		if at < n && rate > 0 {
			top = slices.Insert(top[:min(len(top), n-1)], at, grown{ref, rate})
		}
	}
	return top
}

// topRates appends the stats that grew fastest.
func (v *view) topRates(top []grown) {
	if v.src.History == nil {
		return
	}
	v.panel("rates", "Top rates", func() {
		v.Put(h("<a href='"), url("stats", "sort", "rate"), h("'>Stats by rate</a>"))
		v.actions("top-rates", url("/stats", "format", "json", "rate", "1"))
	}, func() {
		if len(top) == 0 {
			v.empty("No counter or histogram changed in the last flush.")
			return
		}
		g := v.grid("top-rates", "Ten stats with the highest rates", "", order{}, column{head: "Name", class: "name"}, column{head: "Per second", class: "num"})
		v.stats(func(list *store.View) {
			for _, x := range top {
				if c, ok := list.FindRef(x.ref); ok {
					name := c.Name()
					g.row("")
					g.head(name, func() {
						v.Put(h("<a href='"), url("stat", "name", name), h("'><span>"))
						v.dotted(name)
						v.Put(h("</span></a>"))
					})
					g.cell(exactValue(x.rate), v.text(h("<span data-rate='"), name, h("'>"), numfmt.Rate(x.rate), h("</span>")))
				}
			}
		})
		g.end()
	})
}

// topNames appends the received names with the most samples.
func (v *view) topNames(input *report.Report) {
	v.panel("top", "Top received names", func() {
		v.Put(h("<a href='ingest'>Ingest</a>"))
		v.actions("top-names", "/ingest?format=json")
	}, func() {
		if len(input.TopSamples) == 0 {
			v.noTraffic(input)
			return
		}
		g := v.grid("top-names", "Ten names with the most samples", "", order{}, column{head: "Name", class: "name"}, column{head: "Per second", class: "num"})
		for _, x := range input.TopSamples[:min(10, len(input.TopSamples))] {
			g.row("")
			g.head(x.Name, func() {
				v.Put(h("<a href='"), url("stats", "filter", "^"+quoteMeta(x.Name)), h("'><span>"))
				v.dotted(x.Name)
				v.Put(h("</span></a>"))
			})
			g.shown(fmt.Sprint(x.PerSecond), numfmt.Rate(x.PerSecond))
		}
		g.end()
	})
}

// noTraffic says how to send a first sample.
func (v *view) noTraffic(input *report.Report) {
	for _, l := range input.Listeners {
		if host, port, ok := hostPort(l.Address); ok && l.Protocol == "udp" {
			v.empty("No StatsD traffic yet. Send some: ", h("<code>echo 'a:1|c' | nc -u -w0 "), host, " ", port, h("</code>"))
			return
		}
	}
	v.empty("No samples in the last minute.")
}

// hostPort splits the address of a listener for nc.
func hostPort(address string) (host, port string, ok bool) {
	_, place, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(place, ':')
	if at < 0 {
		return "", "", false
	}
	host = strings.Trim(place[:at], "[]")
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return host, place[at+1:], true
}

// lastChanges appends the latest entries of the audit log.
func (v *view) lastChanges() {
	v.panel("changes", "Last changes", func() {
		v.Put(h("<a href='audit'>Audit</a>"))
		v.actions("last-changes", "/audit?limit=5")
	}, func() { v.auditTable("last-changes", v.site.srv.Audit(5)) })
}

// sickClusters appends the clusters with the most unhealthy hosts.
func (v *view) sickClusters(sick []clusterRow) {
	n := v.healthNow()
	if n.clusters == 0 {
		return
	}
	v.panel("sick", "Clusters with unhealthy hosts", func() {
		v.Put(h("<a href='clusters'>All "), plural(n.clusters, "cluster"), h("</a>"))
	}, func() {
		if len(sick) == 0 {
			v.fine("All " + plural(n.hosts, "host") + " of " + plural(n.clusters, "cluster") + " are healthy")
			return
		}
		v.Put(h("<ul class='list'>"))
		for _, c := range sick {
			v.Put(h("<li><a class='grow' href='"), url("clusters", "cluster", c.name), h("'>"), c.name, h("</a>"))
			v.cells(c.healthy, c.degraded, c.unhealthy)
			v.hostWords(&c)
			v.Put(h("</li>\n"))
		}
		v.Put(h("</ul>\n"))
	})
}

// limits appends the limits of the StatsD input with bars.
func (v *view) limits(input *report.Report) {
	v.panel("limits", "Limits of received stats", func() { v.Put(h("<a href='ingest'>Ingest</a>")) }, func() {
		v.Put(h("<dl class='pad pairs'>"))
		for _, x := range input.Limits {
			v.limit(x)
		}
		v.Put(h("</dl>\n"))
	})
}

// limit appends a limit and its use as a pair with a bar, unless it is no limit, or one
// without a measure, that refused nothing.
func (v *view) limit(x report.Limit) {
	if x.Max < 0 && x.Use == 0 && x.Limited == 0 {
		return
	}
	v.Put(h("<dt>"), capital(limitName(x)), h("</dt><dd class='num'>"))
	v.limitUse(x)
	if x.Limited > 0 {
		v.Put(h(" <span class='warn'>"), plural(x.Limited, "line"), h(" limited</span>"))
	}
	if x.Max < 0 {
		v.Put(h("</dd>"))
		return
	}
	share := float64(x.Use) / float64(max(x.Max, 1))
	v.Put(h("</dd><dd class='wide'>"))
	v.bar(share, nearLimit(share))
	v.Put(h("</dd>"))
}

// limitName returns the name of a limit in words, without the unit that its values have.
func limitName(x report.Limit) string {
	return strings.ReplaceAll(strings.TrimSuffix(x.Name, "_bytes"), "_", " ")
}

// limitUse appends the use of a limit in words, and how near it is.
func (v *view) limitUse(x report.Limit) {
	show := func(n int) func() {
		if strings.HasSuffix(x.Name, "_bytes") {
			return v.exact(float64(n), sizeText(float64(n)))
		}
		return v.exact(float64(n), count(n))
	}
	show(x.Use)()
	if x.Max < 0 {
		return
	}
	v.Put(" of ")
	show(x.Max)()
	if meaning := nearLimit(float64(x.Use) / float64(max(x.Max, 1))); meaning != "" {
		word := "limit near"
		if x.Use >= x.Max {
			word = "limit reached"
		}
		v.Put(" ")
		v.word(meaning, word)
	}
}

// adminPort appends the use of the administration port.
func (v *view) adminPort(list *store.View) {
	v.panel("port", "Administration port", func() {
		v.Put(h("<a href='"), url("stats", "filter", portStats), h("'>Stats</a>"))
	}, func() {
		v.pairs(func(pair func(string, func())) {
			for _, x := range [...][2]string{
				{"Requests", "http.admin.downstream_rq_total"}, {"Requests running", "http.admin.downstream_rq_active"}, {"p99", adminTime},
				{"Connections", "listener.admin.downstream_cx_active"}, {"Refused: busy", "admin.busy_rejected"},
				{"Refused: foreign pages", "admin.csrf_rejected"}, {"Refused: unknown host", "admin.host_rejected"},
			} {
				if x[1] == adminTime {
					if exact, text := v.p99(list, adminTime); exact != "" {
						pair(x[0], v.text(h("<a href='"), url("stat", "name", adminTime), h("' data-value='"), exact, h("'>"), text, h("</a>")))
					}
					continue
				}
				if value, ok := number(list, x[1]); ok {
					pair(x[0], v.text(h("<span data-stat='"), x[1], h("' data-value='"), exactValue(value), h("'>"), numfmt.Grouped(fmt.Sprintf("%.0f", value)), h("</span>")))
				}
			}
		})
	})
}

// portStats selects the stats of the administration port.
const portStats = `^(http\.admin|listener\.admin|admin)\.`

// adminTime is the histogram of the times of requests to the port.
const adminTime = "http.admin.downstream_rq_time"

// worst returns up to n clusters with unhealthy or degraded hosts, the worst first.
func (v *view) worst(n int) []clusterRow {
	if n := v.healthNow(); n.unhealthy+n.degraded == 0 {
		return nil
	}
	var rows []clusterRow
	v.src.Clusters.Statuses(func(c *status.Cluster) bool {
		if r := summarize(c); r.unhealthy+r.degraded > 0 {
			rows = append(rows, r)
		}
		return true
	})
	sortClusters(rows, order{by: "health", desc: true})
	return rows[:min(n, len(rows))]
}
