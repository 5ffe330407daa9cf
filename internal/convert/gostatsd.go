package convert

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	notNeeded    = "not needed: lines are applied by the reader that received them, without queues"
	noCloud      = "has no equivalent: senders or a control plane know where they run"
	noForwarding = "has no equivalent: clients or a relay send lines"
)

// gostatsdHints explains settings of gostatsd that have no equivalent.
var gostatsdHints = map[string]string{
	"bad-lines-per-minute":  "has no equivalent: /ingest shows the last rejected lines, by reason",
	"cloud-provider":        noCloud,
	"estimated-tags":        notNeeded,
	"flush-aligned":         "has no equivalent: flushes are not aligned to the clock",
	"flush-offset":          "has no equivalent: flushes are not aligned to the clock",
	"heartbeat-enabled":     "has no equivalent: server.uptime grows",
	"hostname":              "has no equivalent: node.id names the server",
	"http-transport":        noForwarding,
	"internal-namespace":    "has no equivalent: the server's own metrics keep their names, such as ingest.lines",
	"internal-tags":         "has no equivalent: --stats-tag adds tags to all stats",
	"log-raw-metric":        "has no equivalent: /tap shows received lines",
	"max-concurrent-events": notNeeded,
	"max-parsers":           notNeeded,
	"max-queue-size":        notNeeded,
	"max-workers":           notNeeded,
	"receive-batch-size":    notNeeded,
	"statser-type":          "has no equivalent: the server's own metrics are always kept",
	"verbose":               "has no equivalent: --log-level debug logs more",
}

// gostatsd converts the configuration of gostatsd. Its keys are case-insensitive.
func (c *conversion) gostatsd(o *object) {
	o.lower()
	c.adminSection("")
	interval := o.take("flush-interval")
	flush := c.flushInterval(interval, interval.duration(time.Second, time.Nanosecond))
	statsd := c.out.child("statsd")
	c.gostatsdListener(o, statsd)
	namespace := o.take("namespace").name()
	if namespace != "" {
		statsd.set("prefix", namespace)
		namespace += "."
	}
	expiry := o.take("expiry-interval").duration(5*time.Minute, time.Nanosecond)
	for _, kind := range []struct{ theirs, ours string }{{"counter", "counter"}, {"gauge", "gauge"}, {"timer", "histogram"}, {"set", "set"}} {
		d := o.take("expiry-interval-"+kind.theirs).duration(expiry, time.Nanosecond)
		if d < 0 {
			d = flush // at once
		}
		c.ttl(kind.ours, d)
	}
	if v := o.take("ignore-host"); v != nil && !v.boolean(false) {
		v.note(statsd, "has no equivalent: no tag has the sender of a line")
	}
	c.gostatsdFilters(o, statsd, namespace)
	if v := o.take("server-mode"); v.text("standalone") != "standalone" {
		v.note(statsd, noForwarding)
	}
	c.gostatsdServers(o)
	c.gostatsdBackends(o)
	hints := maps.Clone(gostatsdHints)
	for _, key := range o.keys {
		if strings.HasPrefix(key, "cloud-") || key == "max-cloud-requests" || key == "burst-cloud-requests" || key == "aws" || key == "k8s" {
			hints[key] = noCloud
		}
	}
	o.rest(hints, c.out)
}

// lower makes all keys lower case, and returns o.
func (o *object) lower() *object {
	if o == nil {
		return nil
	}
	items := map[string]*value{}
	for i, key := range o.keys {
		v := o.items[key]
		key = strings.ToLower(key)
		if items[key] != nil {
			o.c.errorf(v.key, v.path, "is set twice, with different letter cases")
		}
		o.keys[i], items[key] = key, v
	}
	o.items = items
	return o
}

func (c *conversion) gostatsdListener(o *object, statsd *section) {
	address := o.take("metrics-addr")
	readers, apart, size := o.take("max-readers"), o.take("conn-per-reader"), o.take("receive-buffer-size")
	var l *section
	if text := address.text(":8125"); strings.HasPrefix(text, "/") {
		place, _ := address.socketPath()
		l = statsd.add("listeners")
		l.set("address", "unixgram://"+place)
	} else {
		host, port := "0.0.0.0", 8125
		if address != nil {
			host, port = address.listenAddress(text)
		}
		l = c.listener("udp", host, port)
	}
	if n := readers.whole(0, 1, 256, l); n > 0 && apart.boolean(false) {
		l.set("readers", n)
	} else if n > 0 {
		readers.note(l, "not needed without conn-per-reader: each reader has a socket")
	}
	if n := size.whole(0, 512, 1<<20, l); n > 0 {
		l.set("max_packet_bytes", n)
	}
}

