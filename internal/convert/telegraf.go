package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// statsdInputHints explains settings of Telegraf's input that have no equivalent.
var statsdInputHints = map[string]string{
	"allowed_pending_messages":       notNeeded,
	"number_workers_threads":         notNeeded,
	"convert_names":                  "has no equivalent: names stay as received, and each sink replaces what its receiver does not accept",
	"enable_aggregation_temporality": "has no equivalent: a sink has temporality",
	"metric_separator":               "has no equivalent: names stay as received",
	"percentile_limit":               "not needed: histograms count all values, in bins",
	"sanitize_name_method":           "has no equivalent: names stay as received, and each sink replaces what its receiver does not accept",
	"tcp_keep_alive":                 "has no equivalent: idle_timeout closes idle connections",
	"tcp_keep_alive_period":          "has no equivalent: idle_timeout closes idle connections",
	"float_counters":                 "has no equivalent: counters are whole numbers that carry fractions",
	"float_timings":                  "not needed: values keep six decimals",
	"float_sets":                     noEquivalent,
}

// telegraf converts the StatsD part of a configuration of Telegraf.
func (c *conversion) telegraf(o *object) {
	inputs, outputs := o.take("inputs").object(), o.take("outputs").object()
	agent := o.take("agent").object()
	t := &telegraf{conversion: c, tags: map[string]string{}}
	if tags := o.take("global_tags").object(); tags != nil {
		for _, key := range tags.keys {
			if v := tags.take(key); key != "" && v != nil {
				t.tags[key] = v.text("")
			}
		}
	}
	servers := inputs.take("statsd").list()
	scrape, client := t.scrape(outputs)
	admin := c.adminSection(scrape)
	t.interval = c.flushInterval(agent.take("interval"), t.gather(agent))
	statsd := c.out.child("statsd")
	for _, v := range servers {
		t.input(v.object(), statsd)
	}
	if len(servers) == 0 {
		c.errorf(c.where(o), "inputs.statsd", "there is none")
	}
	t.host(agent)
	for _, kind := range outputs.names() {
		if kind == "prometheus_client" {
			continue
		}
		for _, v := range outputs.take(kind).list() {
			t.output(kind, v)
		}
	}
	for _, x := range client {
		x.rest(nil, admin)
	}
	agent.rest(map[string]string{
		"flush_interval":      "has no equivalent: a sink has interval, a multiple of stats_flush_interval",
		"metric_batch_size":   notNeeded,
		"metric_buffer_limit": "has no equivalent: a sink has queue.max_bytes",
		"debug":               "has no equivalent: --log-level debug logs more",
		"quiet":               "has no equivalent: --log-level error logs less",
		"logfile":             "has no equivalent: see the flag --log-path",
	}, c.out)
	inputs.rest(nil, c.out)
}

// where returns a place in the file for errors about a missing setting.
func (c *conversion) where(o *object) *yaml.Node {
	if o != nil {
		for _, key := range o.keys {
			return o.items[key].key
		}
	}
	return mappingNode(1, 1)
}

// telegraf is a conversion from Telegraf.
type telegraf struct {
	*conversion
	interval    time.Duration
	tags        map[string]string // of all metrics
	percentiles []float64         // nil if no input sets them
	firstInput  bool
}

// gather returns how often inputs are read: that of the first input or of the agent.
func (t *telegraf) gather(agent *object) time.Duration {
	d := time.Duration(0)
	if agent != nil && agent.items["interval"] != nil {
		d = agent.items["interval"].duration(0, time.Second)
	}
	return cmp.Or(d, 10*time.Second)
}

