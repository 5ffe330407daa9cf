package convert

import (
	"path"
	"strings"
	"time"
)

// statsdHints explains settings of StatsD for Node.js that have no equivalent.
var statsdHints = map[string]string{
	"automaticConfigReload":  "not needed: mapping rules are reloaded on SIGHUP, other settings by a hot restart",
	"calculatedTimerMetrics": "all fields of timers are sent",
	"debug":                  "has no equivalent: --log-level debug logs more",
	"debugInterval":          "has no equivalent: --log-level debug logs more",
	"dumpMessages":           "has no equivalent: /tap shows received lines",
	"flush_counts":           "the lines of counts are always sent",
	"healthStatus":           "has no equivalent: POST /healthcheck/fail makes health checks fail",
	"histogram":              "has no equivalent: stats_config.histogram_bucket_settings sets the buckets of scrapes, and mapping rules those of single timers",
	"keyFlush":               "has no equivalent: /ingest?top=samples shows the busiest names",
	"log":                    "has no equivalent: see the flags --log-path and --log-format",
	"mgmt_address":           "has no equivalent: the administration interface replaces the management port",
	"mgmt_port":              "has no equivalent: the administration interface replaces the management port",
	"prefixStats":            "has no equivalent: the server's own metrics have fixed names, such as ingest.lines, and filters.origin keeps them out of sinks",
	"title":                  noEquivalent,
}

// statsd converts the configuration of StatsD for Node.js, or of its proxy.
func (c *conversion) statsd(o *object) {
	if o.items["nodes"] != nil {
		c.statsdProxy(o)
		return
	}
	c.adminSection("")
	interval := o.take("flushInterval")
	flush := c.flushInterval(interval, interval.duration(10*time.Second, time.Millisecond))
	statsd := c.out.child("statsd")
	if servers := o.take("servers"); servers != nil {
		for _, v := range servers.list() {
			c.statsdServer(v.object())
		}
		if !statsd.has("listeners") {
			statsd.set("listeners", []string{})
		}
		for _, name := range []string{"server", "address", "address_ipv6", "port", "socket", "socket_mod"} {
			o.take(name).note(statsd, "has no effect beside servers")
		}
	} else {
		c.statsdServer(&object{c: c, items: o.items}) // without the settings that belong to others
	}
	zeros := c.statsdIdle(o, statsd, flush)
	backends := o.take("backends").words()
	if !o.has("backends") {
		backends = []string{"./backends/graphite"}
	}
	repeats := false
	for _, b := range backends {
		switch strings.TrimSuffix(path.Base(b), ".js") {
		case "graphite":
			c.statsdGraphite(o, zeros)
		case "console":
			c.stdout()
		case "repeater":
			repeats = true
			c.statsdRepeater(o)
		default:
			o.items["backends"].note(c.out, "the backend %s has no equivalent; other sinks may do, such as otlp, remote_write and statsd", oneWord(b))
		}
	}
	if !repeats {
		for _, name := range []string{"repeater", "repeaterProtocol"} {
			o.take(name).note(statsd, "has no effect without the backend repeater")
		}
	}
	if v := o.take("keyNameSanitize"); !v.boolean(true) {
		v.note(c.out, "has no equivalent: each sink replaces what its receiver does not accept")
	}
	o.rest(statsdHints, c.out)
}

// has reports whether a setting is present, whatever its value.
func (o *object) has(name string) bool { return o != nil && o.items[name] != nil }

// statsdServer converts a server, or the settings of the only one.
func (c *conversion) statsdServer(o *object) {
	if o == nil {
		return
	}
	statsd := c.out.child("statsd")
	everywhere := "0.0.0.0"
	if o.take("address_ipv6").boolean(false) {
		everywhere = "::"
	}
	network := "udp"
	if server := o.take("server").text(""); strings.Contains(server, "tcp") {
		network = "tcp"
	}
	socket := o.take("socket")
	if mode := o.take("socket_mod"); network == "tcp" && socket.text("") != "" {
		if place, ok := socket.socketPath(); ok {
			l := statsd.add("listeners")
			l.set("address", "unixlines://"+place)
			if text := mode.text(""); text != "" {
				l.set("mode", octal(mode))
			}
		}
	} else {
		c.listener(network, o.take("address").listenHost(everywhere), o.take("port").port(8125))
	}
	if o.path != "" {
		o.rest(nil, statsd)
	}
}

// octal returns the mode of a socket in octal.
func octal(v *value) string {
	text := strings.TrimPrefix(v.text(""), "0o")
	for _, r := range text {
		if r < '0' || r > '7' || len(text) > 4 || len(text) == 4 && text[0] != '0' {
			v.wrong("an octal mode, such as 0755")
			return "0755"
		}
	}
	return text
}