// gostatsdServers converts HTTP servers: the administration interface replaces them.
func (c *conversion) gostatsdServers(o *object) {
	names, group := o.take("http-servers"), o.take("http").object().lower()
	for _, name := range names.words() {
		server := group.take(strings.ToLower(name)).object()
		if v := server.take("enable-ingestion"); v.boolean(false) {
			v.note(c.out, "has no equivalent: forwarders cannot send here, but gostatsd with the backend statsdaemon can")
		}
	}
	names.note(c.out, "has no equivalent: the administration interface has health checks and profiles")
	group.skip()
}

// names returns the keys in the order of the file.
func (o *object) names() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// gostatsdBackends converts backends to sinks.
func (c *conversion) gostatsdBackends(o *object) {
	backends, percent, tags := o.take("backends"), o.take("percent-threshold"), o.take("default-tags")
	names := backends.words()
	if !o.has("backends") {
		names = []string{"graphite"}
	}
	constant := map[string]string{}
	for _, t := range tags.words() {
		if key, text, ok := strings.Cut(t, ":"); ok && key != "" && text != "" {
			constant[key] = text
		} else {
			tags.note(c.out, "the tag %s has no value, which sinks need", oneWord(t))
		}
	}
	if len(constant) > 0 {
		tags.note(c.out, "only sinks that send tags add them, not scrapes")
	}
	tagged := func(sink *section) {
		for _, key := range slices.Sorted(maps.Keys(constant)) {
			sink.child("tags").set(key, constant[key])
		}
	}
	for _, name := range names {
		group := o.take(strings.ToLower(name)).object().lower()
		switch strings.ToLower(name) {
		case "graphite":
			c.gostatsdGraphite(group, percent, tagged)
		case "statsdaemon":
			c.gostatsdStatsdaemon(group, tagged)
		case "otlp":
			c.gostatsdOTLP(group, tagged)
		case "stdout":
			c.stdout()
		case "null":
		default:
			if v := o.items[strings.ToLower(name)]; v != nil {
				v.note(c.out, "the backend has no equivalent; otlp and remote_write reach many services")
			} else {
				backends.note(c.out, "the backend %s has no equivalent; otlp and remote_write reach many services", oneWord(name))
			}
			continue
		}
		group.rest(nil, c.out)
	}
	for _, name := range []string{"graphite", "statsdaemon", "otlp", "stdout", "datadog", "newrelic", "influxdb", "cloudwatch"} {
		o.take(name) // the section of a backend that is off has no effect
	}
}

func (c *conversion) gostatsdGraphite(group *object, percent *value, tagged func(*section)) {
	address := group.take("address")
	sink, own := c.sink("graphite")
	host, port, ok := address.hostPort(2003)
	if !ok {
		host, port = "localhost", 2003
	}
	own.set("address", joined(host, port))
	mode := group.take("mode")
	switch mode.text("tags") {
	case "legacy":
		own.set("layout", "legacy")
	case "basic":
		own.set("layout", "modern")
	case "tags":
		own.set("layout", "modern")
		own.set("tagged", true)
		tagged(sink)
	default:
		mode.wrong("legacy, basic or tags")
	}
	if percent != nil {
		var elements []*value
		for _, e := range percent.list() {
			for _, word := range strings.Fields(e.text("")) {
				node := *e.node
				node.Value = word
				elements = append(elements, &value{c: c, key: e.key, node: &node, path: e.path})
			}
		}
		all := percent.percentiles(elements, own)
		own.set("percentiles", append([]float64{}, all...))
	}
	group.layoutNames(own, true, "global_prefix", "prefix_counter", "prefix_timer", "prefix_gauge", "prefix_sets", "global_suffix")
	group.take("write_timeout").timeout(own, time.Nanosecond)
	group.take("dial_timeout")
}

func (c *conversion) gostatsdStatsdaemon(group *object, tagged func(*section)) {
	address := group.take("address")
	host, port, ok := address.hostPort(8125)
	if !ok {
		if strings.TrimSpace(address.text("")) == "" {
			c.errorf(c.where(group), "statsdaemon.address", "is required")
		}
		return
	}
	sink, own := c.sink("statsd")
	own.set("address", joined(host, port))
	if group.take("tcp_transport").boolean(false) {
		own.set("protocol", "tcp")
	}
	if !group.take("disable_tags").boolean(false) {
		own.set("format", "dogstatsd")
		tagged(sink)
	}
	for _, name := range []string{"dial_timeout", "write_timeout"} {
		group.take(name).note(own, "has no equivalent: an attempt has a fixed limit")
	}
}