// input converts an input. The first one decides the settings of the whole server.
func (t *telegraf) input(o *object, statsd *section) {
	if o == nil {
		return
	}
	network := o.take("protocol")
	address, connections, buffer := o.take("service_address"), o.take("max_tcp_connections"), o.take("read_buffer_size")
	protocol := network.text("udp")
	switch protocol {
	case "udp", "udp4", "udp6", "tcp", "tcp4", "tcp6":
	case "":
		protocol = "udp"
	default:
		network.wrong("udp, udp4, udp6 or tcp")
		return
	}
	host, port := "0.0.0.0", 8125
	if address != nil {
		host, port = address.listenAddress(address.text(""))
	}
	base := strings.TrimRight(protocol, "46")
	if protocol != base && host == "0.0.0.0" && protocol[3] == '6' {
		host = "::"
	}
	l := t.listener(base, host, port)
	if base == "tcp" {
		l.set("max_connections", connections.whole(250, 1, 1<<20, l))
		buffer.note(l, "is for UDP")
	} else {
		if n := buffer.whole(0, 1<<10, 1<<30, l); n > 0 {
			l.set("rcvbuf", n)
		}
	}
	first := !t.firstInput
	t.firstInput = true
	t.parse(o, statsd, first)
	t.expiry(o, statsd, first)
	if v := o.take("percentiles"); v != nil && t.percentiles == nil {
		t.percentiles = append([]float64{}, v.percentiles(v.list(), statsd)...)
	}
	t.templates(o.take("templates"), statsd)
	if v := o.take("metric_separator"); v != nil && v.text("_") != "_" {
		v.note(statsd, "%s", statsdInputHints["metric_separator"])
	}
	for _, name := range []string{"tcp_keep_alive", "convert_names", "enable_aggregation_temporality", "float_counters", "float_timings", "float_sets"} {
		o.take(name).noteIf(statsd, statsdInputHints[name])
	}
	o.rest(statsdInputHints, statsd)
}

// parse converts the dialects.
func (t *telegraf) parse(o *object, statsd *section, first bool) {
	on := false
	given := false
	for _, name := range []string{"datadog_extensions", "parse_data_dog_tags"} {
		if v := o.take(name); v != nil {
			given = true
			on = v.boolean(false) || on
		}
	}
	o.take("datadog_distributions") // always accepted
	container := o.take("datadog_keep_container_tag").boolean(false)
	if !first {
		return
	}
	if given && !on {
		statsd.child("parse").set("dogstatsd", false)
	}
	if container {
		statsd.child("parse").set("container", "tag")
	}
}

// expiry converts how long values stay. Sinks send increments of counters and values of
// intervals anyway.
func (t *telegraf) expiry(o *object, statsd *section, first bool) {
	age := o.take("max_ttl")
	for _, name := range []string{"delete_counters", "delete_timings", "delete_sets"} {
		if v := o.take(name); v != nil && !v.boolean(true) {
			v.note(statsd, "has no equivalent: scrapes, remote_write and otlp have totals, other sinks the values of an interval")
		}
	}
	reset := o.take("delete_gauges").boolean(true)
	if !first {
		return
	}
	if d := age.duration(0, time.Second); d > 0 {
		for _, kind := range []string{"counter", "gauge", "histogram", "set"} {
			t.ttl(kind, d)
		}
	}
	if reset {
		t.conversion.ttl("gauge", t.interval)
	}
}

// templates writes a draft of a mapping rule for each template.
func (t *telegraf) templates(v *value, statsd *section) {
	for _, e := range v.list() {
		draft, ok := templateRule(e.text(""))
		if !ok {
			e.note(statsd, "has no equivalent: write a mapping rule, see statsd.mapping")
			continue
		}
		e.note(statsd, "has no equivalent, but a mapping rule may do: %s", draft)
	}
}

