package convert

import (
	"cmp"
	"time"
)

// brubeckHints explains settings of brubeck that have no equivalent.
var brubeckHints = map[string]string{
	"capacity":    "not needed: tables grow; statsd.limits.series bounds the number of series",
	"dumpfile":    "has no equivalent: /stats lists all metrics",
	"server_name": "has no equivalent: node.id names the server",
}

// brubeck converts the configuration of brubeck.
func (c *conversion) brubeck(o *object) {
	admin := c.adminSection("")
	o.take("sharding") // implied by several backends, which have a note
	o.take("http").note(admin, "has no equivalent: the administration interface has /live, /stats and /ingest")
	backends, samplers := o.take("backends"), o.take("samplers")
	flush := time.Duration(0)
	type carbon struct {
		v     *value
		o     *object
		every time.Duration
	}
	var all []carbon
	for _, v := range backends.list() {
		b := v.object()
		if kind := b.take("type"); b != nil && kind.text("") != "carbon" {
			if kind == nil {
				v.note(c.out, "the backend has no type")
			}
			kind.note(c.out, "the backend has no equivalent; otlp and remote_write reach many services")
			b.skip()
			continue
		}
		every := b.take("frequency").duration(10*time.Second, time.Second)
		if flush == 0 || every < flush {
			flush = every
		}
		all = append(all, carbon{v, b, every})
	}
	flush = cmp.Or(flush, 10*time.Second)
	flush = c.flushInterval(backends, flush)
	statsd := c.out.child("statsd")
	if v := o.take("expire"); v != nil {
		if d := v.duration(0, time.Second); d > 0 {
			for _, kind := range []string{"counter", "gauge", "histogram", "set"} {
				c.ttl(kind, d)
			}
		}
	}
	for _, v := range samplers.list() {
		c.brubeckSampler(v, v.object())
	}
	if !statsd.has("listeners") {
		statsd.set("listeners", []string{})
	}
	for _, b := range all {
		if b.o != nil {
			c.brubeckCarbon(b.v, b.o, b.every, flush)
		}
	}
	if len(all) > 1 {
		backends.note(c.out, "has no equivalent: each sink gets all metrics; a relay with mode hash spreads them")
	}
	o.rest(brubeckHints, c.out)
}

// skip marks all settings as taken.
func (o *object) skip() {
	for _, key := range o.names() {
		o.items[key].taken = true
	}
}

func (c *conversion) brubeckSampler(v *value, o *object) {
	if o == nil {
		return
	}
	statsd := c.out.child("statsd")
	kind := o.take("type")
	if kind.text("") != "statsd" {
		if kind == nil {
			v.note(statsd, "the sampler has no type")
		}
		kind.note(statsd, "the sampler has no equivalent; a listener with tls and client_ca knows its senders")
		o.skip()
		return
	}
	host, port := o.take("address").listenHost("0.0.0.0"), o.take("port").port(8126)
	l := c.listener("udp", host, port)
	workers := o.take("workers")
	if n := workers.whole(0, 1, 256, l); n > 0 && o.take("multisock").boolean(false) {
		l.set("readers", n)
	} else if n > 0 {
		workers.note(l, "not needed without multisock: each reader has a socket")
	}
	o.take("multimsg").note(l, "not needed: up to 32 datagrams are received at a time")
	o.rest(nil, l)
}

func (c *conversion) brubeckCarbon(v *value, o *object, every, flush time.Duration) {
	sink, own := c.sink("graphite")
	if every != flush {
		if every > 0 && every%flush == 0 && every <= 24*time.Hour {
			sink.set("interval", every.String())
		} else {
			v.note(sink, "%v is not a multiple of %v, the interval of flushes", every, flush)
		}
	}
	own.set("address", joined(o.take("address").host(), o.take("port").port(2003)))
	v.note(own, "fields of timers have other names: upper_75 in place of percentile.75")
	own.set("percentiles", []float64{75, 95, 98, 99, 99.9})
	if p := o.take("pickle"); p.boolean(false) {
		p.note(own, "lines are sent as plain text: set the port of carbon's line receiver")
	}
	o.rest(nil, own)
}
