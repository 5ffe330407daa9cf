package main

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/httptransport"
)

// Route configures a listener and the destination of its traffic.
type Route struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Protocol string `json:"protocol"` // http (default) or tcp
	Cluster  string `json:"cluster"`
	High     bool   `json:"high_priority"` // takes the circuit breakers of high priority
	TLS      *TLS   `json:"tls"`           // of clients; null: plain text

	// HTTP.
	Timeout       Duration `json:"timeout"`         // of a request with its retries; default 15 s
	PerTryTimeout Duration `json:"per_try_timeout"` // default: Timeout alone
	Retries       int      `json:"retries"`         // after connect failures and 5xx; if idempotent or not sent, after resets and timeouts of a try
	HashHeader    string   `json:"hash_header"`     // selects hosts with RING_HASH and MAGLEV
	ReadTimeout   Duration `json:"read_timeout"`    // for reading a request with its body; default 1 min
	WriteTimeout  Duration `json:"write_timeout"`   // for each write to the client; default 1 min

	// TCP.
	ConnectAttempts int `json:"connect_attempts"` // default 1

	// IdleTimeout bounds the idle time of a client connection: between requests,
	// default 1 min; for TCP in both directions, default 1 h.
	IdleTimeout Duration `json:"idle_timeout"`
}

// TLS names the files of a certificate, in PEM form.
type TLS struct {
	Chain string `json:"certificate_chain"`
	Key   string `json:"private_key"`
}

// Duration is a time in JSON, such as "1.5s".
type Duration time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	*d = Duration(v)
	return err
}

// or returns d, or the default if d is 0.
func (d Duration) or(otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return time.Duration(d)
}

// proxy is a server with listeners that forward traffic.
type proxy struct {
	server *server.Server
	http   []*httpRoute
	tcp    []*tcpRoute
	pools  *httptransport.Pools
}

// newProxy assembles a proxy. Nothing is bound before it runs.
func newProxy(cfg server.Config, routes []Route) (*proxy, error) {
	p := &proxy{pools: new(httptransport.Pools)}
	for _, r := range routes {
		l := server.Listener{Name: r.Name, Address: r.Address, Direction: listeners.Inbound}
		if r.TLS != nil {
			l.TLS = &certs.Files{Chain: r.TLS.Chain, Key: r.TLS.Key}
		}
		switch r.Protocol {
		case "", "http":
			h := &httpRoute{Route: r, proxy: p}
			p.http = append(p.http, h)
			l.Serve = h.serve
		case "tcp":
			t := &tcpRoute{Route: r, proxy: p, open: make(map[*tunnel]bool)}
			p.tcp = append(p.tcp, t)
			l.Handle = t.handle
		default:
			return nil, fmt.Errorf("listener %q: protocol %q is not one of http, tcp", r.Name, r.Protocol)
		}
		cfg.Listeners = append(cfg.Listeners, l)
	}
	cfg.Clusters.Hooks = p.pools.Hooks(upstream.Hooks{CloseConnections: p.closeTunnels})
	cfg.Clusters.Accept = p.accept
	var err error
	if p.server, err = server.New(cfg); err != nil {
		return nil, err
	}
	for _, h := range p.http {
		h.init(p.server.Store().Scope("http." + h.Name))
	}
	return p, nil
}

// closeTunnels closes the tunnels to an unhealthy host, as the cluster manager asks.
func (p *proxy) closeTunnels(_ *upstream.Cluster, h *host.Host) {
	if h == nil {
		return // connections of pools are drained
	}
	for _, r := range p.tcp {
		r.close(h)
	}
}

// cluster returns the cluster that a route leads to now, nil if there is none. The
// caller releases it.
func (p *proxy) cluster(r *Route) *upstream.Cluster {
	if h := p.server.Clusters().Cluster(r.Cluster); h != nil {
		return h.Acquire()
	}
	return nil
}

// priority returns the priority of the requests of a route.
func (r *Route) priority() upstream.Priority {
	if r.High {
		return upstream.HighPriority
	}
	return upstream.DefaultPriority
}