// statsdIdle converts the handling of stats that got no sample in an interval, and
// reports whether idle counters are sent as 0. Idle timers have no line, and gauges
// their last value.
func (c *conversion) statsdIdle(o *object, statsd *section, flush time.Duration) (zeros bool) {
	all := o.take("deleteIdleStats").boolean(false)
	for _, kind := range []struct{ setting, ttl string }{{"deleteGauges", "gauge"}, {"deleteSets", "set"}} {
		if o.take(kind.setting).boolean(all) {
			c.ttl(kind.ttl, flush)
		}
	}
	if v := o.take("deleteTimers"); v != nil && !v.boolean(all) {
		v.note(statsd, "a sink sends no zeros for idle timers")
	}
	return !o.take("deleteCounters").boolean(all)
}

// statsdGraphite converts the backend for Graphite.
func (c *conversion) statsdGraphite(o *object, zeros bool) {
	host, port := o.take("graphiteHost"), o.take("graphitePort")
	percent, group := o.take("percentThreshold"), o.take("graphite").object()
	for _, name := range []string{"graphiteProtocol", "graphitePicklePort"} {
		if v := o.take(name); v != nil && v.text("") != "text" {
			v.note(c.out, "lines are sent as plain text, to graphitePort")
		}
	}
	if host.text("") == "" {
		o.items["backends"].note(c.out, "without graphiteHost there is no sink for Graphite")
		return
	}
	_, sink := c.sink("graphite")
	sink.set("address", joined(host.host(), port.port(2003)))
	layout := "legacy"
	if !group.take("legacyNamespace").boolean(true) {
		layout = "modern"
	}
	sink.set("layout", layout)
	if zeros {
		sink.set("zero_deltas", true)
	}
	if percent != nil {
		if all := percent.percentiles(percent.list(), sink); len(all) > 0 {
			sink.set("percentiles", all)
		} else {
			sink.set("percentiles", []float64{})
		}
	}
	group.layoutNames(sink, layout == "modern", "globalPrefix", "prefixCounter", "prefixTimer", "prefixGauge", "prefixSet", "globalSuffix")
	group.rest(nil, sink)
}

// statsdRepeater converts the backend that sends packets on.
func (c *conversion) statsdRepeater(o *object) {
	network := "udp"
	if p := o.take("repeaterProtocol"); p.text("") == "tcp" {
		network = "tcp"
	}
	targets := o.take("repeater").list()
	if len(targets) == 0 {
		return
	}
	route := c.relay()
	route.set("invalid", true) // as the repeater, which does not parse packets
	for _, v := range targets {
		t := v.object()
		host, port := t.take("host"), t.take("port")
		if t != nil && host == nil {
			c.errorf(v.node, v.path, "has no host")
		}
		relayTarget(route, v, network, host.host(), port.port(8125))
		t.rest(nil, route)
	}
}

// statsdProxy converts the configuration of the proxy of StatsD for Node.js.
func (c *conversion) statsdProxy(o *object) {
	c.adminSection("")
	everywhere, network := "0.0.0.0", "udp"
	if o.take("udp_version").text("") == "udp6" {
		everywhere = "::"
	}
	if strings.Contains(o.take("server").text(""), "tcp") {
		network = "tcp"
	}
	c.listener(network, o.take("host").listenHost(everywhere), o.take("port").port(8125))
	statsd := c.out.child("statsd")
	statsd.set("relay_only", true)
	route := c.relay()
	route.set("mode", "hash")
	interval := o.take("checkInterval")
	pause := interval.duration(10*time.Second, time.Millisecond)
	if pause < 100*time.Millisecond || pause > time.Hour {
		interval.note(route, "%v is not from 100ms to 1h", pause)
		pause = 10 * time.Second
	}
	nodes := o.take("nodes")
	for _, v := range nodes.list() {
		t := v.object()
		host, port, admin := t.take("host").host(), t.take("port").port(8125), t.take("adminport")
		target := relayTarget(route, v, "udp", host, port)
		if admin != nil {
			check := target.child("health_check")
			check.set("address", joined(host, admin.port(8126)))
			check.set("expect", "up")
			check.set("interval", pause.String())
		}
		t.rest(nil, route)
	}
	if !route.has("targets") {
		c.errorf(o.items["nodes"].node, "nodes", "there are none")
	}
	o.rest(map[string]string{
		"cacheSize": "not needed: the owner of a name is computed, not cached",
		"forkCount": "not needed: a UDP listener has several readers",
		"mgmt_port": statsdHints["mgmt_port"],
	}, statsd)
}