// templateRule returns the draft of a mapping rule for a template: [filter] parts [tags].
func templateRule(template string) (rule string, ok bool) {
	words := strings.Fields(template)
	filter, parts := "", ""
	switch {
	case len(words) == 1:
		parts = words[0]
	case len(words) >= 2 && !strings.Contains(words[1], "="):
		filter, parts = words[0], words[1]
	case len(words) == 2:
		parts = words[0]
	default:
		return "", false
	}
	fixed := strings.Split(filter, ".")
	var match, name, labels []string
	for i, part := range strings.Split(parts, ".") {
		if strings.HasSuffix(part, "*") || len(match) == 32 {
			return "", false // a wildcard of any number of segments
		}
		segment, ref := "*", ""
		if i < len(fixed) && fixed[i] != "" && fixed[i] != "*" {
			segment, ref = fixed[i], fixed[i]
		} else {
			ref = fmt.Sprintf("${%d}", 1+strings.Count(strings.Join(match, ""), "*"))
		}
		match = append(match, segment)
		switch part {
		case "measurement", "field":
			name = append(name, ref)
		case "":
		default:
			labels = append(labels, strconv.Quote(part)+": "+strconv.Quote(ref))
		}
	}
	if len(name) == 0 {
		return "", false
	}
	return fmt.Sprintf("{match: %q, name: %q, labels: {%s}}", strings.Join(match, "."), strings.Join(name, "_"), strings.Join(labels, ", ")), true
}

// host converts the tag host.
func (t *telegraf) host(agent *object) {
	name, omit := agent.take("hostname"), agent.take("omit_hostname").boolean(false)
	if h := name.text(""); h != "" && !omit {
		t.tags["host"] = h
	}
}

// scrape returns where metrics are scraped, "" if they are not, and the outputs.
func (t *telegraf) scrape(outputs *object) (address string, all []*object) {
	for _, v := range outputs.take("prometheus_client").list() {
		o := v.object()
		listen, where := o.take("listen"), o.take("path")
		host, port := "0.0.0.0", 9273
		if listen != nil {
			host, port = listen.listenAddress(listen.text(""))
		}
		if address != "" {
			v.note(t.out, "has no equivalent: there is one administration interface")
		} else {
			address = joined(host, port)
		}
		if p := where.text("/metrics"); p != "/metrics" && p != "" {
			where.note(t.out, "has no equivalent: metrics are at /metrics")
		}
		o.take("metric_version")
		all = append(all, o)
	}
	return address, all
}

// output converts an output to a sink.
func (t *telegraf) output(kind string, v *value) {
	o := v.object()
	if o == nil {
		return
	}
	var own *section
	switch kind {
	case "graphite":
		own = t.graphite(v, o)
	case "opentelemetry":
		own = t.otlp(o)
	case "http":
		own = t.remoteWrite(v, o)
	case "file":
		own = t.file(v, o)
	case "discard":
		return
	default:
		v.note(t.out, "the output has no equivalent; otlp and remote_write reach many services")
		return
	}
	if own != nil {
		o.rest(nil, own)
	}
}

// tagged adds the tags of all metrics to a sink.
func (t *telegraf) tagged(sink *section) {
	for _, key := range slices.Sorted(maps.Keys(t.tags)) {
		sink.child("tags").set(key, t.tags[key])
	}
}

func (t *telegraf) graphite(v *value, o *object) (own *section) {
	servers := o.take("servers").list()
	prefix, tagged, timeout := o.take("prefix"), o.take("graphite_tag_support").boolean(false), o.take("timeout")
	add := func(host string, port int) {
		sink, made := t.sink("graphite")
		own = made
		if p := prefix.name(); p != "" {
			sink.set("prefix", p)
		}
		own.set("address", joined(host, port))
		if tagged {
			own.set("tagged", true)
			t.tagged(sink)
		}
		if t.percentiles != nil {
			own.set("percentiles", t.percentiles)
		}
		timeout.timeout(own, time.Second)
	}
	for i, v := range servers {
		host, port, ok := v.hostPort(2003)
		if i > 0 && ok {
			v.note(t.out, "each server gets all metrics, where Telegraf picks one")
		}
		if ok {
			add(host, port)
		}
	}
	if len(servers) == 0 {
		add("localhost", 2003)
	}
	if own != nil && !tagged && (len(t.tags) > 0 || !o.has("template")) {
		v.note(own, "paths are prefix and name: without graphite_tag_support, the host and global tags of Telegraf's template are not added; prefix can hold them")
	}
	return own
}