func (c *conversion) gostatsdOTLP(group *object, tagged func(*section)) {
	endpoint := group.take("metrics_endpoint")
	address, ok := endpoint.url()
	if !ok {
		if endpoint == nil {
			c.errorf(c.where(group), "otlp.metrics_endpoint", "is required")
		}
		return
	}
	sink, own := c.sink("otlp")
	own.set("url", address)
	own.set("temporality", "delta") // as in gostatsd
	if group.take("compress_payload").boolean(false) {
		own.set("compression", "gzip")
	}
	tagged(sink)
	group.take("logs_endpoint").note(own, "has no equivalent: events are not sent")
}

// filterRegex is the prefix of a regular expression in a filter.
const filterRegex = "regex:"

// gostatsdFilters converts filters, which gostatsd applies to names that begin with the
// namespace, and this server to names as received.
func (c *conversion) gostatsdFilters(o *object, statsd *section, namespace string) {
	names, group := o.take("filters"), o.take("filter").object().lower()
	for _, name := range names.words() {
		v := group.take(strings.ToLower(name))
		f := v.object().lower()
		if f == nil {
			names.note(statsd, "there is no filter %s", oneWord(name))
			continue
		}
		c.gostatsdFilter(v, f, statsd, namespace)
	}
	group.rest(nil, statsd)
}

func (c *conversion) gostatsdFilter(v *value, f *object, statsd *section, namespace string) {
	matched, drop := f.take("match-metrics"), f.take("drop-metric").boolean(false)
	for _, name := range []string{"exclude-metrics", "match-tags"} {
		if x := f.take(name); x != nil && len(x.words()) > 0 {
			v.note(statsd, "a filter with %s has no equivalent", name)
			f.skip()
			return
		}
	}
	filters := statsd.child("filters")
	var matchers []*section
	missed, all := false, false
	for _, e := range matched.list() {
		for _, pattern := range strings.Fields(e.text("")) {
			m := new(section)
			expression, isRegex := strings.CutPrefix(pattern, filterRegex)
			rest, ours := strings.CutPrefix(pattern, namespace)
			if start, open := strings.CutSuffix(pattern, "*"); open && strings.HasPrefix(namespace, start) {
				rest, ours = "*", true
			}
			switch {
			case strings.HasPrefix(pattern, "!"):
				e.note(filters, "an inverted match has no equivalent: the filter is left out")
				return
			case isRegex:
				if namespace != "" {
					e.note(filters, "the expression gets names without the namespace here: check that it still matches")
				}
				// gostatsd matches anywhere in the name, this server the whole name.
				expression = "(?s:.*?(?:" + expression + ").*)"
				if _, err := regexp.Compile(expression); err != nil || len(expression) > 1000 {
					e.wrong("a regular expression")
					return
				}
				m.child("safe_regex").set("regex", expression)
			case !ours:
				e.note(filters, "%s matches no name with the namespace", oneWord(pattern))
				missed = true
				continue
			case strings.TrimSuffix(rest, "*") == "":
				all = true
				continue
			case strings.HasSuffix(rest, "*"):
				m.set("prefix", strings.TrimSuffix(rest, "*"))
			default:
				m.set("exact", rest)
			}
			matchers = append(matchers, m)
		}
	}
	if missed && !all && len(matchers) == 0 {
		return // without a matcher, it would be for every name
	}
	if drop {
		if len(matchers) == 0 {
			v.note(filters, "drops every metric: it is left out")
			return
		}
		for _, m := range matchers {
			filters.add("deny").items = m.items
		}
	}
	var keys []string
	tags := f.take("drop-tags")
	for _, e := range tags.list() {
		for _, t := range strings.Fields(e.text("")) {
			if key, ok := strings.CutSuffix(t, ":*"); ok && key != "" && !strings.ContainsAny(key, "!:*") {
				keys = append(keys, key)
			} else {
				e.note(filters, "only all values of a tag can be removed, such as %s", `"host:*"`)
			}
		}
	}
	if len(keys) > 0 {
		t := filters.add("tags")
		for _, m := range matchers {
			t.add("names").items = m.items
		}
		t.set("drop", keys)
	}
	f.take("drop-host") // no tag has the sender of a line
	f.rest(nil, filters)
}
