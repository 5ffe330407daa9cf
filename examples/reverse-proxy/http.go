package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/server/listeners"
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

	total, routed *store.Counter
	active        *store.Gauge
	took          *store.Histogram
	answers       answerStats
	ofListener    answerStats // the same, with the address of the listener
	clients       clientStats
}

// init creates the stats and the transport.
func (r *httpRoute) init(sc *store.Scope) {
	r.total, r.active = sc.Counter("downstream_rq_total"), sc.Gauge("downstream_rq_active")
	r.routed, r.answers, r.clients = sc.Counter("rq_total"), newAnswerStats(sc), newClientStats(sc)
	r.took = sc.Histogram("downstream_rq_time", histogram.Milliseconds)
	t := &httptransport.Transport{
		Pools: r.proxy.pools, Cluster: func() *upstream.Handle { return r.proxy.server.Clusters().Cluster(r.Cluster) },
		Priority: r.priority(), Timeout: time.Duration(r.Timeout), PerTryTimeout: time.Duration(r.PerTryTimeout), Retries: r.Retries,
		Origin: origin,
	}
	if r.HashHeader != "" {
		t.Hash = func(req *http.Request) (uint64, bool) {
			v := req.Header.Get(r.HashHeader)
			return xxhash.Sum64String(v), v != ""
		}
	}
	r.forward = httputil.ReverseProxy{
		Transport: t, Rewrite: rewrite, FlushInterval: -1, ErrorHandler: handleError,
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

// handleError answers a request that has no answer of a host.
func handleError(w http.ResponseWriter, req *http.Request, err error) {
	a := w.(*answer)
	a.failed = true
	if a.conn.timedOut.Load() {
		w.Header().Set("Connection", "close") // the rest of the request may still arrive
		err = &httptransport.Error{Status: http.StatusRequestTimeout, Err: err}
	}
	httptransport.HandleError(w, req, err)
}

// serve implements the Serve of a listener.
func (r *httpRoute) serve(ctx context.Context, l net.Listener) error {
	at := strings.ReplaceAll(listeners.FromNet(l.Addr()).String(), ":", "_")
	r.ofListener = newAnswerStats(r.proxy.server.Store().Scope("listener." + at + ".http." + r.Name))
	s := r.newServer(http.HandlerFunc(r.handle))
	s.ErrorLog, s.ConnContext = r.forward.ErrorLog, withConn
	var fresh sync.Map // connections that have not sent anything, for which Shutdown would wait
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			fresh.Store(c, nil)
			return
		case http.StateIdle:
			c.(*clientConn).idle()
		}
		fresh.Delete(c)
	}
	err := s.Serve(clientListener{l, &r.clients})
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
	a := &answer{ResponseWriter: w, route: r, conn: req.Context().Value(connKey{}).(*clientConn)}
	a.conn.serving.Store(true)
	_ = http.NewResponseController(w).EnableFullDuplex() // or the server would take the rest of the request
	whole := false
	defer func() { // also if the answer is broken off by a panic
		r.answers.count(a.status)
		r.ofListener.count(a.status)
		r.took.Record(uint64(time.Since(start).Milliseconds()))
		a.conn.served(!whole || a.failed && a.conn.gone.Load())
		r.active.Dec()
	}()
	if err := httptransport.Check(req); err != nil {
		httptransport.HandleError(a, req, err)
	} else {
		r.routed.Inc()
		r.forward.ServeHTTP(a, req)
	}
	whole = true
}

// answer is an answer to a client. Each write of it has a time of its own, so that
// long answers reach clients that read.
type answer struct {
	http.ResponseWriter
	route  *httpRoute
	conn   *clientConn
	status int
	failed bool // no host answered
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