func (t *telegraf) otlp(o *object) *section {
	address := o.take("service_address")
	host, port, ok := "localhost", 4317, true
	if address != nil {
		host, port, ok = address.hostPort(4317)
	}
	if !ok {
		return nil
	}
	scheme := "http"
	if o.take("tls_enable").boolean(false) {
		scheme = "https"
	}
	for _, name := range []string{"tls_ca", "tls_cert", "tls_key"} {
		if o.take(name).text("") != "" {
			scheme = "https"
		}
	}
	sink, own := t.sink("otlp")
	own.set("protocol", "grpc")
	own.set("url", scheme+"://"+joined(host, port))
	if o.take("compression").text("gzip") == "gzip" {
		own.set("compression", "gzip")
	}
	o.take("timeout").timeout(own, time.Second)
	if attributes := o.take("attributes").object(); attributes != nil {
		for _, key := range attributes.keys {
			if a := attributes.take(key); a != nil && key != "" {
				own.child("resource").set(key, a.text(""))
			}
		}
	}
	t.files(o, own)
	t.tagged(sink)
	return own
}

// files converts the files of TLS, which the URL turns on.
func (t *telegraf) files(o *object, own *section) {
	o.take("tls_enable")
	chain, key := o.take("tls_cert"), o.take("tls_key")
	if ca := o.take("tls_ca"); ca.text("") != "" {
		own.child("tls").set("ca", ca.text(""))
	}
	switch {
	case chain.text("") != "" && key.text("") != "":
		own.child("tls").set("certificate_chain", chain.text(""))
		own.child("tls").set("private_key", key.text(""))
	case chain.text("") != "":
		chain.note(own, "has no effect without tls_key")
	case key.text("") != "":
		key.note(own, "has no effect without tls_cert")
	}
}

// remoteWrite converts an output over HTTP in the format of Prometheus.
func (t *telegraf) remoteWrite(v *value, o *object) *section {
	format := o.take("data_format")
	if f := format.text("influx"); f != "prometheusremotewrite" {
		v.note(t.out, "has no equivalent for the format %s; otlp and remote_write reach many services", oneWord(f))
		return nil
	}
	where := o.take("url")
	address, ok := where.url()
	if where == nil {
		t.errorf(v.key, v.path+".url", "is required")
	}
	if where == nil || !ok {
		return nil
	}
	sink, own := t.sink("remote_write")
	own.set("url", address)
	o.take("timeout").timeout(own, time.Second)
	for _, name := range []string{"method", "non_retryable_statuscodes", "use_batch_format", "content_encoding"} {
		o.take(name) // given by the protocol
	}
	if headers := o.take("headers").object(); headers != nil {
		for _, key := range headers.keys {
			h := headers.take(key)
			switch strings.ToLower(key) {
			case "content-type", "content-encoding", "x-prometheus-remote-write-version":
				continue // given by the protocol
			}
			if h != nil && validHeader(key, h.text("")) {
				own.child("headers").set(key, h.text(""))
			} else {
				h.note(own, "is not a header")
			}
		}
	}
	t.files(o, own)
	t.tagged(sink)
	return own
}

// validHeader reports whether a header can be sent.
func validHeader(name, text string) bool {
	for _, r := range name {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_') {
			return false
		}
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return name != "" && strings.TrimSpace(text) == text
}

// file converts an output to files.
func (t *telegraf) file(v *value, o *object) *section {
	format := o.take("data_format")
	for _, f := range o.take("files").list() {
		place := f.text("")
		if place == "stdout" {
			place = "/dev/stdout"
		}
		if !strings.HasPrefix(place, "/") || strings.ContainsRune(place, 0) || strings.HasSuffix(place, "/") {
			f.wrong("stdout or an absolute path")
			continue
		}
		sink, own := t.sink("json_lines")
		own.set("path", place)
		if p := format.text("influx"); p != "json" {
			v.note(own, "the format is JSON")
		}
		t.tagged(sink)
	}
	return t.out
}
