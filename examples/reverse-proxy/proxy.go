package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/httptransport"
)

// Route configures a listener and the cluster that its requests go to.
type Route struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Cluster string `json:"cluster"`
	High    bool   `json:"high_priority"` // takes the circuit breakers of high priority
	TLS     *TLS   `json:"tls"`           // of clients; null: plain text

	Timeout       Duration `json:"timeout"`         // of a request with its retries; default 15 s
	PerTryTimeout Duration `json:"per_try_timeout"` // default: Timeout alone
	Retries       int      `json:"retries"`         // see httptransport.Transport
	HashHeader    string   `json:"hash_header"`     // selects hosts with RING_HASH and MAGLEV

	ReadTimeout  Duration `json:"read_timeout"`  // for reading a request with its body; default 1 min
	WriteTimeout Duration `json:"write_timeout"` // for each write to the client; default 1 min
	IdleTimeout  Duration `json:"idle_timeout"`  // of a client's connection, between requests; default 1 min
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
	return cmp.Or(time.Duration(d), otherwise)
}

// newProxy assembles a proxy. Nothing is bound before it runs.
func newProxy(cfg server.Config, routes []Route) (*server.Server, error) {
	pools := new(httptransport.Pools)
	cfg.Clusters.Hooks = pools.Hooks(upstream.Hooks{})
	cfg.Clusters.Accept = func(c *config.Cluster) error {
		if slices.ContainsFunc(routes, func(r Route) bool { return r.Cluster == c.Name }) {
			return httptransport.Accept(c)
		}
		return nil // such as the cluster of a control plane
	}
	var srv *server.Server
	for _, r := range routes {
		t := &httptransport.Transport{
			Pools:   pools,
			Cluster: func() *upstream.Handle { return srv.Clusters().Cluster(r.Cluster) },
			Timeout: time.Duration(r.Timeout), PerTryTimeout: time.Duration(r.PerTryTimeout), Retries: r.Retries,
			Origin: httptransport.ForwardedOrigin,
		}
		if r.High {
			t.Priority = upstream.HighPriority
		}
		if r.HashHeader != "" {
			t.Hash = httptransport.HashHeader(r.HashHeader)
		}
		l := server.Listener{
			Name: r.Name, Address: r.Address, Direction: listeners.Inbound,
			ReadTimeout: r.ReadTimeout.or(time.Minute), WriteTimeout: r.WriteTimeout.or(time.Minute), IdleTimeout: r.IdleTimeout.or(time.Minute),
			HTTP: handler(t),
		}
		if r.TLS != nil {
			l.TLS = &certs.Files{Chain: r.TLS.Chain, Key: r.TLS.Key}
		}
		cfg.Listeners = append(cfg.Listeners, l)
	}
	var err error
	srv, err = server.New(cfg)
	return srv, err
}

func handler(t *httptransport.Transport) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: t, Rewrite: rewrite, FlushInterval: -1, ErrorHandler: httptransport.HandleError,
		ErrorLog: log.New(io.Discard, "", 0), // responses that are broken off are counted
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // or the server would take the rest of the request first
		w.Header()["Content-Type"] = nil                     // not guessed
		proxy.ServeHTTP(w, r)
	})
}

// rewrite makes the client's request that of the proxy.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as the client wrote it
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
}
