package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// circuit holds the numbers of the tile of a cluster, since the start.
type circuit struct {
	name                                                  string
	requests, success, errors, timeouts, overflow, active float64
	p99, p99Text                                          string
}

// share is the share of errors, 0 without requests.
func (c *circuit) share() float64 {
	if c.requests == 0 {
		return 0
	}
	return c.errors / c.requests
}

// shareText is the share of errors in words; without requests there is none.
func shareText(c *circuit) string {
	if c.requests == 0 {
		return none
	}
	return numfmt.Trimmed(c.share()*100, 2) + thin + "%"
}

// mostTiles is how many clusters the page shows.
const mostTiles = 200

func showCircuits(v *view) error {
	var list []circuit
	v.stats(func(stats *store.View) {
		v.src.Clusters.Statuses(func(c *status.Cluster) bool {
			prefix := "cluster." + c.ObservabilityName + "."
			value := func(name string) float64 {
				x, _ := number(stats, prefix+name)
				return x
			}
			p99, text := v.p99(stats, prefix+"upstream_rq_time")
			list = append(list, circuit{c.Name, value("upstream_rq_total"), value("upstream_rq_2xx"), value("upstream_rq_5xx"), value("upstream_rq_timeout"),
				value("upstream_rq_pending_overflow"), value("upstream_rq_active"), p99, text})
			return true
		})
	})
	v.summary = plural(len(list), "cluster")
	v.streamNote()
	if len(list) == 0 {
		return v.nothing("Circuits", "No clusters are configured. List some in ", h("<code>static_resources.clusters</code>."))
	}
	by := v.choice("sort", "errors", "name")
	slices.SortStableFunc(list, func(a, b circuit) int {
		if by == "name" {
			return strings.Compare(a.name, b.name)
		}
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(b.requests, a.requests), strings.Compare(a.name, b.name))
	})
	v.Put(h("<div class='row'>"))
	v.segments("Order", "sort", "errors", "Errors first", "name", "By name")
	v.Put(h("</div>\n<ul class='tiles' id='tiles'"))
	if v.circuitStream() {
		v.scripts = append(v.scripts, "circuits.js")
		v.Put(h(" data-events='.."), circuitPath, h("'"))
	}
	v.Put(h(">"))
	for i := range list[:min(mostTiles, len(list))] {
		v.tile(&list[i])
	}
	v.Put(h("</ul>\n"))
	if more := len(list) - mostTiles; more > 0 {
		v.empty(fmt.Sprintf("and %d more; the ", more), h("<a href='clusters'>board of clusters</a> has all of them"))
	}
	v.Put(h("<p class='quiet'>Numbers are since the start, with the event stream those of the last window; active requests are not in the stream and date from when the page was rendered. The breaker is always “forced closed” and " +
		"nothing is short-circuited: limits reject requests before a breaker would. Rejected requests are those over a limit (<code>upstream_rq_pending_overflow</code>).</p>\n"))
	return nil
}

// circuitPath is the endpoint that streams the numbers of the tiles.
const circuitPath = "/circuit_event_stream"

// circuitStream reports whether the stream is on and the client may read it. The
// endpoint of a stream that is off is hidden.
func (v *view) circuitStream() bool {
	return v.permits(circuitPath) && slices.ContainsFunc(v.site.srv.Endpoints(), func(e admin.Endpoint) bool { return e.Path == circuitPath })
}

// streamNote shows the address of the event stream, or how to get one.
func (v *view) streamNote() {
	if v.circuitStream() {
		v.Put(h("<div class='row'><span>Event stream for a Hystrix dashboard:</span> <code class='wrap'>"), v.r.Base(), circuitPath,
			h("</code> <button type='button' class='scripted' id='copy-stream' hidden>Copy</button><span class='quiet'>A dashboard that reads it in the browser needs <code>admin.circuit_stream_cors: any</code>.</span></div>\n"))
		return
	}
	v.note("info", "no-stream", func() {
		v.Put("The event stream is off. An entry ", h("<code>{name: circuit_stream}</code>"), " in ", h("<code>stats_sinks</code>"), " turns it on and makes this page live.")
	})
}

// tile appends the numbers of a cluster.
func (v *view) tile(c *circuit) {
	meaning := "ok"
	switch {
	case c.share() >= 0.05:
		meaning = "bad"
	case c.share() >= 0.01 || c.overflow > 0:
		meaning = "warn"
	}
	v.Put(h("<li class='panel tile' data-cluster='"), c.name, h("'><h2><a class='wrap' href='"), url("clusters", "cluster", c.name), h("'>"), c.name, h("</a></h2><p class='big' data-c='errorPercentage' data-value='"), exactValue(c.share()*100), h("'>"),
		shareText(c), h("</p><p>"))
	switch {
	case c.requests == 0:
		v.word("quiet", "no requests")
	case meaning == "ok":
		v.word(meaning, "errors low")
	default:
		v.word(meaning, "errors")
	}
	v.Put(h("</p><svg class='s' viewBox='0 0 96 20' preserveAspectRatio='none' aria-hidden='true'><polyline class='ln' points=''/></svg><dl class='pairs'>"))
	for _, x := range [...]struct {
		name, field string
		value       float64
	}{
		{"Requests", "requestCount", c.requests}, {"Successes", "rollingCountSuccess", c.success}, {"Errors", "errorCount", c.errors}, {"Timeouts", "rollingCountTimeout", c.timeouts},
		{"Rejected", "rollingCountSemaphoreRejected", c.overflow}, {"Short-circuited", "", 0}, {"Active", "", c.active},
	} {
		v.Put(h("<dt>"), x.name, h("</dt><dd class='num' data-c='"), x.field, h("' data-value='"), exactValue(x.value), h("'>"), numfmt.Grouped(fmt.Sprintf("%.0f", x.value)), h("</dd>"))
	}
	v.Put(h("<dt>p99</dt><dd class='num' data-c='p99' data-value='"), c.p99, h("'>"), c.p99Text, h("</dd><dt>Mean</dt><dd class='num quiet'>"), none, h("</dd></dl></li>\n"))
}
