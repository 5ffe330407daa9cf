package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/httptransport"
)

const (
	clientTimeout = time.Minute     // for reading, for each write, and between requests, by default
	endTime       = 5 * time.Second // for requests in flight when the proxy ends
)

// httpRoute forwards the requests of a listener.
type httpRoute struct {
	Route
	proxy   *proxy
	forward httputil.ReverseProxy

	total, routed, completed *store.Counter
	classes                  [5]*store.Counter // 1xx to 5xx
	active                   *store.Gauge
	took                     *store.Histogram
	connections              connectionStats
}

// connectionStats counts the connections of clients.
type connectionStats struct {
	total, ended *store.Counter
	active       *store.Gauge
	length       *store.Histogram
	opened       sync.Map // when, by connection
}

func (s *connectionStats) init(sc *store.Scope) {
	s.total, s.ended, s.active = sc.Counter("downstream_cx_total"), sc.Counter("downstream_cx_destroy"), sc.Gauge("downstream_cx_active")
	s.length = sc.Histogram("downstream_cx_length_ms", histogram.Milliseconds)
}

// change notes the state of a connection.
func (s *connectionStats) change(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.opened.Store(c, time.Now())
		s.total.Inc()
		s.active.Inc()
	case http.StateHijacked, http.StateClosed: // net/http does not report the end of a hijacked one
		if since, ok := s.opened.LoadAndDelete(c); ok {
			s.length.Record(uint64(time.Since(since.(time.Time)).Milliseconds()))
			s.ended.Inc()
			s.active.Dec()
		}
	}
}

// init creates the stats and the transport.
func (r *httpRoute) init(sc *store.Scope) {
	r.total, r.active = sc.Counter("downstream_rq_total"), sc.Gauge("downstream_rq_active")
	r.routed, r.completed = sc.Counter("rq_total"), sc.Counter("downstream_rq_completed")
	r.connections.init(sc)
	r.took = sc.Histogram("downstream_rq_time", histogram.Milliseconds)
	for i, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		r.classes[i] = sc.Counter("downstream_rq_" + class)
	}
	t := &httptransport.Transport{
		Pools: r.proxy.pools, Cluster: func() *upstream.Handle { return r.proxy.server.Clusters().Cluster(r.Cluster) },
		Priority: r.priority(), Timeout: time.Duration(r.Timeout), PerTryTimeout: time.Duration(r.PerTryTimeout), Retries: r.Retries,
	}
	if r.HashHeader != "" {
		t.Hash = func(req *http.Request) (uint64, bool) {
			v := req.Header.Get(r.HashHeader)
			return xxhash.Sum64String(v), v != ""
		}
	}
	r.forward = httputil.ReverseProxy{
		Transport: t, Rewrite: rewrite, FlushInterval: -1, ErrorHandler: httptransport.HandleError,
		ErrorLog: slog.NewLogLogger(r.proxy.server.Logger("http").Handler(), slog.LevelDebug),
	}
}

// rewrite makes the client's request that of the proxy.
func rewrite(p *httputil.ProxyRequest) {
	to := &url.URL{Scheme: "http", Host: p.In.Host}
	if p.In.URL.Host == "" && (len(p.In.RequestURI) < 2 || p.In.RequestURI[1] != '/') {
		to.Opaque = p.In.RequestURI // as the client wrote it
	} else {
		to.Path, to.RawPath, to.RawQuery = p.In.URL.Path, p.In.URL.RawPath, p.In.URL.RawQuery
	}
	p.Out.URL = to
	p.Out.Header.Del("Upgrade")
	p.Out.Header.Del("Connection")
	p.Out.Header.Del("Te")
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	from := p.Out.Header.Clone()
	p.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} { // only the address is added
		if p.Out.Header.Del(name); from[name] != nil {
			p.Out.Header[name] = from[name]
		}
	}
}

// serve implements the Serve of a listener.
func (r *httpRoute) serve(ctx context.Context, l net.Listener) error {
	s := r.newServer(http.HandlerFunc(r.handle))
	s.ErrorLog = r.forward.ErrorLog
	var fresh sync.Map // connections that have not sent anything, for which Shutdown would wait
	s.ConnState = func(c net.Conn, state http.ConnState) {
		r.connections.change(c, state)
		if state == http.StateNew {
			fresh.Store(c, nil)
		} else {
			fresh.Delete(c)
		}
	}
	err := s.Serve(l)
	if errors.Is(err, net.ErrClosed) {
		err = nil
		<-ctx.Done() // connections go on
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	fresh.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close()
		return true
	})
	if s.Shutdown(end) != nil {
		r.proxy.server.Logger("http").Warn("requests are still in flight at the end", "listener", r.Name)
		_ = s.Close()
	}
	r.proxy.pools.Drain(nil, nil)
	return err
}

// newServer returns a server that closes the connections of slow clients.
func (r *httpRoute) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadTimeout: r.ReadTimeout.or(clientTimeout), WriteTimeout: r.WriteTimeout.or(clientTimeout),
		IdleTimeout: r.IdleTimeout.or(clientTimeout),
	}
}

// handle serves one request.
func (r *httpRoute) handle(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	r.total.Inc()
	r.active.Inc()
	a := &answer{ResponseWriter: w, route: r}
	defer func() { // also if the answer is broken off by a panic
		if class := a.status/100 - 1; class >= 0 && class < len(r.classes) {
			r.classes[class].Inc()
		}
		r.completed.Inc()
		r.took.Record(uint64(time.Since(start).Milliseconds()))
		r.active.Dec()
	}()
	if err := httptransport.Check(req); err != nil {
		httptransport.HandleError(a, req, err)
		return
	}
	r.routed.Inc()
	r.forward.ServeHTTP(a, req)
}

// answer is an answer to a client. Each write of it has a time of its own, so that
// long answers reach clients that read.
type answer struct {
	http.ResponseWriter
	route  *httpRoute
	status int
}

// Unwrap serves [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.status = status
	if a.route.proxy.server.Lifecycle().ShouldClose(true) {
		a.Header().Set("Connection", "close")
	}
	if h := a.Header(); h["Content-Type"] == nil {
		h["Content-Type"] = nil // not guessed
	}
	a.extend()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	a.extend()
	return a.ResponseWriter.Write(b)
}

func (a *answer) extend() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.route.WriteTimeout.or(clientTimeout)))
}
